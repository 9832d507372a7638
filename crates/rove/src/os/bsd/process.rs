//! This process: what it lets others see, its files and threads, and chance.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::path::PathBuf;
use std::ptr;

/// Octets that one call of getentropy(3) gives at most.
const ENTROPY_BYTES_MAX: usize = 256;

/// Fills these octets with chance.
pub(crate) fn fill_random(octets: &mut [u8]) -> io::Result<()> {
    for part in octets.chunks_mut(ENTROPY_BYTES_MAX) {
        // SAFETY: the call fills this memory.
        if unsafe { libc::getentropy(part.as_mut_ptr().cast(), part.len()) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Keeps others of the same user from tracing this process.
pub(crate) fn refuse_tracing() -> io::Result<()> {
    // SAFETY: the call takes numbers, and no memory.
    #[cfg(target_os = "macos")]
    let done = unsafe { libc::ptrace(libc::PT_DENY_ATTACH, 0, ptr::null_mut(), 0) };
    // SAFETY: the call reads the number that it is given. Executing a program takes this back.
    #[cfg(not(target_os = "macos"))]
    let done = unsafe {
        let mut wish = libc::PROC_TRACE_CTL_DISABLE;
        let own = libc::id_t::from(libc::getpid().unsigned_abs());
        libc::procctl(libc::P_PID, own, libc::PROC_TRACE_CTL, ptr::from_mut(&mut wish).cast())
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every open file from this number on. Nobody in this process may own one of them.
pub(crate) fn close_from(first: u32) {
    let first = i32::try_from(first).unwrap_or(i32::MAX);
    // SAFETY: as said above.
    #[cfg(target_os = "freebsd")]
    unsafe {
        libc::closefrom(first);
    }
    #[cfg(not(target_os = "freebsd"))]
    {
        // The list is read first: it is open itself meanwhile.
        let Ok(list) = std::fs::read_dir("/dev/fd") else { return };
        let numbers = list.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let numbers: Vec<i32> = numbers.filter(|number| first <= *number).collect();
        for number in numbers {
            // SAFETY: as said above. The list's own number is closed by now, and closing it fails.
            unsafe { libc::close(number) };
        }
    }
}

/// Whether this is the process's only thread; if the system cannot tell, the caller must be right.
pub(crate) fn is_single_threaded() -> bool {
    threads().is_none_or(|count| count == 1)
}

#[cfg(target_os = "macos")]
fn threads() -> Option<i32> {
    // SAFETY: all-zero is a valid value: numbers. The call writes at most as many octets as it has.
    unsafe {
        let mut task: libc::proc_taskinfo = mem::zeroed();
        let size = size_of_val(&task) as i32;
        let into = ptr::from_mut(&mut task).cast();
        let got = libc::proc_pidinfo(libc::getpid(), libc::PROC_PIDTASKINFO, 0, into, size);
        (got == size).then_some(task.pti_threadnum)
    }
}

#[cfg(not(target_os = "macos"))]
fn threads() -> Option<i32> {
    // SAFETY: all-zero is a valid value: numbers and null pointers. The call reads the name, and writes at most as many
    // octets as the value has.
    unsafe {
        let mut own: libc::kinfo_proc = mem::zeroed();
        let mut size = size_of_val(&own);
        let pid = libc::getpid();
        let name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, pid];
        let into = ptr::from_mut(&mut own).cast();
        let done = libc::sysctl(name.as_ptr(), 4, into, &mut size, ptr::null(), 0);
        (done == 0 && size == size_of_val(&own)).then_some(own.ki_numthreads)
    }
}

/// The number of the network that this process is in. macOS has one alone, and a jail with one of its own has its own
/// name, too.
pub(crate) fn network_namespace() -> Option<u64> {
    None
}

/// A path to this program's file.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}
