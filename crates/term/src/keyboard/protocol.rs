//! Chooses between the protocol in which keys come and the one that the program wants.

use crate::dialect::Dialect;
use crate::keyboard::lex::Bare;
use crate::render::tty_modes;
use crate::screen::modes::{Modes, Mouse, MouseEncoding};
use crate::screen::properties::TerminalProperties;

/// The protocol that the terminal sends and the one that the program wants, from the program's modes and the
/// terminal's abilities.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyboardProtocol {
    pub(super) form: Form,
    pub(super) brackets: Brackets,
    pub(super) bare: Bare,
    /// A cell's size, where mouse reports come in cells and are wanted in pixels.
    pub(super) cell: Option<(u32, u32)>,
}

/// How keys are translated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// They pass unchanged, octet by octet.
    Octets,
    /// They pass, and come in a protocol.
    Same(Protocol),
    /// They are written in kitty's protocol, with these flags.
    Kitty(u8),
    /// They are written as modifyOtherKeys of this level.
    Modified(u8),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Protocol {
    Kitty,
    ModifyOtherKeys,
}

/// Whether brackets around text mean that it is pasted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Brackets {
    Ignored,
    Heeded,
}

impl KeyboardProtocol {
    /// For a program that set these modes, and a terminal that was told of them in its `dialect`.
    pub fn of(program: &Modes, dialect: &Dialect, around: &TerminalProperties) -> Self {
        let terminal = tty_modes(program, dialect);
        let (flags, level) = (program.keyboard_flags, program.modify_other_keys);
        let form = match (flags, level) {
            (0, 0) => Form::Octets,
            (0, _) if terminal.modify_other_keys == level => Form::Same(Protocol::ModifyOtherKeys),
            (0, _) => Form::Modified(level),
            _ if terminal.keyboard_flags == flags => Form::Same(Protocol::Kitty),
            _ => Form::Kitty(flags),
        };
        let brackets = match terminal.bracketed_paste {
            true => Brackets::Heeded,
            false => Brackets::Ignored,
        };
        let bare = match (terminal.mouse, terminal.mouse_encoding) {
            (Mouse::Off, _) => Bare::None,
            (_, MouseEncoding::Default) => Bare::Octets,
            (_, MouseEncoding::Utf8) => Bare::Characters,
            _ => Bare::None,
        };
        let wants_pixels = program.mouse_encoding == MouseEncoding::SgrPixels
            && terminal.mouse_encoding == MouseEncoding::Sgr;
        Self { form, brackets, bare, cell: wants_pixels.then(|| around.cell_pixels()) }
    }

    /// Whether octets are read for more than brackets.
    pub(super) fn reads(&self) -> bool {
        self.form != Form::Octets || self.cell.is_some()
    }

    /// Whether the beginning of a sequence is worth waiting for. A lone escape is a key on terminals that have
    /// kitty's protocol off; a program that wants it in another form has to wait.
    pub(super) fn holds(&self, part: &[u8]) -> bool {
        match self.form {
            Form::Octets => part.starts_with(b"\x1b[<"),
            Form::Same(Protocol::ModifyOtherKeys) => part.len() > 2,
            Form::Same(Protocol::Kitty) | Form::Kitty(_) | Form::Modified(_) => true,
        }
    }
}
