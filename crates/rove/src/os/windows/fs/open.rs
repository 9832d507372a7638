//! Opens one name in a directory, and reads and writes files.
#![allow(unsafe_code)]

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::windows::fs::FileExt;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr;

use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_OPEN, FILE_OPEN_REPARSE_POINT, FILE_SYNCHRONOUS_IO_NONALERT,
    NTCREATEFILE_CREATE_DISPOSITION, NTCREATEFILE_CREATE_OPTIONS, NtCreateFile,
};
use windows_sys::Win32::Foundation::{OBJ_CASE_INSENSITIVE, UNICODE_STRING};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_NORMAL, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, SYNCHRONIZE,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use super::errno::Errno;
use super::types::SeekFrom;

/// What other programs may do meanwhile: anything, as everywhere else.
pub(in crate::os::windows) const SHARED: u32 =
    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// Opens or makes one name in a directory, and never through a link there.
pub(in crate::os::windows) fn call(
    at: BorrowedHandle<'_>,
    name: &[u8],
    access: u32,
    disposition: NTCREATEFILE_CREATE_DISPOSITION,
    options: NTCREATEFILE_CREATE_OPTIONS,
) -> Result<OwnedHandle, Errno> {
    let mut units = name_units(name)?;
    let length = u16::try_from(units.len() * 2).map_err(|_| Errno::NAMETOOLONG)?;
    let name = UNICODE_STRING { Length: length, MaximumLength: length, Buffer: units.as_mut_ptr() };
    let attributes = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: at.as_raw_handle(),
        ObjectName: &name,
        Attributes: OBJ_CASE_INSENSITIVE,
        SecurityDescriptor: ptr::null(),
        SecurityQualityOfService: ptr::null(),
    };
    let options = options | FILE_SYNCHRONOUS_IO_NONALERT | FILE_OPEN_REPARSE_POINT;
    let mut file = ptr::null_mut();
    // SAFETY: an open directory, and names that live until the call returns, which writes the handle and the status.
    unsafe {
        let mut status: IO_STATUS_BLOCK = std::mem::zeroed();
        Errno::check(NtCreateFile(
            &mut file,
            access | SYNCHRONIZE,
            &attributes,
            &mut status,
            ptr::null(),
            FILE_ATTRIBUTE_NORMAL,
            SHARED,
            disposition,
            options,
            ptr::null(),
            0,
        ))?;
        Ok(OwnedHandle::from_raw_handle(file))
    }
}

/// The units of one component of a path.
pub(super) fn name_units(name: &[u8]) -> Result<Vec<u16>, Errno> {
    let name = str::from_utf8(name).map_err(|_| Errno::INVAL)?;
    match name.is_empty() || name == ".." || name.contains(['/', '\\', ':', '\0']) {
        true => Err(Errno::XDEV),
        false => Ok(name.encode_utf16().collect()),
    }
}

/// Opens what has this name; a link is opened itself.
pub(in crate::os::windows) fn open_named(
    at: BorrowedHandle<'_>,
    name: &[u8],
    access: u32,
    options: NTCREATEFILE_CREATE_OPTIONS,
) -> Result<OwnedHandle, Errno> {
    match name {
        b"." => at.try_clone_to_owned().map_err(|error| Errno::of(&error)),
        _ => call(at, name, access, FILE_OPEN, options),
    }
}

/// A user's path, in which a slash separates directories.
pub(in crate::os::windows) fn path_of(path: &[u8]) -> Result<&Path, Errno> {
    str::from_utf8(path).map(Path::new).map_err(|_| Errno::INVAL)
}

/// A file to call the standard library with, which does not close it.
pub(super) fn borrowed(file: &impl AsRawHandle) -> ManuallyDrop<File> {
    // SAFETY: an open file, which outlives what is returned, as every caller uses it at once.
    ManuallyDrop::new(unsafe { File::from_raw_handle(file.as_raw_handle()) })
}

/// Reads at a place; 0 is the end.
pub(crate) fn pread(file: &impl AsRawHandle, room: &mut [u8], offset: u64) -> Result<usize, Errno> {
    borrowed(file).seek_read(room, offset).map_err(|error| Errno::of(&error))
}

/// Reads at a place, behind what is there, as much as there is room for; 0 is the end.
pub(crate) fn append(
    file: &impl AsRawHandle,
    octets: &mut Vec<u8>,
    offset: u64,
) -> Result<usize, Errno> {
    let before = octets.len();
    octets.resize(octets.capacity(), 0);
    let read = pread(file, &mut octets[before..], offset);
    octets.truncate(before + *read.as_ref().unwrap_or(&0));
    read
}

/// Writes at a place.
pub(crate) fn pwrite(file: impl AsRawHandle, octets: &[u8], offset: u64) -> Result<usize, Errno> {
    borrowed(&file).seek_write(octets, offset).map_err(|error| Errno::of(&error))
}

/// Refuses: no holes are looked for.
pub(crate) fn seek(_: &OwnedHandle, _: SeekFrom) -> Result<u64, Errno> {
    Err(Errno::INVAL)
}

/// Whether what is not written yet may look like a hole.
pub(crate) fn is_zfs(_: &OwnedHandle) -> bool {
    false
}

/// Whether a disk takes no changes: one that does not says so at each.
pub(crate) fn is_read_only(_: &OwnedHandle) -> bool {
    true
}

/// Whether a directory takes new names: the copy tries.
pub(crate) fn takes_names(_: BorrowedHandle<'_>) -> Result<(), Errno> {
    Ok(())
}
