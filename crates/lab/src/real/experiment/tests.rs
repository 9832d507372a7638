use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args as _, Command, FromArgMatches as _};

use super::*;

/// Sessions that wait until four of them run, and others that look whether one runs beside them.
struct Mixed {
    running: AtomicUsize,
    four: Barrier,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Case {
    Beside,
    Single,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

impl Experiment for Mixed {
    type Case = Case;
    type Sample = usize;

    fn title(&self) -> Title {
        Title::new("mixed", "mixed", "Mixed", &[])
    }

    fn cases(&self) -> Vec<Case> {
        vec![Case::Single, Case::Beside, Case::Single, Case::Beside]
    }

    fn times(&self, _: &RealFlags, _: &Case) -> u32 {
        2
    }

    fn lasts(&self, case: &Case) -> Option<Duration> {
        (*case == Case::Beside).then_some(Duration::ZERO)
    }

    fn measure(&self, case: &Case, _: u64) -> io::Result<OverLink<usize>> {
        let found = self.running.fetch_add(1, Ordering::SeqCst);
        if *case == Case::Beside {
            self.four.wait();
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(OverLink { found, late: Late::default() })
    }

    fn report(&self, _: &[Measured<Case, usize>]) -> Body {
        Body { tables: Vec::new(), figure: Figure::new("", Vec::new()) }
    }

    fn prose(&self) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn some_cases_run_beside_each_other_and_some_alone() {
    let mixed = Mixed { running: AtomicUsize::new(0), four: Barrier::new(4) };
    let words = Command::new("lab");
    let words = RealFlags::augment_args(words).get_matches_from(["lab", "--jobs=4"]);
    let flags = RealFlags::from_arg_matches(&words).unwrap();
    let empty = |case| Measured { case, samples: Vec::new(), late: Late::default() };
    let mut results: Vec<_> = mixed.cases().into_iter().map(empty).collect();
    let (failures, notes) = measure_all(&mixed, &flags, &mut results);
    assert_eq!((failures.len(), notes.len()), (0, 2), "{notes:?}");
    assert!(notes[0].starts_with("4 sessions, 4 at a time"), "{notes:?}");
    assert_eq!(notes[1], "One session at a time, with none beside it: Single; Single.");
    for one in results {
        assert_eq!(one.samples.len(), 2, "{}", one.case);
        assert!(one.case == Case::Beside || one.samples == [0, 0], "{:?}", one.samples);
    }
}
