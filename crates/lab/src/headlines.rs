//! `rove-lab headlines`: writes the figures that documents quote, so that they cannot drift from the results.
//!
//! A document has regions between `<!-- figures: NAME -->` and `<!-- end of figures -->`. Each is made from a template
//! of that name, in which `{...}` is a figure ([`figure`]).

mod figure;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::files::read_text;
use figure::Results;

/// Writes the figures that documents quote from the results
#[derive(Args, Clone, Debug)]
pub(crate) struct HeadlinesFlags {
    /// The results
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    results: PathBuf,
    /// Write nothing; the exit status is 1 if a document differs
    #[arg(long)]
    check: bool,
    /// The documents, instead of README.md and those of docs/ that quote results
    #[arg(value_name = "FILE")]
    documents: Vec<PathBuf>,
}

/// Writes the regions of all documents anew.
///
/// # Errors
/// If a document has no region or one without an end or a template, or a figure is not in the results.
pub(crate) fn run(flags: &HeadlinesFlags) -> io::Result<i32> {
    let results = Results::new(&flags.results);
    let usual = || DOCUMENTS.iter().map(PathBuf::from).collect();
    let documents: Vec<PathBuf> =
        if flags.documents.is_empty() { usual() } else { flags.documents.clone() };
    let mut differing = 0;
    for document in &documents {
        let text = read_text(document, FILE_BYTES_MAX)?;
        let at = |error| io::Error::other(format!("{}: {error}", document.display()));
        let written = filled(&text, &results).map_err(at)?;
        if written == text {
            continue;
        }
        differing += 1;
        match flags.check {
            true => println!("{} differs from the results", document.display()),
            false => write(document, &written)?,
        }
    }
    Ok(i32::from(flags.check && differing > 0))
}

fn write(document: &Path, text: &str) -> io::Result<()> {
    println!("{}", document.display());
    fs::write(document, text)
}

/// A document with its regions made anew.
fn filled(text: &str, results: &Results) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, region)) = rest.split_once(BEGIN) {
        let (name, region) = region.split_once(BEGIN_END).ok_or("a region without a name")?;
        let (_, after) =
            region.split_once(END).ok_or(format!("{name}: a region without an end"))?;
        let template = TEMPLATES.iter().find(|(known, _)| *known == name);
        let (_, template) = template.ok_or(format!("{name}: no template has this name"))?;
        let figures = figures(template, results).map_err(|error| format!("{name}: {error}"))?;
        out += &format!("{before}{BEGIN}{name}{BEGIN_END}{figures}{END}");
        rest = after;
    }
    if out.is_empty() {
        return Err("no region for figures".to_owned());
    }
    Ok(out + rest)
}

/// A template with its figures.
fn figures(template: &str, results: &Results) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), template);
    while let Some((before, figure)) = rest.split_once('{') {
        let (figure, after) = figure.split_once('}').ok_or("a figure without an end")?;
        out += before;
        out += &results.figure(figure).map_err(|error| format!("{{{figure}}}: {error}"))?;
        rest = after;
    }
    Ok(out + rest)
}

/// Around the regions of a document.
const BEGIN: &str = "<!-- figures: ";
const BEGIN_END: &str = " (`rove-lab headlines` writes them) -->\n";
const END: &str = "<!-- end of figures -->";

/// The documents that quote results.
const DOCUMENTS: [&str; 4] =
    ["README.md", "docs/design/screen-model.md", "docs/design/streams.md", "docs/results.md"];

/// The templates of regions, by name.
const TEMPLATES: [(&str, &str); 7] = [
    ("readme", include_str!("headlines/readme.md")),
    ("keys", include_str!("headlines/keys.md")),
    ("sessions", include_str!("headlines/sessions.md")),
    ("screens", include_str!("headlines/screens.md")),
    ("copies", include_str!("headlines/copies.md")),
    ("streams", include_str!("headlines/streams.md")),
    ("screen-model", include_str!("headlines/screen-model.md")),
];

/// The longest document.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn what_is_no_region_is_an_error() {
        let scratch = Scratch::new().unwrap();
        let results = Results::new(scratch.path());
        for (text, want) in [
            ("no region", "no region"),
            ("<!-- figures: readme", "without a name"),
            (
                "<!-- figures: x (`rove-lab headlines` writes them) -->\n",
                "x: a region without an end",
            ),
            (
                "<!-- figures: x (`rove-lab headlines` writes them) -->\n<!-- end of figures -->",
                "x: no template",
            ),
        ] {
            let error = filled(text, &results).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
        assert_eq!(figures("a {b", &results).unwrap_err(), "a figure without an end");
        assert_eq!(figures("nothing", &results).unwrap(), "nothing");
    }
}
