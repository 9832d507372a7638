//! Opens one component of a path after the other, through no symbolic link.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Opens one component: never as controlling terminal, closed on exec, and without waiting for the other end
/// of a pipe.
pub(crate) fn open_at(
    at: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let always = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(rustix::fs::openat(at, name, flags | always, mode)?)
}

/// Opens a path beneath a directory: no component may be a symbolic link or lead out. `through` is how the
/// directories on the way are opened.
pub(crate) fn walk_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    through: OFlags,
) -> io::Result<OwnedFd> {
    let mut components = path.split(|&octet| octet == b'/').peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(name) = components.next() {
        if name == b".." || name.is_empty() {
            return Err(Errno::XDEV.into());
        }
        let flags = match components.peek() {
            Some(_) => through | OFlags::DIRECTORY,
            None => flags,
        };
        let from = at.as_ref().map_or(root, |at| at.as_fd());
        at = Some(open_at(from, name, flags, Mode::empty())?);
    }
    at.ok_or_else(|| Errno::NOENT.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_and_no_way_out_is_taken() {
        let root = std::env::temp_dir().join(format!("rove-walk-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "here").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("b/file", root.join("a/last")).unwrap();
        let open = rustix::fs::open(&root, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let directory = open.unwrap();
        let walk = |path: &str| {
            let flags = OFlags::RDONLY;
            walk_beneath(directory.as_fd(), path.as_bytes(), flags, OFlags::RDONLY)
                .map_err(|error| Errno::from_raw_os_error(error.raw_os_error().unwrap()))
        };
        for path in ["a", ".", "a/b", "a/b/file", "./a/./b"] {
            walk(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        for (path, expected) in [
            ("..", Errno::XDEV),
            ("a/../a", Errno::XDEV),
            ("/etc", Errno::XDEV),
            ("a//b", Errno::XDEV),
            ("a/b/gone", Errno::NOENT),
            ("a/b/file/x", Errno::NOTDIR),
            ("a/last", Errno::LOOP),
        ] {
            assert_eq!(walk(path).unwrap_err(), expected, "{path}");
        }
        // Linux calls a link that is not followed no directory.
        assert!(matches!(walk("link/b"), Err(Errno::LOOP | Errno::NOTDIR)));
        std::fs::remove_dir_all(root).unwrap();
    }
}
