//! Shows a copy's progress: a bar on a terminal, a line now and then elsewhere, or JSON.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};

use crate::copy::message::shown;
use crate::copy::plan::Style;
use crate::copy::watch::{Current, Tally, Watch};

/// Interval of reading the counters.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Interval of progress lines where there is no bar.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The same for programs that read JSON.
const JSON_EVERY: Duration = Duration::from_secs(1);

/// How a copy ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ending {
    /// It has done everything.
    Whole,
    /// It ended early.
    BrokenOff,
}

/// Shows one copy.
pub(super) struct Show {
    style: Style,
    bar: Option<ProgressBar>,
    told_at: Duration,
    /// Added to the last line: it went another way than usual.
    way: &'static str,
}

impl Show {
    pub(super) fn new(style: Style) -> Show {
        let bar = (style == Style::Usual && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            let template = "{wide_msg} {percent:>3}% {bytes:>11} {bytes_per_sec:>13} {eta_precise}";
            // The template is ours and has only keys that exist.
            let look = ProgressStyle::with_template(template);
            bar.set_style(look.expect("the template is well formed"));
            bar
        });
        Show { style, bar, told_at: Duration::ZERO, way: "" }
    }

    /// Shows where the copy is, `elapsed` after its start.
    pub(super) fn look(&mut self, watch: &Watch, elapsed: Duration) {
        self.failures(watch);
        watch.take_notes().iter().for_each(|line| self.note(line));
        let tally = watch.tally();
        if let Some(bar) = &self.bar {
            bar.set_length(tally.bytes_listed.max(tally.bytes));
            bar.set_position(tally.bytes);
            let more = if tally.is_listed { "" } else { "+" };
            let (files, listed) = (tally.files, tally.files_listed);
            bar.set_message(format!("{files}/{listed}{more} {}", doing(&watch.current())));
            return;
        }
        let every = match self.style {
            Style::Quiet => return,
            Style::Usual => LINE_EVERY,
            Style::Json => JSON_EVERY,
        };
        if elapsed < self.told_at + every {
            return;
        }
        self.told_at = elapsed;
        match self.style {
            Style::Json => print(&json("progress", &tally, elapsed)),
            _ => tell(&progress(&tally, &watch.current(), elapsed)),
        }
    }

    /// Prints a line that is no failure of the copy's.
    pub(super) fn note(&self, line: &str) {
        match (self.style, &self.bar) {
            (Style::Quiet | Style::Json, _) => {}
            (Style::Usual, Some(bar)) => bar.println(format!("rove: {line}")),
            (Style::Usual, None) => tell(line),
        }
    }

    /// Prints the failures since the last call.
    fn failures(&self, watch: &Watch) {
        for line in watch.take_lines() {
            match (self.style, &self.bar) {
                (Style::Json, _) => {
                    print(&format!(r#"{{"type":"failure","message":{}}}"#, quoted(&line)));
                }
                (_, Some(bar)) => bar.println(format!("rove: {line}")),
                (_, None) => tell(&line),
            }
        }
    }

    /// UDP did not answer, which the last line says.
    pub(super) fn over_ssh(&mut self) {
        self.way = "; over ssh: UDP does not answer";
    }

    /// Prints how it ended; of a broken-off copy, only the failures.
    pub(super) fn end(&mut self, watch: &Watch, elapsed: Duration, ending: Ending) {
        self.failures(watch);
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let tally = watch.tally();
        match self.style {
            Style::Json => print(&json("summary", &tally, elapsed)),
            Style::Usual if ending == Ending::Whole => {
                tell(&format!("{}{}", summary(&tally, elapsed), self.way));
            }
            Style::Usual | Style::Quiet => {}
        }
        match tally.failed {
            _ if self.style == Style::Json => {}
            0 => {}
            1 => tell("1 thing failed"),
            failed => tell(&format!("{failed} things failed")),
        }
    }
}

/// The line for the current file.
fn doing(current: &Current) -> String {
    match current {
        Current::Nothing => "looking at what is there".to_owned(),
        Current::Checking(name, bytes) => format!("checking {name}, {} so far", HumanBytes(*bytes)),
        Current::Copying(name) => name.clone(),
    }
}

fn progress(tally: &Tally, current: &Current, elapsed: Duration) -> String {
    let more = if tally.is_listed { "" } else { " and more" };
    let mut line = format!(
        "{} of {} files{more}, {} of {}, {}/s",
        tally.files,
        tally.files_listed,
        HumanBytes(tally.bytes),
        HumanBytes(tally.bytes_listed.max(tally.bytes)),
        HumanBytes(rate(tally, elapsed)),
    );
    let left = tally.bytes_listed.saturating_sub(tally.bytes);
    if let Some(seconds) = left.checked_div(rate(tally, elapsed)).filter(|_| tally.is_listed) {
        line.push_str(&format!(", {} to go", HumanDuration(Duration::from_secs(seconds))));
    }
    if !matches!(current, Current::Copying(_)) {
        line.push_str("; ");
        line.push_str(&doing(current));
    }
    line
}

fn summary(tally: &Tally, elapsed: Duration) -> String {
    let files = match tally.files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    let mut line = format!(
        "{files}, {} in {:.1} s, {}/s",
        HumanBytes(tally.bytes),
        elapsed.as_secs_f64(),
        HumanBytes(rate(tally, elapsed)),
    );
    if tally.spared > 0 {
        line.push_str(&format!("; {} of it were there", HumanBytes(tally.spared)));
    }
    line
}

/// Octets copied a second, without those that were there already.
fn rate(tally: &Tally, elapsed: Duration) -> u64 {
    let copied = tally.bytes.saturating_sub(tally.spared) as f64;
    (copied / elapsed.as_secs_f64().max(0.001)) as u64
}

fn json(kind: &str, tally: &Tally, elapsed: Duration) -> String {
    let Tally { files_listed, bytes_listed, is_listed, files, bytes, spared, failed } = tally;
    format!(
        r#"{{"type":"{kind}","seconds":{:.3},"files":{files},"bytes":{bytes},"bytes_there":{spared},"failed":{failed},"files_listed":{files_listed},"bytes_listed":{bytes_listed},"listed":{is_listed}}}"#,
        elapsed.as_secs_f64(),
    )
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    // What is shown has no control characters.
    for c in shown(text.as_bytes()).chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

fn tell(line: &str) {
    // Nobody is left to be told when standard error is closed.
    let _ = writeln!(io::stderr(), "rove: {line}");
}

fn print(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let tally = Tally {
            files_listed: 4,
            bytes_listed: 10 << 20,
            is_listed: true,
            files: 2,
            bytes: 6 << 20,
            spared: 4 << 20,
            failed: 1,
        };
        let elapsed = Duration::from_secs(2);
        assert_eq!(
            progress(&tally, &Current::Copying("f".into()), elapsed),
            "2 of 4 files, 6.00 MiB of 10.00 MiB, 1.00 MiB/s, 4 seconds to go"
        );
        assert_eq!(
            summary(&tally, elapsed),
            "2 files, 6.00 MiB in 2.0 s, 1.00 MiB/s; 4.00 MiB of it were there"
        );
        assert_eq!(
            json("summary", &tally, elapsed),
            r#"{"type":"summary","seconds":2.000,"files":2,"bytes":6291456,"bytes_there":4194304,"failed":1,"files_listed":4,"bytes_listed":10485760,"listed":true}"#
        );
        assert_eq!(quoted("a \"b\" \\ \n"), r#""a \"b\" \\ ?""#);
        let start = Tally { is_listed: false, ..Tally::default() };
        assert_eq!(
            progress(&start, &Current::Nothing, Duration::ZERO),
            "0 of 0 files and more, 0 B of 0 B, 0 B/s; looking at what is there"
        );
        assert_eq!(doing(&Current::Checking("f".into(), 3 << 20)), "checking f, 3.00 MiB so far");
    }
}
