//! The target of a copy: opens the directory that the user named plainly, and everything that the
//! other end puts below it beneath it, never through a symbolic link.

mod root;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use crate::copy::disk::{Disk, reason};
use crate::copy::message::{Entry, Kind, Times, shown};
use crate::copy::name::{Name, fits};
use crate::copy::order::Receive;
use crate::copy::part::FileId;
use crate::copy::walk::last_component;
use crate::os::file_names;
use crate::os::files::{open_at, open_beneath};
use crate::os::fs::{
    AsFd, AtFlags, BorrowedFd, Errno, Mode, OFlags, OwnedFd, fstat, permissions, statat,
};
use crate::os::stat::FileType;
use root::{Root, TargetFault};

pub(crate) use root::TargetError;

/// The most directories of one copy.
const DIRECTORIES_MAX: usize = 4_000_000;

/// Octets that a name takes in a table besides its own.
const TAKEN_BYTES: usize = 200;

/// The most octets of all their paths, lest many deep ones take gigabytes.
const PATHS_BYTES_MAX: usize = 256 << 20;

/// The most directories to keep open.
const OPEN_MAX: usize = 64;

/// The longest path below the target: the limit of one system call.
const PATH_BYTES_MAX: usize = 4095;

/// The names that a source may have here; the user asked for no others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Expected {
    /// This name.
    Name(Vec<u8>),
    /// A name that fits this pattern, or equals it.
    Pattern(Vec<u8>),
    /// A directory whose contents go into the target.
    Contents,
    /// The same, if this is a user's home, or else a file of this name.
    Home(Vec<u8>),
}

impl Expected {
    /// The names that a source with this path may have.
    pub fn of(path: &[u8]) -> Expected {
        // What is more than this name names something in a home, or what fits a pattern.
        let is_all = |name: &[u8]| {
            path.strip_prefix(name).is_some_and(|rest| rest.iter().all(|octet| *octet == b'/'))
        };
        match last_component(path) {
            b"" => Expected::Contents,
            // A home directory itself.
            b"~" if is_all(b"~") => Expected::Contents,
            name if name.starts_with(b"~")
                && is_all(name)
                && !crate::copy::name::is_pattern(name) =>
            {
                Expected::Home(name.to_vec())
            }
            name if crate::copy::name::is_pattern(path) => Expected::Pattern(name.to_vec()),
            name => Expected::Name(name.to_vec()),
        }
    }

    fn admits_contents(&self) -> bool {
        matches!(self, Expected::Contents | Expected::Home(_))
    }

    fn admits(&self, name: &[u8]) -> bool {
        match self {
            Expected::Name(expected) => name == expected,
            Expected::Pattern(pattern) => name == pattern || fits(pattern, name),
            Expected::Contents => name.is_empty(),
            Expected::Home(expected) => name.is_empty() || name == expected,
        }
    }
}

/// The target of a copy, and the directories below it that the other end has listed.
#[derive(Debug)]
pub(super) struct Target {
    root: Arc<OwnedFd>,
    /// The one name in `root` that everything goes to; `None` if entries keep their own names.
    only: Option<Name>,
    only_is_taken: bool,
    /// More than one source goes there, as when a pattern stands for several.
    only_is_contested: bool,
    must_be_directory: bool,
    /// The path of `root`, or of `root` and `only`, as the user wrote it.
    label: Vec<u8>,
    /// By entry.
    directories: BTreeMap<u32, Directory>,
    /// Octets of their paths, and of the names in `folded`.
    paths_bytes: usize,
    /// The names so far, by directory and as the system compares them; none where names differ by their octets.
    folded: HashMap<(u32, Vec<u8>), Name>,
    open: HashMap<u32, Arc<OwnedFd>>,
}

#[derive(Debug)]
struct Directory {
    /// From the root.
    path: Vec<u8>,
    /// How many directories it is below the user's own.
    depth: usize,
    mode: Mode,
    times: Times,
    state: State,
    /// Its first identity.
    id: Option<FileId>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// It existed before.
    Found,
    /// The copy made it.
    Made,
    /// It could not be made, so nothing goes into it.
    Failed,
}

/// The destination of one entry.
#[derive(Debug)]
pub(super) struct Destination {
    /// The entry of its directory, which is not kept open: more entries may wait than files can be open.
    pub(super) parent: u32,
    pub(super) name: Name,
    /// Whether this copy made the directory: then nothing is in the way.
    pub(super) is_fresh: bool,
}

/// Why an entry has no destination.
#[derive(Debug)]
pub(super) enum NoDestination {
    /// For this reason.
    Why(String),
    /// Its directory failed, which was reported.
    Skipped,
    /// The user did not ask for it: the other end is not trustworthy.
    Unasked(String),
}

impl Target {
    /// Opens the target that the user named.
    pub(super) fn open(path: &[u8], receive: &Receive) -> Result<Target, TargetError> {
        let Root { directory, only, must_be_directory, label } = Root::open(path, receive)?;
        Ok(Target {
            root: Arc::new(directory),
            only,
            only_is_taken: false,
            only_is_contested: false,
            must_be_directory,
            label,
            directories: BTreeMap::new(),
            paths_bytes: 0,
            folded: HashMap::new(),
            open: HashMap::new(),
        })
    }

    /// The directory that contains everything.
    pub(super) fn root(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.root)
    }

    /// The number of its disk; others may be mounted below.
    pub(super) fn device(&self) -> Option<u64> {
        fstat(&self.root).ok().map(|stat| stat.st_dev)
    }

    /// The path of an entry, for the user.
    pub(super) fn shown(&self, entry: &Entry<'_>) -> Vec<u8> {
        let mut path = self.label.clone();
        let mut add = |part: &[u8]| {
            if !part.is_empty() {
                if !path.ends_with(b"/") {
                    path.push(b'/');
                }
                path.extend_from_slice(part);
            }
        };
        if let Some(directory) = self.directories.get(&entry.parent) {
            let below = match &self.only {
                Some(only) => directory.path.get(only.as_bytes().len() + 1..).unwrap_or_default(),
                None => &directory.path,
            };
            add(below);
        }
        if entry.parent != 0 || self.only.is_none() {
            add(entry.name);
        }
        path
    }

    /// Finds the destination of an entry, and checks its name.
    pub(super) fn place(
        &mut self,
        entry: &Entry<'_>,
        expected: &[Expected],
    ) -> Result<Destination, NoDestination> {
        let name = match entry.parent {
            0 => self.top_name(entry, expected)?,
            _ => named(entry)?,
        };
        match self.directories.get(&entry.parent) {
            Some(directory) if directory.state == State::Failed => {
                return Err(NoDestination::Skipped);
            }
            Some(_) => {}
            None if entry.parent == 0 => {}
            None => return Err(unasked(entry)),
        }
        self.take_folded(entry.parent, &name)?;
        let parent = self.directories.get(&entry.parent);
        let is_fresh = parent.is_some_and(|directory| directory.state == State::Made);
        Ok(Destination { parent: entry.parent, name, is_fresh })
    }

    /// Takes a name where names that differ may be one: the second of them would replace the first.
    fn take_folded(&mut self, parent: u32, name: &Name) -> Result<(), NoDestination> {
        let Some(folded) = file_names::folded(name.as_bytes()) else { return Ok(()) };
        self.paths_bytes += folded.len() + name.as_bytes().len() + TAKEN_BYTES;
        if self.paths_bytes >= PATHS_BYTES_MAX {
            return Err(NoDestination::Unasked("more names than are taken".to_owned()));
        }
        let taken = self.folded.entry((parent, folded)).or_insert_with(|| name.clone());
        match taken == name {
            true => Ok(()),
            false => Err(NoDestination::Why(format!(
                "{}, which came before, has the same name but for capital letters",
                shown(taken.as_bytes())
            ))),
        }
    }

    /// Fails for a file that must not be written after all: if several sources share their one name, not
    /// even the first is.
    pub(super) fn check(&self, destination: &Destination) -> io::Result<()> {
        match destination.parent == 0 && self.only_is_contested {
            true => Err(io::Error::other(TargetFault::NotDirectoryForSeveral.to_string())),
            false => Ok(()),
        }
    }

    /// The directory that an entry goes to, open.
    pub(super) fn directory_of(
        &mut self,
        destination: &Destination,
    ) -> Result<Arc<OwnedFd>, NoDestination> {
        self.directory(destination.parent).map_err(|error| NoDestination::Why(reason(&error)))
    }

    /// The name of something that the user asked for.
    fn top_name(
        &mut self,
        entry: &Entry<'_>,
        expected: &[Expected],
    ) -> Result<Name, NoDestination> {
        let is_directory = entry.kind == Kind::Directory;
        let is_expected = expected.is_empty()
            || expected.get(usize::from(entry.source)).is_some_and(|e| e.admits(entry.name));
        if !is_expected || (entry.name.is_empty() && !is_directory) {
            return Err(unasked(entry));
        }
        let Some(only) = &self.only else {
            return named(entry);
        };
        if std::mem::replace(&mut self.only_is_taken, true) {
            self.only_is_contested = true;
            return Err(NoDestination::Why(TargetFault::NotDirectoryForSeveral.to_string()));
        }
        if self.must_be_directory && !is_directory {
            return Err(NoDestination::Why("no such directory".to_owned()));
        }
        Ok(only.clone())
    }

    /// Makes a directory, or takes the existing one. The entries in it follow in any case; if it fails, they
    /// fail with it.
    pub(super) fn add_directory(
        &mut self,
        disk: &Disk,
        index: u32,
        entry: &Entry<'_>,
        expected: &[Expected],
        mode: Mode,
    ) -> Result<(), NoDestination> {
        if self.directories.len() >= DIRECTORIES_MAX || self.paths_bytes >= PATHS_BYTES_MAX {
            return Err(NoDestination::Unasked("more directories than are taken".to_owned()));
        }
        let made = self.make_directory(disk, entry, expected, mode);
        let (path, state, id) = match &made {
            Ok((path, state, id)) => (path.clone(), *state, *id),
            Err(_) => (Vec::new(), State::Failed, None),
        };
        self.paths_bytes += path.len();
        let above = self.directories.get(&entry.parent);
        let depth = above.map_or(0, |above| above.depth + 1);
        let directory = Directory { path, depth, mode, times: entry.times, state, id };
        self.directories.insert(index, directory);
        made.map(drop)
    }

    fn make_directory(
        &mut self,
        disk: &Disk,
        entry: &Entry<'_>,
        expected: &[Expected],
        mode: Mode,
    ) -> Result<(Vec<u8>, State, Option<FileId>), NoDestination> {
        let is_contents = entry.parent == 0 && entry.name.is_empty() && self.only.is_none();
        if is_contents {
            let is_expected = expected.is_empty()
                || expected.get(usize::from(entry.source)).is_some_and(Expected::admits_contents);
            return match is_expected {
                true => Ok((Vec::new(), State::Found, None)),
                false => Err(unasked(entry)),
            };
        }
        let destination = self.place(entry, expected)?;
        let mut path = self.directories.get(&entry.parent).map_or(Vec::new(), |d| d.path.clone());
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(destination.name.as_bytes());
        if path.len() > PATH_BYTES_MAX {
            return Err(NoDestination::Why("the path is too long".to_owned()));
        }
        let directory = self.directory_of(&destination)?;
        let at = directory.as_fd();
        match disk.make_directory(at, destination.name.as_bytes(), mode | Mode::RWXU) {
            Ok(()) => {
                let made = statat(at, destination.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
                return Ok((path, State::Made, made.ok().map(|stat| FileId::of(&stat))));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(NoDestination::Why(reason(&error))),
        }
        match open_at(
            at,
            destination.name.as_bytes(),
            OFlags::RDONLY | OFlags::DIRECTORY,
            Mode::empty(),
        ) {
            Ok(found) => {
                let found = fstat(&found).ok();
                Ok((path, State::Found, found.map(|stat| FileId::of(&stat))))
            }
            Err(error) => {
                let is_link = statat(at, destination.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| stat.kind() == FileType::Symlink);
                Err(NoDestination::Why(match is_link {
                    true => reason(&Errno::LOOP.into()),
                    false => reason(&error),
                }))
            }
        }
    }

    /// How many directories the entry of a directory is below the user's own.
    pub(super) fn depth(&self, index: u32) -> usize {
        self.directories.get(&index).map_or(0, |directory| directory.depth)
    }

    /// The directory of this entry, open; 0 is the root.
    pub(super) fn directory(&mut self, index: u32) -> io::Result<Arc<OwnedFd>> {
        let Some(directory) = self.directories.get(&index) else {
            return Ok(Arc::clone(&self.root));
        };
        if let Some(open) = self.open.get(&index) {
            return Ok(Arc::clone(open));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = Arc::new(open_beneath(self.root.as_fd(), &directory.path, flags)?);
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        self.open.insert(index, Arc::clone(&opened));
        Ok(opened)
    }

    /// Gives the directories the attributes that they could not have while they were filled, the innermost
    /// first, and waits until all names are on the disk. Returns the failures.
    pub(super) fn finish(&mut self, disk: &Disk, preserve: bool) -> Vec<String> {
        let mut failed = Vec::new();
        self.open.clear();
        for directory in self.directories.values().rev().filter(|d| d.state != State::Failed) {
            let is_made = directory.state == State::Made;
            let finished = (|| {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let fd = open_beneath(self.root.as_fd(), &directory.path, flags)?;
                let preserves = preserve && !directory.path.is_empty();
                if is_made || preserves {
                    let times = preserves.then_some(&directory.times);
                    set_mode_and_times(disk, fd.as_fd(), directory, times)?;
                }
                disk.sync(fd.as_fd())
            })();
            if let Err(error) = finished {
                failed.push(format!("{}: {}", shown(&directory.path), reason(&error)));
            }
        }
        if let Err(error) = disk.sync(self.root.as_fd()) {
            failed.push(format!("{}: {}", shown(&self.label), reason(&error)));
        }
        failed
    }
}

/// Gives a directory its permissions if they differ, and its times if there are any; keeps setgid, which
/// gives its files their group.
///
/// Not a directory that was moved to its place meanwhile, which may be a private one.
fn set_mode_and_times(
    disk: &Disk,
    directory: BorrowedFd<'_>,
    wanted: &Directory,
    times: Option<&Times>,
) -> io::Result<()> {
    let stat = fstat(directory)?;
    let (there, mode) = (permissions(stat.st_mode), wanted.mode);
    let has_mode = there & (Mode::RWXU | Mode::RWXG | Mode::RWXO) == mode;
    if has_mode && times.is_none() {
        return Ok(());
    }
    if wanted.id.is_some_and(|id| id != FileId::of(&stat)) {
        return Err(io::Error::other("it was replaced while it was copied"));
    }
    if !has_mode {
        disk.set_mode(directory, mode | (there & (Mode::SUID | Mode::SGID | Mode::SVTX)))?;
    }
    times.map_or(Ok(()), |times| disk.set_times(directory, times))
}

/// The name of an entry, unless it leads elsewhere or no file can have it here.
fn named(entry: &Entry<'_>) -> Result<Name, NoDestination> {
    let name = Name::new(entry.name).ok_or_else(|| unasked(entry))?;
    match file_names::fault(name.as_bytes()) {
        None => Ok(name),
        Some(why) => Err(NoDestination::Why(why.to_owned())),
    }
}

fn unasked(entry: &Entry<'_>) -> NoDestination {
    NoDestination::Unasked(format!(
        "the other end sent {:?}, which was not asked for",
        shown(entry.name)
    ))
}
