//! The channels of a session as a state machine. Two honest ends, whatever their programs do and however often the
//! connection is lost at either: each octet comes once and in order, and in the end nothing is held. And one end
//! before a hostile peer: what it holds is bounded, and what its program reads is in order.

#![no_main]

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rove_streams::frame::{Frame, NUMBER_MAX};
use rove_streams::testing::mux::{Broken, Mux, Pulse, Role, Which};
use rove_streams::{CHANNELS_MAX, Ended};

/// Channels that each honest program opens.
const OPEN_MAX: usize = 6;
/// Octets that are written or read at a time, for each unit of an argument.
const UNIT: usize = 700;
/// As `HELD_MIN` of the machine: the share of a channel when all room is taken.
const HELD_MIN: u64 = 64 << 10;
/// What all windows together may hold: 64 MiB of growth and 128 KiB for each channel of the peer's.
const UNREAD_MAX: u64 = (64 << 20) + 3 * CHANNELS_MAX as u64 * (128 << 10);

fuzz_target!(|octets: &[u8]| {
    let Some((&which, steps)) = octets.split_first() else { return };
    match which % 2 {
        0 => honest(steps),
        _ => hostile(if which & 2 == 0 { Role::Client } else { Role::Server }, steps),
    }
});

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// The octet at a place of a direction, so that each shows its place.
fn octet(place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn octets(from: u64, count: usize) -> Vec<u8> {
    (from..from + count as u64).map(octet).collect()
}

/// A program's view of a channel.
#[derive(Default)]
struct Half {
    written: u64,
    read: u64,
    finished: bool,
    at_end: bool,
    writer_gone: bool,
    reader_gone: bool,
}

/// One honest end, and what it has sent on its newest connection.
struct Side {
    mux: Mux,
    halves: BTreeMap<u64, Half>,
    opened: usize,
    connection: u64,
    frames: Vec<u8>,
    blocks: VecDeque<(u64, u64, Vec<u8>)>,
}

impl Side {
    fn new(role: Role) -> Side {
        Side {
            mux: Mux::new(role),
            halves: BTreeMap::new(),
            opened: 0,
            connection: 0,
            frames: Vec::new(),
            blocks: VecDeque::new(),
        }
    }

    /// A new connection takes nothing over from the last one.
    fn connect(&mut self) {
        self.connection += 1;
        self.frames.clear();
        self.blocks.clear();
        self.mux.link_up();
    }

    fn open(&mut self) {
        if self.opened < OPEN_MAX {
            let request = octets(0, self.opened);
            let Poll::Ready(Ok(id)) = self.mux.poll_open(&mut cx(), &request) else {
                panic!("there is room")
            };
            self.opened += 1;
            assert!(self.halves.insert(id, Half::default()).is_none(), "a number is given once");
        }
    }

    fn accept(&mut self) {
        while let Poll::Ready(Some((request, id))) = self.mux.poll_accept(&mut cx()) {
            assert_eq!(request, octets(0, (id / 2) as usize));
            assert!(self.halves.insert(id, Half::default()).is_none(), "each comes once");
        }
    }

    fn write(&mut self, id: u64, count: usize) {
        let half = self.halves.get_mut(&id).expect("its program has it");
        if half.writer_gone {
            return;
        }
        match self.mux.poll_write(&mut cx(), id, &octets(half.written, count)) {
            Poll::Ready(Ok(taken)) => half.written += taken as u64,
            Poll::Ready(Err(Broken::Finished)) => assert!(half.finished),
            Poll::Ready(Err(Broken::Refused | Broken::Reset)) | Poll::Pending => {}
            Poll::Ready(Err(Broken::Ended(ended))) => panic!("{ended}"),
        }
    }

    fn read(&mut self, id: u64, count: usize) {
        let half = self.halves.get_mut(&id).expect("its program has it");
        if half.reader_gone || half.at_end {
            return;
        }
        let mut out = vec![0; count.max(1)];
        if let Poll::Ready(Ok(count)) = self.mux.poll_read(&mut cx(), id, &mut out) {
            assert_eq!(out[..count], octets(half.read, count), "{id} at {}", half.read);
            half.read += count as u64;
            half.at_end = count == 0;
        }
    }

    fn finish(&mut self, id: u64) {
        let half = self.halves.get_mut(&id).expect("its program has it");
        if !half.writer_gone && self.mux.finish(id).is_ok() {
            half.finished = true;
        }
    }

    fn drop_writer(&mut self, id: u64) {
        let half = self.halves.get_mut(&id).expect("its program has it");
        if !std::mem::replace(&mut half.writer_gone, true) {
            self.mux.drop_writer(id);
        }
    }

    fn drop_reader(&mut self, id: u64) {
        let half = self.halves.get_mut(&id).expect("its program has it");
        if !std::mem::replace(&mut half.reader_gone, true) {
            self.mux.drop_reader(id);
        }
    }

    fn send(&mut self, most: usize) {
        self.mux.poll_frames(most, &mut self.frames);
        if let Some((id, offset, octets)) = self.mux.poll_data(most) {
            assert!(!octets.is_empty() && octets.len() <= most);
            self.blocks.push_back((id, offset, octets.to_vec()));
        }
    }

    /// Delivers a frame, and the block of this number, to the other end, if both have the same connection.
    fn deliver(&mut self, to: &mut Side, block: usize) -> bool {
        if self.connection != to.connection {
            // What an older connection still carries is not heard any more.
            if self.connection < to.connection {
                self.frames.clear();
                self.blocks.clear();
            }
            return false;
        }
        let mut rest = self.frames.as_slice();
        let frame = Frame::decode(&mut rest).expect("ours are frames");
        let mut moved = frame.is_some();
        if let Some(frame) = frame {
            to.mux.handle_frame(frame).expect("an honest peer's frame");
        }
        let left = rest.len();
        self.frames.drain(..self.frames.len() - left);
        if !self.blocks.is_empty() {
            let block = block % self.blocks.len();
            let id = self.blocks[block].0;
            // A block waits for the frame that opens its channel.
            if to.mux.is_begun(id).expect("an honest peer's number") {
                let (id, offset, octets) = self.blocks.remove(block).expect("it is there");
                let pulse = Pulse::default();
                to.mux.handle_data(id, offset, &octets, pulse).expect("an honest peer's octets");
                moved = true;
            }
        }
        moved
    }
}

fn honest(mut steps: &[u8]) {
    let mut sides = [Side::new(Role::Client), Side::new(Role::Server)];
    while let [step, argument, rest @ ..] = steps {
        steps = rest;
        let [client, server] = &mut sides;
        let (side, peer) = if step & 1 == 0 { (client, server) } else { (server, client) };
        let count = usize::from(*argument);
        let nth = side.halves.keys().nth(count % side.halves.len().max(1)).copied();
        match (step >> 1 & 15, nth) {
            (0, _) => side.open(),
            (1, _) => side.accept(),
            (2 | 3, Some(id)) => side.write(id, count * UNIT),
            (4, Some(id)) => side.read(id, count * UNIT),
            (5, Some(id)) => side.finish(id),
            (6, Some(id)) => side.drop_writer(id),
            (7, Some(id)) => side.drop_reader(id),
            (8 | 9, _) => side.send(1 + count * UNIT),
            (10..=12, _) => drop(side.deliver(peer, count)),
            // The client makes connections; a server takes the client's newest.
            (13, _) if step & 1 == 0 => side.connect(),
            (13, _) if side.connection < peer.connection => {
                side.connection = peer.connection - 1;
                side.connect();
            }
            (14, _) => side.mux.probe(),
            (15, _) => side.mux.set_held_max(count as u64 * 4096),
            _ => {}
        }
        let limit = (255 * 4096).max(4 << 20) + OPEN_MAX as u64 * 2 * HELD_MIN;
        assert!(side.mux.held() <= limit, "{} octets are held", side.mux.held());
    }
    settle(&mut sides);
}

/// The network is good again: what was written and not given up arrives, and what is over is forgotten.
fn settle(sides: &mut [Side; 2]) {
    let newest = sides[0].connection;
    for side in sides.iter_mut() {
        side.connection = newest;
        side.connect();
        side.mux.set_held_max(1 << 20);
    }
    carry_all(sides);
    for side in sides.iter_mut() {
        let ids: Vec<u64> = side.halves.keys().copied().collect();
        ids.iter().for_each(|&id| side.finish(id));
    }
    carry_all(sides);
    let [client, server] = &*sides;
    for (from, to) in [(client, server), (server, client)] {
        for (id, half) in &from.halves {
            let Some(other) = to.halves.get(id) else { panic!("{id} never came") };
            assert!(other.read <= half.written, "{id}");
            if half.finished && !other.reader_gone {
                assert_eq!((other.read, other.at_end), (half.written, true), "{id}");
            }
        }
    }
    for side in sides.iter_mut() {
        let ids: Vec<u64> = side.halves.keys().copied().collect();
        for id in ids {
            side.drop_reader(id);
            side.drop_writer(id);
        }
    }
    carry_all(sides);
    for side in sides {
        assert!(!side.mux.has_channels() && side.mux.held() == 0, "{:?}", side.mux);
        assert!(!side.mux.is_busy() && !side.mux.has_frames(Which::All));
    }
}

fn carry_all(sides: &mut [Side; 2]) {
    let mut is_moving = true;
    while is_moving {
        is_moving = false;
        for _ in 0..2 {
            // Each in turn is the one that sends.
            sides.swap(0, 1);
            let [from, to] = &mut *sides;
            from.send(1 << 20);
            while from.deliver(to, 0) {
                is_moving = true;
            }
            to.accept();
            let ids: Vec<u64> = to.halves.keys().copied().collect();
            for id in ids {
                let before = to.halves[&id].read;
                to.read(id, 1 << 20);
                is_moving |= to.halves[&id].read > before;
            }
        }
    }
}

/// Numbers at which something changes.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    3,
    255,
    4096,
    64 << 10,
    (128 << 10) - 1,
    128 << 10,
    (128 << 10) + 1,
    1 << 20,
    32 << 20,
    1 << 32,
    NUMBER_MAX - 2,
    NUMBER_MAX - 1,
    NUMBER_MAX,
];

/// A peer that says and sends what it likes, and a program that uses the channels as they come.
fn hostile(role: Role, mut steps: &[u8]) {
    let mut mux = Mux::new(role);
    let mut read: BTreeMap<u64, u64> = BTreeMap::new();
    let mut unread = 0_u64;
    let mut out = Vec::new();
    // Channels whose halves the program has, reader and writer: it uses no others.
    let mut halves: BTreeMap<u64, [bool; 2]> = BTreeMap::new();
    mux.link_up();
    while let [step, channel, first, second, rest @ ..] = steps {
        steps = rest;
        let id = match channel {
            0xf0.. => NUMBERS[usize::from(channel & 15)],
            _ => u64::from(*channel),
        };
        let [one, other] = [first, second].map(|&octet| match octet {
            0xe0.. => NUMBERS[usize::from(octet & 15)],
            _ => u64::from(octet) * 1024,
        });
        let outcome = match step & 15 {
            0 => {
                let request = octets(0, usize::from(*first));
                mux.handle_frame(Frame::Open { channel: id, request })
            }
            1 => mux.handle_frame(Frame::Window { channel: id, received: one, limit: other }),
            2 => mux.handle_frame(Frame::Fin { channel: id, end: one }),
            3 => mux.handle_frame(Frame::Abort { channel: id }),
            4 => mux.handle_frame(Frame::Stop { channel: id }),
            5 => mux.handle_frame(Frame::Done { channel: id }),
            6 => mux.handle_frame(Frame::Gone { channel: id }),
            7 => mux.handle_frame(Frame::Ready),
            8 | 9 => {
                let octets = octets(one, usize::from(*second) * 64);
                let pulse =
                    Pulse { at: Duration::from_millis(one), round_trip: Duration::from_millis(9) };
                match mux.is_begun(id) {
                    Ok(true) => {
                        unread += octets.len() as u64;
                        mux.handle_data(id, one, &octets, pulse)
                    }
                    Ok(false) => Ok(()),
                    Err(violation) => Err(violation),
                }
            }
            10 => {
                mux.link_up();
                Ok(())
            }
            11 => {
                if let Poll::Ready(Ok(id)) = mux.poll_open(&mut cx(), b"ours") {
                    halves.insert(id, [true; 2]);
                }
                if let Poll::Ready(Some((_, id))) = mux.poll_accept(&mut cx()) {
                    assert!(halves.insert(id, [true; 2]).is_none(), "each comes once");
                }
                Ok(())
            }
            12 => {
                if halves.get(&id).is_some_and(|[_, writer]| *writer) {
                    let _ = mux.poll_write(&mut cx(), id, &vec![7; usize::from(*first) * UNIT]);
                }
                Ok(())
            }
            13 => {
                let mut taken = vec![0; usize::from(*first) * UNIT + 1];
                if halves.get(&id).is_some_and(|[reader, _]| *reader)
                    && let Poll::Ready(Ok(count)) = mux.poll_read(&mut cx(), id, &mut taken)
                {
                    let at = read.entry(id).or_default();
                    assert_eq!(taken[..count], octets(*at, count), "{id} at {at}");
                    *at += count as u64;
                }
                Ok(())
            }
            14 => {
                if let Some([reader, writer]) = halves.get_mut(&id) {
                    match first % 3 {
                        0 if *writer => drop(mux.finish(id)),
                        1 if std::mem::take(writer) => mux.drop_writer(id),
                        2 if std::mem::take(reader) => mux.drop_reader(id),
                        _ => {}
                    }
                }
                Ok(())
            }
            _ => {
                mux.poll_frames(usize::from(*first) * 64, &mut out);
                let _ = mux.poll_data(1 + usize::from(*second) * UNIT);
                Ok(())
            }
        };
        let mut told = out.as_slice();
        while let Some(frame) = Frame::decode(&mut told).expect("ours are frames") {
            if let Frame::Window { received, limit, .. } = frame {
                assert!(received <= limit || limit <= NUMBER_MAX);
            }
        }
        assert_eq!(told, b"", "ours are whole");
        out.clear();
        assert!(mux.held() <= (4 << 20) + 2 * CHANNELS_MAX as u64 * HELD_MIN);
        let ready: u64 = read.keys().map(|&id| mux.ready(id) as u64).sum();
        assert!(ready <= unread.min(UNREAD_MAX));
        if let Err(violation) = outcome {
            mux.end(Ended::Violation(violation));
            assert_eq!(mux.ended(), Some(Ended::Violation(violation)));
            assert!(matches!(mux.poll_open(&mut cx(), b""), Poll::Ready(Err(_))));
            return;
        }
    }
}
