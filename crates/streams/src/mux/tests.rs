use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use super::*;
use crate::frame::NUMBER_MAX;

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn open(mux: &mut Mux, request: &[u8]) -> u64 {
    match mux.poll_open(&mut cx(), request) {
        Poll::Ready(Ok(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// A random generator with a fixed seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

/// The octet at a place of a stream, so that a received octet shows its place.
fn octet(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// One end, with the frames and octets on their way to the other.
struct End2 {
    mux: Mux,
    /// FNV-1a hash of everything this end sent.
    sent: u64,
    frames: Vec<u8>,
    data: Vec<(u64, u64, Bytes)>,
    written: u64,
    read: u64,
}

impl End2 {
    fn new(role: Role) -> End2 {
        End2 {
            mux: Mux::new(role),
            sent: 0xcbf2_9ce4_8422_2325,
            frames: Vec::new(),
            data: Vec::new(),
            written: 0,
            read: 0,
        }
    }

    fn send(&mut self, octets: &[u8]) {
        for octet in octets {
            self.sent = (self.sent ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write(&mut self, dice: &mut Dice, id: u64, total: u64) {
        let len = dice.below(40_000).min(total - self.written);
        let octets: Vec<u8> = (self.written..self.written + len).map(octet).collect();
        if let Poll::Ready(count) = self.mux.poll_write(&mut cx(), id, &octets) {
            self.written += count.unwrap() as u64;
        }
        if self.written == total {
            self.mux.finish(id).unwrap();
        }
    }

    /// Reads; returns whether the stream has ended.
    fn read(&mut self, dice: &mut Dice, id: u64) -> bool {
        let mut out = vec![0; 1 + dice.below(60_000) as usize];
        let Poll::Ready(count) = self.mux.poll_read(&mut cx(), id, &mut out) else { return false };
        let count = count.unwrap();
        for (at, &read) in out[..count].iter().enumerate() {
            assert_eq!(read, octet(self.read + at as u64), "octet {}", self.read + at as u64);
        }
        self.read += count as u64;
        count == 0
    }
}

/// Delivers some of the waiting octets and frames, in random order where QUIC keeps none.
fn carry(dice: &mut Dice, from: &mut End2, to: &mut End2) {
    let before = from.frames.len();
    from.mux.poll_frames(1000, &mut from.frames);
    let frames = from.frames[before..].to_vec();
    from.send(&frames);
    while dice.below(4) > 0
        && let Some(block) = from.mux.poll_data(1 + dice.below(30_000) as usize)
    {
        from.send(&block.1.to_be_bytes());
        from.send(&block.2);
        from.data.push(block);
    }
    let mut rest = from.frames.as_slice();
    while dice.below(8) > 0
        && let Ok(Some(frame)) = Frame::decode(&mut rest)
    {
        to.mux.handle_frame(frame).unwrap();
    }
    from.frames = rest.to_vec();
    while dice.below(4) > 0 && !from.data.is_empty() {
        let (id, offset, octets) =
            from.data.swap_remove(dice.below(from.data.len() as u64) as usize);
        match to.mux.is_begun(id).unwrap() {
            true => to.mux.handle_data(id, offset, &octets, Pulse::default()).unwrap(),
            false => {
                from.data.push((id, offset, octets));
                break;
            }
        }
    }
}

/// Every octet arrives once and in order, however often the connection is lost. The hash pins the frames
/// sent: a change that is meant to keep the frames must keep the number.
#[test]
fn nothing_is_lost_or_repeated_by_new_connections() {
    const RECORDED: u64 = 0x4b91_c7b3_745c_6d3c;
    let mut sent = 0;
    for seed in 1..=60 {
        let mut dice = Dice(seed);
        let dice = &mut dice;
        let (mut client, mut server) = (End2::new(Role::Client), End2::new(Role::Server));
        let id = open(&mut client.mux, b"request");
        let totals = [dice.below(3_000_000), dice.below(3_000_000)];
        let (mut taken, mut ends) = (false, [false; 2]);
        let mut turns = 0;
        while ends != [true; 2] {
            turns += 1;
            assert!(turns < 100_000, "seed {seed}: {:?} of {totals:?}", [server.read, client.read]);
            if turns % 97 == 1 || dice.below(300) == 0 {
                for end in [&mut client, &mut server] {
                    end.frames.clear();
                    end.data.clear();
                    end.mux.link_up();
                }
            }
            if let Poll::Ready(Some((request, peer))) = server.mux.poll_accept(&mut cx()) {
                assert_eq!((request.as_slice(), peer, taken), (b"request".as_slice(), id, false));
                taken = true;
            }
            if client.written < totals[0] || !ends[0] && client.written == 0 {
                client.write(dice, id, totals[0]);
            }
            if taken {
                if server.written < totals[1] || !ends[1] && server.written == 0 {
                    server.write(dice, id, totals[1]);
                }
                ends[0] = ends[0] || server.read(dice, id);
            }
            ends[1] = ends[1] || client.read(dice, id);
            carry(dice, &mut client, &mut server);
            carry(dice, &mut server, &mut client);
        }
        assert_eq!([server.read, client.read], totals, "seed {seed}");
        for end in [&mut client, &mut server] {
            end.mux.drop_reader(id);
            end.mux.drop_writer(id);
            end.frames.clear();
            end.data.clear();
            end.mux.link_up();
        }
        // What is over is forgotten, whatever of its end was lost.
        for _ in 0..100 {
            carry(dice, &mut client, &mut server);
            carry(dice, &mut server, &mut client);
        }
        for mux in [&client.mux, &server.mux] {
            assert!(mux.channels.is_empty(), "seed {seed}: {:?}", mux.channels);
            assert_eq!((mux.held, mux.growth, mux.own, mux.peers), (0, 0, 0, 0), "seed {seed}");
        }
        sent = client.sent.rotate_left(1) ^ server.sent.rotate_left(2) ^ u64::rotate_left(sent, 3);
    }
    assert_eq!(sent, RECORDED, "all that was sent: {sent:#018x}");
}

fn opened() -> (Mux, u64) {
    let mut mux = Mux::new(Role::Server);
    mux.link_up();
    mux.handle_frame(Frame::Open { channel: 0, request: Vec::new() }).unwrap();
    (mux, 0)
}

#[test]
fn what_no_honest_peer_says_ends_it() {
    let window = |received, limit| Frame::Window { channel: 0, received, limit };
    for (frames, violation) in [
        (vec![Frame::Open { channel: 1, request: Vec::new() }], Violation::Number),
        (vec![Frame::Open { channel: NUMBER_MAX, request: Vec::new() }], Violation::Number),
        (vec![Frame::Abort { channel: 2 }], Violation::Number),
        (vec![Frame::Stop { channel: 1 }], Violation::Number),
        (vec![window(1, NUMBER_MAX)], Violation::AckedAhead),
        (
            vec![Frame::Fin { channel: 0, end: 5 }, Frame::Fin { channel: 0, end: 6 }],
            Violation::BeyondEnd,
        ),
    ] {
        let (mut mux, _) = opened();
        let outcome = frames.iter().try_for_each(|frame| mux.handle_frame(frame.clone()));
        assert_eq!(outcome, Err(violation), "{frames:?}");
    }
    for (blocks, violation) in [
        (vec![(INITIAL_WINDOW, 1)], Violation::BeyondWindow),
        (vec![(u64::MAX, 1)], Violation::BeyondWindow),
        (vec![(10, 10), (15, 2)], Violation::Overlap),
        (vec![(10, 10), (5, 6)], Violation::Overlap),
        (vec![(10, 10), (0, 15)], Violation::Overlap),
        ((0..=256).map(|gap| (1 + 2 * gap, 1)).collect(), Violation::Gaps),
    ] {
        let (mut mux, id) = opened();
        let outcome = blocks
            .iter()
            .try_for_each(|&(at, len)| mux.handle_data(id, at, &vec![0; len], Pulse::default()));
        assert_eq!(outcome, Err(violation), "{violation}");
    }
    let (mut mux, id) = opened();
    mux.handle_frame(Frame::Fin { channel: 0, end: 5 }).unwrap();
    assert_eq!(mux.handle_data(id, 3, b"abc", Pulse::default()), Err(Violation::BeyondEnd));
}

/// A peer that opens and fills any number of channels makes us hold a limited number of octets.
#[test]
fn a_peer_that_fills_everything_is_bounded() {
    let mut mux = Mux::new(Role::Server);
    mux.link_up();
    let mut told = Vec::new();
    let mut held = 0;
    let count = CHANNELS_MAX as u64 + 50;
    let busy = Pulse { at: Duration::ZERO, round_trip: Duration::from_secs(1) };
    for channel in (0..count).map(|number| 2 * number) {
        mux.handle_frame(Frame::Open { channel, request: Vec::new() }).unwrap();
        // As far as it may, and then as far as it is told that it may.
        let mut at = 0;
        let mut limit = INITIAL_WINDOW;
        while at < limit && mux.channels.contains_key(&channel) {
            let len = (limit - at).min(100_000);
            mux.handle_data(channel, at, &vec![0; len as usize], busy).unwrap();
            (at, held) = (at + len, held + len);
            mux.poll_frames(usize::MAX, &mut told);
            let mut rest = told.as_slice();
            while let Ok(Some(frame)) = Frame::decode(&mut rest) {
                if let Frame::Window { channel: of, limit: told, .. } = frame
                    && of == channel
                {
                    limit = told;
                }
            }
            told.clear();
        }
    }
    assert_eq!(mux.channels.len(), CHANNELS_MAX);
    assert!(held <= CHANNELS_MAX as u64 * INITIAL_WINDOW + GROWTH_MAX, "{held}");
    // Those beyond the limit were refused.
    for channel in (0..count).map(|number| 2 * number) {
        mux.handle_frame(Frame::Fin { channel, end: 1 << 40 }).unwrap();
    }
    mux.poll_frames(usize::MAX, &mut told);
    let mut rest = told.as_slice();
    let mut gone = 0;
    while let Ok(Some(frame)) = Frame::decode(&mut rest) {
        gone += usize::from(matches!(frame, Frame::Gone { .. }));
    }
    assert_eq!(gone, 50);
}

/// Nor does a peer that never reads, or a program that asks again and again, make us hold more.
#[test]
fn what_is_said_over_and_over_is_kept_once() {
    let (mut mux, _) = opened();
    for channel in (1..20_000).map(|number| 2 * number) {
        mux.handle_frame(Frame::Open { channel, request: Vec::new() }).unwrap();
    }
    assert_eq!(mux.gone.len(), GONE_MAX);
    while mux.poll_accept(&mut cx()).is_ready() {}
    for _ in 0..CHANNELS_MAX {
        open(&mut mux, b"");
    }
    for _ in 0..1000 {
        assert!(mux.poll_accept(&mut cx()).is_pending());
        assert!(mux.poll_open(&mut cx(), b"").is_pending());
    }
    assert_eq!((mux.acceptors.len(), mux.openers.len()), (1, 1));
}

/// A window grows while the program keeps up, until it holds four times the octets of a round trip, however
/// promptly we tell the peer of new room. It does not grow while the program leaves octets unread.
#[test]
fn windows_follow_rate_and_reader() {
    let trip = Duration::from_millis(100);
    let grown = |rate: u64, reads: bool| {
        let (mut mux, id) = opened();
        let mut out = vec![0; 1 << 20];
        // What is told takes half a round trip, and what it allows another half.
        let (mut limits, mut end) = (VecDeque::from([INITIAL_WINDOW; 100]), 0);
        for turn in 1..=5_000 {
            let at = Duration::from_millis(turn);
            let limit = limits.pop_front().expect("as many as milliseconds of the path");
            let next = limit.min(end + rate / 1000);
            let octets = vec![0; (next - end) as usize];
            mux.handle_data(id, end, &octets, Pulse { at, round_trip: trip }).unwrap();
            end = next;
            if reads && !octets.is_empty() {
                assert!(mux.poll_read(&mut cx(), id, &mut out).is_ready());
            }
            mux.poll_frames(usize::MAX, &mut Vec::new());
            limits.push_back(mux.channels[&id].receiving.told_limit);
        }
        (mux.channels[&id].receiving.window, end)
    };
    assert_eq!(grown(1_000_000_000, true).0, receiving::WINDOW_MAX);
    assert_eq!(grown(1_000_000_000, false), (INITIAL_WINDOW, INITIAL_WINDOW));
    assert_eq!(grown(100_000, true).0, INITIAL_WINDOW, "what comes slowly needs no more");
    let (window, came) = grown(25_000_000, true);
    assert_eq!(window, 16 << 20);
    assert!(came > 25_000_000 * 5 * 9 / 10, "{came} octets in 5 s");
}

fn fill(mux: &mut Mux, id: u64) -> u64 {
    let mut written = 0;
    while let Poll::Ready(count) = mux.poll_write(&mut cx(), id, &[7; 50_000]) {
        written += count.unwrap() as u64;
    }
    written
}

#[test]
fn writing_waits_for_room_and_goes_on() {
    let mut mux = Mux::new(Role::Client);
    mux.link_up();
    let ids: Vec<u64> = (0..17).map(|_| open(&mut mux, b"")).collect();
    // What a peer does not take holds up nobody else, until there is no room for anybody.
    for id in &ids[..16] {
        assert_eq!(fill(&mut mux, *id), 2 * INITIAL_WINDOW);
    }
    assert_eq!(mux.held, 4 << 20);
    // Each has its share all the same.
    assert_eq!(fill(&mut mux, ids[16]), HELD_MIN);
    let mut sent = 0;
    while let Some((_, _, octets)) = mux.poll_data(1 << 20) {
        sent += octets.len() as u64;
    }
    assert_eq!(sent, 16 * INITIAL_WINDOW + HELD_MIN);
    mux.set_held_max(8 << 20);
    // More is taken when the peer takes more, whether anything has arrived or not.
    for (received, limit) in [(0, INITIAL_WINDOW + 10), (INITIAL_WINDOW, 1 << 30)] {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        assert!(mux.poll_write(&mut Context::from_waker(&waker), ids[0], &[7]).is_pending());
        mux.handle_frame(Frame::Window { channel: ids[0], received, limit }).unwrap();
        assert!(bell.0.load(Ordering::Relaxed), "the writer is told");
        assert!(matches!(mux.poll_write(&mut cx(), ids[0], &[7; 10]), Poll::Ready(Ok(10))));
    }
}

/// Counts whether a waker was called.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A channel its opener has finished does not count against it while the other program holds it.
#[test]
fn channels_that_are_over_make_room_for_others() {
    let mut mux = Mux::new(Role::Server);
    mux.link_up();
    let mut told = Vec::new();
    let mut next = 0;
    for (opened, refused) in [(CHANNELS_MAX, 0), (CHANNELS_MAX, 0), (10, 10)] {
        let ids: Vec<u64> = (0..opened as u64).map(|number| next + 2 * number).collect();
        next += 2 * opened as u64;
        for &channel in &ids {
            mux.handle_frame(Frame::Open { channel, request: Vec::new() }).unwrap();
            if mux.channels.contains_key(&channel) {
                mux.finish(channel).unwrap();
            }
        }
        assert_eq!(mux.gone.len(), refused);
        for &channel in &ids {
            mux.handle_frame(Frame::Fin { channel, end: 0 }).unwrap();
            mux.handle_frame(Frame::Done { channel }).unwrap();
        }
        mux.poll_frames(usize::MAX, &mut told);
    }
    assert_eq!(mux.channels.len(), PEERS_MAX);
}

/// The first channels to grow leave room for others.
#[test]
fn no_channel_takes_all_the_room() {
    let mut mux = Mux::new(Role::Server);
    mux.link_up();
    let mut out = vec![0; 1 << 20];
    let mut windows = Vec::new();
    for id in [0, 2, 4, 6] {
        mux.handle_frame(Frame::Open { channel: id, request: Vec::new() }).unwrap();
        let mut at = 0;
        for _ in 0..2000 {
            let len = (mux.channels[&id].receiving.told_limit - at).min(60_000);
            let pulse = Pulse { at: Duration::ZERO, round_trip: Duration::from_secs(1) };
            mux.handle_data(id, at, &vec![0; len as usize], pulse).unwrap();
            at += len;
            assert!(mux.poll_read(&mut cx(), id, &mut out).is_ready());
            mux.poll_frames(usize::MAX, &mut Vec::new());
        }
        windows.push(mux.channels[&id].receiving.window >> 20);
    }
    assert_eq!(windows, [32, 16, 8, 4]);
}
