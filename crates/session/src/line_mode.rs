//! What the program's terminal line does with keys: whether they are echoed, and by whom, and whether keys may
//! be kept until the line is whole. A rove server reports it to a rove client (host extension 16).

use core::time::Duration;

use rove_ssp::Time;

/// The mode of a terminal line, as far as echo depends on it (termios(3): ICANON and ECHO).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LineMode {
    /// ICANON and ECHO: the kernel echoes.
    Cooked,
    /// ICANON without ECHO: a password is read. Nothing may be shown.
    Hidden,
    /// No ICANON: the program echoes, or does not.
    Raw,
}

/// The bits that travel.
const CANONICAL: u64 = 1;
const ECHO: u64 = 2;
const MAY_BE_KEPT: u64 = 4;

impl LineMode {
    /// Of a line with these two modes on or off.
    pub const fn of(canonical: Mode, echo: Mode) -> Self {
        match (canonical, echo) {
            (Mode::Off, _) => Self::Raw,
            (Mode::On, Mode::Off) => Self::Hidden,
            (Mode::On, Mode::On) => Self::Cooked,
        }
    }

    const fn to_bits(self) -> u64 {
        match self {
            Self::Cooked => CANONICAL | ECHO,
            Self::Hidden => CANONICAL,
            Self::Raw => 0,
        }
    }

    /// Bits that mean nothing yet are ignored.
    const fn from_bits(bits: u64) -> Self {
        Self::of(Mode::of(bits & CANONICAL), Mode::of(bits & ECHO))
    }
}

/// What a server reports of the terminal line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineReport {
    /// What the line does with keys.
    pub mode: LineMode,
    /// Which hidden line it is, if it is one and the server counts them: another number is another line.
    pub hidden: Option<u64>,
    /// Until a hidden line ends, nothing on the host can notice the keys that belong to it
    /// ([`is_part_of_line`]), so the client may keep them until then.
    pub may_be_kept: bool,
}

impl From<LineMode> for LineReport {
    /// Of a line whose keys go at once.
    fn from(mode: LineMode) -> Self {
        Self { mode, hidden: None, may_be_kept: false }
    }
}

impl LineReport {
    /// The two numbers that travel; the second is 0 of a line that is not counted.
    pub(crate) fn to_numbers(self) -> (u64, u64) {
        let kept = if self.may_be_kept { MAY_BE_KEPT } else { 0 };
        (self.mode.to_bits() | kept, self.hidden.unwrap_or(0))
    }

    /// Only a hidden line is counted, and only a counted one may be kept.
    pub(crate) fn from_numbers(bits: u64, number: u64) -> Self {
        let mode = LineMode::from_bits(bits);
        let hidden = (mode == LineMode::Hidden && number > 0).then_some(number);
        Self { mode, hidden, may_be_kept: hidden.is_some() && bits & MAY_BE_KEPT != 0 }
    }
}

/// Whether an octet only adds to a line that gathers, or edits it, where special characters are set as usual.
/// All others go to the host at once: they end the line, make a signal, or may mean anything.
pub const fn is_part_of_line(octet: u8) -> bool {
    matches!(octet, b' '..=b'~' | 0x80.. | DELETE | BACKSPACE | CTRL_U | CTRL_W)
}

const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const CTRL_W: u8 = 0x17;
const DELETE: u8 = 0x7f;

/// One look at a terminal line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineLook {
    /// What the line does with keys.
    pub mode: LineMode,
    /// Whether the line's special characters are such that none that [is part of it](is_part_of_line) ends it
    /// or makes a signal.
    pub is_usual: bool,
}

impl From<LineMode> for LineLook {
    /// A line with the usual special characters.
    fn from(mode: LineMode) -> Self {
        Self { mode, is_usual: true }
    }
}

/// For how long a line must have been hidden in each look before its keys may be kept. Programs that read single
/// keys with echo off are hidden between two reads, for milliseconds.
const HIDDEN_FOR: Duration = Duration::from_millis(180);

/// How long after output a look counts: before, a program may be between two reads.
const QUIET_FOR: Duration = Duration::from_millis(15);

/// Looks that must have counted.
const QUIET_LOOKS: u32 = 2;

/// How long after its last key a line is another at the latest: until then the program writes, as a rule, and the count
/// travels with that. There is a look 10 to 20 ms after keys, and the echo ack, with which keys of the next line may be kept,
/// goes no sooner than after 50.
const ENDED_FOR: Duration = Duration::from_millis(10);

/// Counts hidden lines, and judges by looks at the line whether keys may be kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct HiddenLines {
    /// How many there were.
    count: u64,
    /// Since when each look has seen the present one.
    since: Option<Time>,
    /// Looks of those that counted.
    quiet_looks: u32,
    /// When the program wrote last, as far as is known.
    written: Option<Time>,
    /// When keys ended the present one. No look need see what was between it and the next: a program asks again within
    /// a millisecond, and what another client has kept for the first question is no answer to the second.
    ended: Option<Time>,
}

impl HiddenLines {
    /// The program has written.
    pub fn on_output(&mut self, now: Time) {
        self.written = Some(now);
    }

    /// Keys went to the program.
    pub fn on_keys(&mut self, now: Time, octets: &[u8]) {
        // Which of the others end it, the user sets.
        if !octets.iter().all(|octet| is_part_of_line(*octet)) {
            self.ended.get_or_insert(now);
        }
    }

    /// Takes a look, and returns what to report.
    pub fn look(&mut self, now: Time, look: impl Into<LineLook>) -> LineReport {
        let LineLook { mode, is_usual } = look.into();
        if mode != LineMode::Hidden {
            self.since = None;
            self.ended = None;
            return mode.into();
        }
        let since = *self.since.get_or_insert_with(|| {
            self.count += 1;
            self.quiet_looks = 0;
            self.ended = None;
            now
        });
        let is_over = |ended: &mut Time| {
            !is_usual
                || now >= *ended + ENDED_FOR
                || self.written.is_some_and(|written| written >= *ended)
        };
        self.count += u64::from(self.ended.take_if(is_over).is_some());
        let is_quiet = self.written.is_none_or(|written| now >= written + QUIET_FOR);
        self.quiet_looks += u32::from(is_quiet && now > since);
        let may_be_kept = is_usual && self.quiet_looks >= QUIET_LOOKS && now >= since + HIDDEN_FOR;
        LineReport { mode, hidden: Some(self.count), may_be_kept }
    }
}

/// Whether a mode of a terminal line is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// It is.
    On,
    /// It is not.
    Off,
}

impl Mode {
    const fn of(bit: u64) -> Self {
        match bit {
            0 => Self::Off,
            _ => Self::On,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use LineMode::{Cooked, Hidden, Raw};

    #[test]
    fn numbers() {
        let hidden =
            |number, may_be_kept| LineReport { mode: Hidden, hidden: Some(number), may_be_kept };
        for (bits, number, report) in [
            (0, 0, Raw.into()),
            (1, 0, Hidden.into()),
            (2, 0, Raw.into()),
            (3, 0, Cooked.into()),
            (1, 7, hidden(7, false)),
            (5, 7, hidden(7, true)),
            // What means nothing is no part of a report.
            (5, 0, Hidden.into()),
            (6, 7, Raw.into()),
            (15, 7, Cooked.into()),
            (0xfd, u64::MAX, hidden(u64::MAX, true)),
        ] {
            let read = LineReport::from_numbers(bits, number);
            assert_eq!(read, report, "{bits} {number}");
            let (bits, number) = report.to_numbers();
            assert_eq!(LineReport::from_numbers(bits, number), report);
        }
    }

    /// Times of looks in ms, what each sees, and what is reported: the line's number, `!` if it may be kept.
    fn check(looks: &[(u64, LineMode, &str)], output_ms: &[u64]) {
        let mut lines = HiddenLines::default();
        for &(ms, mode, said) in looks {
            for &at in output_ms.iter().filter(|at| **at <= ms) {
                lines.on_output(Time::from_millis(at));
            }
            let report = lines.look(Time::from_millis(ms), mode);
            let number = report.hidden.map_or("-".to_owned(), |number| number.to_string());
            let text = format!("{number}{}", if report.may_be_kept { "!" } else { "" });
            assert_eq!((report.mode, text.as_str()), (mode, said), "{ms} ms of {looks:?}");
        }
    }

    #[test]
    fn a_line_may_be_kept_once_it_was_hidden_for_a_while() {
        check(
            &[
                (0, Cooked, "-"),
                (5, Hidden, "1"),
                (25, Hidden, "1"),
                (184, Hidden, "1"),
                (185, Hidden, "1!"),
                (1185, Hidden, "1!"),
                (1200, Cooked, "-"),
                (1201, Hidden, "2"),
                (1500, Hidden, "2"),
                (1501, Hidden, "2!"),
            ],
            &[0],
        );
        // A program that reads single keys is seen hidden after its output, and then reading.
        let loops: Vec<_> = (0..40)
            .flat_map(|turn| [(turn * 50, Hidden), (turn * 50 + 20, Raw)])
            .enumerate()
            .map(|(n, (ms, mode))| (ms, mode, if n % 2 == 0 { n / 2 + 1 } else { 0 }))
            .map(|(ms, mode, number)| (ms, mode, number.to_string()))
            .collect();
        let said: Vec<_> = loops
            .iter()
            .map(|(ms, mode, said)| (*ms, *mode, if said == "0" { "-" } else { said }))
            .collect();
        check(&said, &[]);
        // One that writes without a pause is only seen right after its output.
        let output: Vec<u64> = (0..1000).step_by(10).collect();
        let busy: Vec<_> = output.iter().map(|ms| (*ms, Hidden, "1")).collect();
        check(&busy, &output);
    }

    #[test]
    fn a_line_is_another_behind_its_enter() {
        let mut lines = HiddenLines::default();
        let look = |lines: &mut HiddenLines, ms| {
            let report = lines.look(Time::from_millis(ms), Hidden);
            (report.hidden.unwrap(), report.may_be_kept)
        };
        for ms in [0, 20, 180] {
            look(&mut lines, ms);
        }
        // What only adds to it or edits it does not end it.
        lines.on_keys(Time::from_millis(200), b"QZ \x15\x7f");
        assert_eq!(look(&mut lines, 250), (1, true));
        // The answer to Enter tells, or else time.
        lines.on_keys(Time::from_millis(300), b"WJ\r");
        assert_eq!(look(&mut lines, 301), (1, true));
        lines.on_output(Time::from_millis(302));
        assert_eq!([302, 303, 400].map(|ms| look(&mut lines, ms)), [(2, true); 3]);
        lines.on_keys(Time::from_millis(500), b"\x18");
        assert_eq!([509, 510, 600].map(|ms| look(&mut lines, ms).0), [2, 3, 3]);
        // A look that sees what is between them counts once.
        lines.on_keys(Time::from_millis(700), b"\n");
        lines.look(Time::from_millis(701), Cooked);
        assert_eq!([702, 730].map(|ms| look(&mut lines, ms)), [(4, false); 2]);
    }

    #[test]
    fn a_special_character_that_belongs_to_the_line_ends_it() {
        let mut lines = HiddenLines::default();
        let look = |is_usual| LineLook { mode: Hidden, is_usual };
        for (ms, is_usual, kept) in
            [(0, true, false), (50, true, false), (200, true, true), (300, false, false)]
        {
            let report = lines.look(Time::from_millis(ms), look(is_usual));
            assert_eq!((report.hidden, report.may_be_kept), (Some(1), kept), "{ms}");
        }
    }
}
