//! The status panel: what the path is like and was like, over the lower right corner of the picture.
//!
//! It knows figures and words. [`Client`](crate::Client) asks for it, and the painter lays it over the picture.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use rove_ssp::Traffic;

use crate::client::gauge::{Gauge, SAMPLES, Sample};
use crate::escape::Escape;
use crate::session_info::SessionInfo;

/// Columns of the panel. Lines are cut or filled to it.
pub(crate) const PANEL_COLS: u16 = 60;

/// Columns between the borders and their spaces.
const TEXT_COLS: usize = PANEL_COLS as usize - 4;

/// Samples that a column of dots stands for, by the largest: a curve has thirty characters, each with two columns.
const COLUMN_SAMPLES: usize = SAMPLES / 60;

/// Dots of a curve from bottom to top: two rows of four.
const CURVE_DOTS: u32 = 8;

/// The first character of Braille, which has no dot.
const BRAILLE: u32 = 0x2800;

/// The dots of the left and of the right column, from the lowest.
const DOTS: [[u32; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];

/// The least that the top of a curve stands for, so that a good path looks like one.
const ROUND_TRIP_TOP: f64 = 0.1;
const LOSS_TOP: f64 = 0.1;
const QUEUE_TOP: f64 = 0.05;

/// What the panel tells of.
pub(crate) struct Figures<'a> {
    pub(crate) gauge: &'a Gauge,
    pub(crate) session: Option<&'a SessionInfo>,
    pub(crate) server: SocketAddr,
    /// The session goes over ssh.
    pub(crate) on_stream: bool,
    pub(crate) sent: Traffic,
    pub(crate) received: Traffic,
    /// Octets typed that the server does not have yet, as far as is known.
    pub(crate) waiting: u64,
    /// Lines that the terminal's history lacks.
    pub(crate) behind: u64,
    /// Guesses that were right, and how often others were dropped, if that is counted.
    pub(crate) guesses: (u64, Option<u64>),
    /// Ours, and the server's.
    pub(crate) versions: String,
    /// The key that begins a command.
    pub(crate) escape: Escape,
}

impl Figures<'_> {
    /// The lines of the panel, each [`PANEL_COLS`] columns wide.
    pub(crate) fn lines(&self) -> Vec<String> {
        let latest = self.gauge.latest();
        let mut lines = Vec::new();
        lines.push(self.title());
        let trips = self.gauge.samples().flatten().filter_map(|sample| sample.round_trip);
        let words = match trips.clone().min().zip(trips.max()) {
            Some((least, most)) => format!("{} to {}", millis(least), millis(most)),
            None => String::new(),
        };
        let now = latest.and_then(|sample| sample.round_trip);
        let now = now.map_or_else(unknown, millis);
        let trip = |sample: &Sample| Some(sample.round_trip?.as_secs_f64());
        self.push(&mut lines, ["round trip", &now, &words], ROUND_TRIP_TOP, trip);
        let (sent, received) = match latest {
            Some(Sample { sent_loss, received_loss, .. }) => {
                (sent_loss.map_or_else(unknown, percent), percent(received_loss))
            }
            None => (unknown(), unknown()),
        };
        let [sent, received] = [format!("sent {sent}"), format!("received {received}")];
        let worse =
            |sample: &Sample| Some(sample.sent_loss.unwrap_or(0.0).max(sample.received_loss));
        self.push(&mut lines, ["loss", &sent, &received], LOSS_TOP, worse);
        let queue = latest.map_or_else(unknown, |sample| millis(sample.queue));
        let wait = |sample: &Sample| Some(sample.queue.as_secs_f64());
        self.push(&mut lines, ["queue", &queue, ""], QUEUE_TOP, wait);
        let (sent, received) = (octets(self.sent.bytes), octets(self.received.bytes));
        lines.push(framed(&format!(
            "sent {sent}, received {received}, keys waiting {}",
            self.waiting
        )));
        lines.push(framed(&format!("history {} lines behind", self.behind)));
        lines.push(framed(&self.guesses()));
        let others = self.session.map_or(0, |session| session.others);
        lines
            .push(framed(&format!("other clients {others}, here for {}", spell(self.gauge.age()))));
        lines.push(framed(&self.versions));
        lines.push(border("s closes", &self.ways_out()));
        lines
    }

    /// A wrong guess drops all behind it, of which nobody learns whether they were right.
    fn guesses(&self) -> String {
        match self.guesses {
            (right, Some(dropped)) if right + dropped > 0 => {
                let share = percent(right as f64 / (right + dropped) as f64);
                format!("guesses right {share} ({right}), dropped {dropped} times")
            }
            (right, _) => format!("guesses right {right}"),
        }
    }

    /// The commands that end the session or leave it. Keys that are none close the panel and are sent.
    fn ways_out(&self) -> String {
        let detaches = self.session.is_some_and(|session| session.can_detach);
        let detaches = if detaches { "d detaches, " } else { "" };
        format!("{} . quits, {detaches}Ctrl-Z suspends", self.escape)
    }

    fn title(&self) -> String {
        let name = match self.session.filter(|session| session.is_named()) {
            Some(session) => format!("rove {}", session.name),
            None => "rove".to_string(),
        };
        let way = if self.on_stream { "ssh" } else { "UDP" };
        border(&name, &format!("{way} {}", self.server))
    }

    /// Two lines: the curve's name and two texts at its left.
    fn push(
        &self,
        lines: &mut Vec<String>,
        [name, upper, lower]: [&str; 3],
        top: f64,
        value: impl Fn(&Sample) -> Option<f64>,
    ) {
        let values: Vec<Option<f64>> = self.gauge.samples().map(|sample| value(&sample?)).collect();
        let [high, low] = curve(&values, top);
        lines.push(framed(&format!("{name:<11}{upper:<15}{high}")));
        lines.push(framed(&format!("{:<11}{lower:<15}{low}", "")));
    }
}

/// A curve in two rows, the newest value at the right. Its top is the largest value, and at least `top`.
fn curve(values: &[Option<f64>], top: f64) -> [String; 2] {
    let top = values.iter().flatten().fold(top, |top, value| top.max(*value));
    // A value that is known shows, if only as a dot.
    let height =
        |value: f64| ((value / top * f64::from(CURVE_DOTS) + 0.5) as u32).clamp(1, CURVE_DOTS);
    let heights = values.iter().map(|value| value.map_or(0, height));
    let heights: Vec<u32> =
        core::iter::repeat_n(0, SAMPLES.saturating_sub(values.len())).chain(heights).collect();
    let heights: Vec<u32> = heights
        .chunks(COLUMN_SAMPLES)
        .map(|samples| samples.iter().copied().max().unwrap_or(0))
        .collect();
    [4, 0].map(|below| {
        let columns = heights.chunks(2).map(|pair| {
            let dots = pair.iter().zip(DOTS).flat_map(|(height, dots)| {
                dots.into_iter().take(height.saturating_sub(below).min(4) as usize)
            });
            match dots.sum() {
                0 => ' ',
                dots => char::from_u32(BRAILLE + dots).unwrap_or(' '),
            }
        });
        columns.collect()
    })
}

/// Columns of a border line beside its texts: `+- `, a space, a dash and `+`.
const BORDER_COLS: usize = 6;

/// Columns of the right text of a border line at most, so that some of the left one shows.
const BORDER_TEXT: usize = 46;

/// A border line with a text at each end. The left one is cut where they do not fit.
fn border(left: &str, right: &str) -> String {
    let right = if right.is_empty() { String::new() } else { format!(" {right:.BORDER_TEXT$} -") };
    let room = usize::from(PANEL_COLS) - BORDER_COLS - right.chars().count();
    let left: String = left.chars().take(room).collect();
    let line = format!("+- {left} ");
    let dashes = usize::from(PANEL_COLS) - 1 - line.chars().count() - right.chars().count();
    format!("{line}{}{right}+", "-".repeat(dashes))
}

fn framed(text: &str) -> String {
    let text: String = text.chars().take(TEXT_COLS).collect();
    format!("| {text:<TEXT_COLS$} |")
}

fn unknown() -> String {
    "unknown".to_string()
}

fn millis(span: Duration) -> String {
    format!("{} ms", span.as_millis())
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A thousand each.
const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];

fn octets(count: u64) -> String {
    let mut size = count as f64;
    let mut unit = "B";
    for larger in UNITS {
        if size < 1000.0 {
            break;
        }
        (size, unit) = (size / 1000.0, larger);
    }
    if unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") }
}

/// `0:05`, `2:14:00`.
fn spell(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use rove_ssp::Time;

    use super::*;

    fn figures(gauge: &Gauge) -> Figures<'_> {
        Figures {
            gauge,
            session: None,
            server: SocketAddr::from(([203, 0, 113, 9], 60001)),
            on_stream: false,
            sent: Traffic { datagrams: 9, bytes: 999 },
            received: Traffic { datagrams: 9, bytes: 1_250_000 },
            waiting: 12,
            behind: 7300,
            guesses: (31, Some(2)),
            versions: "rove 0.2.0, server 0.1.0".into(),
            escape: Escape::Default,
        }
    }

    #[test]
    fn what_it_shows() {
        let mut gauge = Gauge::new(Time::ZERO);
        for second in 0..9 {
            let sample = Sample {
                round_trip: Some(Duration::from_millis(25 * second)),
                sent_loss: Some(0.014),
                received_loss: 0.4,
                queue: Duration::ZERO,
            };
            gauge.tick(Time::ZERO + Duration::from_secs(second), || Some(sample));
        }
        gauge.tick(Time::from_millis(9000), || None);
        gauge.tick(Time::from_millis(10_000), || {
            Some(Sample { round_trip: Some(Duration::from_millis(100)), ..Sample::default() })
        });
        let lines = figures(&gauge).lines();
        let expected = [
            "+- rove --------------------------- UDP 203.0.113.9:60001 -+",
            "| round trip 100 ms                                     ⢠⡇ |",
            "|            0 ms to 200 ms                            ⣠⣿⣿ |",
            "| loss       sent unknown                              ⣿⣿⡇ |",
            "|            received 0.0 %                            ⣿⣿⣇ |",
            "| queue      0 ms                                          |",
            "|                                                      ⣀⣀⣀ |",
            "| sent 999 B, received 1.2 MB, keys waiting 12             |",
            "| history 7300 lines behind                                |",
            "| guesses right 94 % (31), dropped 2 times                 |",
            "| other clients 0, here for 0:10                           |",
            "| rove 0.2.0, server 0.1.0                                 |",
            "+- s closes ------------- Ctrl-^ . quits, Ctrl-Z suspends -+",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn long_names_and_addresses_are_cut() {
        let gauge = Gauge::new(Time::ZERO);
        let session = SessionInfo { name: "x".repeat(32), ..SessionInfo::default() };
        let server = "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:60001".parse().unwrap();
        let figures = Figures { session: Some(&session), server, ..figures(&gauge) };
        for line in figures.lines() {
            assert_eq!(line.chars().count(), usize::from(PANEL_COLS), "{line}");
        }
    }

    #[test]
    fn the_last_line_names_the_ways_out() {
        let gauge = Gauge::new(Time::ZERO);
        let session = SessionInfo { can_detach: true, ..SessionInfo::default() };
        let figures = Figures { session: Some(&session), ..figures(&gauge) };
        let expected = "+- s closes - Ctrl-^ . quits, d detaches, Ctrl-Z suspends -+";
        assert_eq!(figures.lines().pop().as_deref(), Some(expected));
    }

    #[test]
    fn numbers() {
        assert_eq!(
            [0, 999, 1000, 1_250_000, u64::MAX].map(octets),
            ["0 B", "999 B", "1.0 kB", "1.2 MB", "18446744.1 TB"]
        );
        assert_eq!([0.0, 0.004, 0.0999, 0.5].map(percent), ["0.0 %", "0.4 %", "10.0 %", "50 %"]);
        assert_eq!(
            [5, 65, 8040].map(|seconds| spell(Duration::from_secs(seconds))),
            ["0:05", "1:05", "2:14:00"]
        );
    }
}
