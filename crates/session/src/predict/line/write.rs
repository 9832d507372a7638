//! Where a typed character goes, and which text it moves, also at margins.

use alloc::vec::Vec;

use rove_term::{Screen, Style, Width, width};

use crate::predict::line::cells::{Kind, PredictedCell, erased, open, suggests};
use crate::predict::line::context::LineContext;
use crate::predict::line::margin::{MarginEffect, Opens, Reflow};
use crate::predict::line::{Edge, Effect, PredictedScreen};
use crate::predict::look::{Appearance, Clusters, Look};
use crate::predict::settings::{Editing, Rule};
use crate::predict::window::Window;

impl PredictedScreen {
    pub(super) fn write(
        &mut self,
        c: char,
        setting: LineContext<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        let columns = u16::from(width::of(c));
        if columns == 0 {
            return self.combine(c, setting, clusters);
        }
        if self.edge == Edge::Reached {
            let window = self.window(setting.borders);
            if !window.goes_below(setting.base, self.row) {
                return Effect::Unknown;
            }
            let pushed = self.pushes;
            self.row += 1;
            self.jump(window.left);
            if pushed {
                // What was pushed out before has come here, and nobody knows how far it goes.
                let line = &mut self.line(setting, clusters)[usize::from(window.left)..];
                line.iter_mut().for_each(|slot| slot.kind = Kind::Unknown);
            }
        }
        let col = self.col;
        if col + columns > self.window(setting.borders).right {
            return Effect::Unknown;
        }
        let fate = setting.margin.fate(c, col);
        if let MarginEffect::Reflows(Reflow::LetterWraps(indent) | Reflow::SpaceWraps(indent)) =
            fate
            && self.wrap(indent, setting, clusters) == Effect::Unknown
        {
            return Effect::Unknown;
        }
        let effect = self.put(c, columns, setting, clusters);
        match fate {
            MarginEffect::Reflows(Reflow::Scrolls { kept, to }) => {
                self.scroll(kept, to, setting, clusters)
            }
            _ => effect,
        }
    }

    /// Puts a character at the cursor, where it fits.
    pub(super) fn put(
        &mut self,
        c: char,
        columns: u16,
        setting: LineContext<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        let (row, col) = (self.row, self.col);
        let Window { left, right } = self.window(setting.borders);
        let pen = setting.base.pen().style;
        let line = self.line(setting, clusters);
        let at = usize::from(col);
        let style = match at.checked_sub(1).map(|left| line[left]) {
            Some(left) if left.kind == Kind::Typed || !left.look.mark.is_blank() => left.look.style,
            _ => match line[at].look.style {
                _ if col == left => pen,
                under => Style { fg: line[at - 1].look.style.fg, ..under },
            },
        };
        let inserts = setting.editing == Editing::Insert && setting.lacks != Some(Rule::Insertion);
        let moves = inserts && !suggests(setting, line, at);
        let pushes = moves && (line[at].is_text() || line[at].kind == Kind::Unknown);
        for _ in 0..columns {
            if moves {
                open(setting, line, at);
            }
        }
        let wide = if columns == 2 { Width::Wide } else { Width::Narrow };
        let look = Look { mark: Appearance::of(c), width: wide, style };
        line[at] = PredictedCell { look, kind: Kind::Typed };
        if columns == 2 {
            let look = Look { mark: Appearance::BLANK, width: Width::Tail, style };
            line[at + 1] = PredictedCell { look, kind: Kind::Typed };
        }
        self.col = (col + columns).min(right - 1);
        self.edge = if col + columns == right { Edge::Reached } else { Edge::Within };
        (self.left, self.pushes) = (left, pushes);
        Effect::Writes(row, col)
    }

    /// Moves the word before the cursor to the next row, if that is empty or makes way.
    pub(super) fn wrap(
        &mut self,
        indent: u16,
        setting: LineContext<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        let begin = self.last_word(setting, clusters);
        let (row, col, window) = (self.row, self.col, self.window(setting.borders));
        let room = indent + (col - begin) + 2 < window.right;
        let below = window.goes_below(setting.base, row)
            && setting.borders.window(row + 1, indent) == window;
        if begin == window.left || !room || !below {
            return Effect::Unknown;
        }
        let old = self.line(setting, clusters);
        let word: Vec<PredictedCell> = old[usize::from(begin)..usize::from(col)].to_vec();
        // What stands right of the cursor goes along, as far as it is known.
        let tail: Vec<PredictedCell> = old[usize::from(col)..].to_vec();
        for slot in &mut old[usize::from(begin)..] {
            *slot = erased(slot.look.style);
        }
        self.row += 1;
        self.jump(indent);
        let new = self.line(setting, clusters);
        if new[usize::from(window.left)..].iter().any(|slot| !slot.look.mark.is_blank()) {
            if setting.margin.opens() != Opens::ARow {
                return Effect::Unknown;
            }
            // What stands there moves down; where that ends nobody knows, so only this row is shown.
            for slot in &mut new[usize::from(window.left)..] {
                *slot = erased(slot.look.style);
            }
        }
        for (slot, to) in word.iter().zip(usize::from(indent)..) {
            new[to] = PredictedCell { kind: Kind::Typed, ..*slot };
        }
        if tail.iter().any(|slot| !slot.look.mark.is_blank()) {
            let behind = &mut new[usize::from(indent) + word.len()..];
            for slot in behind.iter_mut() {
                slot.kind = Kind::Unknown;
            }
            let last = tail.len() - 1;
            for (to, from) in behind.iter_mut().zip(&tail[..last]) {
                let kind = if from.kind == Kind::Unknown { Kind::Unknown } else { Kind::Moved };
                *to = PredictedCell { kind, ..*from };
            }
        }
        self.jump(indent + (col - begin))
    }

    /// Moves the line left, but for the first columns that are `kept`, until the cursor is at `to`.
    pub(super) fn scroll(
        &mut self,
        kept: u16,
        to: u16,
        setting: LineContext<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        if self.edge == Edge::Reached || to <= kept || self.col <= to {
            return Effect::Unknown;
        }
        let by = self.col - to;
        let line = self.line(setting, clusters);
        let (kept, shift) = (usize::from(kept), usize::from(by));
        // Where the line is cut there may be a sign of it.
        line[kept].kind = Kind::Unknown;
        for to in kept + 1..line.len() {
            line[to] = match line.get(to + shift).copied() {
                Some(PredictedCell { look, kind: Kind::Real }) => {
                    PredictedCell { look, kind: Kind::Moved }
                }
                Some(from) => from,
                None => erased(line[to].look.style),
            };
        }
        self.col -= by;
        Effect::Writes(self.row, self.col - 1)
    }

    /// Takes the cursor back over what was just written.
    pub(crate) fn back(&mut self, columns: u16) {
        self.col = self.col.saturating_sub(columns);
    }

    /// Where the word that ends at the cursor begins.
    pub(crate) fn last_word(&mut self, setting: LineContext<'_>, clusters: &mut Clusters) -> u16 {
        let (left, col) = (self.window(setting.borders).left, usize::from(self.col));
        let line = &self.line(setting, clusters)[usize::from(left)..col];
        let gap = line.iter().rposition(|slot| slot.look.mark.is_blank());
        gap.map_or(left, |gap| left + gap as u16 + 1)
    }

    /// Up to which column, from the left of the window, they are as in the frame, in the cursor's line: a prompt, which ends in
    /// a blank. Text that happens to be the same after it does not count.
    pub(crate) fn kept(
        &mut self,
        screen: &Screen,
        setting: LineContext<'_>,
        clusters: &mut Clusters,
    ) -> u16 {
        let (row, left) = (self.row, self.window(setting.borders).left);
        let line = &self.line(setting, clusters)[usize::from(left)..];
        let marks: Vec<Appearance> = line.iter().map(|slot| slot.look.mark).collect();
        let cells = screen.row(row).cells()[usize::from(left)..].iter().zip(&marks);
        let same = cells.take_while(|(cell, mark)| mark.matches(clusters.mark(screen, **cell)));
        let same = same.count();
        let blank = marks[..same].iter().rposition(|mark| mark.is_blank());
        blank.map_or(left, |blank| left + blank as u16 + 1)
    }

    /// A combining mark joins the cell before the cursor.
    pub(super) fn combine(
        &mut self,
        c: char,
        setting: LineContext<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        let (row, col) = match (self.edge, self.col.checked_sub(1)) {
            (Edge::Reached, _) => (self.row, self.col),
            (Edge::Within, Some(left)) if self.col > self.window(setting.borders).left => {
                (self.row, left)
            }
            (Edge::Within, _) => return Effect::Unknown,
        };
        let line = self.line(setting, clusters);
        let mut at = usize::from(col);
        if line[at].look.width == Width::Tail {
            at = at.saturating_sub(1);
        }
        let Some(mark) = clusters.join(line[at].look.mark, c) else { return Effect::Unknown };
        let look = Look { mark, ..line[at].look };
        self.line(setting, clusters)[at] = PredictedCell { look, kind: Kind::Typed };
        Effect::Writes(row, at as u16)
    }
}
