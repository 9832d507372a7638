//! Runs small programs of the system for work that we may not or need not do, and never waits long.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::Timespec;

/// Runs a program for its standard output. `None` if it is absent, fails, or takes too long.
pub(super) fn output(command: &mut Command, time_max: Duration) -> Option<String> {
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

/// Waits for `child`, and kills it once it has taken `time_max`. Returns whether it succeeded by itself.
///
/// A child that writes more than a pipe holds takes too long: nobody reads meanwhile.
pub(super) fn finish(mut child: Child, time_max: Duration) -> bool {
    for _ in 0..time_max.as_millis() {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => pause(),
            Err(_) => return false,
        }
    }
    // It may have ended this instant; then there is nothing to kill.
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Sleeps for a millisecond, or less.
pub(super) fn pause() {
    let millisecond = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // With nothing to poll for only the time or a signal ends it.
    let _ = rustix::event::poll(&mut [], Some(&millisecond));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than a helper takes to start on any machine.
    const PATIENT: Duration = Duration::from_secs(60);

    #[test]
    fn helpers_end() {
        for (line, limit, well) in [
            ("true", PATIENT, true),
            ("exit 1", PATIENT, false),
            ("exec sleep 60", Duration::from_millis(300), false),
        ] {
            let child = Command::new("sh").args(["-c", line]).spawn().unwrap();
            assert_eq!(finish(child, limit), well, "{line}");
        }
    }

    #[test]
    fn outputs() {
        let shell = |line, limit| output(Command::new("sh").args(["-c", line]), limit);
        assert_eq!(shell("echo b true", PATIENT).as_deref(), Some("b true\n"));
        assert_eq!(shell("echo no; exit 1", PATIENT), None);
        assert_eq!(shell("echo no; exec sleep 60", Duration::from_millis(300)), None);
        assert_eq!(output(&mut Command::new("/no/such/helper"), PATIENT), None);
    }
}
