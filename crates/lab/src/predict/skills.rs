//! What a skill of our rules is worth: in which recordings it is called for, and how often.

use rove_session::predict::Skill;
use rove_term::{Screen, width};

use super::ends::text;
use super::judge::{Deed, Effect};

/// All of them, and what they are called in tables.
pub const ALL: [(Skill, &str); 13] = [
    (Skill::Margins, "wrap, last column"),
    (Skill::Insertion, "insertion before text"),
    (Skill::Suggestions, "ghost text"),
    (Skill::RightPrompts, "right prompts"),
    (Skill::KillLine, "Ctrl-U, Ctrl-K"),
    (Skill::KillWord, "Ctrl-W, Alt-DEL"),
    (Skill::LineEnds, "Ctrl-A/E, Home, End"),
    (Skill::WordMotion, "word motion"),
    (Skill::DeleteForward, "Delete, Ctrl-D"),
    (Skill::History, "history keys"),
    (Skill::WideText, "wide, combining"),
    (Skill::Paste, "short paste"),
    (Skill::Learning, "learning"),
];

/// Blanks that part text from what stands at the right, as the engine has it.
const GAP_COLS: u16 = 4;

/// How many of the keys with an effect call for this skill.
pub fn called_for(skill: Skill, deeds: &[Deed]) -> u64 {
    let pairs = deeds.iter().zip(deeds.iter().skip(1));
    let keys = pairs.filter(|(before, deed)| calls_for(skill, &before.after, deed));
    keys.filter(|(_, deed)| deed.effect != Effect::None).count() as u64
}

fn calls_for(skill: Skill, before: &Screen, deed: &Deed) -> bool {
    let typed = std::str::from_utf8(&deed.octets).unwrap_or("");
    let (from, to) = (before.cursor(), deed.after.cursor());
    let in_place = matches!(deed.effect, Effect::InPlace { .. });
    let follows = |cols: u16| -> String {
        (0..cols).map(|col| text(before, from.row, from.col + col)).collect()
    };
    match skill {
        Skill::Margins => {
            let letter = typed.chars().all(|c| !c.is_control());
            letter && (!in_place && to.row == from.row + 1 || from.col + 1 >= before.size().cols)
        }
        Skill::Insertion => in_place && !follows(1).trim().is_empty(),
        // Text that nobody typed is what a key in the middle of a line cannot be told from.
        Skill::Suggestions => in_place && typed != "\x7f" && !follows(1).trim().is_empty(),
        Skill::RightPrompts => {
            let rest = before.size().cols.saturating_sub(from.col);
            in_place && follows(GAP_COLS).trim().is_empty() && !follows(rest).trim().is_empty()
        }
        Skill::KillLine => matches!(typed, "\x15" | "\x0b"),
        Skill::KillWord => matches!(typed, "\x17" | "\x1b\x7f"),
        Skill::LineEnds => matches!(
            typed,
            "\x01" | "\x05" | "\x1b[H" | "\x1b[F" | "\x1bOH" | "\x1bOF" | "\x1b[1~" | "\x1b[4~"
        ),
        Skill::WordMotion => {
            matches!(typed, "\x1bb" | "\x1bf") || typed.starts_with("\x1b[1;") && typed.len() == 6
        }
        Skill::DeleteForward => matches!(typed, "\x1b[3~" | "\x04"),
        Skill::History => {
            matches!(typed, "\x1b[A" | "\x1b[B" | "\x1bOA" | "\x1bOB" | "\x10" | "\x0e")
        }
        Skill::WideText => {
            typed.chars().any(|c| !c.is_control() && width::of(c) != 1)
                && !typed.starts_with('\x1b')
        }
        Skill::Paste => typed.starts_with("\x1b[200~"),
        Skill::Learning => true,
    }
}
