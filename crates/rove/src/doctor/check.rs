//! One thing that was looked at, and all of them as lines or as JSON.

use std::fmt;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

/// How it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rating {
    /// As it should be.
    Ok,
    /// Not so good; sessions work.
    Poor,
    /// Something does not work.
    No,
}

impl fmt::Display for Rating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rating::Ok => "ok",
            Rating::Poor => "--",
            Rating::No => "NO",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    /// Its name for programs.
    pub(crate) name: &'static str,
    pub(crate) verdict: Rating,
    /// Its name for people.
    pub(crate) title: String,
    /// The finding.
    pub(crate) says: String,
    /// What to do about it; empty if nothing.
    pub(crate) next: String,
    /// Measured values, for programs.
    pub(crate) figures: Vec<(&'static str, f64)>,
}

impl Check {
    /// All is well.
    pub(crate) fn ok(
        name: &'static str,
        title: impl Into<String>,
        says: impl Into<String>,
    ) -> Check {
        let (title, says) = (title.into(), says.into());
        Check { name, verdict: Rating::Ok, title, says, next: String::new(), figures: Vec::new() }
    }

    /// It is not so good, and this is to be done.
    pub(crate) fn but(self, next: impl Into<String>) -> Check {
        Check { verdict: Rating::Poor, next: next.into(), ..self }
    }

    /// It does not work, and this is to be done.
    pub(crate) fn fails(self, next: impl Into<String>) -> Check {
        Check { verdict: Rating::No, next: next.into(), ..self }
    }

    /// With what was measured.
    pub(crate) fn with(self, figures: impl IntoIterator<Item = (&'static str, f64)>) -> Check {
        Check { figures: figures.into_iter().collect(), ..self }
    }

    fn json(&self) -> Value {
        let figures = self.figures.iter().map(|(name, figure)| ((*name).to_owned(), json!(figure)));
        json!({
            "check": self.name,
            "verdict": self.verdict.to_string(),
            "title": self.title,
            "says": self.says,
            "next": self.next,
            "figures": figures.collect::<Map<_, _>>(),
        })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.verdict, self.title, self.says)?;
        match self.next.as_str() {
            "" => Ok(()),
            next => write!(f, ". {next}"),
        }
    }
}

/// How checks are shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// A line each, as soon as it is known.
    Lines,
    /// All of them at the end, for programs.
    Json,
}

/// The checks so far.
#[derive(Debug)]
pub(crate) struct Report {
    form: Form,
    checks: Vec<Check>,
}

impl Report {
    /// None yet.
    pub(crate) fn new(form: Form) -> Report {
        Report { form, checks: Vec::new() }
    }

    /// One more.
    pub(crate) fn add(&mut self, check: Check) {
        if self.form == Form::Lines {
            // Nobody is left to be told when standard output is closed.
            let _ = writeln!(io::stdout(), "{check}");
        }
        self.checks.push(check);
    }

    /// Shows what was not shown yet. Returns whether nothing fails.
    pub(crate) fn finish(&self, host: Option<&str>) -> bool {
        if self.form == Form::Json {
            let _ = writeln!(io::stdout(), "{:#}", self.json(host));
        }
        self.checks.iter().all(|check| check.verdict != Rating::No)
    }

    fn json(&self, host: Option<&str>) -> Value {
        json!({
            "rove": env!("CARGO_PKG_VERSION"),
            "host": host,
            "checks": self.checks.iter().map(Check::json).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let well = Check::ok("udp", "UDP", "answered");
        for (check, line) in [
            (well.clone(), "ok UDP: answered"),
            (well.clone().but("Move."), "-- UDP: answered. Move."),
            (well.fails("Open it."), "NO UDP: answered. Open it."),
        ] {
            assert_eq!(check.to_string(), line);
        }
    }

    #[test]
    fn for_programs() {
        let mut report = Report::new(Form::Json);
        assert!(report.finish(None));
        let check = Check::ok("clock", "clock", "a \"b\"\n").with([("seconds", 1.5)]);
        report.add(check.clone());
        report.add(check.fails("x"));
        let json = report.json(Some("h"));
        assert_eq!(json["host"], "h");
        assert_eq!(json["checks"][0]["figures"]["seconds"], 1.5);
        assert_eq!(json["checks"][0]["says"], "a \"b\"\n");
        assert_eq!(json["checks"][1]["verdict"], "NO");
        assert!(!report.finish(None));
    }
}
