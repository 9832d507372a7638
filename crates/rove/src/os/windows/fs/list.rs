//! The names in a directory.
#![allow(unsafe_code)]

use std::ffi::{CString, OsString};
use std::os::windows::ffi::OsStringExt;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr;

use windows_sys::Wdk::Storage::FileSystem::{FileNamesInformation, NtQueryDirectoryFile};
use windows_sys::Win32::Foundation::{STATUS_NO_MORE_FILES, STATUS_NO_SUCH_FILE};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use super::errno::Errno;

/// Octets of names that are read at a time.
const NAMES_BYTES: usize = 32 << 10;

/// Octets of an entry before its name: where the next one is, a number, the length of the name.
const HEADER_BYTES: usize = 12;

/// The names in a directory, one after the other.
#[derive(Debug)]
pub(crate) struct Dir {
    directory: OwnedHandle,
    /// Aligned as the system wants it.
    buffer: Vec<u64>,
    /// Octets in it, and where the next entry begins.
    filled: usize,
    next: Option<usize>,
    has_begun: bool,
    is_over: bool,
}

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct DirEntry(CString);

impl DirEntry {
    /// Its name.
    pub(crate) fn file_name(&self) -> &std::ffi::CStr {
        &self.0
    }
}

impl Dir {
    /// The names in this one.
    pub(crate) fn read_from(directory: &OwnedHandle) -> Result<Dir, Errno> {
        let directory = directory.try_clone().map_err(|error| Errno::of(&error))?;
        let buffer = vec![0; NAMES_BYTES / size_of::<u64>()];
        let (filled, next, has_begun, is_over) = (0, None, false, false);
        Ok(Dir { directory, buffer, filled, next, has_begun, is_over })
    }

    /// The next entry; `None` at the end.
    pub(crate) fn read(&mut self) -> Option<Result<DirEntry, Errno>> {
        loop {
            if let Some(at) = self.next {
                match self.entry(at) {
                    Some(entry) => return Some(Ok(entry)),
                    // A name that has a NUL is none that could be asked for.
                    None => continue,
                }
            }
            if self.is_over {
                return None;
            }
            match self.fill() {
                Ok(()) => self.next = Some(0),
                Err(end) => {
                    self.is_over = true;
                    return end.map(Err);
                }
            }
        }
    }

    /// The entry that begins here; goes on to the next.
    fn entry(&mut self, at: usize) -> Option<DirEntry> {
        // SAFETY: the octets of the numbers.
        let octets =
            unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().cast::<u8>(), self.filled) };
        let number = |offset: usize| {
            let four = octets.get(at + offset..at + offset + 4)?;
            Some(u32::from_le_bytes(four.try_into().ok()?) as usize)
        };
        let step = number(0).unwrap_or(0);
        self.next = (step > 0).then_some(at + step);
        let name = octets.get(at + HEADER_BYTES..)?.get(..number(8)?)?;
        let units: Vec<u16> =
            name.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
        CString::new(OsString::from_wide(&units).into_encoded_bytes()).ok().map(DirEntry)
    }

    /// Reads more names. `Err(None)` is the end.
    fn fill(&mut self) -> Result<(), Option<Errno>> {
        let restarts = !std::mem::replace(&mut self.has_begun, true);
        // SAFETY: an open directory; the call writes at most as many octets as it is told.
        let (result, length) = unsafe {
            let mut status: IO_STATUS_BLOCK = std::mem::zeroed();
            let result = NtQueryDirectoryFile(
                self.directory.as_raw_handle(),
                ptr::null_mut(),
                None,
                ptr::null(),
                &mut status,
                self.buffer.as_mut_ptr().cast(),
                (self.buffer.len() * size_of::<u64>()) as u32,
                FileNamesInformation,
                false,
                ptr::null(),
                restarts,
            );
            (result, status.Information)
        };
        if [STATUS_NO_MORE_FILES, STATUS_NO_SUCH_FILE].contains(&result) {
            return Err(None);
        }
        Errno::check(result).map_err(Some)?;
        self.filled = length.min(self.buffer.len() * size_of::<u64>());
        Ok(())
    }
}

impl Iterator for Dir {
    type Item = Result<DirEntry, Errno>;

    fn next(&mut self) -> Option<Result<DirEntry, Errno>> {
        self.read()
    }
}
