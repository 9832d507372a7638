//! Finds queries in recorded output: sequences that make a terminal answer. A replay removes them. Otherwise its
//! terminal would answer, and the recording's program would take the answer for keys.

use rove_term::{Dialect, Size, Terminal};

/// Takes the queries out of the output of one program, across pieces.
#[derive(Clone, Debug)]
pub(crate) struct Queries {
    terminal: Terminal,
    /// The pending sequence so far. Limited by [`SEQUENCE_MAX`].
    pending: Vec<u8>,
}

/// Octets of a sequence that are held back until it is known to be no query. Longer ones are none.
const SEQUENCE_MAX: usize = 256;

impl Queries {
    /// For output to a screen of this size.
    pub(crate) fn new(size: Size) -> Self {
        Self { terminal: Terminal::new(size, Dialect::ROVE), pending: Vec::new() }
    }

    /// The next piece without its queries. A sequence cut at its end comes with the next one.
    pub(crate) fn strip(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(octets.len());
        for &octet in octets {
            self.terminal.advance(&[octet]);
            if self.terminal.take_replies().is_empty() {
                self.pass(octet, &mut out);
            } else {
                self.pending.clear();
            }
        }
        out
    }

    fn pass(&mut self, octet: u8, out: &mut Vec<u8>) {
        self.pending.push(octet);
        if !under_way(&self.pending) || self.pending.len() >= SEQUENCE_MAX {
            out.append(&mut self.pending);
        }
    }
}

/// These octets begin a sequence that may yet make a terminal answer.
fn under_way(octets: &[u8]) -> bool {
    match octets {
        [0x1b] => true,
        [0x1b, b'[', rest @ ..] => rest.iter().all(|octet| (0x20..0x40).contains(octet)),
        [0x1b, b']' | b'P', rest @ ..] => match rest {
            [.., 0x07] | [.., 0x1b, b'\\'] => false,
            _ => rest.iter().all(|octet| *octet >= 0x20 || *octet == 0x1b),
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_go_and_the_rest_stays() {
        for (octets, want) in [
            ("a\x1b[6nb", "ab"),
            ("\x1b[c\x1b[>c\x1b[31mred", "\x1b[31mred"),
            ("\x1b]11;?\x07x\x1b]2;title\x07", "x\x1b]2;title\x07"),
            ("\x1b]10;?\x1b\\y", "y"),
            ("\x1b[?25l\x1b(B\x1bMé", "\x1b[?25l\x1b(B\x1bMé"),
            ("\x1b[\x1b[1mz", "\x1b[\x1b[1mz"),
        ] {
            let mut whole = Queries::new(Size::DEFAULT);
            let mut found = whole.strip(octets.as_bytes());
            found.extend(whole.pending);
            assert_eq!(String::from_utf8_lossy(&found), want, "{octets:?}");
            let mut single = Queries::new(Size::DEFAULT);
            let mut found: Vec<u8> =
                octets.bytes().flat_map(|octet| single.strip(&[octet])).collect();
            found.extend(single.pending);
            assert_eq!(String::from_utf8_lossy(&found), want, "{octets:?}, octet by octet");
        }
    }
}
