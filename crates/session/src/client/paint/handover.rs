//! The octets that take the terminal, and those that give it back.

use alloc::vec::Vec;

use rove_term::probe::DeviceReports;

use super::Painter;
use crate::client::overlay::{self, Found};

impl Painter {
    /// What to write before the first paint, and when the terminal is taken again after it was given back.
    pub(crate) fn open(&self, reports: &DeviceReports) -> Vec<u8> {
        let mut out = self.window.open(Found::Theirs, self.size, &self.tty);
        overlay::listen(reports, &mut out);
        out
    }

    /// What to write to a terminal that was never given back, but that others may have used.
    pub(crate) fn reopen(&self) -> Vec<u8> {
        self.window.open(Found::Ours, self.size, &self.tty)
    }

    /// What to write to give the terminal back as it was: all that was switched on is off then, and the prompt that
    /// follows goes below the picture.
    pub(crate) fn close(&self, reports: &DeviceReports) -> Vec<u8> {
        let rows = self.size.rows;
        let used = match &self.shown {
            Some(shown) => shown.primary_rows_used().max(self.scrollback.theirs()).min(rows),
            None if self.question.is_start() => return self.close_below(None, reports),
            None => rows,
        };
        self.close_below(Some(used), reports)
    }

    /// The same when nobody knows what it shows.
    pub(crate) fn abandon(&self, reports: &DeviceReports) -> Vec<u8> {
        let mut out = self.window.close(None, &self.colors, Some(self.size.rows), &self.tty);
        overlay::restore(reports, self.window, &mut out);
        out
    }

    fn close_below(&self, used: Option<u16>, reports: &DeviceReports) -> Vec<u8> {
        let mut out = self.window.close(self.shown.as_ref(), &self.colors, used, &self.tty);
        overlay::restore(reports, self.window, &mut out);
        out
    }
}
