//! `rove-lab report`: puts a directory of results on one HTML page that loads nothing from elsewhere.
//!
//! It reads the Markdown that experiments write: headings, paragraphs, tables, lists, code, and figures, whose SVG
//! it embeds. Everything else is shown as text.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

/// Gathers results into one self-contained HTML page
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportFlags {
    /// The results
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    results: PathBuf,
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "results/report.html")]
    out: PathBuf,
}

/// Writes the page.
///
/// # Errors
/// If results cannot be read, there are none, or the page cannot be written.
pub(crate) fn run(flags: &ReportFlags) -> io::Result<i32> {
    let mut sections = Vec::new();
    for entry in fs::read_dir(&flags.results)? {
        let path = entry?.path();
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let Some(name) = name.filter(|_| path.extension().is_some_and(|ending| ending == "md"))
        else {
            continue;
        };
        let text = fs::read_to_string(&path)?;
        sections.push(Section::of(name, &text, &flags.results));
    }
    if sections.is_empty() {
        return Err(io::Error::other(format!("no results in {}", flags.results.display())));
    }
    let rank = |name: &str| FIRST.split(' ').position(|first| first == name).unwrap_or(usize::MAX);
    sections.sort_by_key(|section| (rank(&section.name), section.name.clone()));
    fs::write(&flags.out, page(&sections))?;
    println!("{}: {} results", flags.out.display(), sections.len());
    Ok(0)
}

/// One result.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    name: String,
    title: String,
    body: String,
}

impl Section {
    /// From its Markdown; figures are files in the directory.
    pub(crate) fn of(name: String, text: &str, directory: &Path) -> Section {
        let mut title = name.clone();
        let mut body = String::new();
        let text = unwrapped(text);
        let mut lines = text.iter().copied().peekable();
        let mut untitled = true;
        while let Some(line) = lines.next() {
            if line.trim().is_empty() || line.starts_with("<!--") {
                continue;
            }
            if let Some(heading) = line.strip_prefix("# ").filter(|_| std::mem::take(&mut untitled))
            {
                title = heading.to_owned();
            } else if let Some(heading) =
                line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
            {
                let _ = writeln!(body, "<h3>{}</h3>", inline(heading));
            } else if line.starts_with("```") {
                let code: Vec<&str> =
                    lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
                let _ = writeln!(body, "<pre>{}</pre>", escape(&code.join("\n")));
            } else if line.starts_with('|') {
                let mut rows = vec![line];
                while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                    rows.push(row);
                }
                table(&mut body, &rows);
            } else if let Some(file) = figure(line) {
                match fs::read_to_string(directory.join(file)) {
                    Ok(svg) => body += &themed(&svg),
                    Err(error) => {
                        let _ = writeln!(
                            body,
                            "<p>{}: {}</p>",
                            escape(file),
                            escape(&error.to_string())
                        );
                    }
                }
            } else if line.starts_with("- ") || line.starts_with("* ") {
                let mut items = vec![line[2..].to_owned()];
                while let Some(next) =
                    lines.next_if(|line| !line.trim().is_empty() && !line.starts_with('|'))
                {
                    match next.strip_prefix("- ").or(next.strip_prefix("* ")) {
                        Some(item) => items.push(item.to_owned()),
                        None => items
                            .last_mut()
                            .into_iter()
                            .for_each(|item| *item += &format!(" {}", next.trim())),
                    }
                }
                let items: String =
                    items.iter().map(|item| format!("<li>{}</li>", inline(item))).collect();
                let _ = writeln!(body, "<ul>{items}</ul>");
            } else {
                let mut words = line.to_owned();
                while let Some(next) = lines.next_if(|line| is_text(line)) {
                    words += " ";
                    words += next.trim();
                }
                let kind = if words.starts_with("Made by ") { " class=\"made\"" } else { "" };
                let _ = writeln!(body, "<p{kind}>{}</p>", inline(&words));
            }
        }
        Section { name, title, body }
    }
}

/// The lines, without the fences around Markdown that a program printed.
fn unwrapped(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let rest = &lines[at + 1..];
        let end = rest.iter().position(|line| line.starts_with("```"));
        match end.filter(|_| lines[at].starts_with("```")) {
            Some(end) if rest[..end].iter().any(|line| line.starts_with("# ")) => {
                out.extend(&rest[..end]);
                at += end + 2;
            }
            // Fences of code stay together, lest the end of one is taken for a beginning.
            Some(end) => {
                out.extend(&lines[at..at + end + 2]);
                at += end + 2;
            }
            None => {
                out.push(lines[at]);
                at += 1;
            }
        }
    }
    out
}

fn is_text(line: &str) -> bool {
    !line.trim().is_empty()
        && !["|", "#", "```", "![", "- ", "* ", "<!--"].iter().any(|mark| line.starts_with(mark))
}

/// The page of these.
pub(crate) fn page(sections: &[Section]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>rove: results</title>\n\
         <style>{STYLE}</style></head><body>\n<header><h1>rove: results</h1>\n\
         <p>Each part names the command that makes it again. Where programs are compared they ran side by side, in the \
         same run, over the same emulated links.</p></header>\n<nav aria-label=\"Results\"><ol>"
    );
    for section in sections {
        let _ = write!(
            out,
            "<li><a href=\"#{0}\">{1}</a></li>",
            escape(&section.name),
            inline(&section.title)
        );
    }
    out += "</ol></nav>\n<main>\n";
    for section in sections {
        let _ = writeln!(
            out,
            "<section id=\"{}\"><h2>{}</h2>\n{}</section>",
            escape(&section.name),
            inline(&section.title),
            section.body
        );
    }
    out + "</main>\n</body></html>\n"
}

fn figure(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("![")?;
    let file = rest.split_once("](")?.1.strip_suffix(')')?;
    // A name and no path: what stands elsewhere is not ours to show.
    (file.ends_with(".svg") && !file.contains('/')).then_some(file)
}

/// The figure in the page's colours, as wide as it needs to be read.
fn themed(svg: &str) -> String {
    let width: f64 = svg
        .split_once(" width=\"")
        .and_then(|(_, rest)| rest.split_once('"')?.0.parse().ok())
        .unwrap_or(640.0);
    let svg = svg
        .replace("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>", "")
        .replace("stroke=\"black\"", "stroke=\"currentColor\"")
        .replace("stroke=\"#e5e5e5\"", "stroke=\"var(--line)\"")
        .replace("\"#000000\"", "\"currentColor\"")
        .replace("<text ", "<text fill=\"currentColor\" ");
    format!("<figure style=\"--natural:{:.0}px\">{svg}</figure>\n", width)
}

fn table(out: &mut String, rows: &[&str]) {
    let cells = |row: &str| -> Vec<String> {
        let row = row.trim().trim_start_matches('|');
        let row = row.strip_suffix('|').unwrap_or(row);
        row.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let is_rule = |row: &str| row.chars().all(|c| "|-: ".contains(c)) && row.contains('-');
    let mut rows = rows.iter().filter(|row| !is_rule(row));
    *out += "<div class=\"table\"><table><thead><tr>";
    for cell in rows.next().map(|row| cells(row)).unwrap_or_default() {
        let _ = write!(out, "<th>{}</th>", inline(&cell));
    }
    *out += "</tr></thead><tbody>";
    for row in rows {
        *out += "<tr>";
        for cell in cells(row) {
            let kind = match cell.chars().count() {
                _ if is_number(&cell) => " class=\"number\"",
                CELL_LONG.. => " class=\"long\"",
                _ => "",
            };
            let _ = write!(out, "<td{kind}>{}</td>", inline(&cell));
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div>\n";
}

/// Whether a cell holds a number, or several: "41.92 to 78.08".
fn is_number(cell: &str) -> bool {
    let mut words = cell.split(' ').filter(|word| !["to", "%", "±"].contains(word)).peekable();
    words.peek().is_some()
        && words.all(|word| word == "-" || word.trim_end_matches('%').parse::<f64>().is_ok())
}

/// Code, bold text and links within a line; everything else is text.
fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        out += &escape(&rest[..at]);
        rest = &rest[at..];
        let code = rest.strip_prefix('`').and_then(|rest| rest.split_once('`'));
        let bold = rest.strip_prefix("**").and_then(|rest| rest.split_once("**"));
        let link = rest
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]("))
            .and_then(|(words, rest)| Some((words, rest.split_once(')')?.1)));
        (out, rest) = match (code, bold, link) {
            (Some((code, rest)), ..) => (out + &format!("<code>{}</code>", escape(code)), rest),
            (_, Some((bold, rest)), _) => {
                (out + &format!("<strong>{}</strong>", escape(bold)), rest)
            }
            // The page stands alone: where a link leads to is not in it.
            (.., Some((words, rest))) => (out + &escape(words), rest),
            _ => (out + &escape(&rest[..1]), &rest[1..]),
        };
    }
    out + &escape(rest)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Characters from which on a cell has more than one line.
const CELL_LONG: usize = 45;

/// Results that come first, in this order; the rest follows by name.
const FIRST: &str = "paper cs244 keystroke privacy aoi interrupt-real roam-real ways attach bulk bulk-shallow bulk-keys \
    bulk-loopback bulk-ciphers bulk-shares bulk-files bulk-outages server loss predict";

/// One rule a line.
const STYLE: &str = include_str!("html/style.css");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn numbers_are_told_from_names_that_begin_with_one() {
        for number in ["1", "-0.5", "41.92 to 78.08", "0.37%", "-", "1e3"] {
            assert!(is_number(number), "{number}");
        }
        for name in ["", "273 ms, wired", "100 ms, 29 %", "1: new address", "to", "λ 0"] {
            assert!(!is_number(name), "{name}");
        }
    }

    #[test]
    fn markdown_becomes_a_section() {
        let scratch = Scratch::new().unwrap();
        let printed = Section::of(
            "y".into(),
            "Command: x\n\n```\n# Printed\n\n| a |\n|---|\n| 1 |\n```\n",
            scratch.path(),
        );
        assert!(printed.title == "Printed" && printed.body.contains("<table>"), "{printed:?}");
        let svg = "<svg width=\"700\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/><text x=\"1\">a</text></svg>";
        fs::write(scratch.join("x.svg"), svg).unwrap();
        let text = "# A `title`\n\nMade by `rove-lab x <y>`.\n\n![A](x.svg)\n\n**Bold & [a link](b.md)**\nmore\n\n\
                    | a | b |\n|---|---|\n| 1 | x<y |\n\n- one\n  more\n- two\n\n## Sub\n```\nl | x\n```\n![no](../x.svg)\n";
        let section = Section::of("x".into(), text, scratch.path());
        let page = page(&[section]);
        for want in [
            "<h2>A <code>title</code></h2>",
            "<p class=\"made\">Made by <code>rove-lab x &lt;y&gt;</code>.</p>",
            "<figure style=\"--natural:700px\"><svg width=\"700\"><text fill=\"currentColor\" x=\"1\">a</text></svg>",
            "<strong>Bold &amp; [a link](b.md)</strong> more</p>",
            "<th>b</th></tr></thead><tbody><tr><td class=\"number\">1</td><td>x&lt;y</td></tr>",
            "<ul><li>one more</li><li>two</li></ul>",
            "<h3>Sub</h3>\n<pre>l | x</pre>",
            "<p>![no](../x.svg)</p>",
        ] {
            let want = want.replace("![no](../x.svg)", "!no");
            assert!(page.contains(&want), "{want}\n{page}");
        }
        assert!(!page.contains("src=") && !page.contains("http"), "self-contained");
    }
}
