//! Counts how often, and in which recordings, each of our rules beyond stock's applies.

use rove_session::predict::Rule;
use rove_term::{Screen, width};

use super::judge::{Deed, Effect};
use super::seat::text;

/// All of them, and their names in tables.
pub(crate) const ALL: [(Rule, &str); 13] = [
    (Rule::Margins, "wrap, last column"),
    (Rule::Insertion, "insertion before text"),
    (Rule::Suggestions, "ghost text"),
    (Rule::RightPrompts, "right prompts"),
    (Rule::KillLine, "Ctrl-U, Ctrl-K"),
    (Rule::KillWord, "Ctrl-W, Alt-DEL"),
    (Rule::LineEnds, "Ctrl-A/E, Home, End"),
    (Rule::WordMotion, "word motion"),
    (Rule::DeleteForward, "Delete, Ctrl-D"),
    (Rule::History, "history keys"),
    (Rule::WideText, "wide, combining"),
    (Rule::Paste, "short paste"),
    (Rule::Learning, "learning"),
];

/// Blanks that part text from what stands at the right, as the engine has it.
const GAP_COLS: u16 = 4;

/// How many of the keys with an effect call for this skill.
pub(crate) fn called_for(skill: Rule, deeds: &[Deed]) -> u64 {
    let pairs = deeds.iter().zip(deeds.iter().skip(1));
    let keys = pairs.filter(|(before, deed)| calls_for(skill, &before.after, deed));
    keys.filter(|(_, deed)| deed.effect != Effect::None).count() as u64
}

fn calls_for(skill: Rule, before: &Screen, deed: &Deed) -> bool {
    let typed = std::str::from_utf8(&deed.octets).unwrap_or("");
    let (from, to) = (before.cursor(), deed.after.cursor());
    let in_place = matches!(deed.effect, Effect::InPlace { .. });
    let follows = |cols: u16| -> String {
        (0..cols).map(|col| text(before, from.row, from.col + col)).collect()
    };
    match skill {
        Rule::Margins => {
            let letter = typed.chars().all(|c| !c.is_control());
            letter && (!in_place && to.row == from.row + 1 || from.col + 1 >= before.size().cols)
        }
        Rule::Insertion => in_place && !follows(1).trim().is_empty(),
        // A key in the middle of a line looks the same as text that the user did not type.
        Rule::Suggestions => in_place && typed != "\x7f" && !follows(1).trim().is_empty(),
        Rule::RightPrompts => {
            let rest = before.size().cols.saturating_sub(from.col);
            in_place && follows(GAP_COLS).trim().is_empty() && !follows(rest).trim().is_empty()
        }
        Rule::KillLine => matches!(typed, "\x15" | "\x0b"),
        Rule::KillWord => matches!(typed, "\x17" | "\x1b\x7f"),
        Rule::LineEnds => matches!(
            typed,
            "\x01" | "\x05" | "\x1b[H" | "\x1b[F" | "\x1bOH" | "\x1bOF" | "\x1b[1~" | "\x1b[4~"
        ),
        Rule::WordMotion => {
            matches!(typed, "\x1bb" | "\x1bf") || typed.starts_with("\x1b[1;") && typed.len() == 6
        }
        Rule::DeleteForward => matches!(typed, "\x1b[3~" | "\x04"),
        Rule::History => {
            matches!(typed, "\x1b[A" | "\x1b[B" | "\x1bOA" | "\x1bOB" | "\x10" | "\x0e")
        }
        Rule::WideText => {
            typed.chars().any(|c| !c.is_control() && width::of(c) != 1)
                && !typed.starts_with('\x1b')
        }
        Rule::Paste => typed.starts_with("\x1b[200~"),
        Rule::Learning => true,
    }
}
