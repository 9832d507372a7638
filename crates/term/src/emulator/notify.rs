//! Parses notifications in their three forms, and progress. The emulator only keeps them; the reader decides how to
//! show them.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc as StdArc;
use alloc::vec::Vec;

use crate::emulator::Emulator;
use crate::screen::{Notification, PendingNotice, Progress};

/// Bytes of a notification's title, and of its text, that its parts may add up to; the rest is cut.
const PART_BYTES_MAX: usize = 2048;
/// Bytes of an id; a part with a longer one is ignored.
const ID_BYTES_MAX: usize = 64;

/// The kind of a part of an OSC 99.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Title,
    Body,
}

/// The beginning of an OSC 99: keys and values of kitty's protocol.
#[derive(Debug)]
struct Heading<'a> {
    id: &'a str,
    part: Part,
    done: bool,
    encoded: bool,
}

impl<'a> Heading<'a> {
    /// `None` for parts that are neither title nor text: icons, buttons, questions.
    fn parse(text: &'a str) -> Option<Self> {
        let mut heading = Self { id: "", part: Part::Title, done: true, encoded: false };
        for (key, value) in text.split(':').filter_map(|pair| pair.split_once('=')) {
            match (key, value) {
                ("i", id) => heading.id = id,
                ("d", value) => heading.done = value != "0",
                ("e", value) => heading.encoded = value == "1",
                ("p", "title") => heading.part = Part::Title,
                ("p", "body") => heading.part = Part::Body,
                ("p", _) => return None,
                _ => {}
            }
        }
        (heading.id.len() <= ID_BYTES_MAX).then_some(heading)
    }
}

impl Emulator<'_> {
    /// OSC 9: a text to show, or ConEmu's progress `4;state;percent`. Its other commands are ignored.
    pub(crate) fn notify_or_progress(&mut self, rest: &str) {
        let Some(progress) = rest.strip_prefix("4;") else {
            if !is_command(rest) {
                self.notify("", rest);
            }
            return;
        };
        let mut words = progress.split(';').map(|word| word.parse::<u8>().ok());
        let Some(state @ 0..=4) = words.next().flatten() else { return };
        let percent = words.next().flatten().unwrap_or(0).min(100);
        self.extras_mut().progress = Progress { state, percent };
    }

    /// OSC 777: `notify;title;body`.
    pub(crate) fn notify_titled(&mut self, rest: &str) {
        let Some(rest) = rest.strip_prefix("notify;") else { return };
        let (title, body) = rest.split_once(';').unwrap_or((rest, ""));
        self.notify(title, body);
    }

    /// OSC 99: `key=value:...;text`, one part of a notification. Parts of another one forget those before.
    pub(crate) fn notify_in_parts(&mut self, rest: &str) {
        let Some((heading, text)) = rest.split_once(';') else { return };
        let Some(heading) = Heading::parse(heading) else { return };
        let decoded = match heading.encoded {
            true => decode(text),
            false => Some(text.to_owned()),
        };
        let Some(text) = decoded else { return };
        let pending = self.extras_mut().pending_notice.take();
        let mut notice = pending
            .filter(|notice| notice.id == heading.id)
            .map_or_else(PendingNotice::default, StdArc::unwrap_or_clone);
        let part = match heading.part {
            Part::Title => &mut notice.title,
            Part::Body => &mut notice.body,
        };
        part.push_str(&text);
        part.truncate(part.floor_char_boundary(PART_BYTES_MAX));
        if heading.done {
            return self.notify(&notice.title, &notice.body);
        }
        heading.id.clone_into(&mut notice.id);
        self.extras_mut().pending_notice = Some(StdArc::new(notice));
    }

    fn notify(&mut self, title: &str, body: &str) {
        let extras = self.extras_mut();
        extras.notification = StdArc::new(Notification {
            count: extras.notification.count + 1,
            title: title.to_owned(),
            body: body.to_owned(),
        });
    }
}

/// ConEmu's commands are numbers, some with parameters: 2 shows a message box, 7 runs a program, 9 is the directory.
/// Other terminals may define more of them, so every number counts as one.
fn is_command(text: &str) -> bool {
    let number = text.split(';').next().unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Base64 of UTF-8 without controls; `None` if it is not.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        // Of what is held, at most six bits are left from before.
        held = (held & 0xff) << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    let mut decoded = String::from_utf8(bytes).ok()?;
    decoded.retain(|c| !c.is_control());
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::screen::Size;
    use crate::terminal::Terminal;

    fn shown(output: &str) -> (u64, String, String) {
        let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        terminal.advance(output.as_bytes());
        let Notification { count, title, body } = terminal.screen().notification().clone();
        (count, title, body)
    }

    #[test]
    fn notifications() {
        for (output, count, title, body) in [
            ("\x1b]9;hello\x07", 1, "", "hello"),
            ("\x1b]9;2;message\x07", 0, "", ""),
            ("\x1b]9;1;500\x07\x1b]9;3;tab\x07\x1b]9;5\x07\x1b]9;6;macro\x07", 0, "", ""),
            ("\x1b]9;7;calc\x07\x1b]9;8;\"PATH\"\x07\x1b]9;9;\"C:\\\"\x07", 0, "", ""),
            ("\x1b]9;10;1\x07\x1b]9;11;x\x07\x1b]9;12\x07\x1b]9;0099;x\x07", 0, "", ""),
            ("\x1b]9;4;1;50\x07\x1b]9;4\x07\x1b]9;4;x\x07\x1b]9;04;1;50\x07", 0, "", ""),
            ("\x1b]9;5;hello\x07", 0, "", ""),
            ("\x1b]9;\u{9c}2;message\x07", 0, "", ""),
            ("\x1b]9;50% done; 3 left\x07", 1, "", "50% done; 3 left"),
            ("\x1b]9;12 files\x07", 1, "", "12 files"),
            ("\x1b]9;;2\x07", 1, "", ";2"),
            ("\x1b]777;notify;a;b;c\x07", 1, "a", "b;c"),
            ("\x1b]99;;hello\x1b\\", 1, "hello", ""),
            ("\x1b]99;i=1:d=0;a\x07\x1b]99;i=1:p=body;b\x07", 1, "a", "b"),
            ("\x1b]99;i=1:d=0;a\x07\x1b]99;i=1:d=0;b\x07\x1b]99;i=1:d=1;c\x07", 1, "abc", ""),
            ("\x1b]99;i=1:d=0;a\x07\x1b]99;i=2:p=body;b\x07", 1, "", "b"),
            ("\x1b]99;i=1:d=0;a\x07", 0, "", ""),
            ("\x1b]99;e=1;aGVsbG8=\x07", 1, "hello", ""),
            ("\x1b]99;e=1;YQdi\x07", 1, "ab", ""),
            ("\x1b]99;e=1;a!\x07", 0, "", ""),
            ("\x1b]99;e=1;/w==\x07", 0, "", ""),
            ("\x1b]99;i=1:p=?;\x07\x1b]99;i=1:p=close;\x07\x1b]99;p=icon;x\x07", 0, "", ""),
            ("\x1b]99;nothing\x07", 0, "", ""),
        ] {
            let want = (count, title.to_owned(), body.to_owned());
            assert_eq!(shown(output), want, "{output:?}");
        }
    }

    #[test]
    fn parts_add_up_to_no_more_than_the_limit() {
        let part = format!("\x1b]99;i=1:d=0;{}\x07", "\u{e9}".repeat(700));
        let (count, title, _) = shown(&(part.repeat(9) + "\x1b]99;i=1;\x07"));
        assert_eq!((count, title.len()), (1, PART_BYTES_MAX));
        let long = "x".repeat(ID_BYTES_MAX + 1);
        assert_eq!(shown(&format!("\x1b]99;i={long};a\x07")).0, 0);
    }
}
