//! Tests the page of results in a real browser: it shows every result at the width of a desktop and of a phone, in
//! light and in dark, and makes no network request.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::path::PathBuf;
use std::process::{Command, Output};

use common::{lab_command, not_checked, retried};
use rove_lab::testing::run::limited;
use rove_lab::testing::scratch::Scratch;

/// The results of the repository as they are.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results");

/// Flags that make the page take its reader to prefer dark.
const DARK: [&str; 2] = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"];

fn page(scratch: &Scratch) -> PathBuf {
    let out = scratch.join("report.html");
    let mut command = lab_command();
    command.args(["report", "--results", RESULTS, "--out"]).arg(&out);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out
}

#[test]
fn every_result_is_on_the_page_and_nothing_is_elsewhere() {
    let scratch = Scratch::new().unwrap();
    let html = std::fs::read_to_string(page(&scratch)).unwrap();
    for entry in std::fs::read_dir(RESULTS).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|ending| ending == "md") {
            assert!(html.contains(&format!("<section id=\"{name}\">")), "{name}");
        }
    }
    for outside in ["src=", "@import", "url(", "<link", "<script"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(!html.contains("No such file"), "a figure is missing");
}

#[test]
fn a_browser_shows_it() {
    let scratch = Scratch::new().unwrap();
    let Some(browser) = browser(&scratch) else { return };
    let page = page(&scratch);
    let address = format!("file://{}", page.display());
    let mut shots = Vec::new();
    for (name, size, flags) in
        [("desk", "1280,2000", &[][..]), ("phone", "500,2000", &[]), ("dark", "1280,2000", &DARK)]
    {
        let shot = scratch.join(&format!("{name}.png"));
        let (size, file) =
            (format!("--window-size={size}"), format!("--screenshot={}", shot.display()));
        let output = browse(browser, &scratch, name, &[flags, &[&size, &file, &address]].concat());
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let png = std::fs::read(&shot).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(png.starts_with(b"\x89PNG") && png.len() > 20_000, "{name}: {} octets", png.len());
        shots.push(png);
    }
    assert!(shots[0] != shots[2], "dark is as light as the desk");
    // The browser's document: every section, laid out.
    let output = browse(browser, &scratch, "dom", &["--dump-dom", &address]);
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(dom.matches("<section").count() > 3 && dom.matches("<svg").count() > 1, "{dom}");
}

/// A browser that shows an empty page here; says why there is none.
fn browser(scratch: &Scratch) -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        limited(name, 20).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    let Some(browser) = found else {
        not_checked("a_browser_shows_it", "no chromium (apt-get install chromium)");
        return None;
    };
    let output = browse(browser, scratch, "probe", &["--dump-dom", "about:blank"]);
    if output.status.success() && String::from_utf8_lossy(&output.stdout).contains("<html") {
        return Some(browser);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = format!("{browser} shows no page here: {}: {said}", output.status);
    not_checked("a_browser_shows_it", why);
    None
}

/// Runs the browser with a profile of its own; once more if it had its time, as on a busy machine.
fn browse(browser: &str, scratch: &Scratch, name: &str, words: &[&str]) -> Output {
    let once = |profile: &str| headless(browser, scratch, profile).args(words).output().unwrap();
    let output = once(name);
    // No code: timeout had to kill the browser, and itself with it.
    if !matches!(output.status.code(), None | Some(124)) {
        return output;
    }
    let again = once(&format!("{name}-again"));
    if again.status.success() {
        retried("a_browser_shows_it", format!("{browser} for {name} had its time"));
    }
    again
}

fn headless(browser: &str, scratch: &Scratch, profile: &str) -> Command {
    let mut command = limited(browser, 120);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    command.args(["--disable-quic", "--no-first-run", "--disable-background-networking"]);
    command.args(["--disable-component-update", "--disable-sync", "--hide-scrollbars"]);
    command.arg(format!("--user-data-dir={}", scratch.join(profile).display()));
    command.env("HOME", scratch.path());
    command
}
