//! Keys and frames in any order, by either set of rules: once all keys are acknowledged, the user sees
//! the server's screen, and never a character while the line hides what is typed.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rove_session::predict::{Display, LineMode, Observation, Predictor, Settings};
use rove_ssp::Time;
use rove_term::{Dialect, Screen, Size, Terminal};

fuzz_target!(|bytes: &[u8]| {
    let Some((&rules, mut rest)) = bytes.split_first() else { return };
    let settings = if rules & 1 == 0 { Settings::ROVE } else { Settings::STOCK };
    let mut predictor = Predictor::new(settings.with_display(Display::Always));
    let mut terminal = Terminal::new(Size::clamped(4, 20), Dialect::ROVE);
    let (mut now, mut sent, mut echo_ack, mut line) = (Time::ZERO, 1_u64, 0_u64, None);
    // Each step: what to do, how many octets belong to it, the octets.
    while let [what, count, tail @ ..] = rest {
        let (octets, tail) = tail.split_at(tail.len().min(usize::from(*count % 16)));
        rest = tail;
        now = now + Duration::from_millis(5);
        match what % 4 {
            0 => {
                let screen = terminal.screen().clone();
                predictor.keys(now, octets, facts(&screen, echo_ack, sent, line));
                sent += 1;
            }
            1 => terminal.advance(octets),
            2 => echo_ack = (echo_ack + u64::from(*count)).min(sent),
            _ if settings == Settings::ROVE => {
                line = [None, Some(LineMode::Raw), Some(LineMode::Hidden)][usize::from(count % 3)];
            }
            _ => {}
        }
        let screen = terminal.screen().clone();
        predictor.frame(now, facts(&screen, echo_ack, sent, line));
        let shown = overlaid(&predictor, &screen);
        if line == Some(LineMode::Hidden) {
            assert_eq!(shown.text(), screen.text());
        }
    }
    terminal.advance(b"\x1b\\\x18\x1b[?25h");
    let screen = terminal.screen().clone();
    predictor.frame(now, facts(&screen, sent, sent, None));
    let shown = overlaid(&predictor, &screen);
    assert_eq!(shown.text(), screen.text());
    let at = |screen: &Screen| (screen.cursor().row, screen.cursor().col);
    assert_eq!(at(&shown), at(&screen));
});

fn facts(screen: &Screen, echo_ack: u64, sent: u64, line: Option<LineMode>) -> Observation<'_> {
    let (echo_ack, sent) = (echo_ack.into(), sent.into());
    Observation { screen, echo_ack, sent, interval: Duration::from_millis(100), line }
}

fn overlaid(predictor: &Predictor, screen: &Screen) -> Screen {
    let mut shown = screen.clone();
    predictor.overlay(&mut shown);
    shown
}
