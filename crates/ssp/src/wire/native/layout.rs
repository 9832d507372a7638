//! The octets in front of what is sealed (`docs/wire.md` §4).

/// Octets in the clear: mark, connection, the sequence number's low half.
pub(super) const CLEAR: usize = 1 + 4 + 4;
/// The first octet's fixed bits; QUIC's have 0x40 set, stock mosh's start with 0x00 or 0x80.
pub(super) const MARK: u8 = 0x20;
pub(super) const MARK_MASK: u8 = 0xe0;
/// The version of this envelope, in the bits 4 to 2 of the first octet.
pub(super) const VERSION: u8 = 0;
pub(super) const VERSION_SHIFT: u32 = 2;
pub(super) const VERSION_MASK: u8 = 0x07;
/// The low bit of the key phase. The bit between it and the version is sent as 0, and ignored.
pub(super) const PHASE: u8 = 0x01;
