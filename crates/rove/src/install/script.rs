//! What the host runs: it says what it is, reads the program, tries it, and puts it in place.

use std::ffi::OsStr;

use crate::bootstrap::nonce::Nonce;
use crate::bootstrap::{DECODE, SEARCHED, sh};

/// The host says what it is, and what is there. `$1` is the directory for programs, if one was named.
const LOOK: &str = r#"b=${1:-$HOME/.local/share/rove}; k=$HOME/.local/bin/rove; echo "ROVE HOST @ $(uname -sm)"; if t=$(readlink "$k"); then echo "ROVE LINKED @ $t"; fi; if test -e "$k" || test -h "$k"; then echo "ROVE THERE @ $("$k" --version </dev/null 2>&1 | head -n 1 | cut -c 1-200)"; fi; echo "ROVE READY @"; "#;

/// It reads how long the program is, its SHA-256 and its name, then the program. A word says which step has failed. Where
/// others may write to the directory for programs, one of them may have made ours before: it is not used.
const TAKE: &str = r#"umask 077; read -r size sum name || exit 0; no() { rm -f "$p"; echo "ROVE FAILED @ $1 $(echo "$e" | head -n 1 | cut -c 1-200)"; exit 0; }; p=; e=$(mkdir -p "$b/$name" 2>&1) || no write; b=$(cd "$b" && pwd); d=$b/$name; e="$d is not yours"; if test -h "$d"; then no write; fi; test -O "$d" || no write; p=$d/.part.$$; rm -f "$d"/.part.*; e=$( { head -c "$size" >"$p"; } 2>&1 ) || no write; e=$(wc -c <"$p"); test "$e" -eq "$size" || no length; "#;

/// It compares the sum, by whichever program there is, else by the program itself, and runs it.
const TRY: &str = r#"s=; for t in "sha256sum" "shasum -a 256" "openssl dgst -sha256 -r"; do if command -v ${t%% *} >/dev/null; then s=$($t <"$p"); s=${s%% *}; break; fi; done; e=$s; if test -n "$s"; then test "$s" = "$sum" || no sum; fi; chmod 700 "$p"; e=$("$p" --version </dev/null 2>&1) || no run; if test -z "$s"; then e=$("$p" install --print-sum . </dev/null 2>&1); test "$e" = "$sum" || no sum; fi; "#;

/// It renames the program and the link to it into place, and forgets all but the newest three. A directory of that name
/// that somebody else made, or a link, is left alone.
const PLACE: &str = r#"e=$(mv -f "$p" "$d/rove" 2>&1) || no place; e=$( { mkdir -p "$HOME/.local/bin" && ln -s "$d/rove" "$k.$$" && mv -f "$k.$$" "$k"; } 2>&1 ) || no place; touch "$d"; (cd "$b" && h="[0-9a-f]" && ls -t | while read -r o; do case $o in *-$h$h$h$h$h$h$h$h) if test -O "$o"; then test -h "$o" || echo "$o"; fi;; esac; done | tail -n +4 | while read -r o; do rm -f "$o/rove" "$o"/.part.*; rmdir "$o"; done) 2>/dev/null; "#;

/// Which rove a session would find there.
const FIND: &str = r#"PATH="$PATH:%"; export PATH; r=$(command -v rove); if test "$r" = "$k"; then :; else echo "ROVE FIRST @ $r"; echo "ROVE ITS @ $("$r" --version </dev/null 2>&1 | head -n 1 | cut -c 1-200)"; fi; echo "ROVE DONE @ $d""#;

/// The command for ssh. Like that of the bootstrap it has nothing that any login shell changes.
pub(super) fn script(nonce: &Nonce, to: Option<&OsStr>) -> String {
    let nonce = nonce.to_string();
    let begin = r#"echo; echo "ROVE BEGIN @ $SSH_CONNECTION"; "#.replace('@', &nonce);
    let decode = if to.is_some() { DECODE } else { "" };
    let steps = [LOOK, TAKE, TRY, PLACE, &FIND.replace('%', SEARCHED)].concat();
    let words: Vec<&OsStr> = to.into_iter().collect();
    sh(&[&begin, decode, &steps.replace('@', &nonce)].concat(), &words)
}
