//! This process: what it lets others see, its files and threads, and chance; and what is known of others.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::DumpableBehavior;
use rustix::rand::{GetRandomFlags, getrandom};

/// Fills these octets with chance.
pub(crate) fn fill_random(octets: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < octets.len() {
        match getrandom(&mut octets[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            // Linux before 3.17. Its device gives the same, once the machine has started.
            Err(rustix::io::Errno::NOSYS) => {
                return File::open("/dev/urandom")?.read_exact(&mut octets[filled..]);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Keeps others of the same user from tracing this process, and from its memory in `/proc` (`PR_SET_DUMPABLE` 0). The
/// kernel takes that back by itself when a program is executed.
pub(crate) fn refuse_tracing() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Closes every open file from this number on. Nobody in this process may own one of them.
pub(crate) fn close_from(first: u32) {
    // SAFETY: as said above.
    if unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0u32) } == 0 {
        return;
    }
    // Linux before 5.9, or a container's filter of system calls from before then. The list is read first: it is open
    // itself meanwhile.
    let Ok(list) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = list.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let numbers: Vec<i32> = numbers.filter(|number| first as i32 <= *number).collect();
    for number in numbers {
        // SAFETY: as said above. The list's own number is closed by now, and closing it fails.
        unsafe { libc::close(number) };
    }
}

/// Whether this is the process's only thread; if the system cannot tell, the caller must be right.
pub(crate) fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
        || !Path::new("/proc/self/task").exists()
}

/// Whether a process's first thread has started others. What cannot be seen may be there.
pub(crate) fn has_children(pid: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.map_or(true, |children| !children.trim().is_empty())
}

/// The name of the program that a process runs, cut off by the kernel after 15 octets; empty if the system does not tell.
pub(crate) fn program_name(pid: u32) -> Vec<u8> {
    let mut name = first_octets(&format!("/proc/{pid}/comm"), NAME_OCTETS_MAX);
    name.truncate(name.trim_ascii_end().len());
    name
}

/// The longest name of a program, in octets; the kernel's are shorter.
const NAME_OCTETS_MAX: u64 = 64;

/// The first octets of the words that a process was started with, a zero at the end of each; none if the system does not
/// tell.
pub(crate) fn command_line(pid: u32, octets_max: usize) -> Vec<u8> {
    first_octets(&format!("/proc/{pid}/cmdline"), octets_max as u64)
}

/// What a file begins with, as far as it can be read.
fn first_octets(path: &str, octets_max: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    if let Ok(file) = File::open(path) {
        // Of a process that is gone meanwhile, nothing more is told.
        let _ = file.take(octets_max).read_to_end(&mut octets);
    }
    octets
}

/// The number of the network that this process is in (namespaces(7)), if the system tells.
pub(crate) fn network_namespace() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/net").ok().map(|namespace| namespace.ino())
}

/// A path to this program's file, also if another has its name by now.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    Ok("/proc/self/exe".into())
}
