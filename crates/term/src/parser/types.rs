//! Constants and types that all parts of the parser use.

/// Bytes of an operating system command; beyond it the whole command is ignored (threats row 4).
pub const OSC_MAX: usize = 4096;
/// Bytes of `OSC 52`: a selection and 128 KiB in base64 (threats row 7).
pub const CLIPBOARD_OSC_MAX: usize = 16 + 128 * 1024 / 3 * 4 + 4;
/// Bytes of a device control string; beyond it the whole string is ignored.
pub const DCS_MAX: usize = 4096;

/// How a string was terminated; an answer to it is terminated alike.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StringEnd {
    /// BEL, as xterm allows.
    Bell,
    /// String terminator.
    Terminator,
}

pub(super) const BEL: u8 = 0x07;
pub(super) const CAN: u8 = 0x18;
pub(super) const SUB: u8 = 0x1a;
pub(super) const ESC: u8 = 0x1b;
pub(super) const DEL: u8 = 0x7f;
