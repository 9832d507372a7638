//! Two clients of one session at a program that asks for a password: what each types there stays at its client until its own
//! Enter, and is forgotten if the other one ends the line. One of them may send in slots.

use std::process::Command;
use std::time::Duration;

use rove_lab::testing::clock::Clock;
use rove_lab::testing::run::Program;
use rove_term::Size;

use crate::common::rove_program;
use crate::host::{Case, Host, LIMIT, Outcome, run_cases, same, words};

const CASES: [Case<Host>; 2] =
    [("secrets", two_at_one_question), ("slots", two_of_which_one_sends_in_slots)];

#[test]
fn secret_lines() {
    let host = Host::start("rovelab-secrets", &[]);
    let failures = run_cases("secret_lines", &CASES, &host);
    host.assert_none(&failures);
}

/// Asks for words in vain, and says how long each is.
const ASK: &str =
    "for n in 1 2 3 4; do read -s -p \"word $n:\" word; echo; echo \"taken $n ${#word}.\"; done\r";

/// What a client says whose kept keys are forgotten.
const FORGOTTEN: &str = "what was typed there was not sent";

/// The host says that keys may be kept when the line was hidden for 180 ms. This is as long on a busy machine.
const SETTLES: Duration = Duration::from_secs(3);

fn two_at_one_question(host: &Host) -> Outcome {
    ask_both(host, "secrets", &[])
}

fn two_of_which_one_sends_in_slots(host: &Host) -> Outcome {
    ask_both(host, "slots", &["--obscure"])
}

fn ask_both(host: &Host, name: &str, options: &[&str]) -> Outcome {
    let mut first = client(host, &["new", "-s", name, "here", "bash --norc"])?;
    first.send("PS1=; echo rea''dy\r");
    first.wait_for("ready", LIMIT, |client| client.shows("ready")).map_err(words)?;
    let target = format!("here:{name}");
    let attach = [&["attach"], options, &[target.as_str()]].concat();
    let mut second = client(host, &attach)?;
    both_show("ready", [&mut first, &mut second])?;
    // The bar tells of the other one for a while.
    rest([&mut first, &mut second])?;
    first.send(ASK);

    // Each ends a line of its own.
    question(1, [&mut first, &mut second])?;
    first.send("QZWJKV");
    rest([&mut first, &mut second])?;
    first.send("QZ\r");
    both_show("taken 1 8.", [&mut first, &mut second])?;
    question(2, [&mut first, &mut second])?;
    second.send("ZKQ\r");
    both_show("taken 2 3.", [&mut first, &mut second])?;

    // One ends the line of the other, who is told.
    question(3, [&mut first, &mut second])?;
    first.send("QZWJ");
    rest([&mut first, &mut second])?;
    second.send("KV\r");
    let mut is_told = false;
    until(
        "the first is told and both show the answer",
        [&mut first, &mut second],
        |first, second| {
            is_told |= first.shows(FORGOTTEN);
            is_told && first.shows("taken 3 2.") && second.shows("taken 3 2.")
        },
    )?;
    question(4, [&mut first, &mut second])?;
    second.send("WJQ");
    rest([&mut first, &mut second])?;
    first.send("\r");
    let mut is_told = false;
    until(
        "the second is told and both show the answer",
        [&mut first, &mut second],
        |first, second| {
            is_told |= second.shows(FORGOTTEN);
            is_told && first.shows("taken 4 0.") && second.shows("taken 4 0.")
        },
    )?;

    // Nothing of it waits for the shell behind the questions.
    second.send("echo fi''ne\r");
    both_show("fine", [&mut first, &mut second])?;
    for client in [&first, &second] {
        let text = client.screen().text().concat();
        if ["QZ", "ZKQ", "KV", "WJ"].iter().any(|part| text.contains(part)) {
            return Err(format!("a password is shown: {text}"));
        }
    }
    first.send("exit\r");
    for client in [&mut first, &mut second] {
        same(client.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 0")?;
    }
    Ok(())
}

fn client(host: &Host, line: &[&str]) -> Result<Program, String> {
    let mut command = Command::new(rove_program());
    command.arg(line[0]).arg("-F").arg(&host.config).args(&line[1..]);
    command.current_dir(host.near()).env("HOME", host.near()).env("TERM", "xterm-256color");
    command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").env("LANG", "C.UTF-8");
    command.env_remove("ROVE_SESSION").env_remove("ROVE_OBSCURE");
    Program::start(command, Size::DEFAULT).map_err(words)
}

fn question(number: u32, [first, second]: [&mut Program; 2]) -> Outcome {
    let text = format!("word {number}:");
    both_show(&text, [first, second])?;
    rest([first, second])
}

/// Waits until both show it. What one sends leaves only while it is looked at.
fn both_show(text: &str, [first, second]: [&mut Program; 2]) -> Outcome {
    until(&format!("both show {text:?}"), [first, second], |first, second| {
        first.shows(text) && second.shows(text)
    })
}

fn until(
    what: &str,
    [first, second]: [&mut Program; 2],
    mut is_so: impl FnMut(&Program, &Program) -> bool,
) -> Outcome {
    let since = Clock::start();
    while !is_so(first, second) {
        if since.elapsed() > LIMIT {
            let [first, second] = [first, second].map(|client| client.screen().text().join("\n"));
            return Err(format!("never so: {what}\n{first}\n-- and --\n{second}"));
        }
        first.pump(Duration::from_millis(20)).map_err(words)?;
        second.pump(Duration::from_millis(20)).map_err(words)?;
    }
    Ok(())
}

/// Nobody types for long enough that the host has looked at the line.
fn rest(mut clients: [&mut Program; 2]) -> Outcome {
    let since = Clock::start();
    while since.elapsed() < SETTLES {
        for client in &mut clients {
            client.pump(Duration::from_millis(20)).map_err(words)?;
        }
    }
    Ok(())
}
