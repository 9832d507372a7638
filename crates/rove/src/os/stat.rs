//! What the system says of a file, in types that are the same everywhere.

/// The kinds of file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FileType {
    RegularFile,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharacterDevice,
    BlockDevice,
    /// None of these.
    Unknown,
}

/// The bits of a kind in `st_mode` (inode(7)), which all systems have in common.
const KINDS: [(u32, FileType); 7] = [
    (0o100_000, FileType::RegularFile),
    (0o040_000, FileType::Directory),
    (0o120_000, FileType::Symlink),
    (0o010_000, FileType::Fifo),
    (0o140_000, FileType::Socket),
    (0o020_000, FileType::CharacterDevice),
    (0o060_000, FileType::BlockDevice),
];

/// What the system says of a file (stat(2)).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Stat {
    pub st_dev: u64,
    pub st_ino: u64,
    pub st_mode: u32,
    pub st_nlink: u64,
    pub st_uid: u32,
    pub st_gid: u32,
    pub st_size: i64,
    /// Of 512 octets each.
    pub st_blocks: i64,
    pub st_atime: i64,
    pub st_atime_nsec: u64,
    pub st_mtime: i64,
    pub st_mtime_nsec: u64,
    pub st_ctime: i64,
    pub st_ctime_nsec: u64,
}

impl Stat {
    /// The kind of file.
    pub(crate) fn kind(&self) -> FileType {
        let kind = KINDS.iter().find(|(bits, _)| *bits == self.st_mode & 0o170_000);
        kind.map_or(FileType::Unknown, |(_, kind)| *kind)
    }

    /// Whether both are of one file.
    pub(crate) fn is_one(&self, other: &Stat) -> bool {
        (self.st_dev, self.st_ino) == (other.st_dev, other.st_ino)
    }
}
