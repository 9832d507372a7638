//! Prompts that end by themselves, and programs that read with echo off without asking for a line. Half a password is never
//! typed at the shell behind a prompt, the user is told so, and a program that reads single keys gets them at once.

use std::time::Duration;

use rove_lab::testing::link::Profile;
use rove_lab::testing::predict::live::{Report, Scene, hidden, play};
use rove_lab::testing::predict::typist::{Secrecy, Typist};
use rove_session::client::Obscure;
use rove_session::predict::{Display, Settings};
use rove_ssp::Time;
use rove_term::Screen;

use super::{LETTERS, Programs, TRIES};
use crate::common::{retried, say};

/// A program, and the keys that are typed at it.
struct Unusual {
    name: &'static str,
    /// The shell's line that starts it.
    command: &'static str,
    /// From its question back to the shell.
    script: &'static str,
    holds: Holds,
}

/// What becomes of the secret letters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Holds {
    /// They are kept, and the prompt ends by itself: they go to nobody.
    Forgotten,
    /// They are kept until Enter, which they come with.
    Line,
    /// They go at once. Keys that are kept by mistake are lost once at most, and the user is told.
    Nothing,
}

const PROGRAMS: [Unusual; 9] = [
    Unusual {
        name: "read -s -t",
        command: "read -s -t 4 -p 'word: ' word; echo; echo o''ver",
        script: "prompt word:\nquiet\nsecret QZWJ\nsee over\n",
        holds: Holds::Forgotten,
    },
    Unusual {
        name: "getpass with an alarm",
        command: "python3 -c 'import getpass, signal; signal.signal(signal.SIGALRM, lambda *_: exit(1)); signal.alarm(4); getpass.getpass()'; echo o''ver",
        script: "prompt :\nquiet\nsecret QZWJ\nsee over\n",
        holds: Holds::Forgotten,
    },
    Unusual {
        name: "a prompt that somebody else ends",
        command: "bash -c '(sleep 4; kill $$) & read -s -p word: word' ; stty sane; echo o''ver",
        script: "prompt word:\nquiet\nsecret QZWJ\nsee over\n",
        holds: Holds::Forgotten,
    },
    Unusual {
        name: "stty -echo and cat",
        command: "stty -echo; echo g''o; cat > /dev/null; stty echo; echo o''ver",
        script: "see go\nquiet\nthink\nsecret QZWJ\nkeys enter\nquiet\nsecret ZKQ\nkeys enter\nquiet\nkeys ctrl-d\nsee over\n",
        holds: Holds::Line,
    },
    Unusual {
        name: "dash with echo left off",
        command: "stty -echo; echo g''o; dash 2> /dev/null; stty echo; echo o''ver",
        script: "see go\nquiet\nthink\nsecret QZWJ\nkeys enter\nquiet\nsecret ZKQ\nkeys enter\nquiet\nexact exit\nkeys enter\nsee over\n",
        holds: Holds::Line,
    },
    // It reads single keys and echoes stars.
    Unusual {
        name: "systemd-ask-password",
        command: "systemd-ask-password --timeout=60 wo''rd: > /dev/null; echo o''ver",
        script: "see word:\nquiet\nthink\nsecret QZWJKVQZ\nkeys enter\nsee over\n",
        holds: Holds::Nothing,
    },
    Unusual {
        name: "stty -echo and read -rsn1",
        command: "stty -echo; echo g''o; while read -rsn1 key && [ \"$key\" != q ]; do printf '.'; done; stty echo; echo; echo o''ver",
        script: "see go\nquiet\nthink\nsecret QZWJKVQZWJKV\nquiet\nexact qq\nsee over\nkeys ctrl-c\n",
        holds: Holds::Nothing,
    },
    Unusual {
        name: "stty -echo and read -rsn1 -t 0.05",
        command: "stty -echo; echo g''o; key=; while [ \"$key\" != q ]; do read -rsn1 -t 0.05 key && printf '.'; done; stty echo; echo; echo o''ver",
        script: "see go\nquiet\nthink\nsecret QZWJKVQZWJKV\nquiet\nexact qq\nsee over\nkeys ctrl-c\n",
        holds: Holds::Nothing,
    },
    Unusual {
        name: "stty -echo and read -rsn1 in a child",
        command: "stty -echo; echo g''o; key=; while [ \"$key\" != q ]; do key=$(read -rsn1 key && echo $key); printf '.'; done; stty echo; echo; echo o''ver",
        script: "see go\nquiet\nthink\nsecret QZWJKVQZWJKV\nquiet\nexact qq\nsee over\nkeys ctrl-c\n",
        holds: Holds::Nothing,
    },
];

/// The round trips of the path.
const TRIP: Duration = Duration::from_millis(100);

/// A key is at the program within this on a busy machine. One that is kept comes with the next Enter, or never.
const AT_ONCE: Duration = Duration::from_millis(1_500);

#[test]
fn keys_of_unusual_prompts_go_to_nobody_else() {
    let place = Programs::new().unwrap();
    let wanted = |it: &&Unusual| crate::common::chosen("SCENE", it.name);
    let faults: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = PROGRAMS
            .iter()
            .filter(wanted)
            .map(|program| scope.spawn(|| play_patiently(&place, program)))
            .collect();
        running.into_iter().filter_map(|one| one.join().unwrap().err()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Plays it, and up to twice more if the machine was too slow for it.
fn play_patiently(place: &Programs, program: &Unusual) -> Result<(), String> {
    let mut late = Vec::new();
    for seed in 1..=TRIES {
        let report = match play_once(place, program, seed) {
            Ok(report) => report,
            Err(what) => {
                late.push(format!("{}: {what}", program.name));
                continue;
            }
        };
        // One leak is one too many.
        if !report.leaks.is_empty() {
            return Err(format!("{}: shown: {:#?}", program.name, report.leaks));
        }
        match judge(program, &report) {
            Judgement::Fine => {
                late.into_iter().for_each(|what| {
                    retried("keys_of_unusual_prompts_go_to_nobody_else", what);
                });
                return Ok(());
            }
            Judgement::Late(what) => late.push(format!("{}: {what}", program.name)),
            Judgement::Wrong(what) => {
                return Err(format!("{}: {what}: {:#?}", program.name, report.last));
            }
        }
    }
    Err(late.join("\nand again: "))
}

fn play_once(place: &Programs, program: &Unusual, seed: u64) -> Result<Report, String> {
    let script = format!(
        "pace 130\nprogram shell\nprompt $\nexact {}\nkeys enter\nprogram asked\n{}program shell\nprompt $\n\
         exact echo done\nkeys enter\nprompt $\n",
        program.command, program.script
    );
    let scene = Scene {
        command: place.shell(),
        typist: Typist::new(&script, seed).map_err(|error| error.to_string())?,
        secret: LETTERS.to_owned(),
        link: Profile::delay(TRIP / 2),
        settings: Settings::ROVE.with_display(Display::Always),
        obscure: Obscure::Secrets,
    };
    play(scene).map_err(|error| error.to_string())
}

enum Judgement {
    Fine,
    /// What may be the machine's fault.
    Late(String),
    Wrong(String),
}

fn judge(program: &Unusual, report: &Report) -> Judgement {
    let letters = |octets: &[u8]| -> Vec<u8> {
        octets.iter().copied().filter(|octet| LETTERS.as_bytes().contains(octet)).collect()
    };
    let typed: Vec<u8> = report.typed.iter().flat_map(|(_, it)| letters(&it.octets)).collect();
    let fed: Vec<u8> = report.fed.iter().flat_map(|(_, octets)| letters(octets)).collect();
    let lost = report.lines_lost;
    say(&format!("{}: {} typed, {} came, {lost} lost", program.name, typed.len(), fed.len()));
    if program.holds != Holds::Nothing && !report.modes.contains(hidden()) {
        return Judgement::Late("the line was never hidden".to_owned());
    }
    match program.holds {
        Holds::Forgotten => judge_forgotten(report, lost),
        Holds::Line | Holds::Nothing if lost == 0 && typed != fed => {
            Judgement::Wrong(format!("{} letters typed, {} came", typed.len(), fed.len()))
        }
        Holds::Line if lost > 0 => {
            Judgement::Wrong("a line that ended with Enter is lost".to_owned())
        }
        Holds::Line => match early(report) {
            0 => Judgement::Fine,
            early => Judgement::Late(format!("{early} letters came ahead of Enter")),
        },
        Holds::Nothing if lost > 1 => Judgement::Wrong(format!("keys were lost {lost} times")),
        Holds::Nothing => match slow(report) {
            0 => Judgement::Fine,
            slow => Judgement::Late(format!("{slow} letters took longer than {AT_ONCE:?}")),
        },
    }
}

/// Secret letters, and when each was typed or came.
fn times<'a>(all: impl Iterator<Item = (Time, &'a [u8])>) -> Vec<(Time, u8)> {
    let all = all.flat_map(|(at, octets)| octets.iter().map(move |octet| (at, *octet)));
    all.filter(|(_, octet)| LETTERS.as_bytes().contains(octet)).collect()
}

fn came(report: &Report) -> Vec<(Time, u8)> {
    times(report.fed.iter().map(|(at, octets)| (*at, octets.as_slice())))
}

/// Of a prompt that ends by itself no letter goes to the shell behind it, nor one that was kept to anybody, and the user is
/// told.
fn judge_forgotten(report: &Report, lost: u64) -> Judgement {
    let typed = times(report.typed.iter().map(|(at, it)| (*at, it.octets.as_slice())));
    let came = came(report);
    let sent: Vec<_> = typed.iter().filter(|(at, _)| !report.kept.contains(at)).collect();
    let is_sent = came.iter().map(|it| it.1).eq(sent.iter().map(|it| it.1));
    if !is_sent {
        return Judgement::Wrong(format!("{came:?} came, and these were not kept: {sent:?}"));
    }
    let over = report.screens.iter().find(|(_, screen)| shows(screen, "over"));
    let Some((over, _)) = over else { return Judgement::Late("it did not end".to_owned()) };
    // What was on its way when the prompt ended is nobody's fault.
    let behind =
        |((from, _), (at, _)): (&&(Time, u8), &(Time, u8))| at > over && over.since(*from) > TRIP;
    if sent.iter().zip(&came).any(behind) {
        return Judgement::Wrong(format!("letters went to the shell: {came:?}, over at {over:?}"));
    }
    match (sent.len(), lost) {
        (0, 1) => Judgement::Fine,
        (0, _) => Judgement::Wrong(format!("{} letters are lost, said {lost} times", typed.len())),
        // They were typed before the host had said that they may be kept.
        (came, _) => Judgement::Late(format!("{came} of {} letters came", typed.len())),
    }
}

fn shows(screen: &Screen, text: &str) -> bool {
    (0..screen.size().rows).any(|row| screen.row_text(row).contains(text))
}

/// Letters that came before the next Enter was typed.
fn early(report: &Report) -> usize {
    let secrets = report.typed.iter().enumerate();
    let secrets = secrets.filter(|(_, (_, it))| it.secrecy == Secrecy::Secret);
    let enters = secrets.filter_map(|(place, _)| {
        report.typed[place..].iter().find(|(_, it)| it.octets == b"\r").map(|(at, _)| *at)
    });
    enters.zip(came(report)).filter(|(enter, (at, _))| at < enter).count()
}

/// Letters that came late. Those that are lost are no longer in step with those that came, and are not looked at.
fn slow(report: &Report) -> usize {
    let typed = times(report.typed.iter().map(|(at, it)| (*at, it.octets.as_slice())));
    let came = came(report);
    if typed.len() != came.len() {
        return 0;
    }
    typed.iter().zip(came).filter(|((from, _), (at, _))| at.since(*from) > TRIP + AT_ONCE).count()
}
