//! Handles updates that a program brackets (mode 2026). During one the terminal keeps the picture before it, since
//! that is the last whole one.

use triomphe::Arc;

use crate::emulator::Emulator;
use crate::emulator::modes::ModeAction;
use crate::emulator::state::Before;

/// The cost of copying the seldom-changed parts of a screen, in cells.
const EXTRAS_CELLS: usize = 512;

impl Emulator<'_> {
    /// Mode 2026 is about to be switched.
    pub(crate) fn bracket_update(&mut self, switch: ModeAction) {
        match switch {
            ModeAction::Set if !self.state.modes.synchronized => {
                self.updates.begun += 1;
                self.updates.before = Some(Before {
                    state: *self.state,
                    grid: Arc::new(self.grid.clone()),
                    hidden: self.hidden.clone(),
                    extras: self.extras.clone(),
                    pool: None,
                });
                // One reference a row; rows and extras that change will be copied.
                self.grid.touch_rows(self.rows(), 0);
                self.touched(EXTRAS_CELLS);
            }
            ModeAction::Set => {}
            ModeAction::Reset => self.updates.forget(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Color, Dialect, Size, Terminal};

    fn terminal(input: &str) -> Terminal {
        let mut terminal = Terminal::new(Size::clamped(3, 20), Dialect::ROVE);
        terminal.advance(input.as_bytes());
        terminal
    }

    #[test]
    fn the_picture_before_an_update() {
        for (input, begun, before) in [
            ("one", 0, None),
            ("one\x1b[?2026h\rtwo", 1, Some("one")),
            ("one\x1b[?2026h\rtwo\x1b[?2026h\rthree", 1, Some("one")),
            ("one\x1b[?2026h\rtwo\x1b[?2026l", 1, None),
            ("one\x1b[?2026h\rtwo\x1b[?2026l\x1b[?2026h\x1b[2J", 2, Some("two")),
            ("one\x1b[?1;2026;7h\rtwo", 1, Some("one")),
            ("one\x1b[?2026h\x1b[?1049h\rtwo", 1, Some("one")),
            ("one\x1b[?2026h\x1b[!p", 1, None),
            ("one\x1b[?2026h\x1bc", 1, None),
            ("one\x1b[?2026h\x1bc\x1b[?2026htwo", 2, Some("")),
        ] {
            let terminal = terminal(input);
            let text = terminal.before_update().map(|screen| screen.row_text(0));
            assert_eq!((terminal.updates_begun(), text.as_deref()), (begun, before), "{input:?}");
        }
    }

    #[test]
    fn it_outlives_its_tables() {
        let mut terminal = terminal("\x1b[31me\u{301}\x1b[m\x1b[?2026h\x1b[2J\x1b[H");
        let styles = terminal.screen().pool().lens().styles;
        let mut collected = false;
        for n in 0..20_000u32 {
            let color = format!("\x1b[38;2;{};{};7mx", n >> 8, n & 255);
            terminal.advance(color.as_bytes());
            collected |= terminal.screen().pool().lens().styles < n as usize;
            let before = terminal.before_update().expect("an update is under way");
            assert_eq!(before.row_text(0), "e\u{301}", "{styles} styles, then {n}");
            assert_eq!(before.cell_style(0, 0).fg, Color::indexed(1));
            assert_eq!(before.fault(), None);
        }
        assert!(collected);
    }

    #[test]
    fn another_size_has_no_picture_yet() {
        let mut terminal = terminal("one\x1b[?2026h");
        terminal.resize(Size::clamped(4, 20));
        assert!(terminal.before_update().is_none());
    }
}
