//! What a program writes, to both emulators: no screen is ever malformed, how the stream is cut does not
//! matter, a snapshot is all there is, and work stays linear.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_term::{Dialect, Resizing, Size, Terminal};

/// What one byte may cost, in screens gone through: it can end a sequence that works on the whole of it, four
/// times over.
const SCREENS_A_BYTE: u64 = 4;
/// And in cells: it can have colours copied, or be answered.
const CELLS_A_BYTE: u64 = 4096;

fuzz_target!(|bytes: &[u8]| {
    let [rows, cols, cut, rest @ ..] = bytes else { return };
    let size = Size::clamped(1 + i64::from(rows % 30), 1 + i64::from(cols % 90));
    let cut = usize::from(*cut) * rest.len() / 256;
    for dialect in [Dialect::ROVE, Dialect::MOSH] {
        let mut whole = Terminal::new(size, dialect);
        whole.advance(rest);
        assert_eq!(whole.screen().fault(), None);
        let most = SCREENS_A_BYTE * size.work() + CELLS_A_BYTE;
        assert!(whole.cells_touched() <= most * (rest.len() as u64 + 1));

        let mut pieces = Terminal::new(size, dialect);
        pieces.advance(&rest[..cut]);
        if pieces.is_idle() {
            let mut replies = pieces.take_replies();
            pieces = Terminal::resume(pieces.into_screen(), dialect);
            pieces.advance(&rest[cut..]);
            replies.extend(pieces.take_replies());
            assert_eq!(replies, whole.take_replies());
        } else {
            pieces.advance(&rest[cut..]);
            assert_eq!(pieces.take_replies(), whole.take_replies());
        }
        assert_eq!(format!("{:?}", pieces.screen()), format!("{:?}", whole.screen()));

        let mut standing_alone = Terminal::new(size, dialect);
        standing_alone.set_resizing(Resizing::Obeyed);
        standing_alone.advance(rest);
        assert_eq!(standing_alone.screen().fault(), None);

        whole.resize(Size::clamped(1 + i64::from(cols % 30), 1 + i64::from(rows % 90)));
        whole.advance(rest);
        assert_eq!(whole.screen().fault(), None);
    }
});
