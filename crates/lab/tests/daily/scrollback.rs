//! The history of the user's own terminal, tmux: it has every line of a session, once and in order.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::common::rove_program;
use crate::host::{Case, Host, Outcome, run_cases, until, words};
use crate::tmux::Tmux;

const CASES: [Case<Host>; 9] = [
    ("row-01", a_command_and_all_of_its_lines),
    ("row-01-lossy", a_command_over_links_that_lose),
    ("row-05-kept", a_history_that_is_kept),
    ("row-05-cleared", a_screen_that_is_cleared),
    ("row-01-wrapped", lines_that_are_wrapped),
    ("row-03-gap", more_lines_than_are_kept),
    ("row-05", other_screens_and_sizes),
    ("row-05-erased", a_history_that_is_erased),
    ("row-05-programs", programs_that_draw),
];

#[test]
fn scrollback() {
    let host = Host::start("rovelab-scrollback", &[]);
    let failures = run_cases("scrollback", &CASES, &host);
    host.assert_none(&failures);
}

fn a_command_and_all_of_its_lines(host: &Host) -> Outcome {
    let tmux = Tmux::start(host, "$ROVE here 'seq 1 5000; exit 3'; echo status $?; sleep 1000")?;
    tmux.wait_for("status 3")?;
    tmux.has_all(1, 5000)
}

/// A shell that writes lines and ends, as another program may be.
pub fn script_of_lines(host: &Host) -> Result<PathBuf, String> {
    let script = host.near().join("lines");
    fs::write(&script, "#!/bin/sh\nseq 1 5000\nexit 3\n").map_err(words)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(words)?;
    Ok(script)
}

/// A line for bash: rove with this shell, over a link of 50 ms round trip that loses this share of all datagrams each way.
pub fn over_a_link(shell: &Path, loss: u32) -> String {
    format!(
        "SHELL={} ROVE_BIN={} {} demo --rtt-ms 50 --loss {loss}",
        shell.display(),
        rove_program().display(),
        env!("CARGO_BIN_EXE_rove-lab"),
    )
}

/// Shares of datagrams that are lost, in percent.
pub const LOSSES: [u32; 2] = [5, 29];

fn a_command_over_links_that_lose(host: &Host) -> Outcome {
    let script = script_of_lines(host)?;
    for loss in LOSSES {
        let demo = over_a_link(&script, loss);
        let tmux = Tmux::start(host, &format!("{demo}; echo status $?; sleep 1000"))?;
        tmux.wait_for("status 3")?;
        tmux.has_all(1, 5000).map_err(|error| format!("{loss} %: {error}"))?;
    }
    Ok(())
}

/// `ClearHistory no` in the config.
fn a_history_that_is_kept(host: &Host) -> Outcome {
    let config = host.near().join("own/rove");
    fs::create_dir_all(&config).map_err(words)?;
    fs::write(config.join("config"), "ClearHistory no\n").map_err(words)?;
    let own = format!("export XDG_CONFIG_HOME={}", host.near().join("own").display());
    let command = "'seq 1 100; sleep 3; printf \"\\e[H\\e[2J\\e[3J\"; seq 101 110'";
    let tmux = Tmux::start(host, &format!("{own}; $ROVE here {command}; echo over; sleep 1000"))?;
    tmux.wait_for("over")?;
    // The program has erased its screen.
    let numbers = tmux.numbers()?;
    match numbers.starts_with(&(1..=70).collect::<Vec<u32>>()) && numbers.ends_with(&[109, 110]) {
        true => Ok(()),
        false => Err(format!("{numbers:?}")),
    }
}

/// tmux has what a program erases in its history, with rove as without. `KeepCleared no` lets it go.
fn a_screen_that_is_cleared(host: &Host) -> Outcome {
    for erase in ["\\e[H\\e[2J", "\\e[H\\e[J"] {
        let command = format!("'seq 1 10; sleep 3; printf \"{erase}\"; seq 11 15'");
        let tmux = Tmux::start(host, &format!("$ROVE here {command}; echo over; sleep 1000"))?;
        tmux.wait_for("over")?;
        tmux.has_all(1, 15)?;
        let local = Tmux::start(host, &format!("eval {command}; echo over; sleep 1000"))?;
        local.wait_for("over")?;
        local.has_all(1, 15)?;
    }
    let config = host.near().join("drops/rove");
    fs::create_dir_all(&config).map_err(words)?;
    fs::write(config.join("config"), "KeepCleared no\n").map_err(words)?;
    let own = format!("export XDG_CONFIG_HOME={}", host.near().join("drops").display());
    let command = "'seq 1 10; sleep 3; printf \"\\e[H\\e[2J\"; seq 11 15'";
    let tmux = Tmux::start(host, &format!("{own}; $ROVE here {command}; echo over; sleep 1000"))?;
    tmux.wait_for("over")?;
    tmux.has_all(11, 15)
}

fn lines_that_are_wrapped(host: &Host) -> Outcome {
    let tmux = Tmux::start(
        host,
        "$ROVE here 'for n in $(seq 1 400); do printf \"%0230d\\n\" $n; done'; echo over; sleep 1000",
    )?;
    tmux.wait_for("over")?;
    tmux.has_all(1, 400)
}

/// The last 10,000 of them at least, below a line that says how many are missing. A terminal that is slow lacks lines at
/// more than one place.
fn more_lines_than_are_kept(host: &Host) -> Outcome {
    let tmux = Tmux::start(host, "$ROVE here seq 1 30000; echo over; sleep 1000")?;
    tmux.wait_for("over")?;
    let sure = whole_but_for_marks(&tmux.lines()?, 30_000)?;
    if sure < 10_000 {
        return Err(format!("{sure} lines below the last mark"));
    }
    Ok(())
}

/// Looks whether all numbers up to this one are there, once and in order, or counted by a mark. Returns how many stand
/// below the last mark.
fn whole_but_for_marks(lines: &[String], last: u32) -> Result<u32, String> {
    let (mut next, mut below) = (1, 0);
    for line in lines {
        let mark = line.strip_prefix("--- rove: ").and_then(|rest| {
            let rest = rest.strip_suffix(" missing here ---")?;
            rest.split(' ').next()?.parse::<u32>().ok()
        });
        match (mark, line.parse::<u32>()) {
            (Some(missing), _) => (next, below) = (next + missing, 0),
            (None, Ok(number)) if number == next => (next, below) = (next + 1, below + 1),
            (None, Ok(number)) => return Err(format!("{number} where {next} belongs")),
            (None, Err(_)) => {}
        }
    }
    match next == last + 1 {
        true => Ok(below),
        false => Err(format!("{} is the last", next - 1)),
    }
}

/// Output before a program on the alternate screen, and between sizes.
fn other_screens_and_sizes(host: &Host) -> Outcome {
    let tmux = Tmux::start(host, "$ROVE here bash --norc")?;
    // With echo: what is typed without one while a command runs is kept back as a password, and its shell never gets it.
    tmux.type_line(
        "lines() { until [[ $(stty size) == \"$1 \"* ]]; do sleep 0.1; done; seq $2 $3; }",
    )?;
    tmux.type_line("PS1=; echo rea''dy")?;
    tmux.wait_for("ready")?;
    tmux.type_line("seq 1 300; printf '\\e[?1049h\\e[Hother screen\\n'")?;
    tmux.wait_for("other screen")?;
    tmux.type_line("printf '\\e[?1049l'; seq 301 320")?;
    tmux.has_all(1, 320)?;
    for (rows, from) in [(40, 321), (12, 421), (24, 521)] {
        tmux.resize(80, rows)?;
        tmux.type_line(&format!("lines {rows} {from} {}", from + 99))?;
        tmux.has_all(1, from + 99)?;
    }
    Ok(())
}

fn a_history_that_is_erased(host: &Host) -> Outcome {
    let tmux = Tmux::start(host, "$ROVE here bash --norc")?;
    tmux.type_line("PS1=; stty -echo; echo rea''dy")?;
    tmux.wait_for("ready")?;
    tmux.type_line("seq 1 100")?;
    tmux.has_all(1, 100)?;
    tmux.type_line("printf '\\e[H\\e[2J\\e[3J'; seq 7 60")?;
    tmux.has_all(7, 60)
}

/// A program, by its line for bash, and what is typed once a row of the screen is this one.
type Drawing = (&'static str, &'static [(&'static str, &'static str)]);

/// vim and less on the alternate screen and on the primary one, where they scroll through a text, and apt with its bar below a
/// region that scrolls. apt is the real one: it installs packages into a root of its own, for which it needs neither root nor a
/// network.
const DRAWINGS: [Drawing; 5] = [
    ("vim -u NONE -N text", &VIM),
    // Without questions, which a terminal and rove need not answer alike: vim draws anew for each answer.
    ("vim -u NONE -N --cmd 'set t_ti= t_te= t_RV= t_RB= t_RF= t_u7=' text", &VIM),
    ("less text", &LESS),
    ("less -X text", &LESS),
    ("bash install", &[]),
];

const VIM: [(&str, &str); 6] = [
    ("text of line 1", "G"),
    ("text of line 300", "200G"),
    ("text of line 200", "zt"),
    ("text of line 222", "50j"),
    ("text of line 250", "ggdd"),
    ("text of line 2", ":q!\r"),
];

const LESS: [(&str, &str); 5] = [
    ("text of line 1", " "),
    ("text of line 30", "  "),
    ("text of line 80", "G"),
    ("text of line 300", "g"),
    ("text of line 1", "q"),
];

/// Numbered lines around programs that draw are there once and in order, and all that the programs leave is what they leave in
/// the same terminal without rove.
fn programs_that_draw(host: &Host) -> Outcome {
    let at = host.home.join("drawn");
    fs::create_dir_all(&at).map_err(words)?;
    fs::set_permissions(&at, fs::Permissions::from_mode(0o777)).map_err(words)?;
    let text: String = (1..=300).map(|n| format!("text of line {n}\n")).collect();
    fs::write(at.join("text"), text).map_err(words)?;
    fs::write(at.join("install"), INSTALL).map_err(words)?;
    for drawing in DRAWINGS {
        let with = drawn(host, "$ROVE here bash --norc", &at, drawing)?;
        // As rove's server names its terminal.
        let without = drawn(host, "TERM=xterm-256color bash --norc", &at, drawing)?;
        if with != without {
            return Err(format!("{}: with rove {with:#?}, without {without:#?}", drawing.0));
        }
    }
    Ok(())
}

/// The lines that such a program leaves, those of the history first.
fn drawn(host: &Host, shell: &str, at: &Path, drawing: Drawing) -> Result<Vec<String>, String> {
    let (line, steps) = drawing;
    let tmux = Tmux::start(host, shell)?;
    tmux.type_line("PS1=; stty -echo; echo rea''dy")?;
    tmux.wait_for("ready")?;
    tmux.type_line(&format!("cd {}; seq 1 100; {line}; seq 101 150; echo over", at.display()))?;
    for (shown, keys) in steps {
        until(shown, || tmux.screen().ok()?.iter().any(|row| row == shown).then_some(()))
            .map_err(|error| format!("{line}: {error}: {:?}", tmux.screen()))?;
        tmux.tmux(&["send-keys", "-l", keys])?;
    }
    tmux.wait_for("over")?;
    tmux.has_all(1, 150).map_err(|error| format!("{line}: {error}"))?;
    let lines = tmux.lines()?;
    let begin = lines.iter().position(|line| line == "ready").ok_or("it did not begin")?;
    // Packages are not as long each time, nor apt as fast. Only root reads some files without a warning.
    let is_certain = |line: &&String| {
        let begins = ["Need to get", "Get:", "Fetched", "W: ", "N: "];
        !begins.iter().any(|begin| line.starts_with(begin))
    };
    Ok(lines[begin..].iter().filter(is_certain).cloned().collect())
}

/// Makes packages and has apt install them below the working directory.
const INSTALL: &str = r#"
set -e
top=$PWD/apt
mkdir "$top"
mkdir -p "$top"/root/var/lib/dpkg/{info,updates,triggers} "$top"/{state/lists,cache/archives}/partial "$top"/{etc,log}
: > "$top/root/var/lib/dpkg/status"
for n in $(seq 1 20); do
  mkdir -p "$top/p$n/DEBIAN" "$top/p$n/opt"
  echo $n > "$top/p$n/opt/rovelab-$n"
  printf 'Package: rovelab-%s\nVersion: 1\nArchitecture: all\nMaintainer: lab <lab@rove.example>\nDescription: a file\n' \
    $n > "$top/p$n/DEBIAN/control"
  dpkg-deb --build "$top/p$n" "$top/$n.deb" > /dev/null
done
cat > "$top/conf" <<EOF
Dir::Etc "$top/etc"; Dir::Etc::Parts "none"; Dir::Cache "$top/cache"; Dir::State "$top/state"; Dir::Log "$top/log";
Dir::State::Status "$top/root/var/lib/dpkg/status"; APT::Sandbox::User ""; Dpkg::Progress-Fancy "1";
Dpkg::Options { "--root=$top/root"; "--force-not-root"; "--force-bad-path"; "--log=$top/log/dpkg"; };
EOF
APT_CONFIG=$top/conf LC_ALL=C apt-get -y install "$top"/*.deb
rm -r "${top:?}"
"#;
