//! What the user asks for, and what speaks against it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::bootstrap::Facts;
use crate::failure::Failure;
use crate::install::executable::Kind;
use crate::install::program::Program;
use crate::printable::printable;
use crate::ssh::Login;

/// Characters shown of what a host says.
const SAID_CHARS_MAX: usize = 200;

/// What a host says, safe to show.
pub(super) fn shown(said: &str) -> String {
    printable(said.as_bytes(), SAID_CHARS_MAX)
}

/// What to copy, and where to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    /// A program of the user's choice.
    pub(crate) from: Option<PathBuf>,
    /// The directory for programs there; `None` for `~/.local/share/rove`.
    pub(crate) to: Option<OsString>,
    /// Replace what somebody else put there, or what is newer.
    pub(crate) force: bool,
}

impl Order {
    /// The program for a host of this kind, `Linux x86_64`.
    pub(super) fn program(&self, login: &Login, uname: &str) -> Result<Program, Failure> {
        let (host, shown) = (&login.host, shown(uname));
        let Some(kind) = Kind::of(uname) else {
            let what = format!("{host} is {shown}, for which no rove is made");
            return Err(Failure::new(what, "Build one there, or use its mosh-server."));
        };
        let found = match &self.from {
            Some(path) => Some(Program::named(path)?),
            None => Program::for_kind(kind),
        };
        let program = found.ok_or_else(|| {
            let line = login.install_line(&["--from", "FILE"]);
            Failure::new(
                format!("no rove that runs on every {shown} is here"),
                format!("Build one (make servers), and: {line}"),
            )
        })?;
        match program.kind == kind {
            true => Ok(program),
            false => Err(Failure::new(
                format!("that rove is for {}, and {host} is {shown}", program.kind.uname),
                "Name one for its machine.",
            )),
        }
    }

    /// Refuses to replace what is not ours, or newer.
    pub(super) fn check(
        &self,
        login: &Login,
        program: &Program,
        facts: &Facts,
    ) -> Result<(), Failure> {
        let Some(there) = facts.get("THERE").filter(|_| !self.force) else { return Ok(()) };
        let line = login.install_line(&["--force"]);
        if !facts.get("LINKED").is_some_and(is_ours) {
            let what =
                format!("~/.local/bin/rove on {} was put there by somebody else", login.host);
            return Err(Failure::new(what, format!("Remove it, or replace it: {line}")));
        }
        let own = program.version().and_then(version);
        match (version(there), own) {
            (Some(there), Some(own)) if there > own => {
                let (a, b, c) = there;
                let what = format!("{} has rove {a}.{b}.{c}, which is newer", login.host);
                Err(Failure::new(what, format!("To replace it: {line}")))
            }
            _ => Ok(()),
        }
    }

    /// The host said which step failed, and why.
    pub(super) fn failed(&self, login: &Login, said: &str) -> Failure {
        let host = &login.host;
        let (step, why) = said.split_once(' ').unwrap_or((said, ""));
        let why = shown(why);
        let elsewhere = login.install_line(&["--to", "DIR"]);
        match step {
            "write" => Failure::new(
                format!("cannot write on {host}: {why}"),
                format!("Make room there, or name another directory: {elsewhere}"),
            ),
            "run" => Failure::new(
                format!("the copy does not run on {host}: {why}"),
                format!(
                    "If programs may not run there (noexec), name another directory: {elsewhere}"
                ),
            ),
            "length" | "sum" => Failure::new(
                format!("the copy on {host} is not what was sent ({step})"),
                "Nothing else there has changed. Try it again.",
            ),
            _ => Failure::new(format!("cannot put the copy in place on {host}: {why}"), ""),
        }
    }
}

/// Whether a link leads to a program that was put there as this does it: `.../<version>-<8 digits>/rove`.
fn is_ours(link: &str) -> bool {
    let directory = link.strip_suffix("/rove").and_then(|path| path.rsplit('/').next());
    let sum = directory.and_then(|name| name.rsplit_once('-')).map(|(_, sum)| sum);
    sum.is_some_and(|sum| sum.len() == 8 && sum.bytes().all(|octet| octet.is_ascii_hexdigit()))
}

/// The numbers of `rove 0.1.0`.
pub(crate) fn version(said: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = said.strip_prefix("rove ")?.split(['.', '-', '+', ' ']);
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_ours() {
        for (link, expected) in [
            ("/home/u/.local/share/rove/0.1.0-0123abcd/rove", true),
            ("/opt/file-0123abcd/rove", true),
            ("/usr/bin/rove", false),
            ("0.1.0-0123abcd", false),
            ("/x/0.1.0-0123abc/rove", false),
            ("", false),
        ] {
            assert_eq!(is_ours(link), expected, "{link}");
        }
    }

    #[test]
    fn versions() {
        for (said, expected) in [
            ("rove 0.1.0", Some((0, 1, 0))),
            ("rove 1.20.3-rc1", Some((1, 20, 3))),
            ("rove 1.2", None),
            ("rove: not found", None),
            ("", None),
        ] {
            assert_eq!(version(said), expected, "{said}");
        }
    }
}
