//! What Enter does at the end of a line of an editor's text.

use rove_term::Screen;

use super::super::look::Clusters;
use super::super::newline::{Ending, Opening};
use super::slots::{Kind, Slot, blank};
use super::{Edge, Effect, Scene, Setting};

impl Scene {
    /// How the line ends.
    pub(crate) fn ending(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> Ending {
        let at = usize::from(self.col);
        let line = self.line(setting, clusters);
        let last = line[..at].iter().rev().find(|slot| !slot.look.mark.is_blank());
        Ending::of(last.and_then(|slot| slot.look.mark.letter()))
    }

    /// Ends the line and opens the next row, if all of the line was typed by the user: what stands left of
    /// it may be a question, and what comes next a password.
    pub(crate) fn open(
        &mut self,
        opening: Opening,
        setting: Setting<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        let (row, at) = (self.row, usize::from(self.col));
        let begin = self
            .origin
            .or(setting.text_from)
            .filter(|(line, col)| *line == row && *col <= self.col);
        let Some(begin) = begin.map(|at| usize::from(at.1)) else { return Effect::Lost };
        if self.edge == Edge::Reached || row + 1 >= opening.last {
            return Effect::Lost;
        }
        let cols = i16::try_from(Self::cols(setting)).unwrap_or(i16::MAX);
        let line = self.line(setting, clusters);
        let is_text = |slot: &Slot| !slot.look.mark.is_blank();
        if line[..begin].iter().any(is_text) {
            return Effect::Lost;
        }
        let indent = line.iter().position(is_text).unwrap_or(at) as i16 + opening.deeper;
        if !(0..cols - 1).contains(&indent) {
            return Effect::Lost;
        }
        // Text right of the cursor goes along.
        let rest: Vec<Slot> = line[at..].to_vec();
        let rest = if rest.iter().any(is_text) { rest } else { Vec::new() };
        let style = line[at].look.style;
        line[at..].iter_mut().take(rest.len()).for_each(|slot| *slot = blank(style, Kind::Moved));
        self.lines.retain(|line| line.row != opening.last);
        for line in self.lines.iter_mut().filter(|line| line.row > row && line.row < opening.last) {
            line.row += 1;
        }
        self.opened.push((row + 1, opening.last));
        self.row += 1;
        self.jump(indent as u16);
        self.origin = Some((self.row, self.col));
        if !rest.is_empty() {
            let line = self.line(setting, clusters);
            for (slot, from) in line[indent as usize..].iter_mut().zip(rest) {
                *slot = Slot { kind: Kind::Moved, ..from };
            }
        }
        Effect::Opens
    }

    /// Where the line begins that was opened last.
    pub(crate) fn opened_at(&self) -> Option<(u16, u16)> {
        self.origin.filter(|_| !self.opened.is_empty())
    }

    /// The last row that moved down in `screen` for the rows opened here, with what stands below it still
    /// in its place; `None` if nothing stands there: in a shell's window all may have moved.
    pub(crate) fn last_moved(
        &self,
        base: &Screen,
        screen: &Screen,
        clusters: &mut Clusters,
    ) -> Option<u16> {
        let (rows, by) = (screen.size().rows, self.opened.len() as u16);
        let mut moved = |row: &u16| {
            let Some(was) = row.checked_sub(by) else { return false };
            let mut cells = screen.row(*row).cells().iter().zip(base.row(was).cells());
            cells.all(|(is, was)| clusters.mark(screen, *is).matches(clusters.mark(base, *was)))
        };
        let last = (self.row + 1..rows).take_while(&mut moved).last().unwrap_or(self.row);
        let below = (last + 1 < rows).then(|| screen.row(last + 1))?;
        let stays = below.cells().iter().any(|cell| !clusters.mark(screen, *cell).is_blank());
        (stays && by > 0).then_some(last)
    }
}
