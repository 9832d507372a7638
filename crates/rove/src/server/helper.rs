//! Small programs of the system that do what we may not or need not: run, but never waited for long.

use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

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
    use std::process::Command;

    use super::*;

    #[test]
    fn helpers_end() {
        for (line, well) in [("true", true), ("exit 1", false), ("exec sleep 60", false)] {
            let child = Command::new("sh").args(["-c", line]).spawn().unwrap();
            assert_eq!(finish(child, Duration::from_millis(300)), well, "{line}");
        }
    }
}
