//! What two roves tell each other beyond stock's protocol, over the mosh wire, and that stock is told
//! nothing of it (`mosh-protocol.md` §10).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::ops::Range;

use common::{BAD, GOOD, Link, Pair, client_config, server_config};
use rove_session::{LineMode, Peer};
use rove_ssp::{
    Announcement, Deflater, Envelope, Exhausted, Header, Instruction, Reject, Seq, Wire,
};

/// The wire of a peer that knows no announcements.
struct Unannounced(Box<dyn Wire>);

impl Wire for Unannounced {
    fn overhead(&self) -> usize {
        self.0.overhead()
    }

    fn assemblies_max(&self) -> usize {
        self.0.assemblies_max()
    }

    fn seal(
        &mut self,
        envelope: &Envelope,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Seq, Exhausted> {
        self.0.seal(envelope, payload, out)
    }

    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject> {
        self.0.open(datagram)
    }

    fn pack(&self, message: &Instruction, deflater: &mut Deflater, out: &mut Vec<u8>) {
        let message = Instruction { announcement: Announcement::NONE, ..message.clone() };
        self.0.pack(&message, deflater, out);
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Instruction, Reject> {
        self.0.unpack(bytes)
    }
}

fn pair(link: Link) -> Pair {
    Pair::with(link, client_config(Peer::Stock), server_config(Peer::Stock))
}

#[test]
fn the_terminal_lines_mode_is_reported() {
    for link in [GOOD, BAD] {
        let mut pair = pair(link);
        pair.server.handle_line(LineMode::Raw);
        pair.keys(b"x").run_ms(3000);
        for mode in [LineMode::Raw, LineMode::Cooked, LineMode::Hidden, LineMode::Raw] {
            // Without output, and without keys.
            pair.server.handle_line(mode);
            pair.run_ms(3000);
            assert_eq!(pair.client.view().line(), Some(mode));
        }
        pair.server.handle_line(LineMode::Hidden);
        pair.output(b"Password: ").run_ms(3000);
        assert_eq!(pair.client.view().line(), Some(LineMode::Hidden));
    }
}

/// What a frame says of the line holds for all keys that its echo ack covers.
#[test]
fn a_report_comes_with_its_screen() {
    let mut pair = pair(GOOD);
    pair.server.handle_line(LineMode::Raw);
    pair.run_ms(1000);
    for round in 0..20 {
        let (mode, text) = match round % 2 {
            0 => (LineMode::Hidden, "\r\x1b[Khidden"),
            _ => (LineMode::Cooked, "\r\x1b[Kcooked"),
        };
        pair.server.handle_line(mode);
        pair.output(text.as_bytes());
        for _ in 0..100 {
            pair.run_ms(1);
            let mode = pair.client.view().line();
            match pair.top().as_str() {
                "hidden" => assert_eq!(mode, Some(LineMode::Hidden), "{round}"),
                "cooked" => assert_eq!(mode, Some(LineMode::Cooked), "{round}"),
                _ => {}
            }
        }
    }
}

#[test]
fn stock_is_told_nothing() {
    let mut client = client_config(Peer::Stock);
    client.wire = Box::new(Unannounced(client.wire));
    let mut pair = Pair::with(GOOD, client, server_config(Peer::Stock));
    pair.run_ms(50).keys(b"\x1b]11;rgb:ff/ff/ff\x07\x1b[?62c");
    for mode in [LineMode::Raw, LineMode::Cooked, LineMode::Hidden] {
        pair.server.handle_line(mode);
        pair.keys(b"x").run_ms(1000);
        assert_eq!(pair.client.endpoint().local().resizes(), 0);
        assert!(!pair.server.reports_line());
        assert_eq!(
            (pair.client.view().line(), pair.server.endpoint().local().line()),
            (None, None)
        );
    }
    assert_eq!(pair.top(), "xxx");
    pair.program = |_| Vec::new();
    pair.output(b"\x1b]11;?\x07").run_ms(1000);
    assert!(pair.typed.ends_with(b"xxx\x1b]11;rgb:0000/0000/0000\x07"));
}
