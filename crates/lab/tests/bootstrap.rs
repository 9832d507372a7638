//! Tests the way from `rove host` to a prompt through a real sshd, and failures on it: noisy startup files, a login
//! shell that is no Bourne shell, a jump host, and an unsuitable ssh configuration.

mod common;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{chosen, rove_program, say};
use rove_lab::testing::run::Program;
use rove_lab::testing::sshd::Sshd;
use rove_term::Size;

/// How long a bootstrap or one command may take.
const LIMIT: Duration = Duration::from_secs(60);

const SIZE: Size = Size::DEFAULT;

/// The users of this test; sshd logs them in by key.
#[derive(Clone, Copy)]
enum Login {
    /// With bash, and rove installed.
    Bash,
    /// With fish, and rove installed.
    Fish,
    /// With bash, on a machine that has only mosh.
    Stock,
}

const LOGINS: [(Login, &str, &str); 3] = [
    (Login::Bash, "rovelab-bash", "/bin/bash"),
    (Login::Fish, "rovelab-fish", "/usr/bin/fish"),
    (Login::Stock, "rovelab-stock", "/bin/bash"),
];

#[derive(Clone, Copy)]
enum Client {
    /// `rove`, with these options.
    Rove(&'static [&'static str]),
    /// Debian's `mosh`, with these.
    Stock(&'static [&'static str]),
}

struct Case {
    name: &'static str,
    client: Client,
    host: &'static str,
    user: Login,
    /// Text that the client must have printed before the session, if any.
    says: &'static str,
}

const CASES: [Case; 10] = [
    Case {
        name: "mosh-wire",
        client: Client::Rove(&["--mosh-wire"]),
        host: "plain",
        user: Login::Bash,
        says: "",
    },
    Case {
        name: "plain",
        client: Client::Rove(&["--native"]),
        host: "plain",
        user: Login::Bash,
        says: "",
    },
    Case { name: "noisy", client: Client::Rove(&[]), host: "noisy", user: Login::Bash, says: "" },
    Case { name: "fish", client: Client::Rove(&[]), host: "fish", user: Login::Fish, says: "" },
    Case { name: "jump", client: Client::Rove(&[]), host: "jump", user: Login::Fish, says: "" },
    Case { name: "busy", client: Client::Rove(&[]), host: "busy", user: Login::Bash, says: "" },
    // No rove there: the stock server is used, and the user gets a message.
    Case {
        name: "only-mosh",
        client: Client::Rove(&[]),
        host: "stock",
        user: Login::Stock,
        says: "has mosh-server only",
    },
    Case {
        name: "named-server",
        client: Client::Rove(&["-v", "--server=mosh-server"]),
        host: "fish",
        user: Login::Fish,
        says: "its mosh-server",
    },
    Case {
        name: "stock-client",
        client: Client::Stock(&["--server=.local/bin/mosh-server"]),
        host: "plain",
        user: Login::Bash,
        says: "",
    },
    Case {
        name: "stock-client-fish",
        client: Client::Stock(&["--server=.local/bin/mosh-server"]),
        host: "fish",
        user: Login::Fish,
        says: "",
    },
];

#[test]
fn bootstraps_through_a_real_sshd() {
    let mut sshd = Sshd::start().unwrap();
    let rove = fs::read(rove_program()).unwrap();
    let mut names = Vec::new();
    for (login, name, shell) in LOGINS {
        let user = sshd.add_user(name, shell).unwrap();
        user.write(".hushlogin", "", 0o644).unwrap();
        user.write(".bash_profile", "PS1='$ '\n", 0o644).unwrap();
        user.write(".bashrc", noise(), 0o644).unwrap();
        if !matches!(login, Login::Stock) {
            for program in ["rove", "mosh-server"] {
                user.write(&format!(".local/bin/{program}"), &rove, 0o755).unwrap();
            }
        }
        names.push(user.name().to_owned());
    }
    let name = |login: Login| names[login as usize].as_str();
    // Root may bind any free port, so the forwarding collides only with one that is held.
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = held.local_addr().unwrap().port();
    let busy = format!("{BUSY}\n  LocalForward 127.0.0.1:{port} 127.0.0.1:{port}");
    let config = sshd
        .client_config(&[
            ("plain", name(Login::Bash), "  SetEnv LC_QUIET=1"),
            ("noisy", name(Login::Bash), ""),
            ("fish", name(Login::Fish), ""),
            ("stock", name(Login::Stock), "  SetEnv LC_QUIET=1"),
            ("jump", name(Login::Fish), "  ProxyJump plain"),
            ("busy", name(Login::Bash), &busy),
        ])
        .unwrap();
    let failures: Vec<String> = CASES
        .iter()
        .filter(|case| chosen("CASE", case.name))
        .filter_map(|case| {
            let result = case.run(name(case.user), &config, sshd.directory());
            say(&format!(
                "bootstrap {}: {}",
                case.name,
                result.as_ref().map_or("FAILED", |()| "ok")
            ));
            result.err().map(|error| format!("{}: {error}", case.name))
        })
        .collect();
    assert!(failures.is_empty(), "{}\nsshd's log:\n{}", failures.join("\n"), sshd.log());
}

impl Case {
    fn run(&self, user: &str, config: &Path, directory: &Path) -> std::io::Result<()> {
        let mut command = self.command(config);
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").current_dir(directory);
        // What was said today is not said again.
        command.env("XDG_STATE_HOME", directory.join("state"));
        let mut client = Program::start(command, SIZE)?;
        // A prompt of its own making is the shell's, not what ssh or the startup files print.
        client.wait_for("a prompt", LIMIT, |client| {
            client.shows("$") || client.shows(&format!("{user}@")) || client.shows(">")
        })?;
        client.send("id -un; expr 20 + 22\r");
        client.wait_for("the user's name and a sum", LIMIT, |client| {
            let rows = client.screen().text();
            rows.iter().any(|row| row == user) && rows.iter().any(|row| row == "42")
        })?;
        client.send("exit\r");
        let status = client.wait_exit(LIMIT)?;
        if !status.success() {
            return Err(client
                .missed(&format!("a clean end, got {status}"), Duration::ZERO)
                .into());
        }
        // Its text from before the session stands on the main screen, which is back now.
        client.wait_for("what the client said", LIMIT, |client| {
            self.says.is_empty() || client.shows(self.says)
        })?;
        Ok(())
    }

    fn command(&self, config: &Path) -> Command {
        let ssh = format!("--ssh=ssh -F {}", config.display());
        let (mut command, options) = match self.client {
            Client::Rove(options) => {
                let mut command = Command::new(rove_program());
                // Its text from before the session is looked for on the main screen afterwards.
                command.arg("--init");
                (command, options)
            }
            Client::Stock(options) => {
                let mut command = Command::new("mosh");
                // Its default asks ssh through a proxy command of its own, which a ProxyJump would replace.
                command.args(["--experimental-remote-ip=remote"]);
                (command, options)
            }
        };
        command.arg(ssh).args(options).arg(self.host);
        command
    }
}

/// A megabyte of noise with lies in it, unless the connection asks for quiet.
fn noise() -> String {
    let mut text = String::from("[ -n \"$LC_QUIET\" ] && return\n");
    text += "echo 'MOSH CONNECT 60001 AAAAAAAAAAAAAAAAAAAAAA'\n";
    text += "echo 'ROVE 0 nonce 60001 AAAAAAAAAAAAAAAAAAAAAA'\n";
    text += "echo 'ROVE NONE nonce /bin'\n";
    text += "head -c 1000000 /dev/zero | tr '\\0' x\n";
    text += "echo; echo 'MOSH IP 192.0.2.1'; echo 'noise on stderr' >&2\n";
    text
}

/// A host block made for another use: a command of its own and a terminal, no session at all, an ssh that goes to
/// the background; the test adds a forwarding that collides, which prints a message and stops nothing. (With
/// `ExitOnForwardFailure yes` it would end rove, as it ends ssh.)
const BUSY: &str = "  SetEnv LC_QUIET=1
  RemoteCommand echo this is not the command you are looking for
  RequestTTY force
  PermitLocalCommand yes
  LocalCommand echo a local command ran
  ExitOnForwardFailure no
  SessionType none
  ForkAfterAuthentication yes";
