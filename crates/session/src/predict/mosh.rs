//! Stock mosh's guesses: cells and cursors, each judged alone (mosh-protocol.md §9).
//!
//! It does not know when guesses are shown; `display` decides that.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use rove_ssp::{StateNum, Time};
use rove_term::{Screen, Size, Width, width};

use crate::predict::display::{DisplayPolicy, Flagging};
use crate::predict::keys::Key;
use crate::predict::look::{Appearance, Clusters, Look};
use crate::predict::observation::Observation;
use crate::predict::settings::{Display, Editing, Settings};

/// Guesses by cell, in epochs.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    settings: Settings,
    size: Option<Size>,
    rows: BTreeMap<u16, Vec<Option<Cell>>>,
    cursors: Vec<Cursor>,
    epoch: u64,
    confirmed: u64,
    clusters: Clusters,
}

/// A guess of one cell's content.
#[derive(Clone, Debug)]
struct Cell {
    /// `None`: it will change, but its new content is not known.
    look: Option<Look>,
    /// The contents before it: seeing one of these confirms nothing. Without repeats.
    originals: Vec<Appearance>,
    epoch: u64,
    expires: StateNum,
    made: Time,
}

/// A guess of where the cursor will be.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    row: u16,
    col: u16,
    epoch: u64,
    expires: StateNum,
}

/// How a guess stands against the newest frame (§9.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Validity {
    Wrong,
    Pending,
    /// Right, but it would have been without the key.
    NoCredit,
    Correct,
}

/// Predictions of one cell that are remembered as originals; the rest may win credit it should not.
const ORIGINALS_MAX: usize = 32;

impl Stock {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            size: None,
            rows: BTreeMap::new(),
            cursors: Vec::new(),
            epoch: 1,
            confirmed: 0,
            clusters: Clusters::default(),
        }
    }

    /// Drops every guess and begins an epoch.
    pub(crate) fn reset(&mut self) {
        self.rows.clear();
        self.cursors.clear();
        self.clusters.clear();
        self.become_tentative();
    }

    /// Judges every guess by the newest frame (§9.2).
    pub(crate) fn cull(&mut self, now: Time, seen: Observation<'_>, policy: &mut DisplayPolicy) {
        let size = seen.screen.size();
        if self.size.replace(size) != Some(size) {
            self.reset();
        }
        if !self.cull_cells(now, seen, policy) {
            return;
        }
        let validity = self.cursors.last().map(|cursor| cursor.validity(seen));
        if validity == Some(Validity::Wrong) {
            if self.counts_at_once() {
                self.cursors.clear()
            } else {
                self.reset()
            }
            return;
        }
        self.cursors.retain(|cursor| cursor.validity(seen) == Validity::Pending);
    }

    /// Takes one key.
    pub(crate) fn key(&mut self, now: Time, key: Key, seen: Observation<'_>) {
        if self.counts_at_once() {
            self.epoch = self.confirmed;
        }
        match key {
            Key::Backspace => self.erase(now, seen),
            Key::Char(c) if width::stock(c) == Some(1) => self.insert(now, c, seen),
            Key::Enter => {
                self.become_tentative();
                self.newline(now, seen);
            }
            Key::Left => {
                let cursor = self.ensure_cursor(seen);
                cursor.col = cursor.col.saturating_sub(1);
            }
            Key::Right => {
                let last = seen.screen.size().cols - 1;
                let cursor = self.ensure_cursor(seen);
                cursor.col = (cursor.col + 1).min(last);
            }
            _ => self.become_tentative(),
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.cursors.is_empty() || self.rows.values().flatten().any(Option::is_some)
    }

    /// Lays the guesses over a clone of the newest frame (§9.3).
    pub(crate) fn overlay(&self, screen: &mut Screen, flagging: Flagging) {
        let mut scratch = self.clusters.clone();
        for cursor in &self.cursors {
            if cursor.epoch <= self.confirmed {
                screen.set_cursor(cursor.row, cursor.col);
            }
        }
        let last = screen.size().cols - 1;
        for (&row, cells) in &self.rows {
            for (cell, col) in cells.iter().zip(0..) {
                let Some(cell) = cell.as_ref().filter(|cell| cell.epoch <= self.confirmed) else {
                    continue;
                };
                let Some(real) = screen.cell(row, col) else { continue };
                let real = scratch.look(screen, real);
                let Some(look) = cell.look else {
                    if flagging == Flagging::On && col != last {
                        self.clusters.paint(screen, row, col, flagging.flag(real));
                    }
                    continue;
                };
                if look == real {
                    continue;
                }
                let both_blank = look.text.is_blank() && real.text.is_blank();
                let look = if both_blank { look } else { flagging.flag(look) };
                self.clusters.paint(screen, row, col, look);
            }
        }
    }

    /// Judges the cells. False: everything was reset.
    fn cull_cells(&mut self, now: Time, seen: Observation<'_>, policy: &mut DisplayPolicy) -> bool {
        let rows: Vec<u16> = self.rows.keys().copied().collect();
        for row in rows {
            for col in 0..seen.screen.size().cols {
                let Some(cell) = self.cell(row, col) else { continue };
                let (epoch, made) = (cell.epoch, cell.made);
                let validity = self.validity(row, col, seen);
                match validity {
                    Validity::Wrong if self.counts_at_once() => {}
                    // A guess that was never shown costs its epoch alone.
                    Validity::Wrong if epoch > self.confirmed => self.kill_epoch(epoch, seen),
                    Validity::Wrong => {
                        self.reset();
                        return false;
                    }
                    Validity::Correct => {
                        self.confirmed = self.confirmed.max(epoch);
                        policy.confirmed(now, made);
                        // The program may draw typed text in a style of its own.
                        self.copy_rendition(row, col, seen.screen);
                    }
                    Validity::NoCredit => {}
                    Validity::Pending => policy.pending(now, made),
                }
                if validity != Validity::Pending
                    && let Some(cells) = self.rows.get_mut(&row)
                {
                    cells[usize::from(col)] = None;
                }
            }
        }
        self.rows.retain(|_, cells| cells.iter().any(Option::is_some));
        true
    }

    fn cell(&self, row: u16, col: u16) -> Option<&Cell> {
        self.rows.get(&row)?.get(usize::from(col))?.as_ref()
    }

    fn validity(&mut self, row: u16, col: u16, seen: Observation<'_>) -> Validity {
        let real = seen.screen.cell(row, col).map(|real| self.clusters.text(seen.screen, real));
        let (Some(real), Some(cell)) = (real, self.cell(row, col)) else { return Validity::Wrong };
        if seen.echo_ack < cell.expires {
            return Validity::Pending;
        }
        let Some(look) = cell.look else { return Validity::NoCredit };
        // A blank was there before, or might have come by itself.
        if look.text.is_blank() && real.is_blank() {
            return Validity::NoCredit;
        }
        if !look.text.matches(real) {
            return Validity::Wrong;
        }
        // It would be right if the key had done nothing.
        if cell.originals.iter().any(|original| original.matches(real)) {
            return Validity::NoCredit;
        }
        Validity::Correct
    }

    /// Drops what was guessed in `epoch` and since, and starts again where the cursor really is.
    fn kill_epoch(&mut self, epoch: u64, seen: Observation<'_>) {
        self.cursors.retain(|cursor| cursor.epoch < epoch);
        self.cursors.push(Cursor::real(self.epoch, seen));
        for guess in self.rows.values_mut().flatten() {
            guess.take_if(|cell| cell.epoch >= epoch);
        }
        self.become_tentative();
    }

    /// The frame shows how typed text is drawn here: the guesses to the right will look alike.
    fn copy_rendition(&mut self, row: u16, col: u16, screen: &Screen) {
        let style = screen.cell_style(row, col);
        let cells = self.rows.get_mut(&row).into_iter().flatten().skip(usize::from(col));
        for look in cells.flatten().filter_map(|cell| cell.look.as_mut()) {
            look.style = style;
        }
    }

    /// In the experimental mode no guess waits for the confirmation of its epoch.
    fn counts_at_once(&self) -> bool {
        self.settings.display == Display::Experimental
    }

    fn become_tentative(&mut self) {
        if !self.counts_at_once() {
            self.epoch += 1;
        }
    }

    /// The live cursor guess, in the current epoch.
    fn ensure_cursor(&mut self, seen: Observation<'_>) -> &mut Cursor {
        let epoch = self.epoch;
        let last = self.cursors.last().copied();
        if last.is_none_or(|last| last.epoch != epoch) {
            let from = last.unwrap_or_else(|| Cursor::real(epoch, seen));
            self.cursors.push(Cursor { epoch, ..from });
        }
        let cursor = self.cursors.last_mut().expect("one was just made");
        cursor.expires = seen.sent.next();
        cursor
    }

    /// The cell's guess or real content; `None` when it is unknown.
    fn content(&mut self, row: u16, col: u16, screen: &Screen) -> Option<Look> {
        if let Some(cell) = self.cell(row, col) {
            return cell.look;
        }
        screen.cell(row, col).map(|real| self.clusters.look(screen, real))
    }

    fn guess(&mut self, now: Time, at: (u16, u16), look: Option<Look>, seen: Observation<'_>) {
        let (row, col) = at;
        let Some(real) = seen.screen.cell(row, col) else { return };
        let real = self.clusters.text(seen.screen, real);
        let cols = usize::from(seen.screen.size().cols);
        let cells = self.rows.entry(row).or_default();
        cells.resize(cols, None);
        let guess = &mut cells[usize::from(col)];
        let mut originals = Vec::new();
        if let Some(earlier) = guess.take()
            && let Some(look) = earlier.look
        {
            originals = earlier.originals;
            remember(&mut originals, look.text);
        }
        remember(&mut originals, real);
        let expires = seen.sent.next();
        *guess = Some(Cell { look, originals, epoch: self.epoch, expires, made: now });
    }

    fn erase(&mut self, now: Time, seen: Observation<'_>) {
        let cursor = self.ensure_cursor(seen);
        if cursor.col == 0 {
            return;
        }
        cursor.col -= 1;
        let (row, col) = (cursor.row, cursor.col);
        if self.settings.editing == Editing::Overwrite {
            let look = self.content(row, col, seen.screen).unwrap_or(Look::BLANK);
            let blank = Look { text: Appearance::BLANK, width: Width::Narrow, ..look };
            self.guess(now, (row, col), Some(blank), seen);
            return;
        }
        let cols = seen.screen.size().cols;
        for col in col..cols {
            // Text beyond the edge may come in: the last column is unknown.
            let known = col + 2 < cols;
            let look = known.then(|| self.content(row, col + 1, seen.screen)).flatten();
            self.guess(now, (row, col), look, seen);
        }
    }

    fn insert(&mut self, now: Time, c: char, seen: Observation<'_>) {
        let last = seen.screen.size().cols - 1;
        if self.ensure_cursor(seen).col >= last {
            // In the last column programs wrap, scroll or overwrite.
            self.become_tentative();
        }
        let Cursor { row, col, .. } = *self.ensure_cursor(seen);
        if self.settings.editing == Editing::Insert {
            for to in (col + 1..=last).rev() {
                let look = (to < last).then(|| self.content(row, to - 1, seen.screen)).flatten();
                self.guess(now, (row, to), look, seen);
            }
        }
        let style = match col.checked_sub(1) {
            None => seen.screen.pen().style,
            Some(left) => {
                let look = self.content(row, left, seen.screen);
                look.map_or_else(|| seen.screen.cell_style(row, left), |look| look.style)
            }
        };
        let look = Look { text: Appearance::of(c), width: Width::Narrow, style };
        self.guess(now, (row, col), Some(look), seen);
        if col < last {
            self.ensure_cursor(seen).col += 1;
        } else {
            self.become_tentative();
            self.newline(now, seen);
        }
    }

    /// Column 0 of the next row; on the bottom row, of this one, which then is blank.
    fn newline(&mut self, now: Time, seen: Observation<'_>) {
        let size = seen.screen.size();
        let cursor = self.ensure_cursor(seen);
        cursor.col = 0;
        if cursor.row + 1 < size.rows {
            cursor.row += 1;
            return;
        }
        let row = cursor.row;
        for col in 0..size.cols {
            self.guess(now, (row, col), Some(Look::BLANK), seen);
        }
    }
}

impl Cursor {
    fn real(epoch: u64, seen: Observation<'_>) -> Self {
        let real = seen.screen.cursor();
        Self { row: real.row, col: real.col, epoch, expires: seen.sent.next() }
    }

    fn validity(self, seen: Observation<'_>) -> Validity {
        let (size, real) = (seen.screen.size(), seen.screen.cursor());
        if self.row >= size.rows || self.col >= size.cols {
            return Validity::Wrong;
        }
        if seen.echo_ack < self.expires {
            return Validity::Pending;
        }
        if (self.row, self.col) == (real.row, real.col) {
            return Validity::Correct;
        }
        Validity::Wrong
    }
}

fn remember(originals: &mut Vec<Appearance>, text: Appearance) {
    // A host that never answers must not make the list grow.
    if originals.len() < ORIGINALS_MAX && !originals.contains(&text) {
        originals.push(text);
    }
}
