//! What ssh and the host's own words tell.

use std::process::Stdio;
use std::time::Duration;

use rove_session::Peer;
use rove_streams::clock;

use crate::bootstrap::{Facts, Noise, Ports, sh};
use crate::doctor::check::Check;
use crate::failure::Failure;
use crate::install::version;
use crate::os;
use crate::os::clock::{Clock, wall_seconds};
use crate::printable::printable;
use crate::sessions::line::SESSIONS_MAX;
use crate::ssh::{Found, Login, Via, is_openssh};
use crate::trace::Trace;

/// Characters shown of one thing that a host says.
const SAID_CHARS_MAX: usize = 120;

/// How long the host may take to tell whether a port is listened at.
const ASK_WAIT: Duration = Duration::from_secs(15);

/// Whether ssh got there. `begun`: the user was logged in.
pub(super) fn ssh(begun: bool, found: &Result<Found, Failure>, took: Duration) -> Check {
    let seconds = took.as_secs_f64();
    let check = |says: String| Check::ok("ssh", "ssh", says);
    match found {
        Err(failure) if !begun => check(failure.what.clone()).fails(failure.next.clone()),
        Err(_) => check("logged in".into()),
        Ok(_) => {
            check(format!("logged in and answered in {seconds:.2} s")).with([("seconds", seconds)])
        }
    }
}

/// What login scripts print where no person reads it.
pub(super) fn noise(host: &str, noise: &Noise) -> Check {
    let Noise { lines, first } = noise;
    let check = |says: String| Check::ok("noise", "login scripts", says);
    match lines {
        0 => check("print nothing".into()),
        _ => check(format!("print {lines} lines before a command runs, first {first:?}"))
            .but(format!("Begin what prints on {host} with: case $- in *i*) ;; *) return;; esac"))
            .with([("lines", *lines as f64)]),
    }
}

/// Which server there is, or why there is none.
pub(super) fn server(login: &Login, found: &Result<Found, Failure>, facts: &Facts) -> Check {
    let check = |says: String| Check::ok("server", "server", says);
    let install = login.install_line(&[]);
    match found {
        Err(failure) => check(failure.what.clone()).fails(failure.next.clone()),
        Ok(Found::None { path, facts }) => {
            let failure = login.missing(path, facts);
            check(failure.what).fails(failure.next)
        }
        Ok(Found::Server(reached)) => match (reached.kind, login.broken(facts)) {
            (Peer::Rove, _) => rove(&login.host, facts.get("FOUND"), &install),
            (Peer::Stock, Some(broken)) => check(format!("{broken}, so sessions use mosh-server"))
                .fails(format!("A static one: {install}")),
            (Peer::Stock, None) => check("mosh-server only, no rove".into())
                .but(format!("For scrollback, sessions, forwardings and copies: {install}")),
        },
    }
}

/// A rove of this version, if it is known.
fn rove(host: &str, said: Option<&str>, install: &str) -> Check {
    let own = concat!("rove ", env!("CARGO_PKG_VERSION"));
    let shown = said.map_or("rove".to_owned(), |said| printable(said.as_bytes(), SAID_CHARS_MAX));
    let check = Check::ok("server", "server", shown);
    match (said.and_then(version), version(own)) {
        (Some(there), Some(here)) if there < here => {
            check.but(format!("This one is {own}: {install}"))
        }
        (Some(there), Some(here)) if there > here => {
            check.but(format!("This one is {own}, older than that on {host}: update it."))
        }
        _ => check,
    }
}

/// What the host says of itself.
pub(super) fn of_facts(login: &Login, facts: &Facts) -> Vec<Check> {
    let said = |word| facts.get(word).map(|text| printable(text.as_bytes(), SAID_CHARS_MAX));
    let machine = said("HOST").map(|kind| Check::ok("machine", "machine", kind));
    let clock = facts.get("CLOCK").and_then(|text| text.parse().ok()).map(clock_by);
    let mosh = match said("MOSH") {
        Some(found) => Check::ok("mosh-server", "mosh-server", found),
        None => Check::ok("mosh-server", "mosh-server", "none; only stock mosh needs it"),
    };
    let sftp = match said("SFTP") {
        Some(path) => Check::ok("sftp-server", "sftp-server", path),
        None => Check::ok("sftp-server", "sftp-server", "none, so sftp -S rove-ssh does not work")
            .but("Install OpenSSH's sftp-server there, or use rove cp, which needs none."),
    };
    let logind = logind(&login.host, facts.get("LOGIND"));
    let sessions = facts.get("SOCKETS").and_then(|said| sessions(login, said));
    machine.into_iter().chain(clock).chain([mosh, sftp, logind]).chain(sessions).collect()
}

/// The user's sessions there, and the directory where they are found. `said`: how many, the directory's mode, `none`,
/// `link` or `other`, and its path.
fn sessions(login: &Login, said: &str) -> Option<Check> {
    let mut words = said.splitn(3, ' ');
    let (count, mode, path) = (words.next()?, words.next()?, words.next()?);
    let count: usize = count.parse().ok()?;
    // The user may run a command with this in it, and the host is not to choose the command.
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-".contains(char);
    if path.len() > SAID_CHARS_MAX || !path.starts_with('/') || !path.chars().all(is_plain) {
        return None;
    }
    let host = &login.host;
    let check =
        |says: String| Check::ok("sessions", "sessions", says).with([("sockets", count as f64)]);
    let is =
        |what: &str| check(format!("{path} is {what}, so they are found in another directory"));
    Some(match (mode, count) {
        ("link", _) => is("a link").but(format!("Remove it on {host}: rm {path}")),
        ("other", _) => is("somebody else's").but(format!(
            "rove ls {host} finds them all the same; who administers {host} may remove it"
        )),
        ("none", _) | ("drwx------", 0) => check("none of yours are there".into()),
        ("drwx------", SESSIONS_MAX..) => check(format!("{count} of yours are there")).but(
            format!("A new one cannot be attached to later: end some with rove kill {host}:NAME"),
        ),
        ("drwx------", 1) => check(format!("one of yours is there: rove ls {host}")),
        ("drwx------", _) => check(format!("{count} of yours are there: rove ls {host}")),
        _ => is("open to others").but(format!("Close it on {host}: chmod 700 {path}")),
    })
}

/// Whether the port that a server took is one of those that were asked for, and what that means for a firewall.
pub(super) fn port(port: u16, ports: Option<Ports>, usual: Ports) -> Check {
    let check =
        |says: String| Check::ok("udp-ports", "UDP ports", says).with([("port", f64::from(port))]);
    match ports {
        None => check(format!("{port}, the first of {usual} that was free")),
        Some(Ports { low: 0, .. }) => check(format!("{port}, chosen by the system"))
            .but("No firewall can let that through: name ports with --udp-port"),
        Some(ports) if !(ports.low..=ports.high).contains(&port) => {
            check(format!("{port}, which is none of {ports}"))
                .fails("Something between here and the server takes --udp-port away: see --server")
        }
        Some(ports) if ports.low == ports.high => check(format!("{port}, the only one"))
            .but("A second session there finds none: name a range with --udp-port=LOW:HIGH"),
        Some(ports) if port == ports.high => check(format!("{port}, the last of {ports}"))
            .but("One more session finds a port there: end some, or name a larger range"),
        Some(ports) => check(format!("{port}, the first of {ports} that was free")),
    }
}

/// Whether ssh gets there without its user, which a session needs to come back over it.
pub(super) async fn way_back(clock: Clock, login: &Login, trace: &Trace) -> Check {
    let check = |says: String| Check::ok("way-back", "way back over ssh", says);
    let then = "A session that loses UDP and ssh waits until one is back";
    match &login.via {
        Via::Local => return check("none is needed without ssh".into()),
        Via::Ssh(words) if !is_openssh(words) => {
            return check("none by another program than ssh, which may ask".into()).but(then);
        }
        Via::Ssh(_) => {}
    }
    let begun = clock.now();
    // A master's connection is gone when a session looks for this way.
    match run_quietly(login, &["-o", "ControlPath=none"], "exit 0", trace).await {
        // 255 is ssh's own.
        Some(0..=254) => {
            let seconds = clock.now().since(begun).as_secs_f64();
            check(format!("ssh logs in again without asking, in {seconds:.2} s"))
                .with([("seconds", seconds)])
        }
        Some(_) => check("ssh did not log in again without asking".into())
            .but(format!("{then}. A key in ssh-agent logs in without asking")),
        None => {
            check(format!("ssh did not log in again within {} s", ASK_WAIT.as_secs())).but(then)
        }
    }
}

/// The host's clock beside ours. It is only told: nothing depends on it.
fn clock_by(theirs: i64) -> Check {
    let ahead = theirs.saturating_sub(wall_seconds());
    let says = match ahead {
        -2..=2 => "as here".to_owned(),
        3.. => format!("{ahead} s ahead of this one; rove does not mind"),
        _ => format!("{} s behind this one; rove does not mind", ahead.unsigned_abs()),
    };
    Check::ok("clock", "clock", says).with([("seconds_ahead", ahead as f64)])
}

/// Whether the end of the login ends sessions.
fn logind(host: &str, said: Option<&str>) -> Check {
    let check = |says: &str| Check::ok("logind", "logind", says);
    let Some(said) = said else { return check("none there: nothing ends sessions at logout") };
    let (lingers, kills) = said.split_once(' ').unwrap_or((said, ""));
    match (lingers, kills.trim()) {
        ("yes", _) => check("lingering is on: sessions outlive logins"),
        (_, "b true") => check("ends what is left at the last logout, sessions too")
            .but(format!("Run on {host}: loginctl enable-linger")),
        _ => check("leaves sessions alone at logout"),
    }
}

/// Whether something listens at this UDP port on the host, as its system tells. `None`: it could not be asked without
/// asking the user for something.
pub(super) async fn listens(login: &Login, port: u16, trace: &Trace) -> Option<bool> {
    let look = format!(
        "test -r /proc/net/udp || exit 2; \
         cat /proc/net/udp /proc/net/udp6 2>/dev/null | grep -q \":{port:04X} 0000\""
    );
    match run_quietly(login, &[], &look, trace).await {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    }
}

/// ssh never waits for its user, nor long for a host, ends by itself where nobody ends it, and is no other ssh's master.
const ASKS_NOBODY: [&str; 10] = [
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ControlMaster=no",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// The status of a script of sh's on the host, or of ssh, which asks its user nothing. `None`: it did not end in time.
async fn run_quietly(login: &Login, options: &[&str], script: &str, trace: &Trace) -> Option<i32> {
    let mut login = login.clone();
    // They come first, and so count.
    login.options.splice(0..0, ASKS_NOBODY.iter().chain(options).map(Into::into));
    let remote = sh(script, &[]);
    trace.step(format_args!("to run {remote}"));
    let mut command = login.remote(&remote, login.config().await.unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    // Before 8.4 a jump host's ssh without a terminal runs this.
    command.env("SSH_ASKPASS_REQUIRE", "never").env("SSH_ASKPASS", "/bin/false");
    os::process::without_terminal(command.as_std_mut());
    let ended = clock::within(ASK_WAIT, command.status()).await.ok()?.ok()?;
    ended.code()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Rating;

    #[test]
    fn what_scripts_print() {
        let quiet = noise("h", &Noise::default());
        assert_eq!(quiet.verdict, Rating::Ok);
        let loud = noise("h", &Noise { lines: 2, first: "Welcome".into() });
        assert_eq!(loud.verdict, Rating::Poor);
        assert!(loud.says.contains("2 lines") && loud.says.contains("Welcome"), "{loud}");
    }

    #[test]
    fn versions() {
        let own = concat!("rove ", env!("CARGO_PKG_VERSION"));
        for (said, verdict) in [
            (None, Rating::Ok),
            (Some(own), Rating::Ok),
            (Some("rove 0.0.1"), Rating::Poor),
            (Some("rove 99.0.0"), Rating::Poor),
            (Some("something"), Rating::Ok),
        ] {
            assert_eq!(rove("h", said, "rove install h").verdict, verdict, "{said:?}");
        }
    }

    #[test]
    fn ends_of_logins() {
        for (said, verdict) in [
            (None, Rating::Ok),
            (Some("no b false"), Rating::Ok),
            (Some("no"), Rating::Ok),
            (Some("yes b true"), Rating::Ok),
            (Some("no b true"), Rating::Poor),
        ] {
            assert_eq!(logind("h", said).verdict, verdict, "{said:?}");
        }
    }

    #[test]
    fn clocks() {
        for (offset, says) in
            [(0, "as here"), (100, "100 s ahead of"), (-100, "100 s behind"), (i64::MIN, "behind")]
        {
            let check = clock_by(wall_seconds().saturating_add(offset));
            assert!(check.says.contains(says), "{check}");
            assert_eq!(check.verdict, Rating::Ok, "{check}");
        }
    }
}
