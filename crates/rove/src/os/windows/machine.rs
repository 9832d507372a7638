//! Which machine this is.
#![allow(unsafe_code)]

use std::path::PathBuf;

use windows_sys::Win32::System::SystemInformation::{
    ComputerNameDnsHostname, GetComputerNameExW, GetSystemDirectoryW,
};

/// Windows takes a file on another machine for a UNC path: it logs in there and fetches the file.
pub(crate) const FILES_ARE_FETCHED: bool = true;

/// The name of this machine.
pub(crate) fn host_name() -> String {
    let mut name = [0; 256];
    let mut length = name.len() as u32;
    // SAFETY: the call writes at most as many units as it is told.
    let done =
        unsafe { GetComputerNameExW(ComputerNameDnsHostname, name.as_mut_ptr(), &mut length) };
    let length = if done == 0 { 0 } else { length as usize };
    String::from_utf16_lossy(&name[..length.min(name.len())])
}

/// Where the system's own programs and libraries are.
pub(crate) fn system_directory() -> PathBuf {
    let mut name = [0; 260];
    // SAFETY: the call writes at most as many units as it is told.
    let length = unsafe { GetSystemDirectoryW(name.as_mut_ptr(), name.len() as u32) } as usize;
    PathBuf::from(String::from_utf16_lossy(name.get(..length).unwrap_or_default()))
}

/// Its file of hosts.
pub(crate) fn hosts_file() -> PathBuf {
    system_directory().join(r"drivers\etc\hosts")
}
