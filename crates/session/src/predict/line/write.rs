//! Predicts a typed character: where it goes, and which text it moves, also at margins.

use alloc::vec::Vec;

use rove_term::{Screen, Style, Width, width};

use crate::predict::line::cells::{Kind, PredictedCell, erase, erased, open, suggests};
use crate::predict::line::context::LineContext;
use crate::predict::line::margin::{Displaced, MarginEffect, Reflow};
use crate::predict::line::{Effect, PredictedScreen};
use crate::predict::look::{Appearance, Look};
use crate::predict::settings::{Editing, Rule};
use crate::predict::window::Window;

impl PredictedScreen {
    /// A typed character.
    pub(super) fn write(&mut self, c: char, context: &mut LineContext<'_>) -> Effect {
        let columns = u16::from(width::of(c));
        if columns == 0 {
            return self.combine(c, context);
        }
        if self.at_edge {
            let window = self.window(context.borders);
            // On the last row the window scrolls, and the row that comes up is not known.
            if !window.goes_below(context.base, self.row) {
                return Effect::Unknown;
            }
            let pushed = self.pushes;
            self.row += 1;
            self.jump(window.left);
            if pushed {
                // Text that was pushed out before has come here. How far it goes is not known.
                let line = &mut self.line(context)[usize::from(window.left)..];
                line.iter_mut().for_each(|guess| guess.kind = Kind::Unknown);
            }
        }
        let col = self.col;
        // A wide character that does not fit wraps in some programs and is cut in others.
        if col + columns > self.window(context.borders).right {
            return Effect::Unknown;
        }
        let at_margin = context.margin.effect_of(c, col);
        // A line that wraps takes the word along before the character is put.
        if let MarginEffect::Reflows(Reflow::LetterWraps(indent) | Reflow::SpaceWraps(indent)) =
            at_margin
            && self.wrap(indent, context) == Effect::Unknown
        {
            return Effect::Unknown;
        }
        let effect = self.put(c, columns, context);
        match at_margin {
            // A line that scrolls does so once the character stands.
            MarginEffect::Reflows(Reflow::Scrolls { kept, to }) => self.scroll(kept, to, context),
            _ => effect,
        }
    }

    /// Puts a character at the cursor, where it fits.
    pub(super) fn put(&mut self, c: char, columns: u16, context: &mut LineContext<'_>) -> Effect {
        let (row, col) = (self.row, self.col);
        let Window { left, right } = self.window(context.borders);
        let pen = context.base.pen().style;
        let line = self.line(context);
        let at = usize::from(col);
        // Programs draw a word in one style, so the character looks like the one before it.
        let style = match at.checked_sub(1).map(|left| line[left]) {
            Some(left) if left.kind == Kind::Typed || !left.look.text.is_blank() => left.look.style,
            _ => match line[at].look.style {
                // At the edge there is none before it.
                _ if col == left => pen,
                under => Style { fg: line[at - 1].look.style.fg, ..under },
            },
        };
        let inserts =
            context.settings.editing == Editing::Insert && !context.lacks(Rule::Insertion);
        let moves = inserts && !suggests(context, line, at);
        // Text that is pushed out at the right goes on in the next row.
        let pushes = moves && (line[at].is_text() || line[at].kind == Kind::Unknown);
        for _ in 0..columns {
            if moves {
                open(context, line, at);
            }
        }
        let wide = if columns == 2 { Width::Wide } else { Width::Narrow };
        let look = Look { text: Appearance::of(c), width: wide, style };
        line[at] = PredictedCell { look, kind: Kind::Typed };
        if columns == 2 {
            let look = Look { text: Appearance::BLANK, width: Width::Tail, style };
            line[at + 1] = PredictedCell { look, kind: Kind::Typed };
        }
        // Terminals wrap only with the next character.
        self.col = (col + columns).min(right - 1);
        self.at_edge = col + columns == right;
        (self.left, self.pushes) = (left, pushes);
        Effect::Writes(row, col)
    }

    /// Moves the word before the cursor to the next row, if that is empty or makes way.
    pub(super) fn wrap(&mut self, indent: u16, context: &mut LineContext<'_>) -> Effect {
        let begin = self.last_word(context);
        let (row, col, window) = (self.row, self.col, self.window(context.borders));
        // A word as long as the row is broken, not taken along.
        let room = indent + (col - begin) + 2 < window.right;
        let below = window.goes_below(context.base, row)
            && context.borders.window(row + 1, indent) == window;
        if begin == window.left || !room || !below {
            return Effect::Unknown;
        }
        let old = self.line(context);
        let word: Vec<PredictedCell> = old[usize::from(begin)..usize::from(col)].to_vec();
        // Text right of the cursor goes along, as far as it is known.
        let tail: Vec<PredictedCell> = old[usize::from(col)..].to_vec();
        erase(&mut old[usize::from(begin)..]);
        self.row += 1;
        self.jump(indent);
        let new = self.line(context);
        if new[usize::from(window.left)..].iter().any(|guess| !guess.look.text.is_blank()) {
            // The text below may be joined to the word, unless it was seen to move down.
            if context.margin.displaced() != Displaced::MovesDown {
                return Effect::Unknown;
            }
            // The text there moves down. Where that ends is not known: only this row is shown.
            erase(&mut new[usize::from(window.left)..]);
        }
        for (guess, to) in word.iter().zip(usize::from(indent)..) {
            new[to] = PredictedCell { kind: Kind::Typed, ..*guess };
        }
        if tail.iter().any(|guess| !guess.look.text.is_blank()) {
            let behind = &mut new[usize::from(indent) + word.len()..];
            // Text that no longer fits may wrap in turn.
            behind.iter_mut().for_each(|guess| guess.kind = Kind::Unknown);
            let last = tail.len() - 1;
            for (to, from) in behind.iter_mut().zip(&tail[..last]) {
                let kind = if from.kind == Kind::Unknown { Kind::Unknown } else { Kind::Moved };
                *to = PredictedCell { kind, ..*from };
            }
        }
        self.jump(indent + (col - begin))
    }

    /// Moves the line left, but for the first columns that are `kept`, until the cursor is at `to`.
    pub(super) fn scroll(&mut self, kept: u16, to: u16, context: &mut LineContext<'_>) -> Effect {
        // Learnt from another line: this one would scroll into its prompt, or to the right.
        if self.at_edge || to <= kept || self.col <= to {
            return Effect::Unknown;
        }
        let by = self.col - to;
        let line = self.line(context);
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

    /// Takes the cursor back over the text just written.
    pub(crate) fn back(&mut self, columns: u16) {
        self.col = self.col.saturating_sub(columns);
    }

    /// Where the word that ends at the cursor begins.
    pub(crate) fn last_word(&mut self, context: &mut LineContext<'_>) -> u16 {
        let (left, col) = (self.window(context.borders).left, usize::from(self.col));
        let line = &self.line(context)[usize::from(left)..col];
        let gap = line.iter().rposition(|guess| guess.look.text.is_blank());
        gap.map_or(left, |gap| left + gap as u16 + 1)
    }

    /// Up to which column the cursor's line is as in the frame, from the left of the window: its
    /// prompt.
    pub(crate) fn kept(&mut self, screen: &Screen, context: &mut LineContext<'_>) -> u16 {
        let (row, left) = (self.row, self.window(context.borders).left);
        let line = &self.line(context)[usize::from(left)..];
        let texts: Vec<Appearance> = line.iter().map(|guess| guess.look.text).collect();
        let cells = screen.row(row).cells()[usize::from(left)..].iter().zip(&texts);
        let same =
            cells.take_while(|(cell, text)| text.matches(context.clusters.text(screen, **cell)));
        let same = same.count();
        // A prompt ends in a blank. Text behind it may be alike by chance.
        let blank = texts[..same].iter().rposition(|text| text.is_blank());
        blank.map_or(left, |blank| left + blank as u16 + 1)
    }

    /// A combining mark joins the cell before the cursor.
    pub(super) fn combine(&mut self, c: char, context: &mut LineContext<'_>) -> Effect {
        let mut at = usize::from(self.col);
        if !self.at_edge {
            if self.col <= self.window(context.borders).left {
                return Effect::Unknown;
            }
            at -= 1;
        }
        let line = self.line(context);
        if line[at].look.width == Width::Tail {
            at = at.saturating_sub(1);
        }
        // Programs draw a mark that does not combine in different ways.
        let Some(text) = context.clusters.join(line[at].look.text, c) else {
            return Effect::Unknown;
        };
        let look = Look { text, ..line[at].look };
        self.line(context)[at] = PredictedCell { look, kind: Kind::Typed };
        Effect::Writes(self.row, at as u16)
    }
}
