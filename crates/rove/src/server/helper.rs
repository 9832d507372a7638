//! Small programs of the system that do what we may not or need not: run, but never waited for long.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

/// Runs a program for its standard output. `None` if it is absent, fails, or takes too long.
pub fn output(command: &mut Command, time_max: Duration) -> Option<String> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let stdout = child.stdout.take()?;
    if !finish(child, time_max) {
        return None;
    }
    let mut output = String::new();
    stdout.take(OUTPUT_BYTES_MAX).read_to_string(&mut output).ok()?;
    Some(output)
}

/// Longest output taken; what a pipe holds, so that nothing is lost while nobody reads.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;

/// Waits for `child`, and kills it once it has taken `time_max`. Whether it ended by itself and well.
///
/// A child that writes more than a pipe holds is one that takes too long: nobody reads meanwhile.
pub fn finish(mut child: Child, time_max: Duration) -> bool {
    if !ends_within(&child, time_max) {
        // It may have ended this instant; then there is nothing to kill.
        let _ = child.kill();
    }
    child.wait().is_ok_and(|status| status.success())
}

fn ends_within(child: &Child, time_max: Duration) -> bool {
    let child = Pid::from_child(child);
    let Ok(child) = rustix::process::pidfd_open(child, PidfdFlags::empty()) else { return false };
    let Ok(time_max) = Timespec::try_from(time_max) else { return false };
    loop {
        match rustix::event::poll(&mut [PollFd::new(&child, PollFlags::IN)], Some(&time_max)) {
            Err(rustix::io::Errno::INTR) => {}
            polled => return polled == Ok(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_end() {
        for (line, well) in [("true", true), ("exit 1", false), ("exec sleep 60", false)] {
            let child = Command::new("sh").args(["-c", line]).spawn().unwrap();
            assert_eq!(finish(child, Duration::from_millis(300)), well, "{line}");
        }
    }

    #[test]
    fn outputs() {
        let shell =
            |line| output(Command::new("sh").args(["-c", line]), Duration::from_millis(300));
        assert_eq!(shell("echo b true").as_deref(), Some("b true\n"));
        assert_eq!(shell("echo no; exit 1"), None);
        assert_eq!(shell("echo no; exec sleep 60"), None);
        assert_eq!(output(&mut Command::new("/no/such/helper"), Duration::from_secs(1)), None);
    }
}
