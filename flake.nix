{
  description = "rove, a mobile shell: a terminal on another host, over bad and moving networks";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = nixpkgs.lib.genAttrs systems;
      workspace = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;
    in {
      packages = each (system:
        let pkgs = nixpkgs.legacyPackages.${system}; in {
          default = pkgs.rustPlatform.buildRustPackage {
            pname = "rove";
            version = workspace.version;
            src = self;
            cargoLock.lockFile = ./Cargo.lock;
            cargoBuildFlags = [ "-p" "rove-shell" "--bin" "rove" ];
            # Tests need an sshd, namespaces and half an hour: `make test` runs them.
            doCheck = false;
            installPhase = ''
              runHook preInstall
              make install-files DESTDIR= PREFIX=$out SYSCONFDIR=$out/etc \
                BIN=target/${pkgs.stdenv.hostPlatform.rust.rustcTarget}/release/rove
              runHook postInstall
            '';
            meta = {
              description = "Mobile shell: a terminal on another host, over bad and moving networks";
              homepage = workspace.repository;
              license = with pkgs.lib.licenses; [ mit asl20 ];
              mainProgram = "rove";
              platforms = systems;
            };
          };
        });
    };
}
