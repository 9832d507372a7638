//! Checks the Mosh paper's claims about its users' typing (§2.3, §3.2 and §4) on recordings. It replays them in
//! virtual time with stock's timing and stock's guesses, so that the same recordings give the same numbers.

use std::io;
use std::path::Path;
use std::time::Duration;

use rove_session::predict::{Display, Settings};
use serde_json::{Value, json};

use super::RealFlags;
use crate::experiments::report::{Table, hundredths};
use crate::predict::PathWord;
use crate::predict::judge::{Deed, Effect, Mistake, deeds};
use crate::predict::replay::replay;
use crate::predict::trace::{Kind, Trace, casts_in};

/// The recordings to look at: those that are typed, else the repository's.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn recordings(flags: &RealFlags) -> io::Result<Vec<Trace>> {
    let paths = match flags.traces.is_empty() {
        true if Path::new(DIRECTORY).exists() => casts_in(Path::new(DIRECTORY))?,
        _ => flags.traces.clone(),
    };
    paths.iter().map(|path| Trace::load(path)).collect()
}

/// The counts.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    keys: u64,
    answered: u64,
    typing: u64,
    moving: u64,
    nothing: u64,
    /// Instructions with keys that reached the server, and acknowledgments that it sent by themselves.
    arrivals: u64,
    alone: u64,
    /// Wrong graphemes, and those of a word that the program moved to the next row.
    wrong: u64,
    wrapped: u64,
}

/// A table of the claims and the counts.
///
/// # Errors
/// If a replay breaks an invariant.
pub(crate) fn table(traces: &[Trace]) -> io::Result<Table> {
    let mut counts = Counts::default();
    for trace in traces {
        look(trace, &mut counts)?;
    }
    let caption = format!(
        "what the paper claims of what its users typed, in {} recordings replayed in virtual time by stock's rules, \
         500 ms round trip",
        traces.len()
    );
    let mut table = Table::new(caption, 1, "claim | paper, % | here, % | n");
    let mut row = |claim: &str, paper: Value, count: u64, of: u64| {
        let share = hundredths(100.0 * count as f64 / of.max(1) as f64);
        table.rows.push(vec![json!(claim), paper, share, json!(of)]);
    };
    row(
        "acknowledgments that ride on a frame within the 100 ms that they may wait",
        json!(99.9),
        counts.arrivals.saturating_sub(counts.alone),
        counts.arrivals,
    );
    row("keys that the host answers within 100 ms", Value::Null, counts.answered, counts.keys);
    row("typing: the key is echoed in place", json!(70.0), counts.typing, counts.keys);
    row("navigation and all else that changes the screen", json!(30.0), counts.moving, counts.keys);
    row("nothing on the screen changes", Value::Null, counts.nothing, counts.keys);
    row("keys with a wrong guess shown", json!(0.9), counts.wrong, counts.keys);
    row(
        "of those, by a word that the program moved to the next row",
        Value::Null,
        counts.wrapped,
        counts.wrong,
    );
    Ok(table)
}

fn look(trace: &Trace, counts: &mut Counts) -> io::Result<()> {
    for (place, event) in trace.events.iter().enumerate() {
        let Kind::Key(_) = event.kind else { continue };
        counts.keys += 1;
        let mut later = trace.events[place + 1..].iter();
        let answer = later.find(|next| matches!(next.kind, Kind::Output(_)));
        counts.answered += u64::from(answer.is_some_and(|answer| answer.at - event.at <= ACK_WAIT));
    }
    let deeds = deeds(trace);
    for deed in &deeds {
        *match deed.effect {
            Effect::InPlace { .. } => &mut counts.typing,
            Effect::Elsewhere => &mut counts.moving,
            Effect::None => &mut counts.nothing,
        } += 1;
    }
    let settings = Settings::STOCK.with_display(Display::Adaptive);
    let replayed = replay(trace, &deeds, &PathWord::Rtt500.scenario(), settings)
        .map_err(|fault| io::Error::other(format!("{}: {fault}", trace.name)))?;
    counts.arrivals += replayed.acks.arrivals;
    counts.alone += replayed.acks.alone;
    let (_, mistakes) = replayed.judge.finish(replayed.end);
    let mut charged = None;
    for mistake in &mistakes {
        if charged.replace(mistake.key) != Some(mistake.key) {
            counts.wrong += 1;
            counts.wrapped += u64::from(is_wrapped(mistake, &deeds));
        }
    }
    Ok(())
}

/// Whether the program put the typed text on a row further down, beginning with the whole word, since it had no
/// room in the row where the guess was shown.
fn is_wrapped(mistake: &Mistake, deeds: &[Deed]) -> bool {
    let (row, col) = mistake.at;
    deeds[mistake.key..].iter().take(WRAP_KEYS).any(|deed| {
        let screen = &deed.after;
        let cursor = screen.cursor();
        let word = screen.row_text(cursor.row);
        cursor.row > row
            && cursor.col < col
            && col + WRAP_COLUMNS >= screen.size().cols
            && word.contains(mistake.text.trim())
    })
}

/// The repository's recordings.
pub(crate) const DIRECTORY: &str = "crates/lab/traces/keystrokes";
/// The paper's delayed acknowledgments wait this long (§2.3).
const ACK_WAIT: Duration = Duration::from_millis(100);
/// How soon after a wrong guess the program has shown where the word went.
const WRAP_KEYS: usize = 3;
/// A word that does not fit stands so near the right edge.
const WRAP_COLUMNS: u16 = 20;
