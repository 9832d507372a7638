# `make demo`: feel the product on an emulated bad link. `make test`: everything that CI runs.
.PHONY: build demo test musl install

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
	cargo build --release --locked -p rove-shell --target x86_64-unknown-linux-musl

PREFIX ?= /usr/local
install: build
	install -Dm755 target/release/rove $(DESTDIR)$(PREFIX)/bin/rove
	install -Dm644 docs/man/rove.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove.1
	install -Dm644 docs/man/rove-cp.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-cp.1
	ln -sf rove $(DESTDIR)$(PREFIX)/bin/rove-ssh
	install -Dm644 docs/man/rove-exec.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-exec.1
	ln -sf rove-exec.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-ssh.1
	install -Dm644 docs/man/rove-server.1 $(DESTDIR)$(PREFIX)/share/man/man1/rove-server.1
	install -Dm644 docs/man/rove_config.5 $(DESTDIR)$(PREFIX)/share/man/man5/rove_config.5
	install -Dm644 docs/completions/rove.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/rove
	install -Dm644 docs/completions/_rove $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_rove
	install -Dm644 docs/completions/rove.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/rove.fish
