//! This process: what it lets others see, its files and threads, and chance; and what is known of others.
#![allow(unsafe_code)]

use std::io;
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
        let mut task: libc::proc_taskinfo = std::mem::zeroed();
        let size = size_of_val(&task) as i32;
        let into = ptr::from_mut(&mut task).cast();
        let got = libc::proc_pidinfo(libc::getpid(), libc::PROC_PIDTASKINFO, 0, into, size);
        (got == size).then_some(task.pti_threadnum)
    }
}

#[cfg(not(target_os = "macos"))]
fn threads() -> Option<i32> {
    let own = processes(&[libc::KERN_PROC_PID, std::process::id().cast_signed()]);
    own?.first().map(|own| own.ki_numthreads)
}

/// Whether a process has started others. What cannot be seen may be there.
#[cfg(target_os = "macos")]
pub(crate) fn has_children(pid: u32) -> bool {
    let mut some = [0; 16];
    let size = size_of_val(&some) as i32;
    // SAFETY: the call writes at most as many octets as there are.
    unsafe { libc::proc_listchildpids(pid.cast_signed(), some.as_mut_ptr().cast(), size) != 0 }
}

/// Whether a process has started others. What cannot be seen may be there.
#[cfg(not(target_os = "macos"))]
pub(crate) fn has_children(pid: u32) -> bool {
    let all = processes(&[libc::KERN_PROC_PROC]);
    all.is_none_or(|all| all.iter().any(|process| process.ki_ppid == pid.cast_signed()))
}

/// The name of the program that a process runs; empty if the system does not tell.
#[cfg(target_os = "macos")]
pub(crate) fn program_name(pid: u32) -> Vec<u8> {
    // Two times MAXCOMLEN and a zero (sys/proc_info.h).
    let mut name = [0; 33];
    // SAFETY: the call writes at most as many octets as there are.
    let length =
        unsafe { libc::proc_name(pid.cast_signed(), name.as_mut_ptr().cast(), name.len() as u32) };
    name[..usize::try_from(length).unwrap_or(0).min(name.len())].to_vec()
}

/// The name of the program that a process runs; empty if the system does not tell.
#[cfg(not(target_os = "macos"))]
pub(crate) fn program_name(pid: u32) -> Vec<u8> {
    let found = processes(&[libc::KERN_PROC_PID, pid.cast_signed()]).unwrap_or_default();
    let name = found.first().map(|process| process.ki_comm.map(|octet| octet as u8));
    let octets = name.into_iter().flatten();
    octets.take_while(|octet| *octet != 0).collect()
}

/// The first octets of the words that a process was started with, a zero at the end of each; none if the system does not
/// tell.
#[cfg(target_os = "macos")]
pub(crate) fn command_line(pid: u32, octets_max: usize) -> Vec<u8> {
    let said = told(&[libc::CTL_KERN, libc::KERN_PROCARGS2, pid.cast_signed()]);
    let said = said.unwrap_or_default();
    let words = crate::os::macos_arguments::words(&said);
    words[..words.len().min(octets_max)].to_vec()
}

/// The first octets of the words that a process was started with, a zero at the end of each; none if the system does not
/// tell.
#[cfg(not(target_os = "macos"))]
pub(crate) fn command_line(pid: u32, octets_max: usize) -> Vec<u8> {
    let name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_ARGS, pid.cast_signed()];
    let mut words = told(&name).unwrap_or_default();
    words.truncate(octets_max);
    words
}

/// What the system tells of processes.
#[cfg(not(target_os = "macos"))]
fn processes(which: &[i32]) -> Option<Vec<libc::kinfo_proc>> {
    const SIZE: usize = size_of::<libc::kinfo_proc>();
    let told = told(&[&[libc::CTL_KERN, libc::KERN_PROC], which].concat())?;
    let all = told.chunks_exact(SIZE).map(|process| {
        // SAFETY: there are so many octets, and each value of them is valid: numbers and pointers that nobody follows.
        unsafe { ptr::read_unaligned(process.as_ptr().cast::<libc::kinfo_proc>()) }
    });
    let all: Vec<_> = all.collect();
    // A kernel of another version has others.
    all.iter().all(|process| process.ki_structsize as usize == SIZE).then_some(all)
}

/// What sysctl(3) tells under this name.
fn told(name: &[i32]) -> Option<Vec<u8>> {
    let mut name = name.to_vec();
    let mut ask = |into: *mut libc::c_void, size: &mut usize| {
        // SAFETY: the call reads the name, and writes at most as many octets as it is told that there are: none into no
        // memory.
        let done = unsafe {
            libc::sysctl(name.as_mut_ptr(), name.len() as u32, into, size, ptr::null_mut(), 0)
        };
        (done == 0).then_some(())
    };
    let mut size = 0;
    ask(ptr::null_mut(), &mut size)?;
    // Processes may have begun since.
    size += size / 8;
    let mut octets = vec![0; size];
    ask(octets.as_mut_ptr().cast(), &mut size)?;
    octets.truncate(size);
    Some(octets)
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
