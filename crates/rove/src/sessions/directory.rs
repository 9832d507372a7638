//! Where a user's sessions are found: a directory below /tmp with the control socket of each, `<id>.<name>`.
//!
//! It is not `$XDG_RUNTIME_DIR`, which goes with the last login while sessions go on. Others may write to /tmp, so the
//! directory counts only if it is this user's own and nobody else can enter it (threats row 25). The
//! names of files are the names of sessions, so that two that begin at once never get the same.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::event::Timespec;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::geteuid;
use thiserror::Error;

use crate::os;
use crate::os::fs::{fstat, lstat};
use crate::os::local_socket::bind_unix;
use crate::os::socket_file::SocketFile;
use crate::os::stat::FileType;
use crate::sessions::ask::{Entry, is_alive};
use crate::sessions::line::SESSIONS_MAX;
use crate::sessions::name::{Name, SessionId};

/// Entries of a directory that are looked at. A session has one.
const ENTRIES_MAX: usize = 1024;

/// What the name of a socket ends in whose server has no screen.
const HELPER: &str = "+streams";

/// Directories made because another user has the usual one's name, as far as they are remembered.
const OTHERS_MAX: usize = 16;

/// How often and how long a directory is waited for in which another session begins: a second in all.
const LOCK_TRIES: u32 = 50;
const LOCK_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Why there is no control socket.
#[derive(Debug, Error)]
pub(crate) enum Denied {
    /// Somebody else has the directory, or could.
    #[error("{path} is {what}", path = .0.display(), what = .1)]
    NotOurs(PathBuf, &'static str),
    /// The system's.
    #[error("{path}: {error}", path = .0.display(), error = os::words(.1))]
    System(PathBuf, io::Error),
    /// As many sessions as can be attached to are there.
    #[error("{SESSIONS_MAX} sessions of yours are there")]
    Full,
    /// Another session has this name.
    #[error("there is a session {0} already")]
    Taken(Name),
}

/// A directory that has passed all checks.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    file: OwnedFd,
}

/// A session's own place.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) id: SessionId,
    pub(crate) name: Name,
    pub(crate) listener: UnixListener,
    pub(crate) file: SocketFile,
}

/// Where directories are looked for.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// What the directory lies in.
    base: PathBuf,
    /// What remembers other directories; `None` without a home.
    record: Option<PathBuf>,
}

impl Places {
    /// Those of this user, whose environment has these.
    pub(crate) fn of_user(
        base: Option<OsString>,
        state: Option<OsString>,
        home: Option<OsString>,
    ) -> Places {
        let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
        let state = absolute(state).or_else(|| Some(absolute(home)?.join(".local/state")));
        Places {
            base: absolute(base).unwrap_or_else(|| "/tmp".into()),
            record: state.map(|state| state.join("rove/sockets")),
        }
    }

    /// Those of this process.
    pub(crate) fn here() -> Places {
        let all: BTreeMap<OsString, OsString> = os::environment::environment().collect();
        let value = |name: &str| all.get(OsStr::new(name)).cloned();
        Places::of_user(value("ROVE_TMPDIR"), value("XDG_STATE_HOME"), value("HOME"))
    }

    fn usual(&self) -> PathBuf {
        self.base.join(format!("rove-{}", geteuid().as_raw()))
    }

    /// The directory for a session that begins: the usual one, or, where that is somebody else's, one of another name,
    /// which is remembered.
    pub(crate) fn to_begin(&self) -> Result<Directory, Denied> {
        let denied = match Directory::make(&self.usual()) {
            Ok(directory) => return Ok(directory),
            Err(denied @ Denied::NotOurs(..)) => denied,
            Err(denied) => return Err(denied),
        };
        let Some(record) = &self.record else { return Err(denied) };
        if let Some(known) = self.remembered().iter().find_map(|path| Directory::open(path).ok()) {
            return Ok(known);
        }
        let random = os::random::<4>().map_err(|error| Denied::System(self.usual(), error))?;
        let name = format!("rove-{}-{:08x}", geteuid().as_raw(), u32::from_ne_bytes(*random));
        let directory = Directory::make(&self.base.join(name))?;
        // One that is not remembered is found by nobody.
        remember(record, &directory.path).map_err(|error| {
            let _ = fs::remove_dir(&directory.path);
            Denied::System(record.clone(), error)
        })?;
        Ok(directory)
    }

    /// All directories that may have sessions, and why those cannot be used that are there.
    pub(crate) fn to_list(&self) -> (Vec<Directory>, Vec<Denied>) {
        let mut denied = Vec::new();
        let mut found = Vec::new();
        for path in std::iter::once(self.usual()).chain(self.remembered()) {
            match Directory::open(&path) {
                Ok(directory) => found.push(directory),
                Err(Denied::System(_, error)) if error.kind() == ErrorKind::NotFound => {}
                Err(why) => denied.push(why),
            }
        }
        (found, denied)
    }

    fn remembered(&self) -> Vec<PathBuf> {
        let Some(record) = &self.record else { return Vec::new() };
        let mut text = String::new();
        let file = fs::OpenOptions::new().read(true).open(record);
        let _ = file.and_then(|file| file.take(RECORD_BYTES_MAX).read_to_string(&mut text));
        let paths = text.lines().map(PathBuf::from);
        // Only such as are made here.
        let own = format!("rove-{}-", geteuid().as_raw());
        let is_such = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&own)) && path.parent() == Some(&*self.base)
        };
        paths.filter(is_such).take(OTHERS_MAX).collect()
    }
}

/// The most octets of the file that remembers directories.
const RECORD_BYTES_MAX: u64 = 4096;

fn remember(record: &Path, directory: &Path) -> io::Result<()> {
    let parent = record.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(record)?;
    file.write_all(format!("{}\n", directory.display()).as_bytes())
}

impl Directory {
    /// Makes the directory, if it is not there, and opens it.
    fn make(path: &Path) -> Result<Directory, Denied> {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(Denied::System(path.to_owned(), error))
            }
            _ => Directory::open(path),
        }
    }

    /// Opens it, if it is this user's own, for nobody else, no link, and where nobody can put another in its place.
    fn open(path: &Path) -> Result<Directory, Denied> {
        let not_ours = |what| Err(Denied::NotOurs(path.to_owned(), what));
        let system = |error: rustix::io::Errno| Denied::System(path.to_owned(), error.into());
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::LOOP) => return not_ours("a link"),
            Err(rustix::io::Errno::NOTDIR) => {
                let is_link = lstat(path).is_ok_and(|stat| stat.kind() == FileType::Symlink);
                return not_ours(if is_link { "a link" } else { "no directory" });
            }
            // Nobody's own directory is closed to them.
            Err(rustix::io::Errno::ACCESS) => return not_ours("another user's"),
            Err(error) => return Err(system(error)),
        };
        let stat = fstat(&file).map_err(system)?;
        let own = geteuid().as_raw();
        if stat.st_uid != own {
            return not_ours("another user's");
        }
        if stat.st_mode & 0o777 != 0o700 {
            return not_ours("open to others (chmod 700 makes it yours alone)");
        }
        let base = path.parent().unwrap_or(Path::new("/"));
        let stat = fs::metadata(base).map_err(|error| Denied::System(base.to_owned(), error))?;
        let is_shared = stat.mode() & 0o022 != 0 && stat.mode() & 0o1000 == 0;
        if is_shared || !(stat.uid() == own || stat.uid() == 0) {
            return not_ours("in a directory where others can replace it");
        }
        Ok(Directory { path: path.to_owned(), file })
    }

    /// The sessions here. Places of those that are gone are cleared.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let found = fs::read_dir(&self.path).into_iter().flatten().flatten().take(ENTRIES_MAX);
        for file in found {
            let file_name = file.file_name();
            let Some((id, name)) = file_name.to_str().and_then(parts) else { continue };
            let path = file.path();
            match is_alive(&path) {
                Ok(true) => entries.push(Entry { id, name, path }),
                Ok(false) => drop(rustix::fs::unlink(&path)),
                // What cannot be asked is left alone.
                Err(_) => {}
            }
        }
        entries.sort();
        entries
    }

    /// Takes a place for a session: of this name, or of the lowest number that is free. It is there for others only
    /// once it listens.
    pub(crate) fn claim(&self, wanted: Option<&Name>) -> Result<Claim, Denied> {
        let system = |error| Denied::System(self.path.clone(), error);
        let _lock = self.lock();
        let entries = self.entries();
        let is_taken = |name: &Name| entries.iter().any(|entry| entry.name == *name);
        let name = match wanted {
            Some(name) if is_taken(name) => return Err(Denied::Taken(name.clone())),
            Some(name) => name.clone(),
            None => {
                let numbers = (1..).map(Name::number);
                let free = numbers.take(entries.len() + 1).find(|name| !is_taken(name));
                free.ok_or(Denied::Full)?
            }
        };
        if entries.len() >= SESSIONS_MAX {
            return Err(Denied::Full);
        }
        let random = os::random::<4>().map_err(system)?;
        let id = SessionId::new(u32::from_ne_bytes(*random));
        self.bind(id, name).map_err(system)
    }

    /// Takes a place for a server without a screen, which is asked for what it holds.
    pub(crate) fn claim_helper(&self) -> Result<Claim, Denied> {
        let system = |error| Denied::System(self.path.clone(), error);
        let _lock = self.lock();
        if self.helpers().len() >= SESSIONS_MAX {
            return Err(Denied::Full);
        }
        let random = os::random::<4>().map_err(system)?;
        let id = SessionId::new(u32::from_ne_bytes(*random));
        self.bind_at(id, Name::number(0), &format!("{id}{HELPER}")).map_err(system)
    }

    /// Where servers without a screen are asked.
    pub(crate) fn helpers(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(&self.path).into_iter().flatten().flatten().take(ENTRIES_MAX);
        let paths = found.map(|file| file.path());
        let is_helper = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str);
            name.and_then(|name| SessionId::parse(name.strip_suffix(HELPER)?)).is_some()
        };
        let is_there = |path: &PathBuf| match is_alive(path) {
            Ok(is_alive) => {
                if !is_alive {
                    let _ = rustix::fs::unlink(path);
                }
                is_alive
            }
            Err(_) => false,
        };
        paths.filter(is_helper).filter(is_there).collect()
    }

    /// Takes the place of a session again whose file is gone.
    pub(crate) fn claim_again(&self, id: SessionId, name: &Name) -> Result<Claim, Denied> {
        let _lock = self.lock();
        match self.entries().iter().any(|entry| entry.name == *name) {
            true => Err(Denied::Taken(name.clone())),
            false => self
                .bind(id, name.clone())
                .map_err(|error| Denied::System(self.path.clone(), error)),
        }
    }

    fn bind(&self, id: SessionId, name: Name) -> io::Result<Claim> {
        let file = format!("{id}.{name}");
        self.bind_at(id, name, &file)
    }

    fn bind_at(&self, id: SessionId, name: Name, file: &str) -> io::Result<Claim> {
        let path = self.path.join(file);
        let hidden = self.path.join(format!(".{id}"));
        let listener = bind_unix(&hidden)?;
        let file = SocketFile::of(&hidden)?;
        fs::rename(&hidden, &path)?;
        // From here on it is removed by its new name.
        file.leave();
        let file = SocketFile::of(&path)?;
        Ok(Claim { id, name, listener, file })
    }

    /// Keeps other sessions from beginning here until the result is dropped. A holder that stands still is not waited
    /// for.
    fn lock(&self) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.file, ".", flags, Mode::empty()).ok()?;
        for _ in 0..LOCK_TRIES {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(file),
                Err(_) => drop(rustix::event::poll(&mut [], Some(&LOCK_WAIT))),
            }
        }
        None
    }
}

/// Id and name in the name of a socket's file.
fn parts(file: &str) -> Option<(SessionId, Name)> {
    let (id, name) = file.split_once('.')?;
    Some((SessionId::parse(id)?, Name::parse(name)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Scene {
        directory: PathBuf,
        places: Places,
    }

    impl Scene {
        fn new(name: &str) -> Scene {
            let name = format!("rove-places-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&directory);
            fs::DirBuilder::new().mode(0o755).create(&directory).unwrap();
            let [base, state] = ["base", "state"].map(|name| directory.join(name));
            fs::create_dir(&base).unwrap();
            let places = Places::of_user(Some(base.into()), Some(state.into()), None);
            Scene { directory, places }
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    #[test]
    fn sessions_get_names_and_leave_no_file() {
        let scene = Scene::new("names");
        let directory = scene.places.to_begin().unwrap();
        let work = Name::of_user("work").unwrap();
        let names = |directory: &Directory| -> Vec<String> {
            let mut names: Vec<_> =
                directory.entries().iter().map(|entry| entry.name.to_string()).collect();
            names.sort();
            names
        };
        let first = directory.claim(None).unwrap();
        let second = directory.claim(None).unwrap();
        let named = directory.claim(Some(&work)).unwrap();
        assert_eq!(names(&directory), ["1", "2", "work"]);
        assert!(matches!(directory.claim(Some(&work)), Err(Denied::Taken(_))));
        drop(first);
        assert_eq!(directory.claim(None).unwrap().name.to_string(), "1");
        // One that was killed leaves its file, and whoever looks next removes it.
        let Claim { listener, file, .. } = named;
        file.leave();
        drop(listener);
        assert_eq!(names(&directory), ["2"]);
        drop(second);
        assert_eq!(fs::read_dir(&directory.path).unwrap().count(), 0);
    }

    #[test]
    fn servers_without_a_screen_are_no_sessions() {
        let scene = Scene::new("helpers");
        let directory = scene.places.to_begin().unwrap();
        let helper = directory.claim_helper().unwrap();
        assert!(directory.entries().is_empty());
        assert_eq!(directory.helpers(), std::slice::from_ref(&helper.file.path));
        let Claim { listener, file, .. } = helper;
        file.leave();
        drop(listener);
        assert!(directory.helpers().is_empty());
        assert_eq!(fs::read_dir(&directory.path).unwrap().count(), 0);
    }

    #[test]
    fn there_is_a_limit() {
        let scene = Scene::new("limit");
        let directory = scene.places.to_begin().unwrap();
        let claims: Vec<Claim> =
            (0..SESSIONS_MAX).map(|_| directory.claim(None).unwrap()).collect();
        assert!(matches!(directory.claim(None), Err(Denied::Full)));
        assert_eq!(claims.last().unwrap().name.to_string(), SESSIONS_MAX.to_string());
    }

    #[test]
    fn directories_that_others_could_use_are_not_used() {
        for (case, what) in
            [("mode", "open to others"), ("link", "a link"), ("file", "no directory")]
        {
            let scene = Scene::new(case);
            let usual = scene.places.usual();
            match case {
                "mode" => {
                    fs::create_dir(&usual).unwrap();
                    fs::set_permissions(&usual, fs::Permissions::from_mode(0o755)).unwrap();
                }
                "link" => {
                    let behind = scene.directory.join("behind");
                    fs::DirBuilder::new().mode(0o700).create(&behind).unwrap();
                    symlink(behind, &usual).unwrap();
                }
                _ => fs::write(&usual, "").unwrap(),
            }
            let (found, denied) = scene.places.to_list();
            assert!(found.is_empty(), "{case}");
            assert!(denied[0].to_string().contains(what), "{case}: {denied:?}");
            // Another directory takes its place, and is found again.
            let claim = scene.places.to_begin().unwrap().claim(None).unwrap();
            let (found, _) = scene.places.to_list();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].entries()[0].id, claim.id);
            assert_eq!(scene.places.to_begin().unwrap().path, found[0].path);
        }
    }

    #[test]
    fn a_base_where_others_may_rename_is_refused() {
        let scene = Scene::new("base");
        let base = scene.places.base.clone();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(scene.places.to_begin(), Err(Denied::NotOurs(..))));
        fs::set_permissions(&base, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(scene.places.to_begin().is_ok());
    }
}
