//! A screen that the program clears at the end of a trial, on a terminal that keeps what is cleared.

use rove_term::SavesErased;

use super::Trial;
use crate::erasures::Cleared;
use crate::rng::Chance;
use crate::scenario::{SAVING_TERMS, Scenario};
use crate::world::Fault;

/// The lines that stand on it, each with a word in bold.
const LINES: [[&str; 2]; 3] =
    [["first", "of three"], ["second", "of three"], ["third", "of three"]];

impl Trial<'_> {
    /// The program leaves three lines on its screen and clears it: then the history of the user's terminal ends with
    /// them. Where the window had other sizes, lines may wait until they are in step again.
    pub(super) fn clear_screen(&mut self) -> Result<(), Fault> {
        let Scenario { usage, resizes, .. } = self.scenario;
        if usage.cleared == Cleared::Lost || *resizes != Chance::NEVER {
            return Ok(());
        }
        let written = LINES.map(|[bold, rest]| format!("\x1b[1;32m{bold}\x1b[m {rest}"));
        let texts = LINES.map(|words| words.join(" "));
        let known = SAVING_TERMS.iter().find(|(term, _)| usage.term == Some(*term));
        let Some((_, saves)) = known else {
            return self.fault("the user's terminal keeps nothing that is erased".to_owned());
        };
        for erase in erasures(*saves) {
            // Whatever modes it left behind, and whichever screen it was on.
            let lines = written.join("\r\n");
            let said = format!("\x1b[?1049l\x1b[4l\x1b[r\x1b[m\x1b[2J\x1b[H{lines}{erase}$ ");
            self.session.server_mut().say(said.as_bytes());
            self.session.world.poke(self.session.server_id)?;
            self.converge()?;
            let history = self.session.client().tty.history();
            let first = history.len().saturating_sub(LINES.len());
            let last: Vec<String> =
                (first..history.len()).filter_map(|line| history.text(line)).collect();
            if !last.iter().map(|line| line.trim_end()).eq(&texts) {
                return self.fault(format!("{erase:?} leaves {last:?} in the terminal's history"));
            }
        }
        Ok(())
    }
}

/// The erasures that such a terminal saves.
fn erasures(saves: SavesErased) -> &'static [&'static str] {
    const ALL: [&str; 2] = ["\x1b[2J\x1b[H", "\x1b[H\x1b[J"];
    match saves {
        SavesErased::Never => &[],
        SavesErased::All => &ALL[..1],
        SavesErased::FromHome => &ALL,
    }
}
