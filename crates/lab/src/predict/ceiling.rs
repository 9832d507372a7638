//! How much of a recording could be shown at once by an engine that never errs, and what keeps the rest back.

use rove_ssp::Time;

use super::judge::{Deed, Effect};
use super::replay::{Scenario, typing};

/// What stands between a key and being shown at once, the first that does.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Cause {
    /// It is Enter.
    Enter,
    /// It is no text: a motion, an edit, a command.
    Command,
    /// It is text that does not just appear at the cursor.
    Elsewhere,
    /// No echo of a key typed since the last Enter can be back yet.
    NewLine,
    /// The same since Escape, or since whatever else is not text.
    AfterCommand,
    /// Nothing: the program echoes it, and has echoed what was typed before it.
    Nothing,
}

impl Cause {
    /// All of them, and what they are called in tables.
    pub const ALL: [(Self, &'static str); 6] = [
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
pub enum Demand {
    /// Whatever is echoed in place is shown.
    Nothing,
    /// After Escape, and whatever else is not text, the program's own echo is awaited.
    AfterCommands,
    /// After Enter it is: a password may follow.
    AfterEnter,
    /// After both.
    AfterBoth,
}

impl Demand {
    /// All of them, and what they are called in tables.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Nothing, "echoed in place"),
        (Self::AfterCommands, "own echo after commands"),
        (Self::AfterEnter, "own echo after Enter"),
        (Self::AfterBoth, "own echo after both"),
    ];

    fn shows(self, wait: Wait) -> bool {
        match self {
            Self::Nothing => true,
            Self::AfterCommands => !wait.command,
            Self::AfterEnter => !wait.line,
            Self::AfterBoth => !wait.command && !wait.line,
        }
    }
}

/// Whose echo cannot be back when a key is typed that is echoed in place.
#[derive(Clone, Copy, Debug)]
struct Wait {
    line: bool,
    command: bool,
}

/// How many keys could be shown at once over this path, of how many with an effect.
pub fn ceiling(deeds: &[Deed], scenario: &Scenario, demand: Demand) -> (u64, u64) {
    let waits = waits(deeds, scenario);
    let shown = waits.iter().flatten().filter(|wait| demand.shows(**wait)).count();
    let effects = deeds.iter().filter(|deed| deed.effect != Effect::None).count();
    (shown as u64, effects as u64)
}

/// What keeps each key back over this path; `None` for one without an effect.
pub fn causes(deeds: &[Deed], scenario: &Scenario) -> Vec<Option<Cause>> {
    let cause = |(deed, wait): (&Deed, Option<Wait>)| {
        Some(match (deed.effect, wait) {
            (Effect::None, _) => return None,
            (_, Some(Wait { line: true, .. })) => Cause::NewLine,
            (_, Some(Wait { command: true, .. })) => Cause::AfterCommand,
            (_, Some(_)) => Cause::Nothing,
            _ if is_enter(deed) => Cause::Enter,
            _ if is_command(deed) => Cause::Command,
            _ => Cause::Elsewhere,
        })
    };
    deeds.iter().zip(waits(deeds, scenario)).map(cause).collect()
}

/// For each key that is echoed in place.
fn waits(deeds: &[Deed], scenario: &Scenario) -> Vec<Option<Wait>> {
    let round_trip = scenario.up.delay + scenario.down.delay;
    // When the first echo since is back; `None` while it is still to be typed.
    let (mut line, mut command): (Option<Time>, Option<Time>) = (None, None);
    let keys = deeds.iter().zip(typing(deeds, scenario)).map(|(deed, at)| {
        let wait = matches!(deed.effect, Effect::InPlace { .. }).then(|| Wait {
            line: at < *line.get_or_insert(at + round_trip),
            command: at < *command.get_or_insert(at + round_trip),
        });
        if is_enter(deed) {
            line = None;
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
        ] {
            assert_eq!(ceiling(&deeds, &path, demand), (shown, 7), "{demand:?}");
        }
        let causes: Vec<Cause> = causes(&deeds, &path).into_iter().flatten().collect();
        let (none, line, after) = (Cause::Nothing, Cause::NewLine, Cause::AfterCommand);
        assert_eq!(causes, [line, none, Cause::Enter, line, none, Cause::Command, after]);
    }
}
