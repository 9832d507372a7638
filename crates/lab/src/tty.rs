//! The terminal that a simulated client paints on: it answers the client's questions or does not, and after every
//! paint it is compared with what the client meant to paint.

use std::collections::VecDeque;
use std::time::Duration;

use rove_session::Client;
use rove_ssp::Time;
use rove_term::screen::Buffer;
use rove_term::{
    Dialect, History, SavesErased, Screen, Size, Terminal, TerminalProperties, project, unlike_row,
};

use crate::compare::differences;
use crate::rng::{Chance, Rng};

/// How a terminal answers what it is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answers {
    /// Not at all.
    Never,
    /// After this time, in one read or in several.
    After(Duration),
}

/// A terminal, and what was painted on it.
#[derive(Debug)]
pub struct Tty {
    terminal: Terminal,
    /// Lines that the user had there before the session.
    theirs: Vec<String>,
    /// The program has erased the history.
    is_erased: bool,
    answers: Answers,
    rng: Rng,
    /// The reads by which the client gets the answers, and what is typed meanwhile.
    reads: VecDeque<Read>,
    /// The client has a part of an answer and lacks the rest.
    in_answer: bool,
    questions: u64,
    /// Sizes that the window has had.
    sizes: u64,
    /// The client does not know the size yet.
    is_untold: bool,
    compared: Option<Compared>,
}

/// What the client can read at once, from this time on.
#[derive(Debug)]
struct Read {
    at: Time,
    octets: Vec<u8>,
    holds: Holds,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Holds {
    /// Not the end of an answer.
    Part,
    /// The end, or all of it.
    End,
    /// Keys that were typed while the client had only a part of an answer.
    Keys,
}

/// The two pictures that were alike at the last comparison.
#[derive(Debug)]
struct Compared {
    painted: Screen,
    meant: Screen,
    dialect: Dialect,
}

impl Tty {
    /// A terminal that understands every sequence. What the client withholds from it shows in the comparison.
    pub fn new(size: Size, answers: Answers, rng: Rng) -> Tty {
        let mut terminal = Terminal::new(size, Dialect::ROVE);
        let lines = rng.clone().below(2 * u64::from(size.rows));
        let theirs: Vec<String> = (0..lines).map(|number| format!("mine {number}")).collect();
        theirs.iter().for_each(|line| terminal.advance(format!("{line}\r\n").as_bytes()));
        Tty {
            terminal,
            theirs,
            is_erased: false,
            answers,
            rng,
            reads: VecDeque::new(),
            in_answer: false,
            questions: 0,
            sizes: 1,
            is_untold: false,
            compared: None,
        }
    }

    /// The same, which puts into its history what is erased so.
    pub(crate) fn saving(mut self, saves_erased: SavesErased) -> Tty {
        let properties = TerminalProperties { saves_erased, ..TerminalProperties::default() };
        self.terminal.set_properties(properties);
        self
    }

    /// The picture.
    pub fn screen(&self) -> &Screen {
        self.terminal.screen()
    }

    /// The lines above the picture.
    pub fn history(&self) -> &History {
        self.terminal.history()
    }

    /// Its window has another size, which it does not tell yet. Paints in the meantime are not compared.
    pub fn resize(&mut self, size: Size) {
        self.terminal.resize(size);
        self.sizes += 1;
        self.is_untold = true;
    }

    /// The client learns the size.
    pub fn tells_size(&mut self) {
        self.is_untold = false;
        self.compared = None;
    }

    /// Takes what the client wrote before the first paint.
    pub fn open(&mut self, octets: &[u8]) {
        self.terminal.advance(octets);
    }

    /// Takes a paint.
    ///
    /// # Errors
    /// If the client asks for what the terminal did not answer before.
    pub fn take(&mut self, now: Time, octets: &[u8]) -> Result<(), String> {
        self.is_erased |=
            octets.split(|octet| *octet == b'\x1b').skip(1).any(|part| part.starts_with(ERASE));
        self.terminal.advance(octets);
        let replies = self.terminal.take_replies();
        if replies.is_empty() {
            return Ok(());
        }
        self.questions += 1;
        // A window of another size is asked for its cursor.
        let most = if self.answers == Answers::Never { 1 } else { QUESTIONS_MAX };
        if self.questions > most + self.sizes {
            return Err(format!("the client's paint asks again: {replies:?}"));
        }
        if let Answers::After(delay) = self.answers {
            self.answer(now, delay, replies);
        }
        Ok(())
    }

    fn answer(&mut self, now: Time, delay: Duration, replies: Vec<u8>) {
        let mut at = now + delay;
        let mut rest = replies.as_slice();
        while !rest.is_empty() {
            let whole = delay >= LATE || self.rng.happens(Chance::percent(50));
            let length =
                if whole { rest.len() } else { self.rng.within(1, rest.len() as u64) as usize };
            let (read, left) = rest.split_at(length);
            let holds = if left.is_empty() { Holds::End } else { Holds::Part };
            self.reads.push_back(Read { at, octets: read.to_vec(), holds });
            rest = left;
            at = at + self.rng.span_below(READ_PAUSE);
        }
    }

    /// When the client can read more of an answer.
    pub fn next_read(&self) -> Option<Time> {
        self.reads.front().map(|read| read.at)
    }

    /// Whether it has answered anything.
    pub fn has_answered(&self) -> bool {
        self.answers != Answers::Never && self.questions > 0 && self.reads.is_empty()
    }

    /// Gives the client what it can read of the answers.
    pub fn speak(&mut self, now: Time, client: &mut Client) {
        while let Some(read) = self.reads.pop_front_if(|read| read.at <= now) {
            client.handle_keys(now, &read.octets);
            self.in_answer = read.holds == Holds::Part;
        }
    }

    /// Gives the client a typed key. No terminal writes one into an answer: it goes after that.
    pub fn type_keys(&mut self, now: Time, client: &mut Client, keys: &[u8]) {
        let end = self.reads.iter().position(|read| read.holds == Holds::End);
        let Some(end) = end.filter(|_| self.in_answer) else {
            return client.handle_keys(now, keys);
        };
        let before = self.reads.iter().skip(end + 1).take_while(|read| read.holds == Holds::Keys);
        let place = end + 1 + before.count();
        let at = self.reads[end].at;
        self.reads.insert(place, Read { at, octets: keys.to_vec(), holds: Holds::Keys });
    }

    /// The picture without as many rows at its top, which are the user's.
    pub fn session(&self, above: u16) -> Screen {
        self.terminal.screen().raised(above)
    }

    /// The first line that the user had before the session and that is not where it was: above all of the session's,
    /// unless the program has erased them.
    ///
    /// # Errors
    /// What stands there.
    pub fn keeps_theirs(&self) -> Result<(), String> {
        let history = self.terminal.history();
        if self.is_erased || history.first() > 0 {
            return Ok(());
        }
        let above = (0..history.len()).filter_map(|line| history.text(line));
        let rows = match (self.screen().buffer(), self.screen().hidden()) {
            // They are not looked at there.
            (Buffer::Alternate, _) => Vec::new(),
            (Buffer::Primary, _) => self.screen().text(),
        };
        let mut lines = above.chain(rows);
        let hidden = self.screen().buffer() == Buffer::Alternate;
        for theirs in &self.theirs {
            match lines.next() {
                Some(line) if line.trim_end() == theirs => {}
                None if hidden => {}
                line => return Err(format!("{line:?} for {theirs:?} of the user's")),
            }
        }
        Ok(())
    }

    /// Compares the picture with what the client meant: rows that changed on either side since the last comparison,
    /// and the cursor. The first `above` rows are the user's.
    ///
    /// # Errors
    /// The first difference, or a row that shows one of these letters.
    pub fn compare(
        &mut self,
        meant: &Screen,
        above: u16,
        dialect: &Dialect,
        hidden: &str,
    ) -> Result<(), String> {
        if self.is_untold {
            return Ok(());
        }
        let above = if meant.buffer() == Buffer::Primary { above } else { 0 };
        let painted = self.terminal.screen();
        if painted.size() != meant.size() {
            return Err(format!("the size {:?} instead of {:?}", painted.size(), meant.size()));
        }
        let before = self
            .compared
            .as_ref()
            .filter(|before| before.painted.size() == painted.size() && before.dialect == *dialect);
        let rows: Vec<u16> = (above..painted.size().rows)
            .filter(|&row| {
                before.is_none_or(|before| {
                    is_other(&before.painted, painted, row) || is_other(&before.meant, meant, row)
                })
            })
            .collect();
        for row in &rows {
            let text = painted.row_text(*row);
            if text.replace(NAMED_KEY, "").contains(|letter| hidden.contains(letter)) {
                return Err(format!("a letter that was typed without echo, in row {row}: {text}"));
            }
        }
        if let Some(row) = unlike_row(painted, meant, dialect, rows) {
            let all = differences(painted, &project(meant, dialect));
            let first = all.first().map_or("in its looks".to_owned(), ToString::to_string);
            return Err(format!("row {row}: {first}"));
        }
        let (painted, meant, dialect) = (painted.clone(), meant.clone(), *dialect);
        self.compared = Some(Compared { painted, meant, dialect });
        Ok(())
    }
}

/// Whether a row is not the very one that it was.
fn is_other(before: &Screen, after: &Screen, row: u16) -> bool {
    !std::ptr::eq(&**before.row(row), &**after.row(row))
}

/// ED 3, behind its escape.
const ERASE: &[u8] = b"[3J";

/// The first paint asks, and so does each after an answer that leads to another question.
const QUESTIONS_MAX: u64 = 4;

/// So late an answer comes in one read. The first octets of one that is cut there are those of a key, and a client that
/// has waited for a second takes them for it.
const LATE: Duration = Duration::from_secs(1);

/// The longest time between two reads of one answer. A client takes an escape for a key after 50 ms.
const READ_PAUSE: Duration = Duration::from_millis(30);

/// The help bar and the panel name this key, which has a letter of secrets.
const NAMED_KEY: &str = "Ctrl-Z";
