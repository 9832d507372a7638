//! Computes how much of a recording an engine without errors could show at once, and why the rest has to wait.

use rove_ssp::Time;

use super::judge::{Deed, Effect};
use super::replay::{Scenario, typing};

/// The first reason why a key cannot be shown at once.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Cause {
    /// It is Enter.
    Enter,
    /// It is no text: a motion, an edit, a command.
    Command,
    /// It is text that does not just appear at the cursor.
    Elsewhere,
    /// No echo of a key typed since the last Enter can be back yet.
    NewLine,
    /// As before, since Escape or another key that is not text.
    AfterCommand,
    /// None: the program echoes it, and has echoed all keys before it.
    Nothing,
}

impl Cause {
    /// All of them, and their names in tables.
    pub(crate) const ALL: [(Self, &'static str); 6] = [
        (Self::Enter, "Enter"),
        (Self::Command, "no text"),
        (Self::Elsewhere, "text, not at the cursor"),
        (Self::NewLine, "new line, no echo back"),
        (Self::AfterCommand, "after a command"),
        (Self::Nothing, "none"),
    ];
}

/// How far an engine that never errs is let.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Demand {
    /// Shows every key that is echoed in place.
    Nothing,
    /// After Escape and other keys that are not text, waits for the program's own echo.
    AfterCommands,
    /// After Enter it is: a password may follow.
    AfterEnter,
    /// After both.
    AfterBoth,
    /// After Enter, a report of the terminal line is enough: what may be carried where that is read as far as it goes.
    AfterReport,
    /// Shows every key with any effect, once any answer to a key typed since Enter is back.
    Everything,
}

impl Demand {
    /// All of them, and their names in tables.
    pub(crate) const ALL: [(Self, &'static str); 6] = [
        (Self::Nothing, "echoed in place"),
        (Self::AfterCommands, "own echo after commands"),
        (Self::AfterEnter, "own echo after Enter"),
        (Self::AfterBoth, "own echo after both"),
        (Self::AfterReport, "report after Enter"),
        (Self::Everything, "answer after Enter, all"),
    ];

    fn shows(self, wait: Wait) -> bool {
        match self {
            Self::Nothing => wait.in_place,
            Self::AfterCommands => wait.in_place && !wait.command,
            Self::AfterEnter => wait.in_place && !wait.line,
            Self::AfterBoth => wait.in_place && !wait.command && !wait.line,
            Self::AfterReport => wait.in_place && !wait.report,
            Self::Everything => !wait.answer,
        }
    }
}

/// The answer that cannot be back when a key with an effect is typed.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// It is echoed in place.
    in_place: bool,
    /// The echo of a key typed since Enter.
    line: bool,
    /// The echo of a key typed since a command.
    command: bool,
    /// A report of the terminal line as Enter left it.
    report: bool,
    /// An answer of any kind to a key typed since Enter.
    answer: bool,
}

/// How many keys could be shown at once over this path, of how many with an effect.
pub(crate) fn ceiling(deeds: &[Deed], scenario: &Scenario, demand: Demand) -> (u64, u64) {
    let waits = waits(deeds, scenario);
    let shown = waits.iter().flatten().filter(|wait| demand.shows(**wait)).count();
    let effects = deeds.iter().filter(|deed| deed.effect != Effect::None).count();
    (shown as u64, effects as u64)
}

/// The reason that delays each key over this path; `None` for one without an effect.
pub(crate) fn causes(deeds: &[Deed], scenario: &Scenario) -> Vec<Option<Cause>> {
    let cause = |(deed, wait): (&Deed, Option<Wait>)| {
        let wait = wait?;
        Some(match wait.in_place {
            true if wait.line => Cause::NewLine,
            true if wait.command => Cause::AfterCommand,
            true => Cause::Nothing,
            false if is_enter(deed) => Cause::Enter,
            false if is_command(deed) => Cause::Command,
            false => Cause::Elsewhere,
        })
    };
    deeds.iter().zip(waits(deeds, scenario)).map(cause).collect()
}

/// For each key; `None` for one without an effect.
fn waits(deeds: &[Deed], scenario: &Scenario) -> Vec<Option<Wait>> {
    let round_trip = scenario.up.delay + scenario.down.delay;
    // When the first of each is back; `None` while the key that brings it is still to be typed.
    let (mut line, mut command, mut answer): (Option<Time>, Option<Time>, Option<Time>) =
        (None, None, None);
    let mut report = Time::ZERO;
    let keys = deeds.iter().zip(typing(deeds, scenario)).map(|(deed, at)| {
        let in_place = matches!(deed.effect, Effect::InPlace { .. });
        let back = |first: &mut Option<Time>| at >= *first.get_or_insert(at + round_trip);
        let wait = (deed.effect != Effect::None).then(|| Wait {
            in_place,
            line: in_place && !back(&mut line),
            command: in_place && !back(&mut command),
            report: at < report,
            answer: !back(&mut answer),
        });
        if is_enter(deed) {
            (line, answer) = (None, None);
            report = at + round_trip;
        } else if is_command(deed) {
            command = None;
        }
        wait
    });
    keys.collect()
}

fn is_enter(deed: &Deed) -> bool {
    deed.octets == b"\r"
}

fn is_command(deed: &Deed) -> bool {
    deed.octets.first().is_none_or(|octet| *octet < b' ')
}

#[cfg(test)]
mod tests {
    use super::super::judge::deeds;
    use super::super::trace::Trace;
    use super::super::{PathWord, ceiling::*};

    #[test]
    fn a_line_waits_for_its_first_echo() {
        let mut text = "{\"version\": 2, \"width\": 80, \"height\": 24}\n".to_owned();
        for (at, key, echo) in [
            (0.0, "a", "a"),
            (0.6, "b", "b"),
            (1.0, "\\r", "\\r\\n"),
            (1.2, "c", "c"),
            (1.9, "d", "d"),
            (2.0, "\\u0001", "\\r"),
            (2.1, "e", "e"),
        ] {
            text += &format!("[{at}, \"i\", \"{key}\"]\n[{at}, \"o\", \"{echo}\"]\n");
        }
        let trace = Trace::parse(String::new(), &text).unwrap();
        let deeds = deeds(&trace);
        let path = PathWord::Rtt500.scenario();
        for (demand, shown) in [
            (Demand::Nothing, 5),
            (Demand::AfterCommands, 3),
            (Demand::AfterEnter, 3),
            (Demand::AfterBoth, 2),
            (Demand::AfterReport, 4),
            (Demand::Everything, 5),
        ] {
            assert_eq!(ceiling(&deeds, &path, demand), (shown, 7), "{demand:?}");
        }
        let causes: Vec<Cause> = causes(&deeds, &path).into_iter().flatten().collect();
        let (none, line, after) = (Cause::Nothing, Cause::NewLine, Cause::AfterCommand);
        assert_eq!(causes, [line, none, Cause::Enter, line, none, Cause::Command, after]);
    }
}
