//! `rove-lab stale`: lists the results that are older than the code that made them. Each result names its commit and
//! the paths that it depends on ([`Provenance`]); git tells which commits have changed those since.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use crate::files::read_text;
use crate::provenance::{Provenance, git, numbers_from};

/// Lists the results that are older than the code that made them
///
/// A result is stale if a commit behind its own changes a path that it depends on. Unit tests in files of their own count
/// only if it depends on tests. The exit status is 1 if some are stale. Results without a commit are listed as undated:
/// nobody knows which code made them.
#[derive(Args, Clone, Debug)]
pub(crate) struct StaleFlags {
    /// The results
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    results: PathBuf,
}

/// Prints the list.
///
/// # Errors
/// If results cannot be read, or their commits cannot be looked up: there is no checkout, or it lacks one of them.
pub(crate) fn run(flags: &StaleFlags) -> io::Result<i32> {
    git(&["rev-parse", "HEAD"])?;
    let (mut stale, mut undated, mut fresh) = (Vec::new(), Vec::new(), 0);
    for (name, recorded) in results(&flags.results)? {
        let Some((recorded, commit)) =
            recorded.as_ref().and_then(|recorded| Some((recorded, recorded.commit()?)))
        else {
            undated.push(name);
            continue;
        };
        let since = since(commit, &recorded.depends())
            .map_err(|error| io::Error::other(format!("{name}, commit {commit}: {error}")))?;
        match (since, recorded.changed().as_slice()) {
            (Some(newer), _) => stale.push(format!("{name}: {}\n  {newer}", at(recorded, commit))),
            (None, []) => fresh += 1,
            (None, changed) => {
                let what = "made from what is no commit";
                let changed = changed.join(", ");
                stale.push(format!("{name}: {}\n  {what}: {changed}", at(recorded, commit)));
            }
        }
    }
    for line in &stale {
        println!("stale    {line}");
    }
    for name in &undated {
        println!("undated  {name}");
    }
    println!("{} stale, {} undated, {fresh} as the code is", stale.len(), undated.len());
    Ok(i32::from(!stale.is_empty()))
}

fn at(recorded: &Provenance, commit: &str) -> String {
    format!("recorded {} at {}", recorded.date(), short(commit))
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// All results by name, with what they say of themselves: each JSON, and each Markdown without one.
fn results(directory: &Path) -> io::Result<Vec<(String, Option<Provenance>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let kind = path.extension().map(|kind| kind.to_string_lossy().into_owned());
        let has_json = path.with_extension("json").exists();
        let recorded = match kind.as_deref() {
            Some("json") => {
                let json: Value = serde_json::from_str(&read_text(&path, FILE_BYTES_MAX)?)
                    .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
                Provenance::of_result(&json)
            }
            Some("md") if !has_json => Provenance::of_markdown(&read_text(&path, FILE_BYTES_MAX)?),
            _ => continue,
        };
        found.push((name, recorded));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    match found.is_empty() {
        true => Err(io::Error::other(format!("no results in {}", directory.display()))),
        false => Ok(found),
    }
}

/// The first commit behind this one that changes one of these paths, and the path; `None` if there is none.
fn since(commit: &str, depends: &[&str]) -> io::Result<Option<String>> {
    // A commit that this checkout lacks is an error, also where nothing has changed since.
    git(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{commit}}")])
        .map_err(|_| io::Error::other("this checkout does not have it"))?;
    let range = format!("{commit}..HEAD");
    let log = [
        "log",
        "--reverse",
        "--name-only",
        "--format=commit %h %ad %s",
        "--date=short",
        &range,
        "--",
    ];
    let said = git(&[&log[..], &numbers_from(depends)].concat())?;
    let mut lines = said.lines().filter(|line| !line.is_empty());
    let Some(newer) = lines.next().and_then(|line| line.strip_prefix("commit ")) else {
        return Ok(None);
    };
    let path = lines.next().unwrap_or("a merge");
    Ok(Some(format!("{newer}: {path}")))
}

/// The longest result.
const FILE_BYTES_MAX: u64 = 64 << 20;
