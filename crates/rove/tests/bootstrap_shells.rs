//! The remote command under the login shells that people have: the server gets the words that were
//! meant.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rove::testing::bootstrap::Nonce;
use rove::testing::bootstrap::{Bind, CostProfile, Goal, Ports, Purpose, Request, Server};

fn nonce() -> Nonce {
    Nonce::new([0xab; 16])
}

/// Words that need quoting in one shell or another.
const HARD_WORDS: [&[u8]; 8] = [
    b"it's",
    b"a\\\\b\\n",
    b"!! $HOME `id` \"x\"",
    b"line\nbreak\n\n",
    b"",
    b"100% \x01\x7f\xff\xc3\xbc",
    b"*?[~{a,b}#;&|<>()",
    b"\\0101%b%s",
];

fn request(server: Server, command: &[&[u8]]) -> Request {
    Request {
        nonce: nonce(),
        key: None,
        server,
        bind: Bind::Usual,
        ports: Some(Ports { low: 60001, high: 60010 }),
        colours: 256,
        locale: vec![("LANG".into(), "xx_XX.UTF-8".into()), ("LC_ALL".into(), "$(reboot)'".into())],
        purpose: Purpose::Shell,
        agent: false,
        tariff: CostProfile::Flat,
        carry: false,
        keep: None,
        goal: Goal::Any,
        host: "me@build7".into(),
        command: command.iter().map(|word| OsStr::from_bytes(word).to_owned()).collect(),
    }
}

/// A server that prints its name and its words, or its version.
const PROGRAM: &str = r#"#!/bin/sh
if test "$1" = --version; then echo "rove 1.2.3"; exit; fi
printf '%s\0' "$(basename "$0")" "$@"
"#;

/// Runs a remote command as sshd does, by the user's shell, where every server is such a script;
/// returns what comes after the beginning.
fn run(shell: &str, request: &Request, programs: &[&str]) -> Vec<String> {
    let home = tempdir(&format!("{shell}-{}", programs.join("-")));
    let (bin, tools) = (home.join(".local/bin"), home.join("tools"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&tools).unwrap();
    for tool in ["sh", "basename", "env", "locale", "uname"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(tool), tools.join(tool)).unwrap();
    }
    for program in programs {
        let path = bin.join(program);
        std::fs::write(&path, PROGRAM).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    let mut command = Command::new("/usr/bin/timeout");
    let shell = Path::new("/usr/bin").join(shell);
    command.arg("20").arg(&shell).args(["-c", &request.remote_command()]).env_clear();
    command.env("PATH", tools).env("SSH_CONNECTION", "1.1.1.1 2 3.3.3.3 22");
    command.env("HOME", &home).env("SHELL", "/bin/dash").current_dir(&home);
    let output = command.output().unwrap();
    std::fs::remove_dir_all(&home).unwrap();
    let begin = format!("\nROVE BEGIN {} 1.1.1.1 2 3.3.3.3 22\n", request.nonce);
    let rest = output.stdout.strip_prefix(begin.as_bytes());
    let rest = rest.unwrap_or_else(|| panic!("{shell:?}: {output:?}"));
    rest.split(|&octet| octet == 0).map(|word| word.escape_ascii().to_string()).collect()
}

fn tempdir(name: &str) -> PathBuf {
    let name = format!("rove-bootstrap-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn every_shell_passes_every_word_on() {
    let several = HARD_WORDS.as_slice();
    for shell in ["sh", "bash", "zsh", "fish", "tcsh"] {
        let nonce = format!("--nonce={}", nonce());
        let common = [b"-c".as_slice(), b"256", b"-p", b"60001:60010", b"-l"];
        let rove = [b"server".as_slice(), nonce.as_bytes(), b"-@", b"host=me@build7"];
        let stock = [b"new".as_slice(), b"-s"];
        let stock_line = [b"--".as_slice(), b"/bin/dash", b"-c"];
        let env = Server::Stock("env X='1 2' mosh-server".into());
        for (server, programs, name, own, command) in [
            (Server::Found, &["rove", "mosh-server"][..], "rove", &rove[..], several),
            (Server::Found, &["mosh-server"], "mosh-server", &stock[..], several),
            (Server::Found, &["mosh-server"], "mosh-server", &stock[..], &several[..1]),
            (Server::Found, &["rove"], "rove", &rove[..], &several[..1]),
            (Server::Found, &["rove"], "rove", &rove[..], &[]),
            (Server::Found, &["mosh-server"], "mosh-server", &stock[..], &[]),
            (env.clone(), &["rove", "mosh-server"], "mosh-server", &stock[..], several),
            (env.clone(), &["rove", "mosh-server"], "mosh-server", &stock[..], &several[2..3]),
            (
                Server::Rove("\"$HOME\"/.local/bin/rove server".into()),
                &["rove"],
                "rove",
                &rove[..],
                several,
            ),
        ] {
            let words = run(shell, &request(server.clone(), command), programs);
            let found = format!("ROVE FOUND {} rove 1.2.3\nrove", crate::nonce());
            let mut expected = match (&server, name) {
                (Server::Found, "rove") => vec![found.as_bytes()],
                _ => vec![name.as_bytes()],
            };
            expected.extend(own.iter().copied());
            expected.extend(common);
            // mosh-server refuses a locale that its host does not have, and this one does not
            // exist.
            expected.push(if name == "rove" { b"LANG=xx_XX.UTF-8" } else { b"LC_ALL=C.UTF-8" });
            match (name, command.len()) {
                (_, 0) => {}
                ("mosh-server", 1) => expected.extend(stock_line),
                _ => expected.push(b"--"),
            }
            expected.extend(command.iter().copied());
            expected.push(b"");
            let expected: Vec<String> =
                expected.iter().map(|word| word.escape_ascii().to_string()).collect();
            assert_eq!(words, expected, "{shell} {server:?} {command:?}");
        }
    }
}

#[test]
fn a_host_without_servers_says_where_it_looked() {
    let words = run("sh", &request(Server::Found, &[b"x"]), &[]);
    let (host, line) = words[0].split_once("\\n").unwrap();
    let machine = std::env::consts::ARCH;
    assert_eq!(host, format!("ROVE HOST {} Linux {machine}", nonce()));
    assert!(line.starts_with(&format!("ROVE NONE {} /", nonce())), "{line}");
    assert!(line.ends_with("/.local/bin:/usr/local/bin:/opt/homebrew/bin\\n"), "{line}");
}
