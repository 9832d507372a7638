//! Makes a hostile network and two ordinary machines from a seed, and a session that must come through it whole.

use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rove_session::Peer;
use rove_session::client::{Obscure, TtyScreen};
use rove_session::predict::{Display, Editing, Settings};
use rove_ssp::{SlotTiming, Time, Timing};
use rove_term::{SavesErased, Size};

use crate::absence::Absence;
use crate::address::Family;
use crate::erasures::Cleared;
use crate::experiments::sender::{Sender, WireKind};
use crate::host::Kind;
use crate::link::{Bursts, Jitter, Loss, Order, Oversize, Profile, Rate, Traced};
use crate::local_clock::LocalClock;
use crate::opportunities::Opportunities;
use crate::person::Errands;
use crate::rng::{Chance, Rng};
use crate::session::{Addresses, Branches, Usage};
use crate::shell::Termios;
use crate::tty::Answers;
use crate::ways::Ways;
use crate::world::Notice;

/// The network, the machines, and the events that a session has to come through.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(crate) seed: u64,
    pub(crate) sender: Sender,
    pub(crate) kind: Kind,
    pub(crate) size: Size,
    pub(crate) resizes: Chance,
    pub(crate) usage: Usage,
    pub(crate) up: Profile,
    pub(crate) down: Profile,
    pub(crate) attacker: Chance,
    pub(crate) roams: Vec<(Time, Notice)>,
    pub(crate) client_sleeps: Vec<(Time, Duration)>,
    pub(crate) server_sleeps: Vec<(Time, Duration)>,
    pub(crate) server_moves: Option<Time>,
    pub(crate) severed: Vec<(Range<Time>, Family)>,
    pub(crate) death: Option<Death>,
    pub(crate) ending: Ending,
    /// A stream beside UDP, between two roves on the native wire.
    pub(crate) ways: Option<Ways>,
    /// When nobody is there, behind all that.
    pub(crate) absence: Absence,
}

/// The end that closes the session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// The user quits.
    Quit,
    /// The program ends.
    Exit,
    /// Both at once.
    Both,
}

/// A process that is killed, in which of its turns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Death {
    /// The client's.
    Client(u64),
    /// The server's.
    Server(u64),
}

impl fmt::Display for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:?}, sent as {}, {:?}, {} roams, {} + {} sleeps, server moves {:?}, severed {:?}, {:?}, \
             {:?}, {:?}, up {:?}, down {:?}, {:?}, {:?}",
            self.kind,
            self.sender.name,
            self.sender.obscure,
            self.roams.len(),
            self.client_sleeps.len(),
            self.server_sleeps.len(),
            self.server_moves,
            self.severed,
            self.death,
            self.ending,
            self.usage,
            self.up,
            self.down,
            self.ways,
            self.absence
        )
    }
}

impl Scenario {
    /// The hostile network of this seed: delays up to 2 s, loss up to half of all datagrams, in bursts or not,
    /// duplication, reordering, corruption, slow bottlenecks with deep queues or with rates that change all the
    /// time, policers, datagrams held back by a radio once, or in bursts, outages of one direction or of both, roaming, sleeps at both
    /// ends, small MTUs without an error message, and an attacker on the path that replays, overtakes, changes
    /// source addresses and reflects. The server may have several addresses, lose those of one family for a while, and
    /// move. The machines' clocks differ, and one session in sixteen loses a process.
    pub fn hostile(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed);
        let sender = senders()[rng.below(senders().len() as u64) as usize].clone();
        let mut up = hostile_profile(&mut rng);
        let mut down = hostile_profile(&mut rng);
        // Stock never discovers the MTU, and its datagrams are cut on the way.
        let searches = matches!(sender.wire, WireKind::Native | WireKind::NativeInHaste);
        if searches && rng.happens(Chance::percent(50)) {
            (up.oversize, down.oversize) = (Oversize::Silent, Oversize::Silent);
        }
        let outages = some(&mut rng, 30, 3, |rng| {
            let start = moment(rng);
            start..start + rng.span_within(SECOND, 20 * SECOND)
        });
        match rng.below(4) {
            0 => up.outages = outages,
            1 => down.outages = outages,
            _ => (up.outages, down.outages) = (outages.clone(), outages),
        }
        let sleep = |rng: &mut Rng| (moment(rng), rng.span_within(SECOND, 30 * SECOND));
        let usage = usage(&mut rng, sender.peer);
        let is_raced = usage.addresses == Addresses::Several;
        let sever = |rng: &mut Rng| {
            let start = moment(rng);
            let span = start..start + rng.span_within(SECOND, 40 * SECOND);
            (span, rng.pick(&[Family::V4, Family::V6]))
        };
        let roam = |rng: &mut Rng| (moment(rng), rng.pick(&[Notice::None, Notice::Given]));
        // Chances of its own, so that sessions without a stream are what they would be without streams.
        let mut beside = Rng::new(seed ^ BESIDE);
        let usage = cleared(&mut Rng::new(seed ^ CLEARED), usage, sender.peer);
        let has_stream = searches && beside.happens(Chance::percent(50));
        let bursts = bursts(&mut Rng::new(seed ^ IN_BURSTS));
        [up.bursts, down.bursts] = bursts.clone();
        let ways = match (searches, has_stream) {
            (false, _) => None,
            (true, true) => Some(Ways::of(&mut beside, up.delay, &up.outages, bursts, BUSY)),
            (true, false) => Some(Ways::for_a_while(&mut beside, up.delay, &up.outages, bursts)),
        };
        Scenario {
            ways,
            absence: Absence::of(&mut Rng::new(seed ^ AWAY)),
            seed: rng.next_u64(),
            kind: rng.pick(&Kind::ALL),
            size: rng.pick(&[Size::DEFAULT, Size::clamped(40, 132), Size::clamped(10, 30)]),
            resizes: rng.pick(&[Chance::NEVER, Chance::percent(1), Chance::percent(10)]),
            usage,
            sender,
            up,
            down,
            attacker: rng.pick(&[Chance::NEVER, Chance::percent(2)]),
            roams: some(&mut rng, 50, 12, roam),
            client_sleeps: some(&mut rng, 20, 2, sleep),
            server_sleeps: some(&mut rng, 10, 1, sleep),
            server_moves: (is_raced && rng.happens(Chance::percent(40))).then(|| moment(&mut rng)),
            severed: some(&mut rng, if is_raced { 70 } else { 0 }, 1, sever),
            death: match rng.below(32) {
                0 => Some(Death::Client(rng.within(1, DEATH_TURN_MAX))),
                1 => Some(Death::Server(rng.within(1, DEATH_TURN_MAX))),
                _ => None,
            },
            ending: rng.pick(&[Ending::Quit, Ending::Exit, Ending::Both]),
        }
    }

    /// The same for two roves on the native wire that hide this: the server looks at its program's line when a real one
    /// does, and there is a question for a password that ends by itself.
    pub fn obscured(seed: u64, obscure: Obscure) -> Scenario {
        let scenario = Scenario::hostile(seed);
        let sender = Sender::native();
        let slots = (obscure == Obscure::Always).then_some(SlotTiming::ROVE);
        let usage = Usage {
            window: TtyScreen::of(sender.peer),
            termios: Termios::Polled,
            errands: Errands::Hasty,
            ..scenario.usage
        };
        let sender = Sender {
            obscure,
            client: Timing { slots, ..sender.client },
            server: Timing { answers_slots: true, ..sender.server },
            ..sender
        };
        Scenario { sender, usage, ..scenario }
    }

    /// Whether nothing in this span, or shortly before it, keeps datagrams from arriving for long.
    pub(crate) fn is_calm(&self, span: Range<Time>) -> bool {
        let since = span.start - 20 * SECOND;
        if self.ways.as_ref().is_some_and(|ways| !ways.is_calm(&(since..span.end))) {
            return false;
        }
        let meets = |other: &Range<Time>| other.start < span.end && since < other.end;
        let holds = self.up.holds.iter().chain(&self.down.holds);
        let outages = self.up.outages.iter().chain(&self.down.outages);
        let sleeps = self.client_sleeps.iter().chain(&self.server_sleeps);
        !holds.chain(outages).any(meets)
            && !sleeps.map(|(at, span)| *at..*at + *span).any(|sleep| meets(&sleep))
            && !self.severed.iter().any(|(span, _)| meets(span))
            && !self.server_moves.is_some_and(|at| meets(&(at..at + 20 * SECOND)))
            && !self.roams.iter().any(|(at, _)| meets(&(*at..*at + SECOND)))
    }
}

/// The user's choices, the terminal and the clocks.
fn usage(rng: &mut Rng, peer: Peer) -> Usage {
    let displays = [Display::Adaptive, Display::Always, Display::Never, Display::Experimental];
    let mut clock = || LocalClock {
        epoch: Time::from_millis(rng.pick(&[0, 1, 3_600_000, 315_360_000_000])),
        drift_ppm: rng.pick(&[0, -100, 100, -1_000, 1_000]),
        lateness: MS * rng.pick(&[0, 0, 1, 15]),
    };
    Usage {
        clocks: [clock(), clock()],
        settings: Settings::ROVE
            .with_display(rng.pick(&displays))
            .with_editing(rng.pick(&[Editing::Insert, Editing::Overwrite])),
        window: TtyScreen::of(peer),
        term: Some(rng.pick(&TERMS)),
        answers: match rng.below(3) {
            0 => Answers::Never,
            _ => Answers::After(MS * rng.pick(&[1, 5, 300, 3_000])),
        },
        termios: match peer {
            Peer::Rove => Termios::Reported,
            Peer::Stock => Termios::Ignored,
        },
        errands: Errands::Some,
        addresses: match rng.below(4) {
            0 => Addresses::One(Family::V4),
            1 => Addresses::One(Family::V6),
            _ => Addresses::Several,
        },
        branches: rng.pick(&[Branches::AsDue, Branches::Chosen]),
        cleared: Cleared::Lost,
    }
}

/// Half of the sessions whose server tells lines, a third of all, have a terminal that keeps what a program clears.
fn cleared(rng: &mut Rng, usage: Usage, peer: Peer) -> Usage {
    if peer != Peer::Rove || rng.below(2) == 0 {
        return usage;
    }
    Usage { term: Some(rng.pick(&SAVING_TERMS).0), cleared: Cleared::Kept, ..usage }
}

/// In one session of eight what leaves one end, or both, leaves in bursts: all the time, or for a while.
fn bursts(rng: &mut Rng) -> [Option<Bursts>; 2] {
    if rng.below(8) != 0 {
        return [None, None];
    }
    let span = match rng.below(2) {
        0 => CALM..LATEST,
        _ => {
            let start = moment(rng);
            start..start + rng.span_within(20 * SECOND, 90 * SECOND)
        }
    };
    let mut own = || {
        let every = rng.span_within(2 * SECOND, 9 * SECOND);
        // The radios of the two ends do not wake together.
        let start = span.start + rng.span_below(every);
        Some(Bursts { span: start..span.end, every })
    };
    let [up, down] = [own(), own()];
    match rng.below(3) {
        0 => [up, None],
        1 => [None, down],
        _ => [up, down],
    }
}

/// All that two ends may be to each other.
fn senders() -> [Sender; 8] {
    [
        Sender::stock(),
        Sender { name: "stock between two roves", peer: Peer::Rove, ..Sender::stock() },
        Sender::for_stock_client(),
        Sender::for_stock_server(),
        Sender::rove(),
        Sender::native(),
        Sender { wire: WireKind::NativeInHaste, ..Sender::native() },
        Sender { wire: WireKind::NativeInHaste, ..Sender::metered() },
    ]
}

fn hostile_profile(rng: &mut Rng) -> Profile {
    let percent =
        |rng: &mut Rng, most: u64| Chance::per_million(rng.below(most * 10_000 + 1) as u32);
    let delay = MS * rng.pick(&[0, 1, 5, 20, 50, 100, 250, 500, 2_000]);
    let jitter = match rng.below(3) {
        0 => Jitter::None,
        1 => Jitter::Uniform(delay + MS),
        _ => Jitter::Normal(delay / 4),
    };
    let loss = match rng.below(3) {
        0 => Loss::Independent(percent(rng, 5)),
        1 => Loss::Independent(percent(rng, 50)),
        _ => Loss::Bursts {
            enter: percent(rng, 5),
            leave: Chance::percent(rng.within(5, 50) as u32),
            good: percent(rng, 5),
            bad: Chance::percent(rng.within(50, 100) as u32),
        },
    };
    let rate = rng.happens(Chance::percent(33)).then(|| Rate {
        bits_per_second: rng.pick(&[64_000, 256_000, 1_000_000, 10_000_000]),
        queue_bytes_max: rng.pick(&[8_000, 64_000, 256_000]),
    });
    let policer = rng.happens(Chance::percent(15)).then(|| Rate {
        bits_per_second: rng.pick(&[64_000, 256_000, 1_000_000]),
        queue_bytes_max: rng.pick(&[3_000, 8_000, 64_000]),
    });
    let holds = some(rng, 15, 4, |rng| {
        let start = moment(rng);
        start..start + rng.span_within(100 * MS, 5 * SECOND)
    });
    let trace = rng.happens(Chance::percent(10)).then(|| recording(rng));
    let mut seldom = |most| if rng.below(2) == 0 { Chance::NEVER } else { percent(rng, most) };
    Profile {
        delay,
        jitter,
        loss,
        rate,
        policer,
        duplicate: seldom(30),
        reorder: seldom(30),
        corrupt: seldom(5),
        mark: seldom(10),
        straggle: MS * rng.pick(&[1, 50, 1_000, 20_000]),
        order: rng.pick(&[Order::Kept, Order::Free]),
        outages: Vec::new(),
        holds,
        trace,
        mtu: rng.pick(&[548, 1_472, 1_472, 1_472]),
        oversize: Oversize::Told,
        ..Profile::default()
    }
}

/// What a phone's radio lets through: twenty seconds of rates between nothing and 8 Mbit/s, for ever.
fn recording(rng: &mut Rng) -> Traced {
    let mut text = String::new();
    let mut each_ms = 10;
    for second in 0..20 {
        each_ms = match rng.below(4) {
            0 => each_ms * 2,
            1 => each_ms / 2,
            _ => each_ms,
        }
        .clamp(1, 500);
        for at in (0..1_000).step_by(each_ms) {
            let _ = writeln!(text, "{}", second * 1_000 + at + 1);
        }
    }
    Traced {
        opportunities: Arc::new(Opportunities::parse(&text).expect("times rise")),
        begins: Time::ZERO,
        queue_bytes_max: rng.pick(&[64_000, 256_000]),
    }
}

/// With this chance in percent, between one and `most` of a thing.
fn some<T>(rng: &mut Rng, percent: u32, most: u64, mut make: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    let count = if rng.happens(Chance::percent(percent)) { rng.within(1, most) } else { 0 };
    (0..count).map(|_| make(rng)).collect()
}

/// A time within the busy part.
fn moment(rng: &mut Rng) -> Time {
    CALM + rng.span_below(BUSY - 10 * SECOND)
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// How long keys are typed and frames written.
pub const BUSY: Duration = Duration::from_secs(165);

/// Later than users and programs are busy, even if both machines sleep.
const LATEST: Time = Time::from_millis(1_000_000);

/// When a network becomes hostile. Before that the ends meet: a client that never hears its server gives up
/// after 15 s (`mosh-protocol.md` §4.4), which is another test.
pub(crate) const CALM: Time = Time::from_millis(5_000);

/// Makes the stream of chances that only sessions with a stream use.
const BESIDE: u64 = 0x6265_7369_6465;

/// The same for when nobody is there.
const AWAY: u64 = 0x6177_6179;

/// The same for bursts.
const IN_BURSTS: u64 = 0x6275_7273_7473;

/// The same for terminals that keep what is cleared.
const CLEARED: u64 = 0x0063_6c65_6172_6564;

/// Killed processes die in one of their first turns, of which a busy session has 100 in a second.
const DEATH_TURN_MAX: u64 = 6_000;

/// `TERM` and `COLORTERM` of real terminals: see `docs/terminals.md`.
const TERMS: [(&str, &str); 15] = [
    ("xterm-256color", "truecolor"),
    ("xterm-256color", ""),
    ("xterm", ""),
    ("xterm-kitty", "truecolor"),
    ("xterm-ghostty", "truecolor"),
    ("foot", "truecolor"),
    ("wezterm", "truecolor"),
    ("alacritty", "truecolor"),
    ("tmux-256color", ""),
    ("screen", ""),
    ("screen-256color", ""),
    ("rxvt-unicode-256color", ""),
    ("linux", ""),
    ("vt220", ""),
    ("something-new", ""),
];

/// Those whose history has what is erased, and of which erasures.
pub(crate) const SAVING_TERMS: [((&str, &str), SavesErased); 2] = [
    (("alacritty", "truecolor"), SavesErased::All),
    (("tmux-256color", ""), SavesErased::FromHome),
];
