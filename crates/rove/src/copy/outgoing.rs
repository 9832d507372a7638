//! Listed files that the receiver may still ask for, and its requests.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::copy::message::{Malformed, Message, Outcome, shown};
use crate::copy::pipe::{Broken, Inbox, Outbox};
use crate::copy::source::{Roots, SourceFile};
use crate::copy::watch::{Counted, Watch};
use crate::os::stat::Stat;

/// Why a sender stops.
#[derive(Debug)]
pub enum Over {
    /// Everything is in its place.
    Complete,
    /// The receiver ended it, for this reason.
    Refused(String),
    /// The connection has ended.
    Ended,
    /// The receiver breaks the protocol.
    Malformed,
    /// There are more entries than numbers for them.
    TooMany,
}

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Over {
        Over::Ended
    }
}

/// A listed file that is not finished.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) place: SourceFile,
    pub(crate) shown: Vec<u8>,
    pub(crate) is_asked: bool,
    pub(crate) is_wanted: bool,
    /// The receiver has said that it waits for another copy of it.
    pub(crate) waits: bool,
    /// The state of the file when its marks were sent.
    pub(crate) marked: Option<Stamp>,
    /// It was begun, so the receiver may want it anew.
    pub(crate) has_begun: bool,
    /// How often it was wanted anew: at most [`ANEW_MAX`] times.
    pub(crate) anew: u8,
    /// What the [`Watch`] has counted of an earlier beginning.
    pub(crate) counted: Counted,
}

impl Listed {
    pub(crate) fn new(place: SourceFile, shown: Vec<u8>) -> Listed {
        Listed {
            place,
            shown,
            is_asked: false,
            is_wanted: false,
            waits: false,
            marked: None,
            has_begun: false,
            anew: 0,
            counted: Counted::default(),
        }
    }

    /// The receiver asks for it again. Fails if it may not: it has not begun, or was asked for too often.
    fn begin_anew(&mut self) -> Result<(), Malformed> {
        if !self.has_begun || self.anew == ANEW_MAX {
            return Err(Malformed);
        }
        self.anew += 1;
        (self.is_asked, self.is_wanted, self.waits) = (false, false, false);
        (self.has_begun, self.marked) = (false, None);
        Ok(())
    }

    fn ask(&mut self) -> Result<(), Malformed> {
        if self.is_asked || self.is_wanted {
            self.begin_anew()?;
        }
        self.is_asked = true;
        Ok(())
    }

    fn want(&mut self) -> Result<(), Malformed> {
        if self.is_wanted {
            self.begin_anew()?;
        }
        self.is_wanted = true;
        Ok(())
    }
}

/// The state that the three workers share.
pub(crate) struct Outgoing<'a> {
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Notify,
    pub(crate) roots: Roots,
    pub(crate) watch: &'a Watch,
}

impl Outgoing<'_> {
    pub(crate) fn new(watch: &Watch) -> Outgoing<'_> {
        let (state, changed, roots) = (Mutex::default(), Notify::new(), Roots::default());
        Outgoing { state, changed, roots, watch }
    }

    /// The directories that the user named.
    pub(crate) fn roots(&self) -> &Roots {
        &self.roots
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change of the state, if `waits` says of the state as it is that there is a reason to.
    pub(crate) async fn wait_if(&self, waits: impl Fn(&State) -> bool) {
        // Made before the question, so that no change is missed.
        let changed = self.changed.notified();
        if waits(&self.lock()) {
            changed.await;
        }
    }

    /// Keeps the first reason to stop, except the end of the connection: a receiver that sends its reason
    /// may stop reading before we hear it.
    pub(crate) fn end(&self, over: Over) {
        let mut state = self.lock();
        if matches!(state.over, None | Some(Over::Ended)) {
            state.over = Some(over);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Adds a file once there is room.
    pub(crate) async fn admit(
        &self,
        index: u32,
        held: Listed,
        size: u64,
        out: &mut Outbox,
    ) -> Result<(), Over> {
        let is_full = |state: &State| state.held.len() >= FILES_MAX && state.over.is_none();
        while is_full(&self.lock()) {
            out.flush().await?;
            self.wait_if(is_full).await;
        }
        let mut state = self.lock();
        if state.over.is_some() {
            return Err(Over::Ended);
        }
        // Only the walker adds files, so there is still room.
        state.held.insert(index, held);
        drop(state);
        self.watch.list(size);
        Ok(())
    }

    pub(crate) fn listed(&self) {
        self.watch.listed();
    }

    /// Reports a file that cannot be sent to the users of both ends.
    pub(crate) async fn trouble(&self, path: &[u8], why: &str, out: &mut Outbox) -> io::Result<()> {
        let line = line(path, why);
        out.send(&Message::Trouble(line.as_bytes())).await?;
        self.watch.trouble(line);
        Ok(())
    }

    /// Hears the receiver until the copy is over.
    pub(crate) async fn hear(&self, mut inbox: Inbox) -> Over {
        loop {
            match inbox.hear().await {
                Ok(Message::Ask { index, lengths }) => {
                    if self.wish(index, Wish::Marks(lengths)).is_err() {
                        return Over::Malformed;
                    }
                }
                Ok(Message::Want { index, offset }) => {
                    if self.wish(index, Wish::Octets(offset)).is_err() {
                        return Over::Malformed;
                    }
                }
                Ok(Message::Waiting { index, heard }) => {
                    let mut state = self.lock();
                    match state.held.get_mut(&index) {
                        Some(held) if held.is_wanted && !held.waits => {
                            held.waits = true;
                            self.watch.wait(&shown(&held.shown), heard);
                        }
                        Some(_) => return Over::Malformed,
                        // It was given up meanwhile.
                        None => {}
                    }
                }
                Ok(Message::Done { index, outcome }) => {
                    // A directory or a link is not held; only its failure is told.
                    self.lock().held.remove(&index);
                    match outcome {
                        Outcome::Done => self.watch.done(),
                        Outcome::Failed(why) => self.watch.trouble_there(why),
                        Outcome::Skipped => self.watch.skip(),
                    }
                }
                Ok(Message::Trouble(text)) => self.watch.trouble_there(text),
                Ok(Message::Fatal(text)) => return Over::Refused(shown(text)),
                Ok(Message::Complete) => return Over::Complete,
                Ok(_) | Err(Broken::Malformed) => return Over::Malformed,
                Err(Broken::Silent) => {}
                Err(Broken::Ended) => return Over::Ended,
            }
            self.changed.notify_waiters();
        }
    }

    /// Takes a wish of the receiver.
    fn wish(&self, index: u32, wish: Wish) -> Result<(), Malformed> {
        let mut state = self.lock();
        let Some(held) = state.held.get_mut(&index) else {
            // One that is wanted anew may have been given up here meanwhile, which the receiver hears.
            return if state.lost.contains(&index) { Ok(()) } else { Err(Malformed) };
        };
        match wish {
            Wish::Marks(_) => held.ask()?,
            Wish::Octets(_) => held.want()?,
        }
        state.wanted.push_back((index, wish));
        Ok(())
    }
}

pub(crate) fn line(path: &[u8], why: &str) -> String {
    format!("{}: {why}", shown(path))
}

/// The most listed and unfinished files. At 100 ms and 4 kB a file this many fill 2 Gbit/s.
pub(crate) const FILES_MAX: usize = 65_536;

/// How often a file is wanted anew after another copy has written to its part: by each of a few ends that dead clients
/// left, once.
pub(crate) const ANEW_MAX: u8 = 4;

/// The most files that were begun and given up here of which a wish that crosses that is borne. A receiver that has more
/// of them disturbed at once is taken for one that breaks the protocol.
const LOST_MAX: usize = 1024;

/// Attributes that show whether a file has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    pub(crate) modified: (i64, u64),
    pub(crate) size: i64,
}

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Stamp {
        Stamp { modified: (stat.st_mtime, stat.st_mtime_nsec), size: stat.st_size }
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// By entry. At most [`FILES_MAX`].
    pub(crate) held: HashMap<u32, Listed>,
    /// The receiver's requests in its order: of each held file its marks once, and then the file once.
    pub(crate) wanted: VecDeque<(u32, Wish)>,
    /// The last files that were begun and given up here: at most [`LOST_MAX`].
    lost: VecDeque<u32>,
    pub(crate) over: Option<Over>,
}

impl State {
    /// Whether the receiver still wants a file as it was begun: its number, and how often it was wanted anew.
    pub(crate) fn wants(&self, (index, anew): (u32, u8)) -> bool {
        self.held.get(&index).is_some_and(|held| held.anew == anew)
    }

    /// Gives a file up. The receiver is to hear it.
    pub(crate) fn give_up(&mut self, index: u32) {
        if self.held.remove(&index).is_some_and(|held| held.has_begun) {
            self.lost.truncate(LOST_MAX - 1);
            self.lost.push_front(index);
        }
    }
}

/// A receiver's request for a file.
#[derive(Debug)]
pub(crate) enum Wish {
    /// The hashes of beginnings of these lengths.
    Marks(Vec<u64>),
    /// Its octets from this offset on.
    Octets(u64),
}
