//! A password typed behind a shell's line, in any order of keys, frames and acknowledgments.

mod desk;

use desk::{Desk, real_text, shown_text};
use rove_session::predict::{Display, LineMode, Settings};

/// Keys are typed ahead behind a shell's line. In no order of keys, echoes, acknowledgments, modes and changes of size
/// are more of them shown than the kernel has echoed before echo is off.
#[test]
fn no_order_of_things_shows_what_is_typed_behind_a_shells_line() {
    let lines = [None, Some(LineMode::Raw), Some(LineMode::Cooked)];
    let displays = [Display::Adaptive, Display::Always, Display::Experimental];
    for (line, display) in lines.iter().flat_map(|line| displays.map(|display| (*line, display))) {
        for seed in 1..=4000 {
            let mut state = seed;
            let mut desk = Desk::new(Settings::ROVE.with_display(display), 250);
            desk.line = line;
            match chance(&mut state) % 6 {
                // What ran before has left the screen scrolled and the keys set.
                0 | 1 => {
                    desk.echoes(b"\x1b[24H$ ").settles(b"ssh a").types(b"\r");
                    desk.echoes(b"\r\n\x1b[?1hBroken pipe\r\n$ ");
                }
                // The same line was typed before, and others that end alike.
                2 => {
                    desk.settles(b"su x").types(b"\r").echoes(b"\r\nx\r\n% ");
                    desk.settles(b"$ x").types(b"\r").echoes(b"\r\n$ x\r\n$ ");
                }
                _ => {}
            }
            play_a_secret(&mut desk, &mut state, &format!("seed {seed}, {line:?}, {display:?}"));
        }
    }
}

/// Types a shell's line, Enter and a secret, and draws a question, by chance.
fn play_a_secret(desk: &mut Desk, state: &mut u64, what: &str) {
    // Some lines wrap.
    let command = ["su x".to_owned(), format!("su {}", "x".repeat(76))];
    let command = &command[usize::from(chance(state).is_multiple_of(4))];
    let (keys, line) = (format!("{command}\rSECRET"), command.len() + 1);
    let keys = keys.as_bytes();
    let echoed = line + (chance(state) % 4) as usize; // The kernel's are among them.
    let asked = !chance(state).is_multiple_of(3);
    // A shell may draw its line anew before it is done with Enter, with another prompt.
    let redraws = line == 5 && chance(state).is_multiple_of(4);
    // How far each is; of the reads, where each ends.
    let (mut typed, mut shown, mut reads) = (0, 0, Vec::new());
    let secret = |text: Vec<String>| text.concat().matches(char::is_uppercase).count();
    while shown < keys.len() || !reads.is_empty() {
        match chance(state) % 9 {
            0..=2 if typed < keys.len() => {
                let count =
                    1 + usize::from(chance(state).is_multiple_of(5)) * (chance(state) % 6) as usize;
                let end = (typed + count).min(keys.len());
                desk.reads(&keys[typed..end]);
                reads.push(end);
                typed = end;
            }
            3..=5 if shown < typed => {
                let key = &keys[shown..=shown];
                shown += 1;
                match key {
                    b"\r" => {
                        if redraws {
                            desk.terminal.advance(b"\r\x1b[K% su x");
                            desk.wait(chance(state) % 2);
                        }
                        desk.terminal.advance(b"\r\n");
                    }
                    _ if shown <= echoed => desk.terminal.advance(key),
                    _ => {}
                }
                // Often the frame comes with the next, or with an echo ack.
                if !chance(state).is_multiple_of(3) {
                    continue;
                }
                desk.wait(1);
                if asked && shown == echoed && shown > line {
                    desk.writes(b"\r\nPassword: ");
                }
            }
            // The server acknowledges what the program was given, echoed or not.
            6 if !reads.is_empty() => {
                reads.remove(0);
                desk.acks(1);
            }
            7 if chance(state).is_multiple_of(4) => desk.predictor.reset(),
            8 if chance(state).is_multiple_of(4) => {
                desk.writes([b"\x1b[?1h", b"\x1b[?1l"][(chance(state) % 2) as usize]);
            }
            _ => {}
        }
        assert_eq!(secret(shown_text(desk)), secret(real_text(desk)), "{what}");
    }
}

/// xorshift64*: a stream of chance that is the same everywhere.
fn chance(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
}
