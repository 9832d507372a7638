//! Expands and walks the user's sources into a list of entries.
//!
//! A path that the user wrote is opened as it stands, with its symbolic links. Everything below it
//! is opened beneath it, and links there are copied, not followed.

use std::io;
use std::sync::Arc;

use crate::copy::disk::reason;
use crate::copy::message::{ANEW, Entry, Kind, Message, Moment, Times, shown};
use crate::copy::name::{Name, fits, is_pattern};
use crate::copy::outgoing::{Listed, Outgoing, Over};
use crate::copy::pipe::Outbox;
use crate::copy::source::SourceFile;
use crate::os::file_names;
use crate::os::files::open_beneath;
use crate::os::fs::{self, AsFd, AtFlags, BorrowedFd, CWD, Dir, Errno, OFlags, open_plain, statat};
use crate::os::stat::{FileType, Stat};

/// The longest path below a source: the limit of one system call.
const PATH_BYTES_MAX: usize = 4095;

/// The most paths that one pattern may stand for; the copy reports that there are more and skips them.
pub(super) const MATCHES_MAX: usize = 100_000;

/// The sources to send.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sources {
    /// Their paths, absolute or from the current directory.
    pub paths: Vec<Vec<u8>>,
    /// Directories too.
    pub recursive: bool,
    /// Whether `*`, `?` and `[` in a path that does not exist make it a pattern.
    pub patterns: bool,
}

/// Walks the sources and sends their entries.
pub(super) struct Walker<'a> {
    pub(super) sources: &'a Sources,
    pub(super) hold: &'a Outgoing<'a>,
    pub(super) out: Outbox,
    pub(super) next: u32,
    /// Paths that one pattern may stand for.
    pub(super) matches_max: usize,
}

/// A directory still to be read.
struct Waiting {
    index: u32,
    path: Vec<u8>,
}

impl Walker<'_> {
    /// Sends all entries and then `Listed`.
    pub(super) async fn run(&mut self) -> Result<(), Over> {
        for (number, path) in self.sources.paths.iter().enumerate() {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            let expanded = match self.sources.patterns {
                true => expand(path, self.matches_max),
                false => Expanded { paths: vec![path.clone()], missed: Vec::new() },
            };
            for (place, why) in &expanded.missed {
                self.trouble(place, why).await?;
            }
            for path in expanded.paths {
                self.source(number, &path).await?;
            }
        }
        self.hold.listed();
        self.out.send(&Message::Listed).await?;
        Ok(self.out.flush().await?)
    }

    async fn source(&mut self, number: u16, path: &[u8]) -> Result<(), Over> {
        let here = if path.is_empty() { b"." } else { path };
        let stat = match statat(CWD, here, AtFlags::empty()) {
            Ok(stat) => stat,
            Err(error) => return self.trouble(path, &reason(&error.into())).await,
        };
        let name = last_component(path);
        if !name.is_empty() && Name::new(name).is_none() {
            return self.trouble(path, UNFINISHED).await;
        }
        match stat.kind() {
            FileType::Directory if !self.sources.recursive => self.trouble(path, DIRECTORY).await,
            FileType::Directory => {
                let top: Arc<[u8]> = path.into();
                let root = match self.hold.roots().open(&top) {
                    Ok(root) => root,
                    Err(error) => return self.trouble(path, &reason(&error)).await,
                };
                let index = self.entry(0, number, name, Kind::Directory, &stat).await?;
                self.tree(number, &top, root.as_fd(), index).await
            }
            FileType::RegularFile => {
                let place = SourceFile::Plain(path.to_vec());
                self.file(0, number, name, &stat, place, path.to_vec()).await
            }
            other => self.trouble(path, skipped(other)).await,
        }
    }

    /// Walks a directory that the user named.
    async fn tree(
        &mut self,
        source: u16,
        top: &Arc<[u8]>,
        root: BorrowedFd<'_>,
        index: u32,
    ) -> Result<(), Over> {
        let mut waiting = vec![Waiting { index, path: Vec::new() }];
        while let Some(directory) = waiting.pop() {
            let opened = open_beneath(root, &directory.path, OFlags::RDONLY | OFlags::DIRECTORY);
            let list = opened.and_then(|fd| Ok((Dir::read_from(&fd)?, fd)));
            let (mut list, fd) = match list {
                Ok(list) => list,
                Err(error) => {
                    self.trouble(&joined(top, &directory.path), &reason(&error)).await?;
                    continue;
                }
            };
            while let Some(found) = list.read() {
                match found {
                    Ok(found) if matches!(found.file_name().to_bytes(), b"." | b"..") => {}
                    Ok(found) => {
                        let name = found.file_name().to_bytes();
                        self.child(source, top, &directory, fd.as_fd(), name, &mut waiting).await?;
                    }
                    Err(error) => {
                        let path = joined(top, &directory.path);
                        self.trouble(&path, &reason(&error.into())).await?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    async fn child(
        &mut self,
        source: u16,
        top: &Arc<[u8]>,
        directory: &Waiting,
        fd: BorrowedFd<'_>,
        name: &[u8],
        waiting: &mut Vec<Waiting>,
    ) -> Result<(), Over> {
        let path = joined(&directory.path, name);
        let shown = joined(top, &path);
        if Name::new(name).is_none() {
            return self.trouble(&shown, UNFINISHED).await;
        }
        if path.len() > PATH_BYTES_MAX {
            return self.trouble(&shown, "the path is too long").await;
        }
        let stat = match statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return self.trouble(&shown, &vanished(&error.into())).await,
        };
        match stat.kind() {
            FileType::Directory => {
                let index =
                    self.entry(directory.index, source, name, Kind::Directory, &stat).await?;
                waiting.push(Waiting { index, path });
                Ok(())
            }
            FileType::RegularFile => {
                let place = SourceFile::Beneath(Arc::clone(top), path);
                self.file(directory.index, source, name, &stat, place, shown).await
            }
            FileType::Symlink => match fs::readlinkat(fd, name, Vec::new()) {
                Ok(target) => {
                    let kind = Kind::Link { target: target.to_bytes() };
                    self.entry(directory.index, source, name, kind, &stat).await?;
                    Ok(())
                }
                Err(error) => self.trouble(&shown, &vanished(&error.into())).await,
            },
            other => self.trouble(&shown, skipped(other)).await,
        }
    }

    async fn file(
        &mut self,
        parent: u32,
        source: u16,
        name: &[u8],
        stat: &Stat,
        place: SourceFile,
        shown: Vec<u8>,
    ) -> Result<(), Over> {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        // The receiver may ask for it as soon as it has heard of it.
        self.hold.admit(self.next, Listed::new(place, shown), size, &mut self.out).await?;
        self.entry(parent, source, name, Kind::File { size }, stat).await?;
        Ok(())
    }

    /// Sends an entry; returns its number.
    async fn entry(
        &mut self,
        parent: u32,
        source: u16,
        name: &[u8],
        kind: Kind<'_>,
        stat: &Stat,
    ) -> Result<u32, Over> {
        let index = self.next;
        self.next = index.checked_add(1).ok_or(Over::TooMany)?;
        let mut mode = (stat.st_mode & 0o777) as u16;
        if matches!(kind, Kind::File { .. }) {
            mode |= ANEW;
        }
        let entry = Entry { parent, source, name, kind, mode, times: times(stat) };
        self.out.send(&Message::Entry(entry)).await?;
        Ok(index)
    }

    async fn trouble(&mut self, path: &[u8], why: &str) -> Result<(), Over> {
        Ok(self.hold.trouble(path, why, &mut self.out).await?)
    }
}

/// Why none of these sources can be copied; `None` if one can.
pub(super) fn check(paths: &[Vec<u8>], recursive: bool) -> Option<String> {
    let mut first = None;
    for path in paths {
        let here = if path.is_empty() { b"." } else { path.as_slice() };
        let why = match statat(CWD, here, AtFlags::empty()) {
            Err(error) => reason(&error.into()),
            Ok(stat) => match stat.kind() {
                FileType::RegularFile => return None,
                FileType::Directory if recursive => return None,
                FileType::Directory => DIRECTORY.to_owned(),
                other => skipped(other).to_owned(),
            },
        };
        first.get_or_insert_with(|| format!("{}: {why}", shown(path)));
    }
    first
}

const UNFINISHED: &str = "part of an unfinished copy, not copied";

const DIRECTORY: &str = "a directory; -r copies it with what is in it";

fn times(stat: &Stat) -> Times {
    let moment = |seconds: i64, nanoseconds: u64| Moment {
        seconds,
        nanoseconds: u32::try_from(nanoseconds).unwrap_or(0).min(999_999_999),
    };
    Times {
        accessed: moment(stat.st_atime, stat.st_atime_nsec),
        modified: moment(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// The name of a path's last component; empty if that is no name, as with `.` and `x/..`.
pub(super) fn last_component(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&octet| octet != b'/').map_or(0, |last| last + 1);
    let path = &path[..end];
    let start = path.iter().rposition(|&octet| octet == b'/').map_or(0, |slash| slash + 1);
    match &path[start..] {
        b"." | b".." => b"",
        name => name,
    }
}

fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match (directory, name) {
        (b"", _) => name.to_vec(),
        (_, b"") => directory.to_vec(),
        _ if directory.ends_with(b"/") => [directory, name].concat(),
        _ => [directory, b"/", name].concat(),
    }
}

fn skipped(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a named pipe, not copied",
        FileType::Socket => "a socket, not copied",
        FileType::CharacterDevice | FileType::BlockDevice => "a device, not copied",
        _ => "neither a file nor a directory, not copied",
    }
}

/// Why a file listed a moment ago cannot be read.
pub(super) fn vanished(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it vanished before it was copied".to_owned(),
        _ => reason(error),
    }
}

/// The paths that a pattern stands for.
#[derive(Debug, Eq, PartialEq)]
struct Expanded {
    paths: Vec<Vec<u8>>,
    /// Where there may be more, and why the copy did not find them.
    missed: Vec<(Vec<u8>, String)>,
}

/// The paths that a pattern stands for, `most` at most; the pattern itself if it exists as a path, or if
/// nothing fits.
fn expand(pattern: &[u8], most: usize) -> Expanded {
    let exists = |path: &[u8]| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let mut missed = Vec::new();
    if !is_pattern(pattern) || exists(pattern) {
        return Expanded { paths: vec![pattern.to_vec()], missed };
    }
    let (root, names) = pattern.split_at(file_names::root_bytes(pattern));
    let mut paths: Vec<Vec<u8>> = vec![root.to_vec()];
    let components = names.split(|&octet| octet == b'/').filter(|c| !c.is_empty());
    let mut components = components.peekable();
    while let Some(component) = components.next() {
        let mut found = Vec::new();
        for path in paths {
            if !is_pattern(component) {
                found.push(joined(&path, component));
                continue;
            }
            let looked = each_name(&path, |name| {
                if fits(component, name) && found.len() <= most {
                    found.push(joined(&path, name));
                }
            });
            if let Err(error) = looked {
                missed.push((path, reason(&error)));
            }
        }
        if found.len() > most {
            let why = match components.peek() {
                None => format!("it stands for more than {most} paths; the others were not copied"),
                Some(_) => {
                    format!("only {most} of the directories that it may mean were looked into")
                }
            };
            missed.push((pattern.to_vec(), why));
            found.truncate(most);
        }
        paths = found;
    }
    paths.retain(|path| exists(path));
    paths.sort();
    if paths.is_empty() {
        paths.push(pattern.to_vec());
    }
    Expanded { paths, missed }
}

/// The first paths that a pattern stands for, as far as they are found; the pattern itself if there is none.
pub(super) fn matches(pattern: &[u8]) -> Vec<Vec<u8>> {
    expand(pattern, MATCHES_MAX).paths
}

/// Takes each name in a directory; none, as a shell does, if it is no directory or cannot be read.
fn each_name(directory: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let here = if directory.is_empty() { b"." } else { directory };
    let list = match open_plain(here, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(opened) => Dir::read_from(&opened)?,
        Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => {
                return Ok(());
            }
            _ => return Err(error),
        },
    };
    for found in list {
        match found?.file_name().to_bytes() {
            b"." | b".." => {}
            name => take(name),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::copy::buggify::Buggify;
    use crate::copy::pipe;
    use crate::copy::source::{ROOTS_MAX, Roots};
    use crate::copy::watch::Watch;
    use crate::copy::workers::wait;
    use crate::os::ffi::OsStrExt;

    /// Paths beyond a pattern's limit are a reported failure of the copy.
    #[test]
    fn a_pattern_that_stands_for_too_much() {
        let top = std::env::temp_dir().join(format!("rove-walk-{}", std::process::id()));
        fs::create_dir_all(&top).unwrap();
        for name in ["a", "b", "c", "d"] {
            fs::write(top.join(name), name).unwrap();
        }
        let path = top.to_str().unwrap().replace('\\', "/");
        let pattern = format!("{path}/*").into_bytes();
        let sources = Sources { paths: vec![pattern], recursive: false, patterns: true };
        for (matches_max, failed) in [(4, 0), (3, 1)] {
            let watch = Watch::default();
            let hold = Outgoing::new(&watch);
            let (_inbox, out, _moving) =
                pipe::join(tokio::io::empty(), tokio::io::sink(), 0, || true, Buggify::default());
            let mut walker = Walker { sources: &sources, hold: &hold, out, next: 1, matches_max };
            wait(walker.run()).unwrap();
            let tally = watch.tally();
            assert_eq!((tally.files_listed, tally.failed), (matches_max as u64, failed));
            let told = watch.take_lines().join("\n");
            assert_eq!(told.contains("more than 3 paths"), failed == 1, "{told}");
        }
        let below = expand(format!("{path}/*/x").as_bytes(), 3);
        assert!(below.missed[0].1.contains("only 3 of the directories"), "{below:?}");
        fs::remove_dir_all(top).unwrap();
    }

    /// The copy does not take a listed file from another directory that got the listed one's name.
    #[test]
    fn a_directory_that_is_replaced() {
        let top = std::env::temp_dir().join(format!("rove-roots-{}", std::process::id()));
        let path = |name: &str| Arc::from(top.join(name).as_os_str().as_bytes());
        for number in 0..ROOTS_MAX {
            fs::create_dir_all(top.join(number.to_string())).unwrap();
        }
        for name in ["current", "next"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        let roots = Roots::default();
        let push_out = || {
            for number in 0..ROOTS_MAX {
                roots.open(&path(&number.to_string())).unwrap();
            }
        };
        roots.open(&path("current")).unwrap();
        push_out();
        roots.open(&path("current")).unwrap();
        push_out();
        fs::rename(top.join("current"), top.join("last")).unwrap();
        fs::rename(top.join("next"), top.join("current")).unwrap();
        let error = roots.open(&path("current")).unwrap_err();
        assert!(error.to_string().contains("it was replaced"), "{error}");
        drop(roots);
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn last_components() {
        for (path, name) in [
            ("a", "a"),
            ("a/b", "b"),
            ("a/b//", "b"),
            ("/", ""),
            ("", ""),
            (".", ""),
            ("a/.", ""),
            ("a/..", ""),
            ("...", "..."),
        ] {
            assert_eq!(last_component(path.as_bytes()), name.as_bytes(), "{path}");
        }
    }
}
