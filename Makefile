# `make demo`: feel the product on an emulated bad link. `make test`: everything that CI runs.
.PHONY: build demo test musl servers install

build:
	cargo build --release --locked -p rove-shell -p rove-lab

demo: build
	exec target/release/rove-lab demo

test:
	scripts/install-test-tools
	scripts/test

# A static binary that runs on any x86-64 Linux.
musl:
	timeout 300 rustup target add x86_64-unknown-linux-musl
	env CC_x86_64_unknown_linux_musl=$${CC_x86_64_unknown_linux_musl:-cc} \
	  cargo build --release --locked -p rove-shell --target x86_64-unknown-linux-musl

# Servers for `rove install` to copy to hosts of both kinds, static, in target/servers, with their sums. A kind that
# cannot be built here is left out, and said. CC_aarch64_unknown_linux_musl names another C compiler: what it compiles
# needs its headers alone, so one for glibc will do.
SERVERS = target/servers
servers:
	mkdir -p $(SERVERS)
	rm -f $(SERVERS)/rove-linux-* $(SERVERS)/SHA256SUMS
	for machine in x86_64 aarch64; do \
	  target=$$machine-unknown-linux-musl; \
	  setting=CC_$${machine}_unknown_linux_musl; \
	  compiler=$$(printenv $$setting || command -v $$machine-linux-musl-gcc || echo $$machine-linux-gnu-gcc); \
	  if ! command -v $$compiler >/dev/null; then \
	    echo "NOT BUILT: a server for $$machine: there is no $$compiler. Install one for that machine" \
	      "(Debian: gcc-$$(echo $$machine | tr _ -)-linux-gnu), or name it: $$setting=COMPILER make servers"; \
	  elif timeout 300 rustup target add $$target && \
	      env $$setting=$$compiler CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld \
	        cargo build --release --locked -p rove-shell --target $$target; then \
	    install -m755 target/$$target/release/rove $(SERVERS)/rove-linux-$$machine; \
	  else echo "NOT BUILT: a server for $$machine: the lines above say why"; fi; \
	done
	cd $(SERVERS) && { ls rove-linux-* >/dev/null 2>&1 || { \
	  echo "No server was built. A rove of the host's kind can be copied: rove install --from FILE HOST"; \
	  exit 1; }; } && sha256sum rove-linux-* >SHA256SUMS

PREFIX ?= /usr/local
install: build
	if [ -e $(SERVERS)/SHA256SUMS ]; then install -d $(DESTDIR)$(PREFIX)/lib/rove/servers && \
	  install -m755 $(SERVERS)/rove-linux-* $(DESTDIR)$(PREFIX)/lib/rove/servers && \
	  install -m644 $(SERVERS)/SHA256SUMS $(DESTDIR)$(PREFIX)/lib/rove/servers; fi
	install -Dm755 target/release/rove $(DESTDIR)$(PREFIX)/bin/rove
	install -Dm644 docs/man/rove.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove.1
	install -Dm644 docs/man/rove-cp.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-cp.1
	ln -sf rove $(DESTDIR)$(PREFIX)/bin/rove-ssh
	install -Dm644 docs/man/rove-exec.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-exec.1
	install -Dm644 docs/man/rove-install.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-install.1
	install -Dm644 docs/man/rove-attach.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-attach.1
	for page in ls new kill; do \
	  ln -sf rove-attach.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-$$page.1; done
	ln -sf rove-exec.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-ssh.1
	install -Dm644 docs/man/rove-server.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-server.1
	install -Dm644 docs/man/rove_config.5 $(DESTDIR)$(PREFIX)/share/man/man5/rove_config.5
	install -Dm644 docs/completions/rove.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/rove
	install -Dm644 docs/completions/_rove $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_rove
	install -Dm644 docs/completions/rove.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/rove.fish
