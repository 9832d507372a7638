//! This process: what it lets others see, and chance.
#![allow(unsafe_code)]

use std::io;
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use windows_sys::Win32::Security::Cryptography::{
    BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom,
};
use windows_sys::Win32::System::Diagnostics::Debug::{
    SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SetErrorMode,
};
use windows_sys::Win32::System::ErrorReporting::{WER_FAULT_REPORTING_FLAG_NOHEAP, WerSetFlags};
use windows_sys::Win32::System::LibraryLoader::{
    LOAD_LIBRARY_SEARCH_SYSTEM32, SetDefaultDllDirectories,
};

use crate::os::windows::crash;
pub(crate) use crate::os::windows::programs::program_file;

/// The limit on core files: there are none here.
#[derive(Clone, Copy, Debug)]
pub struct CoreLimit;

/// Keeps this process's memory out of reports of a crash.
pub fn harden() -> io::Result<CoreLimit> {
    // SAFETY: the call takes a number.
    match unsafe { WerSetFlags(WER_FAULT_REPORTING_FLAG_NOHEAP) } {
        0.. => Ok(CoreLimit),
        failed => Err(io::Error::from_raw_os_error(failed)),
    }
}

/// The shell that runs lines on this machine: none that a server is started by.
pub(crate) const SHELL: Option<&str> = None;

/// What a program does before it has threads: libraries come from the system's directory alone from now on, a fault ends
/// the program without a dialog and without a report of its memory, and the console is given back first.
pub(crate) fn prepare() {
    // SAFETY: the calls take numbers. A system that knows neither goes on as it was.
    unsafe {
        SetDefaultDllDirectories(LOAD_LIBRARY_SEARCH_SYSTEM32);
        SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    }
    crash::watch();
}

/// Files get what their directory says.
pub(crate) fn umask() -> u32 {
    0
}

/// Nothing: the system's heap decides for itself.
pub(crate) fn keep_freed_memory() {}

/// Nothing: the system's heap decides for itself.
pub(crate) fn give_back_freed_memory() {}

/// A path to this program's file.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Runs another program in place of this one; returns only on failure.
pub(crate) fn become_program(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(255)),
        Err(error) => error,
    }
}

/// Makes `command` run without a console, and so all that it starts: ssh to a jump host, which options of ssh do not
/// reach, asks nobody.
pub(crate) fn without_terminal(command: &mut Command) {
    const DETACHED_PROCESS: u32 = 8;
    command.creation_flags(DETACHED_PROCESS);
}

/// Whether a path is that of a program of this name, with or without `.exe`, in any letters.
pub(crate) fn is_called(program: &Path, name: &str) -> bool {
    let is_program = program.extension().is_none_or(|it| it.eq_ignore_ascii_case("exe"));
    is_program && program.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case(name))
}

/// Fills these octets with chance.
pub(crate) fn fill_random(octets: &mut [u8]) -> io::Result<()> {
    let length = u32::try_from(octets.len()).map_err(io::Error::other)?;
    let flags = BCRYPT_USE_SYSTEM_PREFERRED_RNG;
    // SAFETY: the call fills this memory.
    let status =
        unsafe { BCryptGenRandom(std::ptr::null_mut(), octets.as_mut_ptr(), length, flags) };
    if status < 0 { Err(io::Error::other(format!("status {status:#x}"))) } else { Ok(()) }
}
