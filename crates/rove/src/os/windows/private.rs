//! Files that are their user's alone: those below %APPDATA% and %LOCALAPPDATA% are, by the access lists that they
//! inherit.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr;

use windows_sys::Win32::Foundation::{GENERIC_ALL, GENERIC_WRITE, LocalFree};
use windows_sys::Win32::Security::Authorization::{GetSecurityInfo, SE_FILE_OBJECT};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, EqualSid, GetAce,
    GetTokenInformation, INHERIT_ONLY_ACE, IsWellKnownSid, OWNER_SECURITY_INFORMATION,
    PSECURITY_DESCRIPTOR, PSID, TOKEN_QUERY, TOKEN_USER, TokenUser, WinBuiltinAdministratorsSid,
    WinLocalSystemSid,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_APPEND_DATA, FILE_WRITE_DATA, WRITE_DAC, WRITE_OWNER,
};
use windows_sys::Win32::System::SystemServices::{
    ACCESS_ALLOWED_ACE_TYPE, ACCESS_DENIED_ACE_TYPE, ACCESS_DENIED_OBJECT_ACE_TYPE,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// What lets others change a file, now or after a further step.
const CHANGES: u32 = FILE_WRITE_DATA
    | FILE_APPEND_DATA
    | DELETE
    | WRITE_DAC
    | WRITE_OWNER
    | GENERIC_WRITE
    | GENERIC_ALL;

/// Octets of what the system says of a user: a name of at most 68, and a pointer to it.
const USER_BYTES: usize = 128;

/// Makes a directory, and those above it, unless they are there.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

/// Makes an empty file, or empties one.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}

/// Whether others than this user, the administrators and the system own a file or may write it.
pub(crate) fn others_write(file: &File) -> io::Result<bool> {
    let user = User::of_process()?;
    let (mut owner, mut list, mut descriptor) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let wanted = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    // SAFETY: an open file; the call writes the pointers, two of them into the memory of the third.
    let error = unsafe {
        GetSecurityInfo(
            file.as_raw_handle(),
            SE_FILE_OBJECT,
            wanted,
            &mut owner,
            ptr::null_mut(),
            &mut list,
            ptr::null_mut(),
            &mut descriptor,
        )
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error.cast_signed()));
    }
    let _descriptor = Freed(descriptor);
    // A file without a list is everybody's.
    Ok(list.is_null() || !user.is_trusted(owner) || others_change(list, &user))
}

/// What the system has allocated.
struct Freed(PSECURITY_DESCRIPTOR);

impl Drop for Freed {
    fn drop(&mut self) {
        // SAFETY: it is the system's, and used no more.
        unsafe { LocalFree(self.0) };
    }
}

/// Whether a list, which is the system's, lets others change the file.
fn others_change(list: *const ACL, user: &User) -> bool {
    // SAFETY: a whole list, each entry of which begins with its header; the name follows the mask in those whose kind says so.
    unsafe {
        (0..u32::from((*list).AceCount)).any(|index| {
            let mut entry = ptr::null_mut();
            if GetAce(list, index, &mut entry) == 0 {
                return true;
            }
            let header = *entry.cast::<ACE_HEADER>();
            let kind = u32::from(header.AceType);
            let refuses = [ACCESS_DENIED_ACE_TYPE, ACCESS_DENIED_OBJECT_ACE_TYPE].contains(&kind);
            if refuses || u32::from(header.AceFlags) & INHERIT_ONLY_ACE != 0 {
                return false;
            }
            let allowed = entry.cast::<ACCESS_ALLOWED_ACE>();
            let name = (&raw mut (*allowed).SidStart).cast::<c_void>();
            // Kinds that are not known here may allow anything.
            kind != ACCESS_ALLOWED_ACE_TYPE
                || (*allowed).Mask & CHANGES != 0 && !user.is_trusted(name)
        })
    }
}

/// The user of this process, as the system writes it.
#[repr(C, align(8))]
struct User([u8; USER_BYTES]);

impl User {
    fn of_process() -> io::Result<Box<User>> {
        let mut user = Box::new(User([0; USER_BYTES]));
        let (mut token, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the calls write the handle, which is owned here, and at most as many octets as there are.
        let done = unsafe {
            if OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) == 0 {
                return Err(io::Error::last_os_error());
            }
            let token = OwnedHandle::from_raw_handle(token);
            let into = user.0.as_mut_ptr().cast();
            let room = USER_BYTES as u32;
            GetTokenInformation(token.as_raw_handle(), TokenUser, into, room, &mut length)
        };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(user) }
    }

    /// Whether this user, or one who may do anything anyway, has this name, which is the system's.
    fn is_trusted(&self, name: PSID) -> bool {
        // SAFETY: the octets are aligned as their structure, and hold one; the names are whole.
        unsafe {
            let own = (*self.0.as_ptr().cast::<TOKEN_USER>()).User.Sid;
            !name.is_null()
                && (EqualSid(own, name) != 0
                    || [WinLocalSystemSid, WinBuiltinAdministratorsSid]
                        .into_iter()
                        .any(|known| IsWellKnownSid(name, known) != 0))
        }
    }
}
