//! Queries the user's terminal, and separates its answers from typed keys, since both arrive on one line. It has no
//! clock: its caller decides when the time for answers is over.
//!
//! Answers are hostile: only answers to a query count, only numbers and one short name are kept, and an incomplete
//! sequence is held up to a limit.

mod answer;
mod cursor;
mod reports;

use alloc::vec::Vec;

use crate::dialect::{Dialect, Questions};
use crate::probe::answer::{Answer, ReplyMatch, read};
use crate::probe::cursor::{Match, Owed};
use crate::screen::properties::Rgb;

pub use crate::probe::cursor::CursorReport;
pub use crate::probe::reports::DeviceReports;

/// Octets of an answer cut short that are kept; longer ones are no answers.
const HELD_BYTES_MAX: usize = 512;

const ESC: u8 = 0x1b;

/// Queries that every terminal with control sequences parses, if only to ignore them: DA2, DECRQM, kitty's flags.
const PLAIN_QUESTIONS: &[u8] = b"\x1b[>c\x1b[?2026$p\x1b[?u";

/// Queries that need a terminal that parses strings without showing them: XTVERSION, more modes, the colour scheme,
/// sizes in pixels, XTGETTCAP (RGB, Smulx, Setulc, Su), colours, the cursor's shape, and the rendition after a direct
/// colour and a curly underline.
const ALL_QUESTIONS: &[u8] =
    b"\x1b[>q\x1b[?2027$p\x1b[?2031$p\x1b[?2048$p\x1b[?1016$p\x1b[?996n\x1b[14t\x1b[16t\
\x1bP+q524742\x1b\\\x1bP+q536D756C78\x1b\\\x1bP+q536574756C63\x1b\\\x1bP+q5375\x1b\\\
\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b]12;?\x1b\\\
\x1b]4;0;?;1;?;2;?;3;?;4;?;5;?;6;?;7;?;8;?;9;?;10;?;11;?;12;?;13;?;14;?;15;?\x1b\\\
\x1bP$q q\x1b\\\x1b[0m\x1b[38;2;1;2;3m\x1b[4:3m\x1bP$qm\x1b\\\x1b[0m";

/// The queries repeated after a change of the colour scheme.
const COLOR_QUESTIONS: &[u8] = b"\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b]12;?\x1b\\";

/// DA1, which every terminal answers, and in order: its answer is the last.
const LAST_QUESTION: &[u8] = b"\x1b[c";

/// Reports of a changed colour scheme, mode 2031.
const WATCH_SCHEME: &[u8] = b"\x1b[?2031h";

/// How long the listener holds octets that may become an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Patience {
    /// Answers are expected now: even a lone escape may begin one.
    Expecting,
    /// The time is over or the last answer came. A late answer is still not a key, but a sequence is held only if no
    /// key begins like it, or right after an answer.
    Late,
}

/// Tells a terminal's answers from keys.
#[derive(Clone, Debug)]
pub struct Listener {
    patience: Patience,
    /// How many answers of each kind may still come.
    asked: [u8; Answer::KINDS],
    held: Vec<u8>,
    /// The octets held are a whole key, if they are no answer.
    holds_key: bool,
    /// Where the cursor is.
    cursor: Owed,
    /// The last octets were an answer, so that another may follow.
    answering: bool,
    told: DeviceReports,
    /// Further questions.
    outgoing: Vec<u8>,
}

impl Listener {
    /// A listener for a terminal of this dialect, whose questions wait in
    /// [`take_questions`](Self::take_questions).
    pub fn new(dialect: &Dialect) -> Self {
        let mut listener = Self {
            patience: Patience::Expecting,
            asked: [0; Answer::KINDS],
            held: Vec::new(),
            holds_key: false,
            cursor: Owed::default(),
            answering: false,
            told: DeviceReports::default(),
            outgoing: Vec::new(),
        };
        let (parts, kinds): (&[&[u8]], _) = match dialect.questions() {
            Questions::None => {
                listener.patience = Patience::Late;
                return listener;
            }
            Questions::Plain => (&[PLAIN_QUESTIONS, LAST_QUESTION], Answer::TO_PLAIN),
            Questions::All => (&[PLAIN_QUESTIONS, ALL_QUESTIONS, LAST_QUESTION], Answer::TO_ALL),
        };
        listener.outgoing = parts.concat();
        listener.asked = kinds;
        listener
    }

    /// Moves the queries for the terminal to `out`.
    pub fn take_questions(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.outgoing);
    }

    /// Appends the question where the cursor is and, in a terminal that [tells its size late](DeviceReports::tells_size_late),
    /// where the window ends.
    pub fn ask_cursor(&mut self, out: &mut Vec<u8>) {
        self.cursor.ask(self.told.tells_size_late(), out);
    }

    /// The answer, once the last question of it is answered. Asked once.
    pub fn take_cursor(&mut self) -> Option<CursorReport> {
        self.cursor.take()
    }

    /// Whether that answer is expected soon.
    pub fn is_expecting_cursor(&self) -> bool {
        self.cursor.is_expected()
    }

    /// The time for that answer is over. One that comes later is still no key.
    pub fn give_up_cursor(&mut self) {
        self.cursor.give_up();
    }

    /// Reads octets from the terminal: keeps answers, and appends all others to `keys` in their order.
    pub fn read(&mut self, octets: &[u8], keys: &mut Vec<u8>) {
        let joined;
        let mut rest = if self.held.is_empty() {
            octets
        } else {
            self.held.extend_from_slice(octets);
            joined = core::mem::take(&mut self.held);
            &joined
        };
        while let Some(start) = rest.iter().position(|&octet| octet == ESC) {
            keys.extend_from_slice(&rest[..start]);
            rest = &rest[start..];
            self.answering &= start == 0;
            self.holds_key = false;
            match self.cursor.read(rest) {
                Match::At(_, _, length) | Match::Ready(length) => {
                    self.answering = true;
                    rest = &rest[length..];
                    continue;
                }
                part @ (Match::Part | Match::KeyOrPart)
                    if self.cursor.is_expected() || self.answering || rest.len() > 3 =>
                {
                    self.holds_key = part == Match::KeyOrPart;
                    self.held = rest.to_vec();
                    return;
                }
                Match::Part | Match::KeyOrPart | Match::Neither => {}
            }
            match read(rest) {
                ReplyMatch::Answer(answer, length) if self.take(&answer) => {
                    self.answering = true;
                    rest = &rest[length..];
                }
                ReplyMatch::Part if rest.len() <= HELD_BYTES_MAX && self.holds(rest) => {
                    self.held = rest.to_vec();
                    return;
                }
                ReplyMatch::Answer(..) | ReplyMatch::Part | ReplyMatch::Keys => {
                    self.answering = false;
                    keys.push(ESC);
                    rest = &rest[1..];
                }
            }
        }
        self.answering &= rest.is_empty();
        keys.extend_from_slice(rest);
    }

    /// Releases the octets held as typed: their rest did not come in time.
    pub fn release(&mut self, keys: &mut Vec<u8>) {
        keys.append(&mut self.held);
    }

    /// The time for answers is over.
    pub fn give_up(&mut self) {
        self.patience = Patience::Late;
    }

    /// Stops waiting for the queries that are still unanswered.
    pub fn forget(&mut self) {
        self.asked = [0; Answer::KINDS];
        self.cursor = Owed::default();
    }

    /// Whether a question is unanswered.
    pub fn is_owed(&self) -> bool {
        self.is_asked() || self.cursor.is_owed()
    }

    /// Whether a question of what it is, is unanswered.
    fn is_asked(&self) -> bool {
        self.asked.iter().any(|&count| count > 0)
    }

    /// Whether the octets held are a whole key, if they are no answer.
    pub fn holds_key(&self) -> bool {
        self.holds_key && !self.held.is_empty()
    }

    /// Octets held that may yet become an answer, at most 512.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether the terminal is still answering.
    pub fn is_expecting(&self) -> bool {
        self.patience == Patience::Expecting
    }

    /// All reports of the terminal.
    pub fn told(&self) -> &DeviceReports {
        &self.told
    }

    /// Whether the beginning of an answer is worth waiting for.
    fn holds(&self, part: &[u8]) -> bool {
        if !self.is_asked() {
            return self.told.reports_scheme() && part.starts_with(b"\x1b[?");
        }
        // Three octets of a size, `ESC [ 4`, are three of the End key; with a fourth only keys with
        // modifiers begin.
        self.patience == Patience::Expecting || self.answering || part.len() > 3
    }

    /// Keeps an answer, if it was asked for.
    fn take(&mut self, answer: &Answer) -> bool {
        let asked = &mut self.asked[answer.kind()];
        let reported = matches!(answer, Answer::Scheme(_)) && self.told.reports_scheme();
        if *asked == 0 && !reported {
            return false;
        }
        let changed = matches!(answer, Answer::Scheme(new) if self.told.is_news(*new));
        *asked = asked.saturating_sub(1);
        self.told.note(answer);
        match answer {
            Answer::Primary => self.patience = Patience::Late,
            Answer::Mode(reports::SCHEME_REPORTS, _) if self.told.reports_scheme() => {
                self.outgoing.extend_from_slice(WATCH_SCHEME);
            }
            // Questions that nobody has taken yet will learn of this change too.
            Answer::Scheme(_) if changed && self.outgoing.is_empty() => {
                self.outgoing.extend_from_slice(COLOR_QUESTIONS);
                for number in 10..=12 {
                    self.asked[Answer::Dynamic(number, Rgb::default()).kind()] = 1;
                }
            }
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Ability, Colors};
    use crate::screen::properties::Scheme;

    fn listener() -> Listener {
        Listener::new(&Dialect::tty("xterm-256color", ""))
    }

    fn read_all(listener: &mut Listener, octets: &[u8]) -> String {
        let mut keys = Vec::new();
        listener.read(octets, &mut keys);
        String::from_utf8_lossy(&keys).into_owned()
    }

    /// The answers of xterm 379, kitty, foot, tmux and others, with keys between.
    const ANSWERS: &str = "a\x1b[>41;379;0cb\x1bP>|XTerm(379)\x1b\\\x1b[?2026;2$y\x1b[?0u\
        \x1b[?997;2n\x1b[4;600;800t\x1b[6;20;10t\x1bP1+r524742=382F382F38\x1b\\\x1bP0+r536D756C78\x1b\\\
        \x1b]10;rgb:0000/1111/2222\x1b\\\x1b]11;rgb:ff/ff/ff\x07\x1b]4;1;rgb:cdcd/0000/0000\x1b\\\
        \x1bP1$r2 q\x1b\\\x1bP1$r0;4:3;38:2::1:2:3m\x1b\\\x1b[?64;1;2cc";

    #[test]
    fn answers_are_told_from_keys_however_they_are_cut() {
        let whole = {
            let mut listener = listener();
            assert_eq!(read_all(&mut listener, ANSWERS.as_bytes()), "abc");
            listener
        };
        for cut in 1..ANSWERS.len() {
            let mut listener = listener();
            let (first, rest) = ANSWERS.as_bytes().split_at(cut);
            let keys = read_all(&mut listener, first) + &read_all(&mut listener, rest);
            assert_eq!(keys, "abc", "cut at {cut}");
            assert_eq!(listener.told, whole.told, "cut at {cut}");
        }
        let told = whole.told();
        let around = told.properties();
        assert_eq!(around.foreground, Some(Rgb(0, 0x11, 0x22)));
        assert_eq!(around.background, Some(Rgb(255, 255, 255)));
        assert_eq!(around.palette[1], Some(Rgb(0xcd, 0, 0)));
        assert_eq!(around.scheme, Some(Scheme::Light));
        assert_eq!(around.cell, Some((10, 20)));
    }

    #[test]
    fn what_is_typed_while_answers_are_awaited() {
        for keys in [
            "ls\r",
            "\x1b[A",
            "\x1bOA",
            "\x1b[1;5A",
            "\x1b[6~",
            "\x1b[6;5~",
            "\x1b[97;5u",
            "\x1b[<0;1;1M",
            "\x1b[I",
            "\x1b]0",
            "\x1bPx",
            "\x1bP1x",
            "\x1b]11;x",
            "\x1b\x1b\x1b[B",
            "\x1b[?1;2x",
            "\x1b[200~\x1b[?x\x1b[201~",
        ] {
            let mut listener = listener();
            let mut read = read_all(&mut listener, keys.as_bytes()).into_bytes();
            listener.release(&mut read);
            assert_eq!(String::from_utf8_lossy(&read), keys);
            assert_eq!(listener.told, DeviceReports::default(), "{keys:?}");
        }
    }

    #[test]
    fn an_answer_counts_once_and_a_late_one_is_no_key() {
        let mut listener = listener();
        listener.give_up();
        assert_eq!(read_all(&mut listener, b"\x1b[?62c"), "");
        assert_eq!(read_all(&mut listener, b"\x1b[?62c"), "\x1b[?62c");
        assert_eq!(read_all(&mut listener, b"\x1b"), "\x1b", "the escape key is not held");
        assert_eq!(read_all(&mut listener, b"\x1b]10;rgb:0/0/0\x07\x1b"), "");
        assert_eq!(read_all(&mut listener, b"]11;rgb:0/0/0\x07x"), "x");
        assert_eq!(read_all(&mut listener, b"\x1bP"), "\x1bP");
        assert_eq!(read_all(&mut listener, b"\x1bP>|foot("), "");
        assert_eq!(read_all(&mut listener, b"1.13)\x1b\\x"), "x");
    }

    /// End, Page Down and the like begin like the answers that tell a size.
    #[test]
    fn keys_that_begin_like_answers() {
        for (part, rest, keys) in [
            ("\x1b[4", "~", "\x1b[4"),
            ("\x1b[6", "~", "\x1b[6"),
            ("\x1b[?", "1;2x", "\x1b[?"),
            ("\x1b[6;", "5~", ""),
            ("\x1b[?9", "x", ""),
        ] {
            let mut listener = listener();
            listener.give_up();
            assert_eq!(read_all(&mut listener, part.as_bytes()), keys, "{part:?}");
            let all = keys.to_owned() + &read_all(&mut listener, rest.as_bytes());
            assert_eq!(all, format!("{part}{rest}"));
        }
    }

    #[test]
    fn what_is_never_answered_is_forgotten() {
        let mut listener = listener();
        assert_eq!(read_all(&mut listener, b"\x1b[?2031;2$y"), "");
        listener.give_up();
        assert!(listener.is_owed());
        listener.forget();
        assert!(!listener.is_owed());
        assert_eq!(read_all(&mut listener, b"\x1bP>|foot("), "\x1bP>|foot(");
        assert_eq!(read_all(&mut listener, b"\x1b[?62c"), "\x1b[?62c");
        assert_eq!(read_all(&mut listener, b"\x1b[?99"), "", "reports go on");
        assert_eq!(read_all(&mut listener, b"7;2n"), "");
        assert_eq!(listener.told().properties().scheme, Some(Scheme::Light));
    }

    #[test]
    fn a_terminal_that_is_asked_nothing_answers_nothing() {
        for (term, count) in [("linux", 0), ("vt100", 0), ("screen", 1), ("", 1), ("foot", 2)] {
            let mut listener = Listener::new(&Dialect::tty(term, ""));
            let mut questions = Vec::new();
            listener.take_questions(&mut questions);
            let strings = questions.windows(2).any(|pair| pair == b"\x1bP" || pair == b"\x1b]");
            assert_eq!(usize::from(!questions.is_empty()) + usize::from(strings), count, "{term}");
            let taken = read_all(&mut listener, b"\x1b[?62c").is_empty();
            assert_eq!(taken, count > 0, "{term}");
        }
    }

    /// Our own emulator understands all of it, and answers each question asked.
    #[test]
    fn our_emulator_answers_all() {
        let mut terminal = crate::Terminal::new(crate::Size::DEFAULT, Dialect::ROVE);
        let mut listener = listener();
        let mut questions = Vec::new();
        listener.take_questions(&mut questions);
        terminal.advance(&questions);
        assert_eq!(terminal.screen().text().concat(), "", "nothing is shown");
        assert_eq!(terminal.screen().pen(), Default::default());
        let answers = terminal.take_replies();
        assert!(
            !answers.windows(4).any(|part| part == b"\x1bP0+" || part == b"\x1bP0$"),
            "unknown"
        );
        assert_eq!(read_all(&mut listener, &answers), "");
        assert!(!listener.is_expecting() && listener.held() == 0);
        assert_eq!(listener.asked, [0; Answer::KINDS]);
        let dialect = Dialect::tty("xterm-256color", "").told(listener.told());
        assert_eq!(dialect.colors(), Colors::Direct);
        for ability in [Ability::UnderlineStyles, Ability::UnderlineColor, Ability::KittyKeys] {
            assert!(dialect.can(ability), "{ability:?}");
        }
    }

    #[test]
    fn a_changed_scheme_is_asked_about() {
        let mut listener = listener();
        let mut asked = Vec::new();
        listener.take_questions(&mut asked);
        for (octets, question) in [
            ("\x1b[?997;1n", ""),
            ("\x1b[?2031;2$y", "\x1b[?2031h"),
            ("\x1b[?997;1n", ""),
            ("\x1b[?997;2n", "\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b]12;?\x1b\\"),
            ("\x1b]11;rgb:ee/ee/ee\x07", ""),
        ] {
            assert_eq!(read_all(&mut listener, octets.as_bytes()), "", "{octets:?}");
            asked.clear();
            listener.take_questions(&mut asked);
            assert_eq!(String::from_utf8_lossy(&asked), question, "{octets:?}");
        }
        assert_eq!(listener.told().properties().background, Some(Rgb(0xee, 0xee, 0xee)));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut listener = listener();
        let mut octets = b"\x1bP>|".to_vec();
        octets.resize(100_000, b'x');
        let mut keys = Vec::new();
        for piece in octets.chunks(100) {
            listener.read(piece, &mut keys);
            assert!(listener.held() <= HELD_BYTES_MAX);
        }
        assert_eq!(keys, octets);
    }
}
