//! A paste of more than an instruction holds, between a client and a server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Link, ms, native};
use rove_ssp::Rng;

/// A terminal gives what is pasted in pieces of 4 KiB, over a path that loses some: the program reads all of it,
/// never more than 64 datagrams of it at once.
#[test]
fn a_long_paste_in_pieces_reaches_the_program_in_parts() {
    let mut pair = native(Link { delay: ms(50), loss: 5, jitter: ms(0) });
    pair.program = |_| Vec::new();
    pair.run_ms(1000);
    let mut rng = Rng::new(3);
    let text: Vec<u8> = (0..1 << 19).map(|_| b'0' + rng.below(64) as u8).collect();
    let (mut pieces, mut held) = (text.chunks(4096), 0);
    for turn in 0..20_000 {
        if let Some(piece) = pieces.next() {
            pair.keys(piece);
        }
        pair.run_ms(1);
        let came = pair.typed.len() - held;
        assert!(came <= 64 * 1452, "{came} octets at once, {turn} ms after the first");
        held = pair.typed.len();
        if held == text.len() {
            break;
        }
    }
    assert!(pair.typed == text, "{held} octets");
}
