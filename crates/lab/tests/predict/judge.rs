//! What one key's guess is judged to be, on a program that answers 200 ms later.

use std::time::Duration;

use rove_lab::testing::predict::judge::{Judge, deeds};
use rove_lab::testing::predict::trace::{Event, Kind, Trace};
use rove_ssp::{StateNum, Time};
use rove_term::{Dialect, Screen, Size, Terminal};

/// A recording with one key, at 1 s, and its effect; before that the program has written this.
fn trace(before: &str, key: &str, effect: &str) -> Trace {
    let event = |ms, kind| Event { at: Duration::from_millis(ms), kind };
    let output = |text: &str| Kind::Output(text.as_bytes().to_vec());
    Trace {
        name: "one".to_owned(),
        size: Size::clamped(4, 20),
        events: vec![
            event(0, Kind::Program("shell".to_owned())),
            event(0, output(before)),
            event(1_000, Kind::Key(key.as_bytes().to_vec())),
            event(1_010, output(effect)),
        ],
    }
}

fn screen(octets: &[&str]) -> Screen {
    let mut terminal = Terminal::new(Size::clamped(4, 20), Dialect::ROVE);
    octets.iter().for_each(|text| terminal.advance(text.as_bytes()));
    terminal.screen().clone()
}

/// Keys shown at once, keys charged with something wrong, and flickers. Each of `paints` adds to what the program had
/// written before; the last is the answer.
fn judged(trace: &Trace, before: &str, effect: &str, paints: &[(u64, &[&str])]) -> (u64, u64, u64) {
    let deeds = deeds(trace);
    let mut judge = Judge::new(&deeds);
    let ms = Time::from_millis;
    let (first, second) = (StateNum::ZERO, StateNum::ZERO.next());
    judge.held(ms(0), &screen(&[before]));
    judge.frame(ms(0), first, &screen(&[before]));
    judge.paint(ms(0), &screen(&[before]));
    judge.key(ms(1_000), second);
    for (at, shown) in paints {
        if *at >= 1_200 {
            judge.delivered(ms(1_100));
            judge.held(ms(1_110), &screen(&[before, effect]));
            judge.frame(ms(*at), second, &screen(&[before, effect]));
        }
        judge.paint(ms(*at), &screen(shown));
    }
    let (tallies, mistakes) = judge.finish(ms(2_000));
    let tally = &tallies["shell"];
    assert_eq!((tally.keys, tally.stood.len()), (1, mistakes.len()));
    (tally.at_once, tally.wrong, tally.flicker)
}

#[test]
fn each_guess_is_judged() {
    let prompt = "\r\n$ ";
    // What is written before, the key, its effect, when what is shown, and the verdict.
    type Row<'a> = (&'a str, &'a str, &'a str, &'a [(u64, &'a [&'a str])], (u64, u64, u64));
    let rows: &[Row] = &[
        // No guess: the answer is the first that is seen.
        (prompt, "a", "a", &[(1_200, &["\r\n$ ", "a"])], (0, 0, 0)),
        // A guess that is right, at once and later than at once.
        (prompt, "a", "a", &[(1_000, &["\r\n$ ", "a"]), (1_200, &["\r\n$ ", "a"])], (1, 0, 0)),
        (prompt, "a", "a", &[(1_006, &["\r\n$ ", "a"]), (1_200, &["\r\n$ ", "a"])], (0, 0, 0)),
        // A guess that is wrong, and one that is gone before anybody sees it.
        (prompt, "a", "x", &[(1_000, &["\r\n$ ", "a"]), (1_200, &["\r\n$ ", "x"])], (0, 1, 0)),
        (
            prompt,
            "a",
            "x",
            &[(1_000, &["\r\n$ ", "a"]), (1_004, &["\r\n$ "]), (1_200, &["\r\n$ ", "x"])],
            (0, 0, 0),
        ),
        // A blank where the program keeps a letter.
        (
            "\r\n$ abc\x08",
            "\x7f",
            "\x07",
            &[(1_000, &["\r\n$ ab \x08\x08"]), (1_200, &["\r\n$ abc\x08"])],
            (0, 1, 0),
        ),
        // The client's bar is no guess, but in another row than the first it would be.
        (prompt, "a", "a", &[(1_000, &["rove: x\r\n$ "]), (1_200, &["\r\n$ ", "a"])], (0, 0, 0)),
        (prompt, "a", "a", &[(1_000, &["\r\nrove: x"]), (1_200, &["\r\n$ ", "a"])], (0, 1, 0)),
        // Drawn, removed and drawn again with no key between.
        (
            prompt,
            "a",
            "a",
            &[
                (1_000, &["\r\n$ ", "a"]),
                (1_050, &["\r\n$ "]),
                (1_100, &["\r\n$ ", "a"]),
                (1_200, &["\r\n$ ", "a"]),
            ],
            (1, 0, 1),
        ),
    ];
    for (number, (before, key, effect, paints, verdict)) in rows.iter().enumerate() {
        let trace = trace(before, key, effect);
        assert_eq!(judged(&trace, before, effect, paints), *verdict, "row {number}, key {key:?}");
    }
}
