//! Where systemd runs: whether logind would end a session at logout, and a scope of the user's own
//! manager to move to where that helps. On other systems every question here answers "nothing to do".
//!
//! A login over ssh is a `session-N.scope` of the system. When it ends, logind kills what is left in it
//! if `KillUserProcesses=` says so (logind.conf(5)). A scope under the user's manager outlives the
//! login, but only as long as that manager, which without lingering ends with the user's last login.
//! Hence: with lingering on, move; with lingering off and no killing, stay; otherwise move (it helps
//! while another login lasts, and lingering may be switched on later) and tell the user. Where moving
//! fails (no bus of the user's, say) and logind would kill, the user is told that instead.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, getsid};

use crate::server::helper;

/// Moves this process, and so all it starts later, out of reach of the login's end.
///
/// Returns one line with the remedy for the user if the session would not outlive the login. Takes at most a
/// few [`HELPER_TIME_MAX`].
pub(super) fn settle(user: &OsStr) -> Option<String> {
    if !Path::new("/run/systemd/system").exists() || !in_login_session(&own_cgroup()?) {
        return None;
    }
    Some(decide(lingering(user), || logout(user), move_to_own_scope)?.text(user))
}

/// Why sessions of this user's may end at a logout, in one line; `pids` are processes in the foreground of theirs.
pub(super) fn outlook(user: &OsStr, pids: impl IntoIterator<Item = u32>) -> Option<String> {
    if !Path::new("/run/systemd/system").exists() {
        return None;
    }
    // What runs in the foreground may have a login of its own, as after `su -`. The first program of the terminal has not.
    let is_in_login = |pid: u32| {
        let first = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let first = first.and_then(|pid| getsid(Some(pid)).ok());
        let first = first.and_then(|first| cgroup_of(&first.to_string()));
        first.is_some_and(|cgroup| in_login_session(&cgroup))
    };
    let place = match pids.into_iter().any(is_in_login) {
        true => Cgroup::Login,
        false => Cgroup::OwnScope,
    };
    Some(foresee(lingering(user), || logout(user), place)?.outlook(user))
}

fn lingering(user: &OsStr) -> Lingering {
    match Path::new("/var/lib/systemd/linger").join(user).exists() {
        true => Lingering::On,
        false => Lingering::Off,
    }
}

/// The contents of our `/proc/PID/cgroup`; `None` if it cannot be read.
fn own_cgroup() -> Option<String> {
    cgroup_of("self")
}

fn cgroup_of(pid: &str) -> Option<String> {
    let mut cgroup = String::new();
    let file = File::open(Path::new("/proc").join(pid).join("cgroup")).ok()?;
    file.take(CGROUP_BYTES_MAX).read_to_string(&mut cgroup).ok()?;
    Some(cgroup)
}

/// Longest `/proc/PID/cgroup` that is read.
const CGROUP_BYTES_MAX: u64 = 64 << 10;

/// Whether the user's manager outlives the user's last login.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lingering {
    On,
    Off,
}

/// How logind treats a user's leftover processes at logout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Logout {
    Kills,
    Spares,
}

/// Where this process is after it asked to be moved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cgroup {
    OwnScope,
    Login,
}

/// Why the session would not outlive the login.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Warning {
    /// It ends with the user's last login.
    NotLingering,
    /// It ends with this login.
    NotMoved,
}

/// Moves where that helps, and returns the remaining warning.
fn decide(
    lingering: Lingering,
    logout: impl FnOnce() -> Logout,
    leave: impl FnOnce() -> Cgroup,
) -> Option<Warning> {
    match lingering {
        Lingering::On => {
            (leave() == Cgroup::Login && logout() == Logout::Kills).then_some(Warning::NotMoved)
        }
        Lingering::Off if logout() == Logout::Spares => None,
        Lingering::Off => Some(match leave() {
            Cgroup::OwnScope => Warning::NotLingering,
            Cgroup::Login => Warning::NotMoved,
        }),
    }
}

/// The warning for sessions that are there. One of them is at this place.
fn foresee(
    lingering: Lingering,
    logout: impl FnOnce() -> Logout,
    place: Cgroup,
) -> Option<Warning> {
    match (lingering, place) {
        (Lingering::On, Cgroup::OwnScope) => None,
        _ if logout() == Logout::Spares => None,
        (_, Cgroup::Login) => Some(Warning::NotMoved),
        (Lingering::Off, Cgroup::OwnScope) => Some(Warning::NotLingering),
    }
}

impl Warning {
    /// For somebody who lists sessions.
    fn outlook(self, user: &OsStr) -> String {
        let user = user.to_string_lossy();
        let ends = "ends what a user leaves running at logout (KillUserProcesses=yes)";
        match self {
            Warning::NotLingering => format!(
                "it {ends}, and lingering is off: sessions will end with your last login. \
                 To let them live: loginctl enable-linger {user}"
            ),
            Warning::NotMoved => format!(
                "it {ends}, and a session could not move to a scope of its own, so it will end \
                 with its login. To let later ones live: install dbus-user-session, and \
                 loginctl enable-linger {user}"
            ),
        }
    }

    fn text(self, user: &OsStr) -> String {
        let user = user.to_string_lossy();
        match self {
            Warning::NotLingering => format!(
                "this machine ends what a user leaves running at logout (KillUserProcesses=yes), \
                 and lingering is off: this session will end with your last login. \
                 To let it live: loginctl enable-linger {user}"
            ),
            Warning::NotMoved => format!(
                "could not move to a scope of its own, and this machine ends what a user leaves \
                 running at logout (KillUserProcesses=yes): this session will end with this login. \
                 To let it live: install dbus-user-session, and loginctl enable-linger {user}"
            ),
        }
    }
}

/// Whether a process of this `/proc/PID/cgroup` belongs to a login that logind watches.
fn in_login_session(cgroup: &str) -> bool {
    cgroup.lines().filter_map(|line| line.rsplit_once(':')).any(|(_, path)| {
        path.split('/').any(|unit| unit.starts_with("session-") && unit.ends_with(".scope"))
    })
}

/// How logind treats this user's leftover processes (logind.conf(5)). If it cannot be asked: spares, the
/// default of most systems.
fn logout(user: &OsStr) -> Logout {
    let asked = run(Command::new("busctl").args([
        "get-property",
        "org.freedesktop.login1",
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
        "KillUserProcesses",
        "KillOnlyUsers",
        "KillExcludeUsers",
    ]));
    if kills(&asked.unwrap_or_default(), user) { Logout::Kills } else { Logout::Spares }
}

/// Whether logind ends this user's leftover processes: its three properties, each in a line of busctl's.
fn kills(answer: &str, user: &OsStr) -> bool {
    let mut lines = answer.lines();
    let does = lines.next().is_some_and(|line| line.trim() == "b true");
    let mut named = || lines.next().unwrap_or_default().split('"').skip(1).step_by(2);
    let (mut only, mut never) = (named().peekable(), named());
    let is_meant = only.peek().is_none() || only.any(|name| OsStr::new(name) == user);
    does && is_meant && !never.any(|name| OsStr::new(name) == user)
}

/// Asks the user's manager for a scope around this process, and waits until it is in there: a process forked
/// earlier would stay behind. Without a manager we stay where we are.
fn move_to_own_scope() -> Cgroup {
    let pid = std::process::id().to_string();
    let unit = format!("rove-{pid}.scope");
    let description = format!("rove session {pid}");
    let asked = run(Command::new("busctl").args([
        "--user",
        "call",
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "StartTransientUnit",
        // Name and mode; properties, each a name and a variant; auxiliary units, none.
        "ssa(sv)a(sa(sv))",
        &unit,
        "fail",
        "3",
        "PIDs",
        "au",
        "1",
        &pid,
        "Description",
        "s",
        &description,
        "CollectMode",
        "s",
        "inactive-or-failed",
        "0",
    ]));
    if asked.is_none() {
        return Cgroup::Login;
    }
    for _ in 0..MOVE_TRIES {
        if !own_cgroup().is_some_and(|cgroup| in_login_session(&cgroup)) {
            return Cgroup::OwnScope;
        }
        helper::pause();
    }
    Cgroup::Login
}

/// How often to check whether the manager has moved us, a millisecond apart.
const MOVE_TRIES: u32 = 500;

fn run(command: &mut Command) -> Option<String> {
    helper::output(command, HELPER_TIME_MAX)
}

/// How long a helper may take. The user waits for this before the first screen; busctl takes 10 ms.
const HELPER_TIME_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logind_says_whom_it_spares() {
        let user = OsStr::new("ann");
        for (answer, expected) in [
            ("", false),
            ("b false\nas 0\nas 1 \"root\"\n", false),
            ("b true\nas 0\nas 1 \"root\"\n", true),
            ("b true\nas 2 \"bob\" \"ann\"\nas 0\n", true),
            ("b true\nas 1 \"bob\"\nas 0\n", false),
            ("b true\nas 0\nas 2 \"root\" \"ann\"\n", false),
            ("b true\n", true),
        ] {
            assert_eq!(kills(answer, user), expected, "{answer:?}");
        }
    }

    #[test]
    fn login_sessions() {
        for (cgroup, login) in [
            ("0::/user.slice/user-1000.slice/session-3.scope\n", true),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/rove-7.scope\n", false),
            ("0::/system.slice/ssh.service\n", false),
            ("12:pids:/user.slice/user-0.slice/session-c1.scope\n1:name=systemd:/\n", true),
            ("0::/session-1.scope.d/x\n", false),
            ("", false),
            ("garbage", false),
        ] {
            assert_eq!(in_login_session(cgroup), login, "{cgroup}");
        }
    }

    #[test]
    fn decisions() {
        use {Cgroup::*, Lingering::*, Logout::*};
        for (lingering, logout, place, asked, warning) in [
            (On, Spares, OwnScope, true, None),
            (On, Kills, OwnScope, true, None),
            (On, Spares, Login, true, None),
            (On, Kills, Login, true, Some(Warning::NotMoved)),
            (Off, Spares, OwnScope, false, None),
            (Off, Kills, OwnScope, true, Some(Warning::NotLingering)),
            (Off, Kills, Login, true, Some(Warning::NotMoved)),
        ] {
            let mut moves = 0;
            let leave = || {
                moves += 1;
                place
            };
            let decided = decide(lingering, || logout, leave);
            assert_eq!(decided, warning, "{lingering:?} {logout:?} {place:?}");
            assert_eq!(moves, u32::from(asked), "{lingering:?} {logout:?} {place:?}");
        }
    }

    #[test]
    fn each_warning_names_its_remedy() {
        for (warning, remedy) in [
            (Warning::NotLingering, "loginctl enable-linger ann"),
            (Warning::NotMoved, "install dbus-user-session"),
        ] {
            assert!(warning.text(OsStr::new("ann")).contains(remedy));
            assert!(warning.outlook(OsStr::new("ann")).contains(remedy));
        }
    }

    #[test]
    fn sessions_that_are_there() {
        use {Cgroup::*, Lingering::*, Logout::*};
        for (lingering, logout, place, warning) in [
            (On, Kills, OwnScope, None),
            (On, Kills, Login, Some(Warning::NotMoved)),
            (On, Spares, Login, None),
            (Off, Spares, OwnScope, None),
            (Off, Kills, OwnScope, Some(Warning::NotLingering)),
            (Off, Kills, Login, Some(Warning::NotMoved)),
        ] {
            let found = foresee(lingering, || logout, place);
            assert_eq!(found, warning, "{lingering:?} {logout:?} {place:?}");
        }
    }
}
