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
	scripts/build-target x86_64-unknown-linux-musl

# Programs for `rove install` to copy to hosts, one for each kind of machine that can be built for here, in
# target/servers, with their sums. A kind that cannot be built is left out, and said (scripts/build-target).
SERVERS = target/servers
servers:
	mkdir -p $(SERVERS)
	rm -f $(SERVERS)/rove-* $(SERVERS)/SHA256SUMS
	grep -v '^#' scripts/targets | while read -r target file _; do \
	  if program=$$(scripts/build-target $$target </dev/null); then install -m755 $$program $(SERVERS)/$$file; \
	  else echo "NOT BUILT: $$file: the lines above say why"; fi; \
	done
	cd $(SERVERS) && { ls rove-* >/dev/null 2>&1 || { \
	  echo "No server was built. A rove of the host's kind can be copied: rove install --from FILE HOST"; \
	  exit 1; }; } && sha256sum rove-* >SHA256SUMS

PREFIX ?= /usr/local
install: build
	if [ -e $(SERVERS)/SHA256SUMS ]; then install -d $(DESTDIR)$(PREFIX)/lib/rove/servers && \
	  install -m755 $(SERVERS)/rove-* $(DESTDIR)$(PREFIX)/lib/rove/servers && \
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
