# `make demo`: feel the product on an emulated bad link. `make test`: everything that CI runs.
.PHONY: build demo test musl servers install install-files

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
	  [ "$$file" ] || continue; \
	  if program=$$(scripts/build-target $$target </dev/null); then install -m755 $$program $(SERVERS)/$$file; \
	  else echo "NOT BUILT: $$file: the lines above say why"; fi; \
	done
	cd $(SERVERS) && { ls rove-* >/dev/null 2>&1 || { \
	  echo "No server was built. A rove of the host's kind can be copied: rove install --from FILE HOST"; \
	  exit 1; }; } && sha256sum rove-* >SHA256SUMS

PREFIX ?= /usr/local
SYSCONFDIR ?= $(PREFIX)/etc
install: build
	$(MAKE) install-files

# What `make install` puts where, and what packages hold: this list alone says it.
BIN = target/release/rove
ROOT = $(DESTDIR)$(PREFIX)
install-files:
	install -Dm755 $(BIN) $(ROOT)/bin/rove
	ln -sf rove $(ROOT)/bin/rove-ssh
	if [ -e $(SERVERS)/SHA256SUMS ]; then install -d $(ROOT)/lib/rove/servers && \
	  install -m755 $(SERVERS)/rove-* $(ROOT)/lib/rove/servers && \
	  install -m644 $(SERVERS)/SHA256SUMS $(ROOT)/lib/rove/servers; fi
	for page in rove rove-attach rove-cp rove-doctor rove-exec rove-install rove-server; do \
	  install -Dm644 docs/man/$$page.1 $(ROOT)/share/man/man1/$$page.1 || exit; done
	for page in ls new kill; do ln -sf rove-attach.1 $(ROOT)/share/man/man1/rove-$$page.1; done
	ln -sf rove-exec.1 $(ROOT)/share/man/man1/rove-ssh.1
	install -Dm644 docs/man/rove_config.5 $(ROOT)/share/man/man5/rove_config.5
	install -Dm644 docs/completions/rove.bash $(ROOT)/share/bash-completion/completions/rove
	install -Dm644 docs/completions/_rove $(ROOT)/share/zsh/site-functions/_rove
	install -Dm644 docs/completions/rove.fish $(ROOT)/share/fish/vendor_completions.d/rove.fish
	install -d $(ROOT)/share/doc/rove
	install -m644 LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md $(ROOT)/share/doc/rove
	install -Dm644 packaging/rove-forward@.service $(ROOT)/lib/systemd/user/rove-forward@.service
	install -Dm644 packaging/firewalld.xml $(ROOT)/lib/firewalld/services/rove.xml
	install -Dm644 packaging/ufw-profile $(DESTDIR)$(SYSCONFDIR)/ufw/applications.d/rove
