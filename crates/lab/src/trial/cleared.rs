//! A screen that the program clears at the end of a trial, on a terminal that keeps what is cleared.

use super::Trial;
use crate::erasures::Cleared;
use crate::rng::Chance;
use crate::scenario::Scenario;
use crate::world::Fault;

/// The lines that stand on it.
const LINES: [&str; 3] = ["first of three", "\x1b[1;32msecond\x1b[m of three", "third of three"];
const TEXTS: [&str; 3] = ["first of three", "second of three", "third of three"];

impl Trial<'_> {
    /// The program leaves three lines on its screen and clears it: then the history of the user's terminal ends with
    /// them. Where the window had other sizes, lines may wait until they are in step again.
    pub(super) fn clear_screen(&mut self) -> Result<(), Fault> {
        let Scenario { usage, resizes, .. } = self.scenario;
        if usage.cleared == Cleared::Lost || *resizes != Chance::NEVER {
            return Ok(());
        }
        for erase in erasures(usage.term) {
            // Whatever modes it left behind, and whichever screen it was on.
            let lines = LINES.join("\r\n");
            let said = format!("\x1b[?1049l\x1b[4l\x1b[r\x1b[m\x1b[2J\x1b[H{lines}{erase}$ ");
            self.session.server_mut().say(said.as_bytes());
            self.session.world.poke(self.session.server_id)?;
            self.converge()?;
            let history = self.session.client().tty.history();
            let first = history.len().saturating_sub(LINES.len());
            let last: Vec<String> =
                (first..history.len()).filter_map(|line| history.text(line)).collect();
            if !last.iter().map(|line| line.trim_end()).eq(TEXTS) {
                return self.fault(format!("{erase:?} leaves {last:?} in the terminal's history"));
            }
        }
        Ok(())
    }
}

/// The erasures that this terminal saves.
fn erasures(term: Option<(&str, &str)>) -> &'static [&'static str] {
    match term {
        Some((name, _)) if name.starts_with("tmux") => &["\x1b[2J\x1b[H", "\x1b[H\x1b[J"],
        _ => &["\x1b[2J\x1b[H"],
    }
}
