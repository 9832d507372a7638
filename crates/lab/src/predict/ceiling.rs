//! How much of a recording could be shown at once by an engine that never errs, under a rule of which
//! keys demand that the program echoes a key of the new line before any more is shown.

use super::judge::{Deed, Effect};
use super::replay::{Scenario, typing};

/// After which keys nothing is shown until a later one has been echoed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Demand {
    /// After none: whatever is echoed in place is foreseen.
    Never,
    /// After Escape and whatever else is not text, but not after Enter.
    NotEnter,
    /// After Enter, too: a password may follow.
    Always,
}

impl Demand {
    /// All of them, and what they are called in tables.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::Never, "echoed in place"),
        (Self::NotEnter, "carried over each Enter"),
        (Self::Always, "own echo after Enter"),
    ];

    fn made_by(self, deed: &Deed) -> bool {
        match (self, deed.octets.as_slice()) {
            (Self::Never, _) => false,
            (Self::NotEnter, b"\r") => false,
            (_, octets) => octets.first().is_none_or(|octet| *octet < b' '),
        }
    }
}

/// How many keys could be shown at once over this path, of how many with an effect.
pub fn ceiling(deeds: &[Deed], scenario: &Scenario, demand: Demand) -> (u64, u64) {
    let round_trip = scenario.up.delay + scenario.down.delay;
    let (mut shown, mut effects) = (0, 0);
    // When the first echo after a demand is there; none is under way, or it is still to be typed.
    let mut confirmed = None;
    for (deed, at) in deeds.iter().zip(typing(deeds, scenario)) {
        effects += u64::from(deed.effect != Effect::None);
        let in_place = matches!(deed.effect, Effect::InPlace { .. });
        if in_place {
            let confirmed = *confirmed.get_or_insert(match demand {
                Demand::Never => at,
                _ => at + round_trip,
            });
            shown += u64::from(at >= confirmed);
        }
        if demand.made_by(deed) {
            confirmed = None;
        }
    }
    (shown, effects)
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
        ] {
            text += &format!("[{at}, \"i\", \"{key}\"]\n[{at}, \"o\", \"{echo}\"]\n");
        }
        let trace = Trace::parse(String::new(), &text).unwrap();
        let deeds = deeds(&trace);
        let path = PathWord::Rtt500.scenario();
        for (demand, shown) in [(Demand::Never, 4), (Demand::NotEnter, 3), (Demand::Always, 2)] {
            assert_eq!(ceiling(&deeds, &path, demand), (shown, 5), "{demand:?}");
        }
    }
}
