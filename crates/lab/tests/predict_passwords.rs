//! Tests real programs that ask for passwords, between our machines, over 100 and 500 ms. No guess ever shows a
//! part of a password, not even of one typed ahead; the shell's keys around it are guessed. The programs get what was
//! typed, once and in order, and a password that is read as a line with its Enter.
//!
//! `SCENE=sudo cargo test -p rove-lab --test predict_passwords` plays only the scenes whose name contains that.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;
#[path = "predict_passwords/unusual.rs"]
mod unusual;

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use common::{chosen, retried, say};
use rove_lab::testing::clock::Clock;
use rove_lab::testing::link::Profile;
use rove_lab::testing::predict::live::{Report, Scene, hidden, play};
use rove_lab::testing::predict::typist::{Secrecy, Typist};
use rove_lab::testing::run::{limited, look_again_later};
use rove_lab::testing::scratch::Scratch;
use rove_session::client::Obscure;
use rove_session::predict::{Display, Settings};

/// A program that asks for a password.
struct Prompt {
    name: &'static str,
    /// The keys that lead there, as steps of a script.
    way: &'static str,
    /// The wait for the question, left out when the password is typed ahead.
    wait: &'static str,
    /// From the password back to the shell.
    back: &'static str,
    asks: Asks,
}

/// How the program reads its password.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asks {
    /// With ICANON on and ECHO off.
    Hidden,
    /// In raw mode, like everything else.
    Raw,
}

/// The characters of passwords; no script types them elsewhere.
const LETTERS: &str = "QZWJKV";
/// QZWJKVQZ, with a slip that is taken back.
const SECRET: &str = "secret QZK\nkeys backspace\nsecret WJKVQZ";

/// From a question back to the shell, whether the password was taken, or thrown away with keys typed ahead.
const BACK: &str = "quiet\nkeys ctrl-c\nquiet";

const PROMPTS: [Prompt; 9] = [
    Prompt {
        name: "sudo",
        way: "type sudo ls -l /root /home\nkeys enter",
        wait: "prompt :",
        back: BACK,
        asks: Asks::Hidden,
    },
    Prompt {
        name: "su",
        way: "type su --login root\nkeys enter",
        wait: "prompt :",
        back: BACK,
        asks: Asks::Hidden,
    },
    Prompt {
        name: "ssh",
        way: "type ssh -p $port me@127.0.0.1\nkeys enter",
        wait: "prompt password:",
        back: BACK,
        asks: Asks::Hidden,
    },
    Prompt {
        name: "passwd",
        way: "type passwd\nkeys enter",
        wait: "prompt :",
        back: BACK,
        asks: Asks::Hidden,
    },
    Prompt {
        name: "read -s",
        way: "type read -s -p 'word: ' word\nkeys enter",
        wait: "prompt word:",
        back: BACK,
        asks: Asks::Hidden,
    },
    Prompt {
        name: "getpass",
        way: "type python3 -c 'import getpass; getpass.getpass()'\nkeys enter",
        wait: "prompt :",
        back: BACK,
        asks: Asks::Hidden,
    },
    Prompt {
        name: "vim :X",
        way: "type vim -n letter.txt\nkeys enter\nsee a letter\nquiet\nprogram vim\nexact :X\nkeys enter",
        wait: "see key",
        back: "quiet\nsecret QZWJKVQZ\nkeys enter\nquiet\nexact :q!\nkeys enter",
        asks: Asks::Raw,
    },
    Prompt {
        name: "pinentry",
        way: "type (echo OPTION ttyname=/dev/tty; echo GETPIN) | pinentry-curses > /dev/null\nkeys enter",
        wait: "see PIN",
        back: BACK,
        asks: Asks::Raw,
    },
    Prompt {
        name: "mutt",
        way: "type mutt\nkeys enter",
        wait: "see assword for",
        back: "quiet\nkeys ctrl-g\nquiet\nexact q\nquiet",
        asks: Asks::Raw,
    },
];

/// Why a scene failed.
#[derive(Debug)]
enum Fault {
    /// An awaited text did not come in time.
    Late(String),
    /// It was played to its end, and the screen broke a rule.
    Seen(String),
}

/// Whether the question is waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Haste {
    Waits,
    Ahead,
}

/// A scene is played so often at most.
const TRIES: u64 = 3;

/// Sessions at one time: most of them wait most of the time.
const WORKERS: usize = 16;

#[test]
fn no_password_is_guessed() {
    let place = Programs::new().unwrap();
    let scenes: Vec<Played<'_>> = PROMPTS
        .iter()
        .flat_map(|prompt| [100, 500].map(|rtt| (prompt, rtt)))
        .flat_map(|(prompt, rtt)| [Haste::Waits, Haste::Ahead].map(|haste| (prompt, rtt, haste)))
        .map(|(prompt, rtt, haste)| (prompt, rtt, haste, Obscure::Secrets))
        // With slots as well, once.
        .chain(PROMPTS.iter().map(|prompt| (prompt, 100, Haste::Waits, Obscure::Always)))
        .filter(|scene| chosen("SCENE", &name(scene)))
        .collect();
    let (queue, faults) = (Mutex::new(scenes.iter()), Mutex::new(Vec::new()));
    let sums = Mutex::new((0, 0));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS.min(scenes.len()) {
            scope.spawn(|| {
                while let Some(scene) = { queue.lock().unwrap().next() } {
                    match place.play_patiently(scene) {
                        Ok(report) => {
                            let mut sums = sums.lock().unwrap();
                            *sums = (sums.0 + report.shell_shown, sums.1 + report.shell_keys);
                        }
                        Err(fault) => faults.lock().unwrap().push(fault),
                    }
                }
            });
        }
    });
    let (faults, (shown, keys)) = (faults.into_inner().unwrap(), sums.into_inner().unwrap());
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    say(&format!("{} scenes, {shown} of {keys} keys at the shell shown at once", scenes.len()));
    assert!(shown * 100 >= keys * 60, "{shown} of {keys} keys at the shell were shown at once");
}

/// A prompt, the round trip in ms, and how it is played.
type Played<'a> = (&'a Prompt, u64, Haste, Obscure);

fn name((prompt, rtt, haste, obscure): &Played<'_>) -> String {
    format!("{}, {rtt} ms, {haste:?}, {obscure:?}", prompt.name)
}

/// Where the programs run: a home, a user without rights, and servers that want passwords.
struct Programs {
    scratch: Scratch,
    servers: Vec<Child>,
}

impl Programs {
    fn new() -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let path = scratch.path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        let mut place = Self { scratch, servers: Vec::new() };
        let imap = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/own/imap.py");
        place.serve(Command::new("python3").arg(imap).arg(path.join("imap")))?;
        let mail = place.port("imap")?;
        let ssh = place.sshd()?;
        let home = path.join("home");
        fs::create_dir(&home)?;
        fs::write(home.join("letter.txt"), "Dear reader,\nthis is a letter.\n")?;
        fs::write(
            home.join(".muttrc"),
            format!(
                "set spoolfile=\"imap://me@127.0.0.1:{mail}/INBOX\"\nset ssl_starttls=no\n\
                 set ssl_force_tls=no\nset quit=yes\nset folder=\"imap://me@127.0.0.1:{mail}/\"\n"
            ),
        )?;
        fs::write(
            home.join(".bashrc"),
            format!(
                "PS1='me@host:\\w$ '\nport={ssh}\nalias ssh='ssh -F none -o StrictHostKeyChecking=no \
                 -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
                 -o PreferredAuthentications=password'\n"
            ),
        )?;
        if rustix::process::geteuid().is_root() {
            for path in ["", "letter.txt", ".muttrc", ".bashrc"] {
                chown(home.join(path), Some(NOBODY), Some(NOBODY))?;
            }
        }
        Ok(place)
    }

    fn serve(&mut self, command: &mut Command) -> io::Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.servers.push(command.spawn()?);
        Ok(())
    }

    /// The port that a server wrote down.
    fn port(&self, name: &str) -> io::Result<u16> {
        let clock = Clock::start();
        loop {
            if let Ok(port) = fs::read_to_string(self.scratch.join(name)) {
                return port.trim().parse().map_err(io::Error::other);
            }
            if clock.elapsed() > Duration::from_secs(30) {
                return Err(io::Error::other(format!("no {name} server")));
            }
            look_again_later()?;
        }
    }

    /// An sshd that accepts no password; it needs no root for that.
    fn sshd(&mut self) -> io::Result<u16> {
        let key = self.scratch.join("key");
        let mut made = limited("ssh-keygen", 20);
        made.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key);
        if !made.status()?.success() {
            return Err(io::Error::other("ssh-keygen failed"));
        }
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let config = self.scratch.join("sshd_config");
        fs::write(
            &config,
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nUsePAM no\n\
                 PasswordAuthentication yes\nMaxStartups 100\n",
                key.display()
            ),
        )?;
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd")?;
        }
        self.serve(Command::new("/usr/sbin/sshd").arg("-D").arg("-f").arg(config))?;
        Ok(port)
    }

    /// A shell of a user without rights.
    fn shell(&self) -> Command {
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash"]);
            command
        } else {
            Command::new("bash")
        };
        let home = self.scratch.join("home");
        command.args(["--noprofile", "-i"]).current_dir(&home).env_clear();
        command.env("HOME", &home).env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command
    }

    /// Plays a scene, and up to twice more if a program was too slow on a busy machine. A wrong screen is never
    /// played again: one leak is one too many.
    fn play_patiently(&self, scene: &Played<'_>) -> Result<Report, String> {
        let mut late = Vec::new();
        for seed in 1..=TRIES {
            match self.play(scene, seed) {
                Err(Fault::Late(what)) => late.push(what),
                Err(Fault::Seen(what)) => return Err(what),
                Ok(report) => {
                    for what in late {
                        retried("no_password_is_guessed", what);
                    }
                    return Ok(report);
                }
            }
        }
        Err(late.join("\nand again: "))
    }

    fn play(&self, scene: &Played<'_>, seed: u64) -> Result<Report, Fault> {
        let fault = |what: String| Fault::Seen(format!("{}: {what}", name(scene)));
        let late = |what: String| Fault::Late(format!("{}: {what}", name(scene)));
        let (prompt, rtt, haste, obscure) = *scene;
        // Whoever reads a question needs a moment to do so.
        let wait = format!("{}\nquiet\nthink", prompt.wait);
        let wait = if haste == Haste::Waits { wait.as_str() } else { "" };
        let script = format!(
            "pace 130\nprogram shell\nprompt $\ntype echo some words before the password comes\nkeys enter\nprompt $\n\
             {}\nprogram asked\n{wait}\n{SECRET}\nkeys enter\n{}\nprogram shell\nprompt $\n\
             type echo and some more words after it\nkeys enter\nprompt $\n",
            prompt.way, prompt.back
        );
        let scene = Scene {
            command: self.shell(),
            typist: Typist::new(&script, seed).map_err(|error| fault(error.to_string()))?,
            secret: LETTERS.to_owned(),
            link: Profile::delay(Duration::from_millis(rtt / 2)),
            settings: Settings::ROVE.with_display(Display::Always),
            obscure,
        };
        let report = play(scene).map_err(|error| late(error.to_string()))?;
        if !report.leaks.is_empty() {
            return Err(fault(format!("a password was guessed: {:#?}", report.leaks)));
        }
        if prompt.asks == Asks::Hidden && !report.modes.contains(hidden()) {
            return Err(late(format!("nothing was asked: {:#?}", report.last)));
        }
        if report.secrets == 0 || report.shell_keys == 0 {
            return Err(late(format!("nothing was typed: {:#?}", report.last)));
        }
        if let Err(what) = delivered(prompt.asks, &report) {
            return Err(fault(what));
        }
        if prompt.asks == Asks::Hidden && haste == Haste::Waits {
            let Early { kept, others } = came_early(&report);
            if kept > 0 {
                return Err(fault(format!("{kept} keys that were kept came ahead of their Enter")));
            }
            // The host had not said in time that they may be kept.
            if others > 0 {
                return Err(late(format!(
                    "{others} keys came ahead of their Enter: {:#?}",
                    report.last
                )));
            }
        }
        let Report { shell_shown: shown, shell_keys: keys, echoed, .. } = report;
        let name = name(&(prompt, rtt, haste, obscure));
        say(&format!("{name}: {shown} of {keys} keys at the shell, {echoed} guesses echoed"));
        Ok(report)
    }
}

/// Whether the program's terminal got what was typed, once and in order. A program of its own screen gets answers to its
/// questions, too: of its keys the letters of secrets are looked at.
fn delivered(asks: Asks, report: &Report) -> Result<(), String> {
    let counts = |octet: &u8| asks == Asks::Hidden || LETTERS.as_bytes().contains(octet);
    let typed = report.typed.iter().flat_map(|(_, stroke)| &stroke.octets);
    let typed: Vec<u8> = typed.copied().filter(counts).collect();
    let fed = report.fed.iter().flat_map(|(_, octets)| octets);
    let fed: Vec<u8> = fed.copied().filter(counts).collect();
    match typed == fed {
        true => Ok(()),
        false => Err(format!("{} octets typed, {} came, or others", typed.len(), fed.len())),
    }
}

/// Keys of the secret that the program's terminal got before its Enter was typed: those that the client had kept, and
/// others.
struct Early {
    kept: usize,
    others: usize,
}

fn came_early(report: &Report) -> Early {
    let typed = &report.typed;
    let first = typed.iter().position(|(_, it)| it.secrecy == Secrecy::Secret).unwrap_or(0);
    let enter = typed[first..].iter().position(|(_, it)| it.octets == b"\r").unwrap_or(0);
    let Some((at, _)) = typed.get(first + enter) else { return Early { kept: 0, others: 0 } };
    let before: usize = typed[..first].iter().map(|(_, it)| it.octets.len()).sum();
    let came = report.fed.iter().take_while(|(when, _)| when < at);
    let early = came.map(|(_, octets)| octets.len()).sum::<usize>().saturating_sub(before);
    // Octets come in the order in which they were typed.
    let of = typed[first..].iter().flat_map(|(at, it)| it.octets.iter().map(move |_| at));
    let kept = of.take(early).filter(|at| report.kept.contains(at)).count();
    Early { kept, others: early - kept }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // It may have ended by itself.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// The user and group without rights.
const NOBODY: u32 = 65_534;
