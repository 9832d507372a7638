//! Random streams of characters that the installed mosh and its C library know.

use std::collections::HashSet;
use std::sync::OnceLock;

use rove_lab::testing::random_output::RandomOutput;
use rove_lab::testing::stock::Stock;
use rove_term::{Size, width};

/// The code points that the server's C library does not know: it drops them. Later releases know more of them,
/// so we take them all (`rove_term::width::stock`).
fn unknown_to_stock() -> &'static HashSet<char> {
    static UNKNOWN: OnceLock<HashSet<char>> = OnceLock::new();
    UNKNOWN.get_or_init(|| {
        let mut stock = Stock::start(Size::clamped(6, 20)).unwrap();
        let all: Vec<char> = ('\u{a0}'..='\u{2ffff}').chain('\u{e0000}'..='\u{e01ff}').collect();
        let mut unknown = HashSet::new();
        for some in all.chunks(CHARS_AT_ONCE) {
            for (c, columns) in some.iter().zip(advances(&mut stock, some)) {
                match (columns, width::stock(*c)) {
                    ((0, 0), Some(_)) => drop(unknown.insert(*c)),
                    ((0, 0), None) | ((1, 0), Some(0)) | ((1, 1), Some(1)) | ((2, 2), Some(2)) => {}
                    (columns, ours) => {
                        panic!("{c:?}: stock moves {columns:?}, ours is {ours:?} wide")
                    }
                }
            }
        }
        unknown
    })
}

/// How far the cursor goes at a character at the start of a row, where one without width stands on a blank,
/// and after a letter.
fn advances(stock: &mut Stock, chars: &[char]) -> Vec<(u16, u16)> {
    let mut octets = String::new();
    for c in chars {
        octets += &format!("\r\x1b[2K{c}\x1b[6n\r\x1b[2Ka{c}\x1b[6n");
    }
    stock.write(octets.as_bytes()).unwrap();
    let count = |stock: &Stock| stock.replies().iter().filter(|octet| **octet == b'R').count();
    stock.wait_for("cursor reports", |stock| count(stock) == 2 * chars.len()).unwrap();
    let replies = String::from_utf8(stock.take_replies()).unwrap();
    let columns = replies.split('R').filter(|reply| !reply.is_empty());
    let columns: Vec<u16> =
        columns.map(|reply| reply.split(';').nth(1).unwrap().parse().unwrap()).collect();
    columns.chunks(2).map(|pair| (pair[0] - 1, pair[1] - 2)).collect()
}

/// Planes not asked about: nothing stands there but tags.
const UNASKED: char = '\u{30000}';
/// Characters asked about at once: their answers fit the pipe that they come through.
const CHARS_AT_ONCE: usize = 2_000;

/// The stream of a seed, without characters that the server's C library does not know.
pub fn random_output(seed: u64) -> RandomOutput {
    let mut output = RandomOutput::new(seed);
    output.pieces.retain(|piece| knows(piece));
    // Two broken pieces can make a whole character.
    if !knows(&output.octets()) {
        output.pieces.retain(|piece| std::str::from_utf8(piece).is_ok());
    }
    output
}

/// Nothing in them is unknown to stock.
pub fn knows(octets: &[u8]) -> bool {
    let unknown = unknown_to_stock();
    !String::from_utf8_lossy(octets).chars().any(|c| unknown.contains(&c) || c >= UNASKED)
}
