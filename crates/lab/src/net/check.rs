//! Checks an emulated link against its scenario: numbered and timestamped datagrams cross it both ways, and the
//! measured delay, loss and rate are compared with those asked for.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rove_ssp::Time;
use rustix::net::sockopt;

use super::forwarder::Passed;
use super::scenario::{Scenario, Step};
use super::{End, FAR, NEAR, Net, describe};
use crate::clock::Clock;
use crate::experiments::report::{Table, hundredths};
use crate::link::{Jitter, Loss, Profile};
use crate::provenance::{self, Provenance};
use serde_json::json;

/// Measurements of one direction.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Datagrams sent at a steady pace.
    pub sent: usize,
    /// Those of them that came, once or more.
    pub came: usize,
    /// Second copies.
    pub again: usize,
    /// Those that came after a later one.
    pub overtaken: usize,
    /// From the call that sent it to the return of the call that received it.
    pub delays: Vec<Duration>,
    /// The largest rate that came through, in bits of IP packets a second.
    pub bits_per_second: f64,
}

/// Both directions of one step.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Up, then down.
    pub found: [Found; 2],
    /// The link's counters.
    pub passed: [Passed; 2],
}

/// Checks each step of a scenario, for about this span each.
///
/// # Errors
/// If there can be no links here.
pub(crate) fn run(scenario: &Scenario, span: Duration) -> io::Result<i32> {
    let mut table = Table::new(
        "what was asked, and what was found",
        2,
        "step | way | quantity | asked | found | verdict",
    );
    let mut off = 0;
    let steps = scenario.up.steps.len().max(scenario.down.steps.len()).min(STEPS_MAX);
    for number in 0..steps {
        let step = |steps: &[Step]| steps[number.min(steps.len() - 1)].profile.clone();
        let (up, down) = (step(&scenario.up.steps), step(&scenario.down.steps));
        let checked = check(&up, &down, scenario.seed, span)?;
        for (way, profile, found) in
            [("up", &up, &checked.found[0]), ("down", &down, &checked.found[1])]
        {
            let late = checked.passed[usize::from(way == "down")].late.p99();
            let late = late.as_secs_f64() * 1e3;
            let late = ("late at delivery, p99, ms", LATE_MS, late, late <= LATE_MS);
            for (what, asked, is, right) in found.against(profile).into_iter().chain([late]) {
                off += usize::from(!right);
                let verdict = if right { "ok" } else { "OFF" };
                table.rows.push(vec![
                    json!(number),
                    json!(way),
                    json!(what),
                    hundredths(asked),
                    hundredths(is),
                    json!(verdict),
                ]);
            }
        }
        eprint!("{}", describe(&checked.passed));
    }
    let recorded = Provenance::of_this_process(DEPENDS.iter().copied());
    let named = if scenario.name.is_empty() { "" } else { "The scenario is " };
    let end = if scenario.name.is_empty() { "" } else { ". " };
    print!(
        "# Emulated links: what was asked, and what is found\n\n{}\n{named}{}{end}Datagrams of 100 octets cross both \
         ways, one each millisecond, then for a second full packets as fast as can be. Lateness is the first ones'. OFF \
         is what a busy machine cannot give, or a link that does not do what it was asked.\n\n{}",
        recorded.to_markdown(&provenance::command("link --check")),
        scenario.name,
        table.to_markdown()
    );
    Ok(i32::from(off > 0))
}

/// Measures a steady link.
///
/// # Errors
/// If there can be no links here.
pub fn check(up: &Profile, down: &Profile, seed: u64, span: Duration) -> io::Result<Checked> {
    let net = Net::open(&Scenario::steady(up.clone(), down.clone(), seed), None)?;
    let near = net.within(End::Near, || UdpSocket::bind(SocketAddr::from((NEAR, PORT))))?;
    let far = net.within(End::Far, || UdpSocket::bind(SocketAddr::from((FAR, PORT))))?;
    near.connect((FAR, PORT))?;
    far.connect((NEAR, PORT))?;
    for socket in [&near, &far] {
        make_room(socket)?;
    }
    let clock = net.clock();
    let tail = slowest(up).max(slowest(down)) + TAIL;
    let mut found = both(clock, [&near, &far], span, Pace::Steady, tail)?;
    // Counted before the flood, which fills queues.
    let passed = net.passed();
    for (way, profile) in [(0, up), (1, down)] {
        let sockets = if way == 0 { [&near, &far] } else { [&far, &near] };
        let flooded = one(
            clock,
            sockets,
            FLOOD_SPAN,
            Pace::Flood(profile.rate.map(|rate| rate.bits_per_second)),
            tail,
        )?;
        found[way].bits_per_second = flooded.bits_per_second;
    }
    net.close()?;
    Ok(Checked { found, passed })
}

#[derive(Clone, Copy)]
enum Pace {
    /// One small datagram a millisecond at most: a sender that was delayed does not catch up.
    Steady,
    /// Full packets, half again as fast as the bottleneck, if it is known.
    Flood(Option<u64>),
}

fn both(
    clock: Clock,
    [near, far]: [&UdpSocket; 2],
    span: Duration,
    pace: Pace,
    tail: Duration,
) -> io::Result<[Found; 2]> {
    std::thread::scope(|scope| {
        let up = scope.spawn(move || one(clock, [near, far], span, pace, tail));
        let down = one(clock, [far, near], span, pace, tail)?;
        let up = up.join().map_err(|_| io::Error::other("a sender panicked"))??;
        Ok([up, down])
    })
}

fn one(
    clock: Clock,
    [from, to]: [&UdpSocket; 2],
    span: Duration,
    pace: Pace,
    tail: Duration,
) -> io::Result<Found> {
    let done = AtomicBool::new(false);
    to.set_read_timeout(Some(Duration::from_millis(20)))?;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(clock, to, &done));
        let sent = send(clock, from, span, pace);
        clock.wait_until(clock.now() + tail);
        done.store(true, Ordering::Release);
        let mut found = receiver.join().map_err(|_| io::Error::other("a receiver panicked"))??;
        found.sent = sent?;
        Ok(found)
    })
}

fn send(clock: Clock, from: &UdpSocket, span: Duration, pace: Pace) -> io::Result<usize> {
    let (length, gap) = match pace {
        Pace::Steady => (STEADY_BYTES, STEADY_GAP),
        Pace::Flood(bits) => {
            let bits = bits.map_or(FLOOD_BITS, |bits| bits + bits / 2).max(1);
            (FLOOD_BYTES, Duration::from_nanos((FLOOD_BYTES as u64 + 28) * 8_000_000_000 / bits))
        }
    };
    let mut datagram = vec![0; length];
    let (began, mut sent) = (clock.now(), 0u64);
    let mut due = began;
    while clock.now().since(began) < span {
        if due > clock.now() {
            clock.wait_until(due);
        }
        datagram[..8].copy_from_slice(&sent.to_be_bytes());
        let now = clock.now();
        datagram[8..16].copy_from_slice(&now.as_micros().to_be_bytes());
        match from.send(&datagram) {
            Ok(_) => sent += 1,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        due = match pace {
            Pace::Steady => now + gap,
            Pace::Flood(_) => began + Duration::from_nanos(gap.as_nanos() as u64 * sent),
        };
    }
    Ok(sent as usize)
}

/// Gives a socket a queue that holds what comes while its reader is not run; where the system sets a limit, up to
/// that.
fn make_room(socket: &UdpSocket) -> io::Result<()> {
    sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BYTES)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BYTES))?;
    Ok(())
}

fn receive(clock: Clock, to: &UdpSocket, done: &AtomicBool) -> io::Result<Found> {
    let (mut found, mut buffer) = (Found::default(), [0; 2_048]);
    let mut seen: Vec<bool> = Vec::new();
    let (mut first, mut last, mut octets) = (None::<Time>, Time::ZERO, 0usize);
    loop {
        // Looked at first: what had come until then is read. The sender has ended, so there is an end.
        let over = done.load(Ordering::Acquire);
        let length = match to.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if over && error.kind() != io::ErrorKind::Interrupted => break,
            Err(_) => continue,
        };
        let now = clock.now();
        let word = |at: usize| {
            buffer.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map(u64::from_be_bytes)
        };
        let (Some(number), Some(sent)) = (word(0), word(8)) else { continue };
        // A datagram whose checksum survived its damage does not tell the link's delay.
        let Ok(number) = usize::try_from(number) else { continue };
        if length < 16 || number > NUMBER_MAX {
            continue;
        }
        if seen.len() <= number {
            seen.resize(number + 1, false);
        } else if !seen[number] {
            found.overtaken += 1;
        }
        if std::mem::replace(&mut seen[number], true) {
            found.again += 1;
        } else {
            found.came += 1;
            found.delays.push(now.since(Time::from_micros(sent)));
        }
        match first {
            None => first = Some(now),
            Some(_) => octets += length + 28,
        }
        last = now;
    }
    let lasted = last.since(first.unwrap_or(last)).as_secs_f64();
    found.bits_per_second = if lasted > 0.0 { octets as f64 * 8.0 / lasted } else { 0.0 };
    Ok(found)
}

impl Found {
    /// Quantities that a profile promises: the value asked for, the value found, and whether that is near enough.
    pub fn against(&self, profile: &Profile) -> Vec<(&'static str, f64, f64, bool)> {
        let mut all = Vec::new();
        let percent = |count: usize| 100.0 * count as f64 / self.sent.max(1) as f64;
        let lost = percent(self.sent - self.came.min(self.sent));
        let per_million = |chance: crate::rng::Chance| f64::from(chance.as_per_million()) / 1e4;
        let asked = loss_percent(&profile.loss);
        // The deviation that the binomial distribution allows in all but one of ten thousand runs; bursts widen
        // it.
        let spread = |asked: f64, burst: f64| {
            4.0 * (asked * (100.0 - asked) * burst / self.sent.max(1) as f64).sqrt() + 0.05
        };
        let burst = match profile.loss {
            Loss::Independent(_) => 1.0,
            Loss::Bursts { leave, .. } => 2e6 / f64::from(leave.as_per_million().max(1)),
        };
        let corrupt = per_million(profile.corrupt);
        let gone = 100.0 - (100.0 - asked) * (100.0 - corrupt) / 100.0;
        all.push(("lost or damaged, %", gone, lost, (gone - lost).abs() <= spread(gone, burst)));
        let doubled = per_million(profile.duplicate) * (100.0 - gone) / 100.0;
        let again = percent(self.again);
        all.push(("doubled, %", doubled, again, (doubled - again).abs() <= spread(doubled, 1.0)));
        let mut sorted: Vec<f64> =
            self.delays.iter().map(|delay| delay.as_secs_f64() * 1e3).collect();
        sorted.sort_by(f64::total_cmp);
        let quantile = |percent: usize| {
            sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied()
        };
        if let (Some(median), Some(low), Some(high)) = (quantile(50), quantile(16), quantile(84)) {
            let delay = profile.delay.as_secs_f64() * 1e3;
            let (delay, sigma) = match profile.jitter {
                Jitter::None => (delay, 0.0),
                Jitter::Uniform(most) => {
                    (delay + most.as_secs_f64() * 5e2, most.as_secs_f64() * 1e3 * 0.34)
                }
                Jitter::Normal(sigma) => (delay, sigma.as_secs_f64() * 1e3),
            };
            let queued = profile.rate.is_some() || profile.trace.is_some();
            let near = (median - delay).abs() <= DELAY_OFF_MS + sigma * 0.2;
            // A queue delays, and keeping the order under jitter holds packets back: no less than asked.
            let kept = sigma > 0.0 && profile.order == crate::link::Order::Kept;
            let right = near || ((queued || kept) && median >= delay);
            all.push(("delay, median, ms", delay, median, right));
            if !queued && !kept {
                let found = (high - low) / 2.0;
                let right = (found - sigma).abs() <= DELAY_OFF_MS + sigma * 0.2;
                all.push(("delay, half of its middle 68 %, ms", sigma, found, right));
            }
        }
        if let Some(rate) = profile.rate {
            let (asked, found) = (rate.bits_per_second as f64 / 1e3, self.bits_per_second / 1e3);
            let passes = 1.0 - gone / 100.0;
            let right = (found - asked * passes).abs() <= 0.05 * asked;
            all.push(("rate, kbit/s", asked * passes, found, right));
        } else {
            let bound = profile.trace.is_some()
                || profile.policer.is_some()
                || profile.mtu < FLOOD_BYTES + 28
                || !(profile.outages.is_empty() && profile.holds.is_empty());
            let asked = if bound { 0.0 } else { FLOOD_KBIT * (1.0 - gone / 100.0) };
            let found = self.bits_per_second / 1e3;
            all.push(("passed of a flood, at least, kbit/s", asked, found, found >= asked));
        }
        all
    }
}

fn loss_percent(loss: &Loss) -> f64 {
    match loss {
        Loss::Independent(chance) => f64::from(chance.as_per_million()) / 1e4,
        Loss::Bursts { enter, leave, good, bad } => {
            let part = |chance: &crate::rng::Chance| f64::from(chance.as_per_million());
            let bad_share = part(enter) / (part(enter) + part(leave)).max(1.0);
            (part(bad) * bad_share + part(good) * (1.0 - bad_share)) / 1e4
        }
    }
}

/// The longest a datagram may be under way, near enough.
fn slowest(profile: &Profile) -> Duration {
    let jitter = match profile.jitter {
        Jitter::None => Duration::ZERO,
        Jitter::Uniform(most) => most,
        Jitter::Normal(sigma) => sigma * 6,
    };
    profile.delay + jitter + profile.straggle
}

/// Where both ends listen; the networks are the check's own.
const PORT: u16 = 7_000;
const STEADY_BYTES: usize = 100;
const STEADY_GAP: Duration = Duration::from_millis(1);
const FLOOD_BYTES: usize = 1_372;
const FLOOD_SPAN: Duration = Duration::from_secs(1);
/// The share of the offered load that a link without a bottleneck carries at least.
const FLOOD_KBIT: f64 = 500_000.0;
/// A link that is later than this at the 99th percentile is not on an idle machine.
const LATE_MS: f64 = 0.3;
/// The load offered to a link without a bottleneck.
const FLOOD_BITS: u64 = 600_000_000;
/// Datagrams that wait in a socket: seconds of steady ones, each with the kernel's overhead.
const RECEIVE_BYTES: usize = 4 << 20;
/// How long is waited for the last datagram beyond the link's delay.
const TAIL: Duration = Duration::from_millis(200);
/// How far a delay may be off, in milliseconds: the cost of a system call on a busy machine.
const DELAY_OFF_MS: f64 = 0.5;
/// Numbers above it were damaged on the way.
const NUMBER_MAX: usize = 1 << 24;
/// Steps that are checked.
const STEPS_MAX: usize = 8;

/// The code that the numbers come from.
const DEPENDS: &[&str] = &[
    "crates/lab/src/link",
    "crates/lab/src/link.rs",
    "crates/lab/src/net",
    "crates/lab/src/net.rs",
    "crates/lab/src/sys.rs",
];
