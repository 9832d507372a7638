//! One program on one terminal: an emulator between the program's pty and any number of viewers
//! (`mosh-protocol.md` §5.3, 7).
//!
//! [`Host`] takes what the program writes and what viewers type, and makes the picture that all viewers
//! are shown. It outlives each of them: keys that have reached it stay when their viewer is gone.
//! It knows no addresses and no state numbers; those are a [`Viewer`](crate::Viewer)'s. The driver owns the
//! pty.

mod id;
mod input;
mod paste;
mod size;
mod sync;

use alloc::vec::Vec;
use core::fmt;

use rove_ssp::Time;
use rove_term::{Checksums, Dialect, History, Screen, Size, Terminal, TerminalProperties};

use crate::host::input::{CursorKeys, PtyInput};
use crate::host::paste::{PasteHold, PasteScanner};
use crate::host::size::ResizeQueue;
use crate::host::sync::SyncUpdate;
use crate::line_mode::LineReport;
use crate::work::TURN_CELLS;

pub use crate::host::id::ViewerId;
pub use crate::host::input::{CHUNK_OCTETS_MAX, QUEUE_OCTETS_MAX};
pub use crate::host::size::SizePolicy;
pub use crate::host::sync::Version;

/// A task for the driver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Set the pty's size.
    Resize(Size),
}

/// A screen for viewers.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The screen. Its rows are shared with the terminal and with all other pictures. `None`: the size has
    /// changed in an update that is not whole, so there is nothing but what was shown before.
    pub screen: Option<Screen>,
    /// Pictures of one version are the same.
    pub version: Version,
    /// The screen shows what the program wrote until then.
    pub written: Time,
}

/// One program on one terminal.
pub struct Host {
    terminal: Terminal,
    input: PtyInput,
    /// Keys that wait for the end of another viewer's paste.
    hold: PasteHold,
    /// The update that the program has begun and not ended.
    update: Option<SyncUpdate>,
    /// What the terminal line did with keys when it was last looked at.
    line: Option<LineReport>,
    size_policy: SizePolicy,
    resizes: ResizeQueue,
    /// What viewers said of their own terminals. The last is of the one that typed or was resized last.
    ttys: Vec<Tty>,
    /// When the program last wrote.
    written: Option<Time>,
    version: Version,
    exit_status: Option<i32>,
    /// The pty's size, if the driver has not been told of it.
    resized: Option<Size>,
}

/// A viewer's own terminal.
#[derive(Debug)]
struct Tty {
    of: ViewerId,
    size: Option<Size>,
    properties: Option<TerminalProperties>,
    paste: PasteScanner,
}

impl Host {
    /// A blank terminal of this size. Which sizes it takes later is decided by `size_policy`.
    pub fn new(size: Size, size_policy: SizePolicy) -> Self {
        Self {
            // What programs write goes through the full emulator, whoever looks at it.
            terminal: Terminal::new(size, Dialect::ROVE),
            input: PtyInput::default(),
            hold: PasteHold::default(),
            update: None,
            line: None,
            size_policy,
            resizes: ResizeQueue::default(),
            ttys: Vec::new(),
            written: None,
            version: Version::default(),
            exit_status: None,
            resized: None,
        }
    }

    /// Decides whether programs may ask for checksums of the screen (DECRQCRA): by default not, since one of
    /// a single cell tells what stands there.
    pub fn set_checksums(&mut self, checksums: Checksums) {
        self.terminal.set_checksums(checksums);
    }

    /// Takes output of the program, however much work it is.
    pub fn handle_output(&mut self, now: Time, octets: &[u8]) {
        let mut taken = self.handle_output_part(now, octets);
        while taken < octets.len() {
            taken += self.handle_output_part(now, &octets[taken..]);
        }
    }

    /// The same, but no more than the work of a turn ([`TURN_CELLS`]). Returns how many octets were taken, at least
    /// one unless there is none. Give the rest again after a look at keys and datagrams.
    #[must_use = "what is not taken is to be given again"]
    pub fn handle_output_part(&mut self, now: Time, octets: &[u8]) -> usize {
        self.written = Some(now);
        let begun = self.terminal.updates_begun();
        let taken = self.terminal.advance_within(octets, TURN_CELLS);
        self.reply();
        if !self.terminal.screen().modes().synchronized {
            self.update = None;
        } else if self.update.is_none() || self.terminal.updates_begun() != begun {
            // The picture before the update is one of its own: output may have come with its beginning.
            let before = self.version.advance();
            self.update = Some(SyncUpdate { since: now, before });
        }
        self.version.advance();
        taken
    }

    /// Takes the mode of the program's terminal line. Read it after each batch of output, before the output is
    /// handed over, and whenever the program may have changed it: a client applies the mode in a frame to all
    /// keys that the frame's echo ack covers.
    pub fn handle_line(&mut self, line: impl Into<LineReport>) {
        self.line = Some(line.into());
    }

    /// The program ended with this status. Viewers show the last screen, and close.
    pub fn program_ended(&mut self, status: i32) {
        self.exit_status = Some(status);
    }

    /// Decides anew which size the terminal takes.
    pub fn set_size_policy(&mut self, policy: SizePolicy) {
        self.size_policy = policy;
        self.choose_size();
    }

    /// Queues what a viewer typed for the program: at once, or when another's paste is whole, for which it waits a
    /// second at most, and no longer than there is room.
    pub fn type_keys(&mut self, now: Time, from: ViewerId, octets: &[u8]) {
        // What was held before is older.
        self.release_keys(now);
        if self.hold.concerns(from) {
            let room = QUEUE_OCTETS_MAX.saturating_sub(self.hold.len());
            if octets.len() <= room {
                return self.hold.hold(now, from, octets);
            }
            self.hold.give_up();
            self.release_keys(now);
        }
        self.queue_keys(now, from, octets);
        self.release_keys(now);
    }

    /// Whether keys of this viewer wait for the end of another's paste.
    pub fn holds_keys(&self, of: ViewerId) -> bool {
        self.hold.holds(of)
    }

    fn release_keys(&mut self, now: Time) {
        while let Some((from, octets)) = self.hold.release(now) {
            self.queue_keys(now, from, &octets);
        }
    }

    fn queue_keys(&mut self, now: Time, from: ViewerId, octets: &[u8]) {
        let tty = self.activate(from);
        let is_open = tty.paste.read(octets);
        self.hold.typed(from, is_open);
        let form = if self.terminal.screen().modes().application_cursor {
            CursorKeys::Application
        } else {
            CursorKeys::Normal
        };
        self.input.keys(now, octets, form);
    }

    /// A viewer's window has this size.
    pub fn want_size(&mut self, from: ViewerId, size: Size) {
        self.activate(from).size = Some(size);
        self.choose_size();
    }

    /// A viewer's terminal is like this. Programs are told of the terminal whose user typed last.
    pub fn set_properties(&mut self, from: ViewerId, properties: TerminalProperties) {
        let known = self.ttys.iter().position(|tty| tty.of == from);
        let index = known.unwrap_or_else(|| self.add(from));
        self.ttys[index].properties = Some(properties);
        if index + 1 == self.ttys.len() {
            self.describe_terminal();
        }
    }

    /// A viewer is gone. All that it typed stays.
    pub fn forget(&mut self, viewer: ViewerId) {
        self.ttys.retain(|tty| tty.of != viewer);
        self.hold.forget(viewer);
        self.choose_size();
        self.describe_terminal();
    }

    /// Clears `out` and puts the next octets for the program there, at most [`CHUNK_OCTETS_MAX`]. None: nothing
    /// waits. Call when the pty takes octets; what it does not take is the caller's to keep.
    pub fn poll_input(&mut self, out: &mut Vec<u8>) {
        out.clear();
        self.input.take(out);
    }

    /// The next thing for the driver to do.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.resized.take().map(Event::Resize)
    }

    /// When to call [`advance`](Self::advance) if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.resizes.due(), self.input.timeout(), self.hold.due()].into_iter().flatten().min()
    }

    /// Does what has become due. Viewers call it whenever they are polled.
    pub fn advance(&mut self, now: Time) {
        if let Some(size) = self.resizes.take_due(now)
            && size != self.size()
        {
            self.terminal.resize(size);
            self.reply();
            self.version.advance();
            self.resized = Some(size);
        }
        self.release_keys(now);
        self.input.expire(now);
    }

    /// The screen, or, while an update is not whole and for at most 150 ms, the screen before it.
    pub fn picture(&self, now: Time) -> Picture {
        match &self.update {
            Some(update) if now < update.hidden_until() => Picture {
                screen: self.terminal.before_update(),
                version: update.before,
                written: update.since,
            },
            _ => self.last_picture(now),
        }
    }

    /// The screen as it is, for a viewer that will be shown no other.
    pub fn last_picture(&self, now: Time) -> Picture {
        Picture { screen: Some(self.screen().clone()), version: self.version, written: now }
    }

    /// From when on [`picture`](Self::picture) is another than the one of this version, if any is
    /// [newer](Self::version): an update that is not whole holds the next one back.
    pub fn held_until(&self, seen: Option<Version>) -> Time {
        match &self.update {
            Some(update) if seen == Some(update.before) => update.hidden_until(),
            _ => Time::ZERO,
        }
    }

    /// The version of the screen as it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The screen as the program sees it.
    pub fn screen(&self) -> &Screen {
        self.terminal.screen()
    }

    /// The lines above the primary screen.
    pub fn history(&self) -> &History {
        self.terminal.history()
    }

    /// The terminal's size.
    pub fn size(&self) -> Size {
        self.screen().size()
    }

    /// What the terminal line did with keys when it was last looked at; `None` if it never was.
    pub fn line(&self) -> Option<LineReport> {
        self.line
    }

    /// When the program last wrote; `None` if it never did.
    pub fn written(&self) -> Option<Time> {
        self.written
    }

    /// How the program ended; `None` while it runs, or has not begun.
    pub fn exit_status(&self) -> Option<i32> {
        self.exit_status
    }

    /// How many octets wait for the program, at most [`QUEUE_OCTETS_MAX`].
    pub fn pending_input(&self) -> usize {
        self.input.len()
    }

    /// Typed octets lost because the program left [`QUEUE_OCTETS_MAX`] unread.
    pub fn lost_keys(&self) -> u64 {
        self.input.lost()
    }

    /// Notes that the user of this viewer is at work, and returns what is known of their terminal.
    fn activate(&mut self, viewer: ViewerId) -> &mut Tty {
        let known = self.ttys.iter().position(|tty| tty.of == viewer);
        let index = known.unwrap_or_else(|| self.add(viewer));
        if index + 1 < self.ttys.len() {
            let tty = self.ttys.remove(index);
            self.ttys.push(tty);
            // The rest of a key comes from the keyboard that sent its beginning.
            self.input.release();
            self.choose_size();
            self.describe_terminal();
        }
        self.ttys.last_mut().expect("this viewer's own was moved to the end")
    }

    fn add(&mut self, viewer: ViewerId) -> usize {
        self.input.release();
        self.ttys.push(Tty {
            of: viewer,
            size: None,
            properties: None,
            paste: PasteScanner::default(),
        });
        self.ttys.len() - 1
    }

    fn choose_size(&mut self) {
        let windows = self.ttys.iter().filter_map(|tty| tty.size);
        if let Some(size) = self.size_policy.choose(windows) {
            self.resizes.want(size);
        }
    }

    /// Tells the emulator of the terminal whose user typed last.
    fn describe_terminal(&mut self) {
        // A client says nothing of a terminal that is like the default.
        let properties = self.ttys.last().and_then(|tty| tty.properties);
        self.terminal.set_properties(properties.unwrap_or_default());
        self.reply();
    }

    fn reply(&mut self) {
        self.input.reply(&self.terminal.take_replies());
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("size", &self.size())
            .field("version", &self.version)
            .field("exit_status", &self.exit_status)
            .finish_non_exhaustive()
    }
}
