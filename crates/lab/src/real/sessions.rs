//! Runs sessions over emulated links, and runs those again whose link was late. A shared machine stands still at
//! times, which is not the fault of the programs.

use std::io;
use std::time::Duration;

use super::RealFlags;
use crate::net::lateness::Late;
use crate::pool;

/// A result of a measurement over an emulated link, and how late the link was.
#[derive(Debug)]
pub(crate) struct OverLink<T> {
    pub(crate) found: T,
    pub(crate) late: Late,
}

/// Runs a session, and again while its link was late; returns the one whose link was least late. A repetition that
/// fails changes nothing.
///
/// # Errors
/// The first session's.
pub(super) fn alone<T>(
    mut session: impl FnMut() -> io::Result<OverLink<T>>,
) -> io::Result<OverLink<T>> {
    let mut best = session()?;
    for _ in 0..REPEATS_MAX {
        if best.late.is_valid() {
            break;
        }
        let Ok(one) = session() else { continue };
        if one.late.p99() < best.late.p99() {
            best = one;
        }
    }
    Ok(best)
}

/// Runs a session for each item, some at the same time, and then again those whose link was late, with fewer beside
/// them; the one whose link was less late counts. Returns the results in the order of the items, and a note on how
/// the sessions ran.
pub(super) fn together<I: Clone + Sync, T: Send>(
    name: &str,
    flags: &RealFlags,
    items: &[I],
    session: impl Fn(&I) -> io::Result<OverLink<T>> + Sync,
) -> (Vec<io::Result<OverLink<T>>>, String) {
    let mut results = pool::each(flags.jobs as usize, items, &session);
    let is_late =
        |result: &io::Result<OverLink<T>>| matches!(result, Ok(one) if !one.late.is_valid());
    let mut repeated = 0;
    for _ in 0..REPEATS_MAX {
        let places: Vec<usize> = (0..items.len()).filter(|at| is_late(&results[*at])).collect();
        if places.is_empty() {
            break;
        }
        eprintln!("{name}: the links of {} sessions were late: again", places.len());
        repeated += places.len();
        let late: Vec<I> = places.iter().map(|at| items[*at].clone()).collect();
        let second = pool::each(flags.jobs.div_ceil(4) as usize, &late, &session);
        for (at, second) in places.into_iter().zip(second) {
            let (Ok(one), Ok(old)) = (&second, &results[at]) else { continue };
            if one.late.p99() < old.late.p99() {
                results[at] = second;
            }
        }
    }
    let note = format!(
        "{} sessions, {} at a time; {repeated} times one ran again since its link was late by more than 1 ms at \
         p99, and the one whose link was less late counts.",
        items.len(),
        flags.jobs
    );
    (results, note)
}

/// Prints the expected time of sessions that last this long each.
pub(super) fn estimate(name: &str, flags: &RealFlags, sessions: usize, each: Duration) {
    let rounds = sessions.div_ceil(flags.jobs as usize) as u32;
    // Starting a session and ending it.
    let total = (each + Duration::from_secs(3)) * rounds;
    eprintln!("{name}: {sessions} sessions, {} at a time, about {} s", flags.jobs, total.as_secs());
}

/// How often a session with a late link is repeated.
const REPEATS_MAX: u32 = 2;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;
    use crate::net::lateness::Lateness;

    fn late(ms: u64) -> OverLink<()> {
        let lateness = Lateness::default();
        lateness.add(Duration::from_millis(ms));
        OverLink { found: (), late: lateness.look() }
    }

    #[test]
    fn what_was_late_runs_again() {
        let found = |spans: &[u64]| {
            let mut next = spans.iter();
            let one = alone(|| Ok(late(*next.next().unwrap()))).unwrap();
            (one.late.max().as_millis(), next.len())
        };
        assert_eq!(found(&[0, 7]), (0, 1), "what was not late counts");
        assert_eq!(found(&[5, 0, 7]), (0, 1));
        assert_eq!(found(&[5, 3, 4, 0]), (3, 1), "the least late of three counts");
        let mut tries = 0;
        let one = alone(|| {
            tries += 1;
            if tries == 1 { Ok(late(5)) } else { Err(io::ErrorKind::TimedOut.into()) }
        });
        assert_eq!(
            (one.unwrap().late.max().as_millis(), tries),
            (5, 3),
            "what failed takes nothing"
        );
        assert!(alone(|| Err::<OverLink<()>, _>(io::ErrorKind::TimedOut.into())).is_err());
    }

    #[test]
    fn sessions_that_were_late_run_again() {
        let flags = RealFlags::from_arg_matches(
            &RealFlags::augment_args(Command::new("lab")).get_matches_from(["lab", "--jobs=3"]),
        )
        .unwrap();
        let tries = Mutex::new(Vec::new());
        let session = |item: &u64| {
            tries.lock().unwrap().push(*item);
            let again = tries.lock().unwrap().iter().filter(|one| *one == item).count() as u64;
            Ok(late(item.saturating_sub(again)))
        };
        let (results, note) = together("these", &flags, &[0, 1, 3, 9], session);
        let left = results.iter().map(|one| one.as_ref().unwrap().late.max().as_millis());
        assert_eq!(left.collect::<Vec<_>>(), [0, 0, 1, 6]);
        assert_eq!(tries.into_inner().unwrap().len(), 4 + 2 + 1);
        assert!(note.starts_with("4 sessions, 3 at a time; 3 times"), "{note}");
    }
}
