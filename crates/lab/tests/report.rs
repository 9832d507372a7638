//! The page of results, in a real browser: it shows every result at the width of a desk and of a phone, in
//! light and in dark, and asks the network for nothing.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{lab_program, say};
use rove_lab::scratch::Scratch;

/// The results of the repository as they are.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results");

/// What makes the page believe that its reader prefers dark.
const DARK: [&str; 2] = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"];

fn page(scratch: &Scratch) -> PathBuf {
    let out = scratch.join("report.html");
    let mut command = Command::new(lab_program());
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
    let Some(browser) =
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
            Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
        })
    else {
        say("skipped: no chromium (apt-get install chromium)");
        return;
    };
    let scratch = Scratch::new().unwrap();
    let page = page(&scratch);
    for (name, size, flags) in
        [("desk", "1280,2000", &[][..]), ("phone", "500,2000", &[]), ("dark", "1280,2000", &DARK)]
    {
        let shot = scratch.join(&format!("{name}.png"));
        shoot(browser, &scratch, &page, size, flags, &shot);
        let png = std::fs::read(&shot).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(png.starts_with(b"\x89PNG") && png.len() > 20_000, "{name}: {} octets", png.len());
    }
    // What the browser made of it: every section, laid out.
    let mut command = headless(browser, &scratch);
    let output =
        command.arg("--dump-dom").arg(format!("file://{}", page.display())).output().unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(dom.matches("<section").count() > 3 && dom.matches("<svg").count() > 1, "{dom}");
}

fn shoot(browser: &str, scratch: &Scratch, page: &Path, size: &str, flags: &[&str], shot: &Path) {
    let mut command = headless(browser, scratch);
    command.args(flags);
    command.arg(format!("--window-size={size}")).arg(format!("--screenshot={}", shot.display()));
    let output = command.arg(format!("file://{}", page.display())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn headless(browser: &str, scratch: &Scratch) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", browser, "--headless", "--no-sandbox", "--disable-gpu"]);
    command.args(["--disable-quic", "--no-first-run", "--disable-background-networking"]);
    command.args(["--disable-component-update", "--disable-sync", "--hide-scrollbars"]);
    command.arg(format!("--user-data-dir={}", scratch.join("profile").display()));
    command.env("HOME", scratch.path());
    command
}
