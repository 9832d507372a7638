//! `rove-lab film`: types the same keys over the same bad link at ssh, mosh and rove, and draws their three screens
//! side by side as one animated SVG.
//!
//! Each picture of a row is a group that is visible from the moment the client painted it to the moment it painted
//! another, by SMIL (SVG 1.1 §19), which browsers play in an `<img>` as well. Without animation the last pictures show.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rove_term::{Attrs, Screen, Size, Underline, Width};
use serde_json::{Value, json};

use super::contender::{Contender, Echo, Wire, usual};
use super::is_wanted;
use super::outcome::REAL;
use super::stage::{Setup, Stage};
use super::typing::{READY, Seen, type_keys};
use crate::experiments::report::{range_of, save_json, tenths};
use crate::flags::LinkFlags;
use crate::net::scenario::Scenario;
use crate::plot::escape;
use crate::predict::cast::Writer;
use crate::predict::judge::deeds;
use crate::predict::trace::Trace;
use crate::provenance;
use crate::rng::Rng;
use crate::scratch::Scratch;
use crate::stats::Summary;

/// Draws ssh, mosh and rove side by side, from a real run
#[derive(Args, Clone, Debug)]
pub(crate) struct FilmFlags {
    /// Where the picture goes
    #[arg(long, value_name = "FILE", default_value = "results/film.svg")]
    pub out: PathBuf,
    /// Only programs whose name holds this, or one of these with commas between them
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// The first line alone, to see that everything works
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub link: LinkFlags,
}

/// Makes it.
///
/// # Errors
/// If there can be no links here, a program does not start, or the file cannot be written.
pub(crate) fn run(flags: &FilmFlags) -> io::Result<i32> {
    let mut reels = Vec::new();
    for (name, contender) in [
        ("ssh", Contender::ssh(usual())),
        ("mosh", Contender::mosh()),
        ("rove", Contender::rove(Wire::Native)),
    ] {
        if is_wanted(flags.only.as_deref(), name) {
            let reel = Reel::shoot(name, &contender, flags)?;
            println!("{name}: {}", reel.summary());
            reels.push(reel);
        }
    }
    if reels.is_empty() {
        return Err(io::Error::other("no program is left to film"));
    }
    let title = format!("The same keys over the same link: {}", flags.link.describe());
    if let Some(directory) = flags.out.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(&flags.out, to_svg(&title, &reels))?;
    println!("{}", flags.out.display());
    let directory = flags.out.parent().unwrap_or(Path::new(""));
    let name = flags.out.file_stem().unwrap_or_default().to_string_lossy();
    let keys = reels.iter().map(|reel| reel.latencies.len() as u64);
    let programs: Vec<Value> = reels.iter().map(Reel::to_json).collect();
    let json = json!({
        "title": title,
        "command": provenance::command("film"),
        "n": range_of(keys),
        "programs": programs,
    });
    save_json(directory, &name, json, [REAL, DEPENDS].concat())?;
    Ok(0)
}

/// The parts of the lab that the film comes from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &["crates/lab/src/real/film.rs"];

/// What one client showed over time.
struct Reel {
    name: &'static str,
    /// Each different screen since the first key, in order.
    pictures: Vec<(Duration, Picture)>,
    /// The keys as a person sees them, and when each was typed.
    typed: Vec<(Duration, String)>,
    /// When each key with an effect was seen.
    seen: Vec<Duration>,
    latencies: Vec<f64>,
    over: Duration,
}

/// The rows of a screen as runs of equal looks, and the cursor.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Picture {
    rows: Vec<Vec<Run>>,
    cursor: (u16, u16),
}

/// Text that looks alike.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Run {
    col: u16,
    cols: u16,
    text: String,
    underlined: bool,
    inverse: bool,
}

impl Reel {
    fn shoot(name: &'static str, contender: &Contender, flags: &FilmFlags) -> io::Result<Reel> {
        let scratch = Scratch::new()?;
        let cast = scratch.join("film.cast");
        write_script(&cast, flags)?;
        let trace = Trace::load(&cast)?;
        let deeds = deeds(&trace);
        let path = Scenario::alike(flags.link.profile(), flags.link.seed);
        let setup = Setup::playing(contender, &cast, trace.size, path)?;
        let mut stage = Stage::start(Setup { echo: Echo::Default, ..setup }, scratch, READY)?;
        stage.begin();
        stage.rest(SETTLE)?;
        let mut pictures: Vec<(Duration, Picture)> = Vec::new();
        let mut shoot = |stage: &Stage, since| {
            let picture = Picture::of(stage.client.screen());
            if pictures.last().is_none_or(|(_, last)| *last != picture) {
                pictures.push((since, picture));
            }
        };
        let seen = type_keys(&mut stage, &trace, &deeds, WAIT_MAX, |stage, since| {
            shoot(stage, since);
            Ok(())
        })?;
        let Seen { latencies, typed, .. } = seen.whole(&stage)?;
        let begin = deeds.first().map_or(Duration::ZERO, |deed| deed.at);
        let key = |octets: &[u8]| String::from_utf8_lossy(octets).replace('\r', "⏎");
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let seen: Vec<_> = typed.iter().zip(&latencies).map(|(at, late)| *at + ms(*late)).collect();
        let over = seen.iter().copied().max().unwrap_or_default();
        shoot(&stage, over);
        let typed = deeds.iter().map(|deed| (deed.at - begin, key(&deed.octets))).collect();
        Ok(Reel { name, pictures, typed, seen, latencies, over })
    }

    fn to_json(&self) -> Value {
        let median = Summary::of(&self.latencies).map(|latencies| tenths(latencies.median));
        json!({ "name": self.name, "keys": self.latencies.len(), "median": median })
    }

    fn summary(&self) -> String {
        match Summary::of(&self.latencies) {
            Some(Summary { median, .. }) => {
                format!("{} keys, seen after {median:.1} ms in the median", self.seen.len())
            }
            None => "no key was seen".to_owned(),
        }
    }
}

/// Writes a recording of a person who types a few commands at a prompt that echoes each key at once.
fn write_script(path: &Path, flags: &FilmFlags) -> io::Result<()> {
    let mut rng = Rng::new(flags.link.seed);
    let mut writer = Writer::new(File::create(path)?, Size::clamped(ROWS, COLS), "film")?;
    let mut at = Duration::ZERO;
    writer.program(at, "film")?;
    writer.output(at, format!("{READY} ").as_bytes())?;
    at += Duration::from_secs(1);
    let lines = if flags.quick { &SCRIPT[..1] } else { &SCRIPT };
    for (command, answer) in lines {
        for letter in command.chars() {
            at += rng.span_within(KEY_GAP.0, KEY_GAP.1);
            writer.key(at, letter.to_string().as_bytes())?;
            writer.output(at + ECHO, letter.to_string().as_bytes())?;
        }
        at += 2 * KEY_GAP.1;
        writer.key(at, b"\r")?;
        writer.output(at + ECHO, format!("\r\n{answer}{READY} ").as_bytes())?;
        at += 3 * KEY_GAP.1;
    }
    Ok(())
}

impl Picture {
    fn of(screen: &Screen) -> Picture {
        let Size { rows, cols, .. } = screen.size();
        let cursor = screen.cursor();
        let rows = (0..rows).map(|row| runs(screen, row, cols)).collect();
        Picture { rows, cursor: (cursor.row, cursor.col) }
    }
}

/// The runs of a row, without blanks at its end.
fn runs(screen: &Screen, row: u16, cols: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for col in 0..cols {
        let Some(cell) = screen.cell(row, col).filter(|cell| cell.width() != Width::Tail) else {
            continue;
        };
        let attrs = screen.cell_style(row, col).attrs;
        let underlined = attrs.underline() != Underline::None;
        let inverse = attrs.contains(Attrs::INVERSE);
        let mut text = String::new();
        screen.pool().push_text(cell, &mut text);
        if text.is_empty() {
            text.push(' ');
        }
        let cols = if cell.width() == Width::Wide { 2 } else { 1 };
        match runs.last_mut() {
            Some(run) if run.underlined == underlined && run.inverse == inverse => {
                run.cols += cols;
                run.text += &text;
            }
            _ => runs.push(Run { col, cols, text, underlined, inverse }),
        }
    }
    while let Some(run) = runs.last_mut() {
        if run.underlined || run.inverse {
            break;
        }
        let trimmed = run.text.trim_end_matches(' ').len();
        run.cols -= (run.text.len() - trimmed) as u16;
        run.text.truncate(trimmed);
        if !run.text.is_empty() {
            break;
        }
        runs.pop();
    }
    runs
}

/// The film as SVG.
fn to_svg(title: &str, reels: &[Reel]) -> String {
    let over = reels.iter().map(|reel| reel.over).max().unwrap_or_default();
    let total = over + HOLD;
    let panel = f64::from(COLS) * CELL.0 + 2.0 * PAD;
    let width = reels.len().max(1) as f64 * (panel + PAD) + PAD;
    let height = TOP + f64::from(ROWS) * CELL.1 + 2.0 * PAD + BOTTOM;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"{FONT}\" xml:space=\"preserve\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#f6f8fa\"/>\n\
         <text x=\"{PAD}\" y=\"20\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#1f2328\">{}</text>\n",
        escape(title)
    );
    if let Some(first) = reels.first() {
        typed_line(&mut out, first, total);
    }
    for (place, reel) in reels.iter().enumerate() {
        let left = PAD + place as f64 * (panel + PAD);
        reel_panel(&mut out, reel, left, panel, total);
    }
    out + "</svg>\n"
}

/// The keys typed so far, on one line that moves on with the last.
fn typed_line(out: &mut String, reel: &Reel, total: Duration) {
    let mut text = String::new();
    for (number, (at, key)) in reel.typed.iter().enumerate() {
        text += key;
        let until = reel.typed.get(number + 1).map_or(total, |(next, _)| *next);
        let start = text.char_indices().rev().nth(TYPED_COLUMNS - 1).map_or(0, |(place, _)| place);
        during(out, *at..until, total, |out| {
            let _ = write!(
                out,
                "<text x=\"{PAD}\" y=\"40\" fill=\"#57606a\">typed: {}</text>",
                escape(&text[start..])
            );
        });
    }
}

/// One terminal with its name above and its count below.
fn reel_panel(out: &mut String, reel: &Reel, left: f64, width: f64, total: Duration) {
    let height = f64::from(ROWS) * CELL.1 + 2.0 * PAD;
    let _ = write!(
        out,
        "<g transform=\"translate({left:.1} {TOP:.1})\">\n<text y=\"-6\" font-weight=\"bold\" \
         fill=\"#1f2328\">{}</text>\n<rect width=\"{width:.1}\" height=\"{height:.1}\" rx=\"5\" fill=\"#0d1117\"/>\n",
        reel.name
    );
    for row in 0..usize::from(ROWS) {
        each_span(
            &reel.pictures,
            total,
            |picture| &picture.rows[row],
            |span, runs| {
                if !runs.is_empty() {
                    during(out, span, total, |out| runs.iter().for_each(|run| draw(out, run, row)));
                }
            },
        );
    }
    each_span(
        &reel.pictures,
        total,
        |picture| &picture.cursor,
        |span, (row, col)| {
            during(out, span, total, |out| {
                let (x, y) = (PAD + f64::from(*col) * CELL.0, PAD + f64::from(*row) * CELL.1);
                let _ = write!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#e6edf3\" opacity=\"0.6\"/>",
                    CELL.0, CELL.1
                );
            });
        },
    );
    let mut seen = reel.seen.clone();
    seen.sort();
    let keys = seen.len();
    let steps = std::iter::once(Duration::ZERO).chain(seen.iter().copied());
    let steps: Vec<Duration> = steps.collect();
    for (count, at) in steps.iter().enumerate() {
        let until = steps.get(count + 1).copied().unwrap_or(total);
        let words = match count == keys {
            true => reel.summary(),
            false => format!("{count} of {keys} keys on the screen"),
        };
        during(out, *at..until, total, |out| {
            let _ = write!(
                out,
                "<text y=\"{:.1}\" font-family=\"sans-serif\" fill=\"#57606a\">{words}</text>",
                height + 18.0
            );
        });
    }
    *out += "</g>\n";
}

/// One run of a row.
fn draw(out: &mut String, run: &Run, row: usize) {
    let (x, y) = (PAD + f64::from(run.col) * CELL.0, PAD + row as f64 * CELL.1);
    let width = f64::from(run.cols) * CELL.0;
    let color = if run.inverse { "#0d1117" } else { "#e6edf3" };
    if run.inverse {
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"#e6edf3\"/>",
            CELL.1
        );
    }
    let line = if run.underlined { " text-decoration=\"underline\"" } else { "" };
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         fill=\"{color}\"{line}>{}</text>",
        y + CELL.1 - 4.0,
        escape(&run.text)
    );
}

/// Calls `each` with every span in which one part of the pictures stays the same.
fn each_span<'a, T: PartialEq + 'a>(
    pictures: &'a [(Duration, Picture)],
    total: Duration,
    part: impl Fn(&'a Picture) -> &'a T,
    mut each: impl FnMut(std::ops::Range<Duration>, &'a T),
) {
    let mut since: Option<(Duration, &T)> = None;
    for (at, picture) in pictures {
        let now = part(picture);
        match since {
            Some((_, before)) if before == now => {}
            Some((from, before)) => {
                each(from..*at, before);
                since = Some((*at, now));
            }
            None => since = Some((Duration::ZERO, now)),
        }
    }
    if let Some((from, last)) = since {
        each(from..total, last);
    }
}

/// Draws what is visible in one span of the film, which repeats for ever.
fn during(
    out: &mut String,
    span: std::ops::Range<Duration>,
    total: Duration,
    draw: impl FnOnce(&mut String),
) {
    let share = |at: Duration| at.as_secs_f64() / total.as_secs_f64();
    let (from, to) = (share(span.start), share(span.end.min(total)));
    if from >= to {
        return;
    }
    let (times, values) = match (from > 0.0, to < 1.0) {
        (true, true) => (format!("0;{from:.5};{to:.5}"), "hidden;visible;hidden"),
        (true, false) => (format!("0;{from:.5}"), "hidden;visible"),
        (false, true) => (format!("0;{to:.5}"), "visible;hidden"),
        (false, false) => ("0".to_owned(), "visible"),
    };
    let last = if to < 1.0 { " visibility=\"hidden\"" } else { "" };
    let _ = write!(
        out,
        "<g{last}><animate attributeName=\"visibility\" dur=\"{:.2}s\" repeatCount=\"indefinite\" \
         calcMode=\"discrete\" keyTimes=\"{times}\" values=\"{values}\"/>",
        total.as_secs_f64()
    );
    draw(out);
    *out += "</g>\n";
}

/// The keys, and what each line answers.
const SCRIPT: [(&str, &str); 3] = [
    ("cd rove && git log -1 --oneline", "4f0c1d2 ssp: count loss per path\r\n"),
    ("grep -c fn src/*.rs", "src/lib.rs:12\r\nsrc/time.rs:31\r\n"),
    ("echo typing on a train", "typing on a train\r\n"),
];

/// Small, so that three stand beside each other.
const ROWS: u16 = 10;
const COLS: u16 = 40;
/// Between two keys of somebody who types fast.
const KEY_GAP: (Duration, Duration) = (Duration::from_millis(90), Duration::from_millis(190));
/// The time the program takes to answer a key.
const ECHO: Duration = Duration::from_millis(1);
/// The path loses from now on, and nobody types yet.
const SETTLE: Duration = Duration::from_secs(2);
/// How long keys that are not seen are waited for.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// How long the last pictures stay.
const HOLD: Duration = Duration::from_secs(3);
/// Of the line of typed keys.
const TYPED_COLUMNS: usize = 60;

const FONT: f64 = 11.0;
/// Width and height of a cell.
const CELL: (f64, f64) = (6.7, 15.0);
const PAD: f64 = 8.0;
const TOP: f64 = 68.0;
const BOTTOM: f64 = 30.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(text: &str) -> Picture {
        let run = |text: &str| Run {
            col: 0,
            cols: text.len() as u16,
            text: text.to_owned(),
            underlined: false,
            inverse: false,
        };
        let mut rows = vec![Vec::new(); ROWS.into()];
        rows[0].push(run(text));
        Picture { rows, cursor: (0, text.len() as u16) }
    }

    #[test]
    fn every_picture_is_shown_in_its_span_and_the_last_to_the_end() {
        let ms = Duration::from_millis;
        let pictures =
            vec![(ms(0), picture("$")), (ms(500), picture("$ a")), (ms(700), picture("$ a<"))];
        let reel = Reel {
            name: "ssh",
            pictures,
            typed: vec![(ms(0), "a".to_owned())],
            seen: vec![ms(500)],
            latencies: vec![500.0],
            over: ms(1_000),
        };
        let svg = to_svg("a & b", &[reel]);
        for part in [
            "a &amp; b",
            "dur=\"4.00s\"",
            "keyTimes=\"0;0.12500\" values=\"visible;hidden\"",
            "keyTimes=\"0;0.12500;0.17500\" values=\"hidden;visible;hidden\"",
            "keyTimes=\"0;0.17500\" values=\"hidden;visible\"",
            ">$ a&lt;</text>",
            "0 of 1 keys on the screen",
            "1 keys, seen after 500.0 ms in the median",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        let (opened, closed) = (svg.matches("<g").count(), svg.matches("</g>").count());
        assert_eq!(opened, closed);
    }
}
