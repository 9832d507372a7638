//! The width table against the Unicode crates, and the cluster rules against unicode-segmentation, whose
//! own tests run Unicode's GraphemeBreakTest.

use rove_term::width;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

#[path = "../examples/width_table/generator.rs"]
mod generator;

#[test]
fn the_table_is_what_the_generator_makes() {
    assert!(
        generator::table() == include_bytes!("../src/width/table.bin"),
        "run: cargo run -p rove-term --example width_table"
    );
}

#[test]
fn widths_are_those_of_unicode_width() {
    assert_eq!(width::WIDTHS_VERSION, unicode_width::UNICODE_VERSION);
    assert_eq!(width::CLASSES_VERSION, unicode_segmentation::UNICODE_VERSION);
    for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| *c != '\u{ad}') {
        let want = c.width().unwrap_or(0).min(2) as u8;
        assert_eq!(width::of(c), want, "{c:?}");
        if want == 1 {
            let with_selector = format!("{c}\u{fe0f}");
            assert_eq!(
                usize::from(width::cluster(&with_selector)),
                with_selector.width(),
                "{with_selector:?}"
            );
        }
    }
}

/// One or two characters of every class, and their neighbours in ordinary text.
const SAMPLES: [char; 30] = [
    'a',
    '\u{85}',
    '\u{200b}',
    '\u{301}',
    '\u{93c}',
    '\u{94d}',
    '\u{200d}',
    '\u{1f1e6}',
    '\u{1f1ff}',
    '\u{600}',
    '\u{903}',
    '\u{e33}',
    '\u{1100}',
    '\u{1161}',
    '\u{11a8}',
    '\u{ac00}',
    '\u{ac01}',
    '\u{1f600}',
    '\u{2764}',
    '\u{fe0f}',
    '\u{1f3fb}',
    '\u{915}',
    '\u{937}',
    '\u{20e3}',
    '#',
    '1',
    '\u{4e16}',
    '\u{e9}',
    '\u{d4e}',
    '\u{200c}',
];

#[test]
fn clusters_break_where_unicode_segmentation_breaks() {
    let mut random = 17u64;
    for round in 0..200_000 {
        let mut text = String::new();
        for _ in 0..1 + round % 9 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.push(SAMPLES[(random >> 33) as usize % SAMPLES.len()]);
        }
        let mut ours: Vec<String> = Vec::new();
        for c in text.chars() {
            match ours.last_mut() {
                Some(cluster) if width::joins(cluster, c) => cluster.push(c),
                _ => ours.push(c.to_string()),
            }
        }
        let theirs: Vec<&str> = text.graphemes(true).collect();
        assert_eq!(ours, theirs, "{text:?}");
    }
}
