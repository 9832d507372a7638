//! Runs every client with every server on every link, with Debian's mosh 1.4.0 as the other make.
//!
//! One session for each pair and link walks all scenarios in turn; quitting and killing have sessions of their own.
//! After each scenario the client's screen must equal, cell by cell, the server's program's output as an emulator
//! shows it. Stock with stock is the control: its misses are listed, but do not fail. A cell that fails runs again
//! by itself on a link of another seed, and all outcomes are printed.
//!
//! `CELL=rove-stock-lossy cargo test -p rove-lab --test interop` runs only the cells whose name contains that.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use common::{chosen, lab_program, rove_program, say};
use rove_lab::testing::clock::Clock;
use rove_lab::testing::link::{Jitter, Order, Profile};
use rove_lab::testing::pair::{Make, Pair, Setup, Watch};
use rove_lab::testing::rng::Chance;
use rove_term::Size;

/// The network between client and server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Link {
    Clean,
    /// 30 % loss each way, 200 ms round trip, reordering.
    Lossy,
    /// Nothing passes for 60 s in the middle of the session.
    Blackout,
    /// The client's address changes before and within scenarios.
    Roaming,
}

/// The purpose of the session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Act {
    Walk,
    Quit,
    KillClient,
    KillServer,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cell {
    client: Make,
    server: Make,
    link: Link,
    act: Act,
}

const MAKES: [Make; 2] = [Make::Rove, Make::Stock];
/// The slowest first, so that they do not end up alone.
const LINKS: [Link; 4] = [Link::Blackout, Link::Lossy, Link::Roaming, Link::Clean];
const ACTS: [Act; 4] = [Act::Walk, Act::Quit, Act::KillClient, Act::KillServer];

/// Sessions at one time: most of them wait for their link most of the time.
const WORKERS: usize = 12;

/// How long one step of a session may take. Far more than any needs: 30 % loss each way and a busy machine
/// included.
const LIMIT: Duration = Duration::from_secs(60);

const BLACKOUT: Duration = Duration::from_secs(60);

const SIZE: Size = Size::DEFAULT;

#[test]
fn every_client_with_every_server_on_every_link() {
    let clock = Clock::start();
    let cells: Vec<Cell> = all_cells().filter(|cell| chosen("CELL", &cell.name())).collect();
    let results = run_all(&cells);
    let mut table = String::new();
    let (mut misses, mut failures) = (0, Vec::new());
    for (cell, first) in results {
        let control = (cell.client, cell.server) == (Make::Stock, Make::Stock);
        let mut outcome = tell(&first);
        let mut passed = first.is_ok();
        for seed in 2..=cell.seeds() {
            if passed {
                break;
            }
            let again = run(cell, seed);
            passed = again.is_ok();
            write!(outcome, "; again by itself: {}", tell(&again)).unwrap();
        }
        match (passed, control) {
            (true, _) => {}
            (false, true) => misses += 1,
            (false, false) => failures.push(cell.name()),
        }
        let control = if control { " (control)" } else { "" };
        writeln!(table, "{:32} {outcome}{control}", cell.name()).unwrap();
    }
    say(&table);
    let seconds = clock.elapsed().as_secs_f64();
    say(&format!(
        "interop: {} cells, {} failed, {misses} missed by the control, in {seconds:.0} s",
        cells.len(),
        failures.len()
    ));
    assert!(failures.is_empty(), "cells that failed each time: {failures:?}");
}

impl Cell {
    fn name(&self) -> String {
        let name = format!("{:?}-{:?}-{:?}-{:?}", self.client, self.server, self.link, self.act);
        name.to_lowercase()
    }

    /// The links that are tried, until one does. A stock server leaves once it has acknowledged the client's end a
    /// single time (mosh-protocol.md §4.4). Where 30 % of datagrams are lost, so are 30 % of these, and no client
    /// can end cleanly then.
    fn seeds(&self) -> u64 {
        match (self.server, self.link, self.act) {
            (Make::Stock, Link::Lossy, Act::Quit) => 5,
            _ => 2,
        }
    }

    fn start(&self, seed: u64) -> io::Result<Pair> {
        let profile = match self.link {
            Link::Lossy => Profile {
                jitter: Jitter::Uniform(Duration::from_millis(50)),
                order: Order::Free,
                ..Profile::delay(Duration::from_millis(75))
                    .loss(Chance::percent(30))
                    .reorder(Chance::percent(10), Duration::from_millis(200))
            },
            _ => Profile::delay(Duration::from_millis(5)),
        };
        Pair::start(&Setup {
            client: self.client,
            server: self.server,
            rove: rove_program(),
            lab: lab_program(),
            size: SIZE,
            up: profile.clone(),
            down: profile,
            seed,
            watch: Watch::Record,
        })
    }
}

fn all_cells() -> impl Iterator<Item = Cell> {
    LINKS.into_iter().flat_map(|link| {
        ACTS.into_iter().flat_map(move |act| {
            MAKES.into_iter().flat_map(move |client| {
                MAKES.into_iter().map(move |server| Cell { client, server, link, act })
            })
        })
    })
}

type Outcome = Result<Duration, String>;

fn run_all(cells: &[Cell]) -> Vec<(Cell, Outcome)> {
    let waiting = Mutex::new(cells.iter().copied());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS.min(cells.len()) {
            scope.spawn(|| {
                loop {
                    let Some(cell) = waiting.lock().unwrap().next() else { break };
                    let outcome = run(cell, 1);
                    results.lock().unwrap().push((cell, outcome));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(cell, _)| cells.iter().position(|other| other == cell));
    results
}

fn run(cell: Cell, seed: u64) -> Outcome {
    let clock = Clock::start();
    let begin = || {
        let mut pair = cell.start(seed)?;
        login(&mut pair)?;
        Ok::<Pair, io::Error>(pair)
    };
    let mut pair = begin().map_err(|error| format!("login: {error}"))?;
    let act = match cell.act {
        Act::Walk => walk(&mut pair, cell.link),
        Act::Quit => step("quit", across(&mut pair, cell.link).and_then(|()| quit(&mut pair))),
        Act::KillClient => {
            step("kill client", across(&mut pair, cell.link).and_then(|()| kill_client(&mut pair)))
        }
        Act::KillServer => {
            step("kill server", across(&mut pair, cell.link).and_then(|()| kill_server(&mut pair)))
        }
    };
    act.map(|()| clock.elapsed())
}

fn tell(outcome: &Outcome) -> String {
    match outcome {
        Ok(took) => format!("ok in {:.0} s", took.as_secs_f64()),
        Err(error) => format!("FAILED: {}", error.trim_end()),
    }
}

fn step(name: &str, result: io::Result<()>) -> Result<(), String> {
    result.map_err(|error| format!("{name}: {error}"))
}

/// All scenarios in one session.
fn walk(pair: &mut Pair, link: Link) -> Result<(), String> {
    step("command", pair.command("echo hello-$((1+1))", "hello-2", LIMIT))?;
    disturb(pair, link);
    step("vim", vim(pair, link))?;
    disturb(pair, link);
    step("colours", colours(pair))?;
    disturb(pair, link);
    step("resize storm", resize_storm(pair))?;
    disturb(pair, link);
    step("utf-8", utf8(pair))?;
    disturb(pair, link);
    step("exit", exit(pair))
}

/// A login shell's first prompt, shown alike at both ends.
fn login(pair: &mut Pair) -> io::Result<()> {
    pair.wait_for("the shell's prompt", LIMIT, at_prompt)?;
    pair.settle(LIMIT)
}

/// Between two scenarios a roaming client moves.
fn disturb(pair: &mut Pair, link: Link) {
    if link == Link::Roaming {
        pair.relay().roam();
    }
}

/// Survives the link's disturbances, and works afterwards.
fn across(pair: &mut Pair, link: Link) -> io::Result<()> {
    match link {
        Link::Clean | Link::Lossy => {}
        Link::Roaming => pair.relay().roam(),
        Link::Blackout => pair.relay().blackout(BLACKOUT),
    }
    let limit = if link == Link::Blackout { BLACKOUT + LIMIT } else { LIMIT };
    pair.command("echo across-$((4+1))", "across-5", limit)
}

/// Writes a file in vim. On the links that change, the change comes between two lines.
fn vim(pair: &mut Pair, link: Link) -> io::Result<()> {
    pair.send("vim -N -u NONE -i NONE note.txt\r");
    pair.wait_for("vim", LIMIT, |pair| pair.wrote("note.txt") && pair.wrote("~"))?;
    pair.settle(LIMIT)?;
    pair.send("ifirst line");
    pair.wait_for("the first line", LIMIT, |pair| pair.wrote("first line"))?;
    let mut limit = LIMIT;
    match link {
        Link::Clean | Link::Lossy => {}
        Link::Roaming => pair.relay().roam(),
        Link::Blackout => {
            pair.relay().blackout(BLACKOUT);
            limit += BLACKOUT;
        }
    }
    pair.send("\rsecond line");
    pair.wait_for("the second line", limit, |pair| pair.wrote("second line"))?;
    pair.settle(limit)?;
    // Opens a line below the first and one above it, and moves the last: vim scrolls parts of the screen.
    pair.send("\x1bkothird line\x1bggOzeroth line\x1bGddp:wq\r");
    let wanted = "zeroth line\nfirst line\nthird line\nsecond line\n";
    let file = pair.home().join("note.txt");
    pair.wait_for("the saved file", LIMIT, |_| {
        fs::read_to_string(&file).is_ok_and(|text| text == wanted)
    })?;
    // Keys typed before vim has given the terminal back are vim's.
    pair.wait_for("the prompt after vim", LIMIT, at_prompt)?;
    pair.command("echo saved-$((1+2))", "saved-3", LIMIT)
}

/// 200 kB of text in every kind of colour.
fn colours(pair: &mut Pair) -> io::Result<()> {
    let mut text = String::new();
    for line in 0u32.. {
        if text.len() >= 200_000 {
            break;
        }
        for column in 0..8 {
            let n = line * 8 + column;
            let style = match n % 4 {
                0 => format!("1;3{}", n % 8),
                1 => format!("38;5;{};48;5;{}", n % 256, (n * 7) % 256),
                2 => format!("4;38;2;{};{};{}", n % 256, (n * 3) % 256, (n * 5) % 256),
                _ => format!("7;9{}", n % 8),
            };
            write!(text, "\x1b[{style}m{n:>6}\x1b[0m ").unwrap();
        }
        text.push('\n');
    }
    fs::write(pair.home().join("colours.txt"), text)?;
    pair.command("cat colours.txt; echo painted-$((2+2))", "painted-4", LIMIT)
}

/// Twenty sizes, faster than any of them can be answered.
fn resize_storm(pair: &mut Pair) -> io::Result<()> {
    for n in 0..20 {
        pair.resize(Size::clamped(10 + n, 120 - 4 * n))?;
        pair.pump(Duration::from_millis(15))?;
    }
    let size = Size::clamped(30, 100);
    pair.resize(size)?;
    pair.wait_for("the last size", LIMIT, |pair| pair.program_size() == size)?;
    // The text that each size in between cut off depends on which sizes the program saw; from a clear screen on,
    // all is determined.
    pair.command("clear; stty size; seq -s ' ' 1 200; echo sized-$((3+3))", "sized-6", LIMIT)?;
    if pair.wrote("30 100") { Ok(()) } else { Err(io::Error::other("the pty has another size")) }
}

/// Wide and combining characters, read from a file and typed.
fn utf8(pair: &mut Pair) -> io::Result<()> {
    let lines = [
        "日本語 と 한국어 ｆｕｌｌｗｉｄｔｈ end".to_owned(),
        "combining: e\u{301} a\u{308}\u{323} o\u{302} n\u{303} ก\u{0e47} ש\u{05b8}".to_owned(),
        "Привет Ελληνικά ✓ ┌─┬─┐ │ │ └─┴─┘ ▀▄█ €".to_owned(),
        "\u{301}starts with a mark".to_owned(),
        // On 100 columns the third wide character meets the edge with one column left, and wraps.
        format!("{:-<95}漢漢漢漢", "wide at the edge: "),
    ];
    fs::write(pair.home().join("utf8.txt"), lines.join("\n") + "\n")?;
    pair.command("cat utf8.txt; echo read-$((3+4))", "read-7", LIMIT)?;
    pair.command("echo typed-$((4+4)): e\u{301}é漢字", "typed-8:", LIMIT)
}

/// The shell ends, and with it both programs.
fn exit(pair: &mut Pair) -> io::Result<()> {
    pair.send("exit\r");
    ended(pair)?;
    pair.wait_for("the shell's end", LIMIT, |pair| pair.program_status().is_some())?;
    match pair.program_status() {
        Some(0) => Ok(()),
        status => Err(io::Error::other(format!("the shell's status is {status:?}"))),
    }
}

/// The user leaves with the escape key.
fn quit(pair: &mut Pair) -> io::Result<()> {
    pair.send("\x1e.");
    ended(pair)
}

/// The client ends cleanly and leaves no server behind.
fn ended(pair: &mut Pair) -> io::Result<()> {
    let status = pair.client_mut().wait_exit(LIMIT)?;
    pair.wait_for("the server's end", LIMIT, |pair| !server_lives(pair))?;
    if status.success() {
        Ok(())
    } else {
        Err(pair.client().missed(&format!("a clean end, got {status}"), Duration::ZERO).into())
    }
}

/// The client dies; the session lives on until it is told to end.
fn kill_client(pair: &mut Pair) -> io::Result<()> {
    pair.client_mut().kill()?;
    pair.client_mut().wait_exit(LIMIT)?;
    let clock = Clock::start();
    pair.wait_for("two seconds", LIMIT, |_| clock.elapsed() > Duration::from_secs(2))?;
    if !server_lives(pair) || pair.program_status().is_some() {
        return Err(io::Error::other("the server died with its client"));
    }
    pair.server().map_or(Ok(()), |server| server.terminate())?;
    pair.wait_for("the server's end", LIMIT, |pair| !server_lives(pair))
}

/// The server dies; the client says since when nothing was heard, and can be left.
fn kill_server(pair: &mut Pair) -> io::Result<()> {
    pair.server().map_or(Ok(()), |server| server.kill())?;
    pair.wait_for("the bar", LIMIT, |pair| pair.client().shows("Last contact"))?;
    pair.send("\x1e.");
    pair.client_mut().wait_exit(LIMIT).map(drop)
}

/// Whether the shell waits for a command.
fn at_prompt(pair: &Pair) -> bool {
    let screen = pair.oracle();
    screen.row_text(screen.cursor().row) == "$"
}

fn server_lives(pair: &Pair) -> bool {
    pair.server().is_some_and(|server| server.is_alive())
}
