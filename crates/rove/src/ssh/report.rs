//! ssh's effective configuration for a host, as `ssh -G` reports it, and its effects on the bootstrap.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rove_ssp::{SLOT_MAX, SLOT_MIN};
use rove_streams::clock;
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// How long `ssh -G` may take; a `Match exec` in the user's config runs in it.
const CONFIG_WAIT: Duration = Duration::from_secs(10);

/// What `ssh -G` may print at most.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// What ssh's configuration may say by which the remote command would not run, or not before ssh ends, as
/// `ssh -G` reports it, and what is said against it. Both words came with OpenSSH 8.7, so that only an ssh
/// that reports one is told of it.
const HINDRANCES: [(&str, &str, &str); 2] = [
    ("sessiontype", "default", "SessionType=default"),
    ("forkafterauthentication", "no", "ForkAfterAuthentication=no"),
];

/// Why ssh's configuration is not known.
#[derive(Debug, Error)]
pub enum SshConfigError {
    /// `ssh -G` failed.
    #[error("ssh -G ended with {0}")]
    Status(ExitStatus),
    /// Its output cannot be read.
    #[error("ssh -G cannot be read: {0}")]
    Unreadable(io::Error),
    /// It took longer than this.
    #[error("ssh -G did not end in {} s", .0.as_secs())]
    TimedOut(Duration),
}

/// The output of `ssh -G`, or why it is unknown. A missing ssh is not reported here: starting it reports
/// that soon.
pub(super) async fn ask(mut command: Command) -> Result<String, SshConfigError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let Ok(mut child) = command.spawn() else { return Ok(String::new()) };
    let output = child.stdout.take().expect("standard output is a pipe");
    let asking = async {
        let mut report = Vec::new();
        output.take(CONFIG_BYTES_MAX).read_to_end(&mut report).await?;
        io::Result::Ok((report, child.wait().await?))
    };
    match clock::within(CONFIG_WAIT, asking).await {
        // Paths need not be UTF-8.
        Ok(Ok((report, status))) if status.success() => {
            Ok(String::from_utf8_lossy(&report).into_owned())
        }
        Ok(Ok((_, status))) => Err(SshConfigError::Status(status)),
        Ok(Err(error)) => Err(SshConfigError::Unreadable(error)),
        Err(_elapsed) => Err(SshConfigError::TimedOut(CONFIG_WAIT)),
    }
}

/// The options that let the remote command run where this configuration has that it does not.
pub fn against_hindrances(report: &str) -> impl Iterator<Item = &'static str> {
    let said = |word: &str| {
        let mut lines = report.lines().filter_map(|line| line.split_once(' '));
        lines.find_map(|(name, value)| (name == word).then_some(value.trim()))
    };
    let there = HINDRANCES.map(|(word, harmless, option)| {
        said(word).is_some_and(|value| value != harmless).then_some(["-o", option])
    });
    there.into_iter().flatten().flatten()
}

/// The effective HostName in the output of `ssh -G`.
pub fn host_name(config: &str) -> Option<&str> {
    config.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::trim)
}

/// Where an ssh that serves others as their master listens, if the configuration says where.
pub(crate) fn control_path(config: &str) -> Option<&Path> {
    let path = config.lines().find_map(|line| line.strip_prefix("controlpath "))?.trim();
    (path != "none").then(|| Path::new(path))
}

/// Whether the configuration has another way to the host than its name.
pub(super) fn has_proxy(config: &str) -> bool {
    let mut lines = config.lines().filter_map(|line| line.split_once(' '));
    lines.any(|(name, value)| matches!(name, "proxyjump" | "proxycommand") && value != "none")
}

/// The interval at which typing is hidden, if the user chose one: `ObscureKeystrokeTiming interval:80`. A plain yes is
/// OpenSSH's own default and says nothing of the user's wish.
pub(crate) fn obscure_interval(config: &str) -> Option<Duration> {
    let said = config.lines().find_map(|line| line.strip_prefix("obscurekeystroketiming "))?;
    let millis = said.trim().strip_prefix("interval:")?.parse().ok()?;
    Some(Duration::from_millis(millis).clamp(SLOT_MIN, SLOT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_interval_is_a_wish() {
        for (report, wanted) in [
            ("", None),
            ("user root\nobscurekeystroketiming yes\n", None),
            ("obscurekeystroketiming no\n", None),
            ("obscurekeystroketiming interval:80\nport 22\n", Some(80)),
            ("obscurekeystroketiming interval:10", Some(20)),
            ("obscurekeystroketiming interval:1000", Some(200)),
            ("obscurekeystroketiming interval:x", None),
            ("obscurekeystroketiming interval:-5", None),
            ("obscurekeystroketiming interval:99999999999999999999", None),
        ] {
            let found = obscure_interval(report).map(|span| span.as_millis());
            assert_eq!(found, wanted, "{report}");
        }
    }

    #[test]
    fn what_keeps_the_remote_command_from_running() {
        for (report, options) in [
            ("", &[][..]),
            ("user root\nsessiontype default\nforkafterauthentication no\n", &[]),
            ("sessiontype none\n", &["-o", "SessionType=default"]),
            ("sessiontype subsystem\n", &["-o", "SessionType=default"]),
            (
                "sessiontype none\nforkafterauthentication yes\n",
                &["-o", "SessionType=default", "-o", "ForkAfterAuthentication=no"],
            ),
        ] {
            assert_eq!(against_hindrances(report).collect::<Vec<_>>(), options, "{report}");
        }
    }

    #[test]
    fn why_the_configuration_is_not_known() {
        // Systems name it differently.
        let ended = format!("ssh -G ended with {}", ExitStatus::default());
        for (error, told) in [
            (SshConfigError::Status(ExitStatus::default()), ended.as_str()),
            (SshConfigError::Unreadable(io::Error::other("no")), "ssh -G cannot be read: no"),
            (SshConfigError::TimedOut(CONFIG_WAIT), "ssh -G did not end in 10 s"),
        ] {
            assert_eq!(error.to_string(), told);
        }
    }

    #[test]
    fn ways_through_a_proxy() {
        for (report, expected) in [
            ("hostname h\n", false),
            ("proxyjump none\nproxycommand none\n", false),
            ("user u\nproxyjump j\n", true),
            ("proxycommand nc %h %p\n", true),
        ] {
            assert_eq!(has_proxy(report), expected, "{report}");
        }
    }

    #[test]
    fn the_name_that_ssh_uses() {
        let config = "user root\nhostname build7.example.org\nport 22\nhostname other\n";
        assert_eq!(host_name(config), Some("build7.example.org"));
        assert_eq!(host_name("hostnames x\n"), None);
        assert_eq!(host_name(""), None);
    }
}
