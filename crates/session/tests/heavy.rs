//! An authentic enemy that sends heavy states and lets none be forgotten (`threats.md` row 12). The
//! session holds a bounded number of them, and goes on once the peer forgets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::ops::Range;

use common::{client_address, server_address};
use rove_session::{Input, Peer, View};
use rove_ssp::{
    Arrival, Config, Deflater, Endpoint, Envelope, Exhausted, Fragment, Header, Instruction,
    Machine, Reject, Role, Seq, State, Time, Timing, Wire,
};
use rove_term::Size;

const STATES: u64 = 1024;

/// Neither seals nor compresses: the enemy's deflated octets cost nothing here.
struct Glass;

impl Wire for Glass {
    fn overhead(&self) -> usize {
        8
    }

    fn assemblies_max(&self) -> usize {
        1
    }

    fn seal(&mut self, _: &Envelope, payload: &[u8], out: &mut Vec<u8>) -> Result<Seq, Exhausted> {
        out.clear();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(payload);
        Ok(Seq::new(0))
    }

    fn open(&mut self, datagram: &mut [u8]) -> Result<(Header, Range<usize>), Reject> {
        let seq = Seq::new(u64::from_be_bytes(datagram[..8].try_into().unwrap()));
        Ok((Header { seq, ..Header::default() }, 8..datagram.len()))
    }

    fn pack(&self, message: &Instruction, _: &mut Deflater, out: &mut Vec<u8>) {
        out.clear();
        message.encode(out);
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Instruction, Reject> {
        Instruction::decode(bytes)
    }
}

fn endpoint<L: State, R: State>(role: Role, local: L, remote: R) -> Endpoint<L, R> {
    let peer = (role == Role::Client).then(server_address);
    let wire = Box::new(Glass);
    Endpoint::new(
        Time::ZERO,
        Config { role, wire, timing: Timing::MOSH, peer, local, remote, seed: 1 },
    )
}

fn send<L: State, R: State>(victim: &mut Endpoint<L, R>, nums: [u64; 3], diff: &[u8]) {
    let [old, new, throwaway] = nums.map(Into::into);
    let diff = diff.to_vec();
    let message = Instruction { old, new, throwaway, diff, ..Instruction::default() };
    let (mut packed, mut datagram) = (Vec::new(), nums[1].to_be_bytes().to_vec());
    message.encode(&mut packed);
    let mut payload = Vec::new();
    Fragment { id: nums[1].into(), number: 0, last: true, contents: &packed }.encode(&mut payload);
    datagram.extend_from_slice(&payload);
    let arrival = Arrival { from: client_address().into(), congested: false };
    assert_eq!(victim.handle_datagram(Time::from_millis(nums[1]), arrival, &mut datagram), Ok(()));
}

/// The heavy diff again and again, from state 0 or from the newest; then one that lets go of the rest.
fn attack<L: State, R: State>(fresh: impl Fn() -> Endpoint<L, R>, heavy: &[u8], light: &[u8]) {
    for pile in [false, true] {
        let mut victim = fresh();
        for num in 1..=STATES {
            let old = if pile { victim.remote_num().get() } else { 0 };
            send(&mut victim, [old, num, 0], heavy);
            let held = victim.held();
            assert!(held.received_bytes <= 2 * Timing::MOSH.received_bytes_max, "{held:?}");
        }
        let held = victim.held();
        assert!(held.received_states < 65, "{held:?}");
        let base = victim.remote_num().get();
        send(&mut victim, [0, STATES + 1, 0], light);
        assert_eq!(victim.remote_num().get(), STATES + 1, "the newest is taken whatever is held");
        send(&mut victim, [STATES + 1, STATES + 2, STATES + 1], light);
        assert_eq!((victim.remote_num().get(), victim.held().received_states), (STATES + 2, 2));
        assert!(base > 1, "{base}");
    }
}

fn typed(octets: usize) -> Vec<u8> {
    let (mut input, mut diff) = (Input::default(), Vec::new());
    input.push_keys(&vec![b'x'; octets]);
    input.diff_from(&Input::default(), &mut diff);
    diff
}

#[test]
fn heavy_input_is_bounded() {
    let fresh = || endpoint(Role::Server, View::new(Size::DEFAULT, Peer::Rove), Input::default());
    attack(fresh, &typed((4 << 20) - 64), &typed(1));
}

#[test]
fn heavy_screens_are_bounded() {
    let (size, start) = (Size::clamped(200, 1000), View::new(Size::DEFAULT, Peer::Rove));
    let fresh = || endpoint(Role::Client, Input::default(), start.clone());
    let (mut heavy, mut light) = (Vec::new(), Vec::new());
    View::new(size, Peer::Rove).diff_from(&start, &mut heavy);
    View::new(Size::clamped(25, 81), Peer::Rove).diff_from(&start, &mut light);
    attack(fresh, &heavy, &light);
}
