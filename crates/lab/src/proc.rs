//! Looks at processes by /proc (proc(5)). A process may end while it is looked at: there is no answer then.

use std::fs;
use std::io;
use std::path::Path;

/// The numbers of all processes.
///
/// # Errors
/// If /proc cannot be read.
pub(crate) fn pids() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc")?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The name of a process; empty if it is gone.
pub(crate) fn name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// The first word behind a key, in a file that has a key on each line.
pub(crate) fn field(file: impl AsRef<Path>, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Seconds that all threads of a process have been on a processor: the first number of schedstat, in nanoseconds.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    sum(pid, |task| {
        let text = fs::read_to_string(task.join("schedstat")).ok()?;
        Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
    })
}

/// How often its threads slept and were woken.
pub(crate) fn wakes(pid: u32) -> Option<u64> {
    let wakes =
        |task: &Path| field(task.join("status"), "voluntary_ctxt_switches:")?.parse::<f64>().ok();
    sum(pid, wakes).map(|sum| sum as u64)
}

fn sum(pid: u32, of: impl Fn(&Path) -> Option<f64>) -> Option<f64> {
    let mut sum = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        sum += of(&task.ok()?.path())?;
    }
    Some(sum)
}
