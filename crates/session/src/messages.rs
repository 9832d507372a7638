//! The two diffs on the wire: `UserMessage` (client to server) and `HostMessage` (server to client),
//! `mosh-protocol.md` §3.3. Both are one repeated message that is extended by number.
//!
//! The repeated part is walked by hand on prost's varint helpers and borrows from the diff, so that
//! four megabytes of empty messages cost nothing. This file knows octets, not screens or keys.

mod fields;
mod lines;
mod properties;

use alloc::vec::Vec;

use rove_ssp::BadDiff;
use rove_term::{Size, TerminalProperties};

use crate::line_mode::LineReport;
use crate::session_info::SessionFields;
pub use fields::EVENTS_MAX;
use fields::{
    ECHO_ACK_NUM, EXIT_STATUS_CODE, EXT_DEPTH, EXT_ECHO_ACK, EXT_EXIT_STATUS, EXT_LEAVING,
    EXT_LINE, EXT_LINES, EXT_OCTETS, EXT_PROPERTIES, EXT_RESIZE, EXT_ROWS, EXT_SESSION,
    LEAVING_HOW, LINE_MODES, LINE_NUMBER, LINES_FORMAT, LINES_WANTED, OCTETS, RESIZE_HEIGHT,
    RESIZE_WIDTH, SESSION_ENDED, SESSION_FLAGS, SESSION_NAME, SESSION_OTHERS, SESSION_WHO,
    TOO_MANY, TOP_INSTRUCTION, Value, each_field, numbers_of, octets_of, write_fields,
    write_numbers, write_octets,
};
pub use lines::{DepthFields, RowsFields};

/// One event of the user stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UserEvent<'a> {
    /// Octets as the user's terminal sent them.
    Keys(&'a [u8]),
    /// The user's window has a new size.
    Resize(Dimensions),
    /// The user's terminal, as far as it is known (our extension 18; stock never sends it).
    TerminalProperties(TerminalProperties),
    /// The client only leaves: the session is to go on (our extension 22).
    Leaving,
    /// The largest number of missed lines that the client wants (our extension 23).
    LinesWanted(u64),
}

/// One event of the screen's diff.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostEvent<'a> {
    /// Octets for the terminal emulator that holds the base state.
    Bytes(&'a [u8]),
    /// The screen has a new size.
    Resize(Dimensions),
    /// The newest user state whose effect, if any, this screen shows.
    EchoAck(u64),
    /// What the program's terminal line does with keys (our extension 16; stock never sends it).
    Line(LineReport),
    /// How the session's program ended (our extension 17; a stock server never sends it).
    ExitStatus(i32),
    /// The session, and who else is in it (our extension 21; sent to a client that asked for it).
    Session(SessionFields<'a>),
    /// How far the lines above the screen go (our extension 19; sent to a client that wants lines).
    Depth(DepthFields),
    /// Lines that left the screen (our extension 20; the same).
    Rows(RowsFields<'a>),
}

/// A size as the wire carries it: any two numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Dimensions {
    /// Columns.
    pub width: i32,
    /// Rows.
    pub height: i32,
}

impl Dimensions {
    /// The size that is meant. `None` if either number is zero or negative; a larger size is cut to
    /// the largest screen kept.
    pub fn to_size(self) -> Option<Size> {
        (self.width > 0 && self.height > 0).then(|| Size::clamped(self.height, self.width))
    }
}

impl From<Size> for Dimensions {
    fn from(size: Size) -> Self {
        Self { width: i32::from(size.cols), height: i32::from(size.rows) }
    }
}

/// Reads a `UserMessage`. Unknown fields are skipped, as both stock programs do.
pub fn read_user(diff: &[u8]) -> Result<Vec<UserEvent<'_>>, BadDiff> {
    read(diff, |message| {
        let [keys, resize, properties, leaving, lines] =
            octets_of(message, [EXT_OCTETS, EXT_RESIZE, EXT_PROPERTIES, EXT_LEAVING, EXT_LINES])?;
        Ok(if let Some(message) = keys {
            Some(UserEvent::Keys(read_octets(message)?))
        } else if let Some(message) = resize {
            Some(UserEvent::Resize(read_dimensions(message)?))
        } else if let Some(message) = properties {
            Some(UserEvent::TerminalProperties(properties::read(message)?))
        } else if let Some(message) = leaving {
            let [how] = numbers_of(message, [LEAVING_HOW])?;
            (how == DETACH).then_some(UserEvent::Leaving)
        } else if let Some(message) = lines {
            let [wanted, format] = numbers_of(message, [LINES_WANTED, LINES_FORMAT])?;
            (format == LINES_AS_TEXT).then_some(UserEvent::LinesWanted(wanted))
        } else {
            None
        })
    })
}

/// Appends one event to a `UserMessage`.
pub fn write_user(event: UserEvent<'_>, out: &mut Vec<u8>) {
    match event {
        UserEvent::Keys(octets) => write_octets(octets, out),
        UserEvent::Resize(dimensions) => write_dimensions(dimensions, out),
        UserEvent::TerminalProperties(around) => properties::write(&around, out),
        UserEvent::Leaving => write_numbers(EXT_LEAVING, &[(LEAVING_HOW, DETACH)], out),
        UserEvent::LinesWanted(wanted) => {
            let fields = [(LINES_WANTED, wanted), (LINES_FORMAT, LINES_AS_TEXT)];
            write_numbers(EXT_LINES, &fields, out);
        }
    }
}

/// Reads a `HostMessage`. Unknown fields are skipped, as both stock programs do. Stock acts on the
/// first extension of 2, 3 and 7 that an event has.
pub fn read_host(diff: &[u8]) -> Result<Vec<HostEvent<'_>>, BadDiff> {
    read(diff, |message| {
        let [bytes, resize, echo_ack, line, exit_status, session, depth, rows] = octets_of(
            message,
            [
                EXT_OCTETS,
                EXT_RESIZE,
                EXT_ECHO_ACK,
                EXT_LINE,
                EXT_EXIT_STATUS,
                EXT_SESSION,
                EXT_DEPTH,
                EXT_ROWS,
            ],
        )?;
        Ok(if let Some(message) = bytes {
            Some(HostEvent::Bytes(read_octets(message)?))
        } else if let Some(message) = resize {
            Some(HostEvent::Resize(read_dimensions(message)?))
        } else if let Some(message) = echo_ack {
            Some(HostEvent::EchoAck(numbers_of(message, [ECHO_ACK_NUM])?[0]))
        } else if let Some(message) = line {
            let [modes, number] = numbers_of(message, [LINE_MODES, LINE_NUMBER])?;
            Some(HostEvent::Line(LineReport::from_numbers(modes, number)))
        } else if let Some(message) = exit_status {
            // An int32 is sign-extended to 64 bits on the wire; protobuf readers keep the low half.
            Some(HostEvent::ExitStatus(numbers_of(message, [EXIT_STATUS_CODE])?[0] as i32))
        } else if let Some(message) = session {
            Some(HostEvent::Session(read_session(message)?))
        } else if let Some(message) = depth {
            Some(HostEvent::Depth(lines::read_depth(message)?))
        } else if let Some(message) = rows {
            Some(HostEvent::Rows(lines::read_rows(message)?))
        } else {
            None
        })
    })
}

/// Appends one event to a `HostMessage`.
pub fn write_host(event: HostEvent<'_>, out: &mut Vec<u8>) {
    match event {
        HostEvent::Bytes(octets) => write_octets(octets, out),
        HostEvent::Resize(dimensions) => write_dimensions(dimensions, out),
        HostEvent::EchoAck(number) => write_numbers(EXT_ECHO_ACK, &[(ECHO_ACK_NUM, number)], out),
        HostEvent::Line(line) => {
            let (modes, number) = line.to_numbers();
            let fields = [(LINE_MODES, modes), (LINE_NUMBER, number)];
            write_numbers(EXT_LINE, if number > 0 { &fields } else { &fields[..1] }, out);
        }
        HostEvent::ExitStatus(status) => {
            let code = i64::from(status) as u64;
            write_numbers(EXT_EXIT_STATUS, &[(EXIT_STATUS_CODE, code)], out);
        }
        HostEvent::Session(session) => write_session(&session, out),
        HostEvent::Depth(depth) => lines::write_depth(&depth, out),
        HostEvent::Rows(rows) => lines::write_rows(&rows, out),
    }
}

/// How a client leaves: the session goes on.
const DETACH: u64 = 1;
/// The form of lines: as text that prints them.
const LINES_AS_TEXT: u64 = 1;

fn read_session(message: &[u8]) -> Result<SessionFields<'_>, BadDiff> {
    let [name, who] = octets_of(message, [SESSION_NAME, SESSION_WHO])?;
    let [flags, others, ended] =
        numbers_of(message, [SESSION_FLAGS, SESSION_OTHERS, SESSION_ENDED])?;
    let (name, who) = (name.unwrap_or_default(), who.unwrap_or_default());
    Ok(SessionFields { name, flags, others, ended, who })
}

fn write_session(session: &SessionFields<'_>, out: &mut Vec<u8>) {
    let &SessionFields { name, flags, others, ended, who } = session;
    let numbers = [(SESSION_FLAGS, flags), (SESSION_OTHERS, others), (SESSION_ENDED, ended)];
    write_fields(EXT_SESSION, &numbers, &[(SESSION_NAME, name), (SESSION_WHO, who)], out);
}

/// Reads the events of a message; `event` reads the extensions of one.
fn read<'a, E>(
    diff: &'a [u8],
    event: impl Fn(&'a [u8]) -> Result<Option<E>, BadDiff>,
) -> Result<Vec<E>, BadDiff> {
    let mut events = Vec::new();
    let mut seen = 0;
    each_field(diff, |number, value| {
        let (TOP_INSTRUCTION, Value::Octets(message)) = (number, value) else { return Ok(()) };
        seen += 1;
        if seen > EVENTS_MAX {
            return Err(TOO_MANY);
        }
        events.extend(event(message)?);
        Ok(())
    })?;
    Ok(events)
}

fn read_octets(message: &[u8]) -> Result<&[u8], BadDiff> {
    Ok(octets_of(message, [OCTETS])?[0].unwrap_or_default())
}

fn read_dimensions(message: &[u8]) -> Result<Dimensions, BadDiff> {
    let [width, height] = numbers_of(message, [RESIZE_WIDTH, RESIZE_HEIGHT])?;
    Ok(Dimensions { width: width as i32, height: height as i32 })
}

fn write_dimensions(dimensions: Dimensions, out: &mut Vec<u8>) {
    let extended = |n: i32| i64::from(n) as u64;
    let fields =
        [(RESIZE_WIDTH, extended(dimensions.width)), (RESIZE_HEIGHT, extended(dimensions.height))];
    write_numbers(EXT_RESIZE, &fields, out);
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::line_mode::LineMode;
    use crate::messages::fields::MALFORMED;

    fn resize(width: i32, height: i32) -> Dimensions {
        Dimensions { width, height }
    }

    fn octets(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|&digit| digit != b' ').collect();
        let pair = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    /// The entries of one list of the vectors: octets, events, and whether ours writes the same octets.
    fn vectors(list: &str) -> Vec<(String, Vec<Value>, bool)> {
        let file = include_str!("../../ssp/tests/vectors/mosh-vectors.json");
        let all: Value = serde_json::from_str(file).unwrap();
        let entry = |entry: &Value| {
            let mut events = entry["events"].as_array().unwrap().clone();
            let all = events.len();
            events.retain(|event| event[0] != "unknown_ext");
            let same_octets = events.len() == all;
            (entry["bytes"].as_str().unwrap().to_owned(), events, same_octets)
        };
        let entries: Vec<_> = all[list].as_array().unwrap().iter().map(entry).collect();
        assert!(!entries.is_empty(), "{list}");
        entries
    }

    /// An event's octets, if it has any.
    fn event_octets(event: &Value) -> Vec<u8> {
        event[1].as_str().map(octets).unwrap_or_default()
    }

    fn event_size(event: &Value) -> Dimensions {
        let side = |index: usize| event[index].as_i64().unwrap().try_into().unwrap();
        resize(side(1), side(2))
    }

    fn check_user(hex: &str, events: &[UserEvent<'_>], same_octets: bool) {
        let diff = octets(hex);
        let Ok(read) = read_user(&diff) else { panic!("{hex} is a message") };
        assert_eq!(read, events, "{hex}");
        let mut written = Vec::new();
        events.iter().for_each(|&event| write_user(event, &mut written));
        assert_eq!(read_user(&written).as_deref(), Ok(events), "{hex}");
        assert_eq!(written == diff, same_octets, "{hex}");
    }

    fn check_host(hex: &str, events: &[HostEvent<'_>], same_octets: bool) {
        let diff = octets(hex);
        let Ok(read) = read_host(&diff) else { panic!("{hex} is a message") };
        assert_eq!(read, events, "{hex}");
        let mut written = Vec::new();
        events.iter().for_each(|&event| write_host(event, &mut written));
        assert_eq!(read_host(&written).as_deref(), Ok(events), "{hex}");
        assert_eq!(written == diff, same_octets, "{hex}");
    }

    #[test]
    fn user_messages_of_the_vectors() {
        for (hex, events, same_octets) in vectors("user_messages") {
            let octets: Vec<_> = events.iter().map(event_octets).collect();
            let event = |(event, octets): (&Value, _)| match event[0].as_str().unwrap() {
                "keys" => UserEvent::Keys(octets),
                "resize" => UserEvent::Resize(event_size(event)),
                other => panic!("{other}"),
            };
            let octets = octets.iter().map(Vec::as_slice);
            let expected: Vec<_> = events.iter().zip(octets).map(event).collect();
            check_user(&hex, &expected, same_octets);
        }
    }

    #[test]
    fn host_messages_of_the_vectors() {
        for (hex, events, same_octets) in vectors("host_messages") {
            let octets: Vec<_> = events.iter().map(event_octets).collect();
            let event = |(event, octets): (&Value, _)| match event[0].as_str().unwrap() {
                "host_bytes" => HostEvent::Bytes(octets),
                "resize" => HostEvent::Resize(event_size(event)),
                "echo_ack" => HostEvent::EchoAck(event[1].as_u64().unwrap()),
                other => panic!("{other}"),
            };
            let octets = octets.iter().map(Vec::as_slice);
            let expected: Vec<_> = events.iter().zip(octets).map(event).collect();
            check_host(&hex, &expected, same_octets);
        }
    }

    /// What must read like the vectors.
    #[test]
    fn user_messages() {
        use UserEvent::{Keys, Resize, TerminalProperties};
        let mut around = rove_term::TerminalProperties {
            background: Some(rove_term::Rgb(255, 255, 255)),
            scheme: Some(rove_term::Scheme::Light),
            cell: Some((9, 18)),
            ..Default::default()
        };
        around.palette[15] = Some(rove_term::Rgb(255, 0, 0));
        for (hex, events, same_octets) in [
            ("", vec![], true),
            // Unknown: a top-level field, an extension alone, a field within, a fixed one, a group.
            ("12026869 0a0512032201611801", vec![Keys(b"a")], false),
            ("0a059203027a7a", vec![], false),
            ("0a0712054807220161", vec![Keys(b"a")], false),
            ("0a0f 2d00000000 12082d00000000 220161", vec![Keys(b"a")], false),
            ("0a0b 2b08012c 1205 48072201 61", vec![Keys(b"a")], false),
            // Resize before keys in one event: the lower number counts. A missing number is 0.
            ("0a0b1a0428503018 1203220161", vec![Keys(b"a")], false),
            ("0a041a022850", vec![Resize(resize(80, 0))], false),
            // A number written twice: the last counts.
            ("0a081a06285030182851", vec![Resize(resize(81, 24))], false),
            ("0a0f 1a0d 28ffffffffffffffffff01 3018", vec![Resize(resize(-1, 24))], true),
            // Ours: the ground white, light, a cell of 9 by 18; palette entry 15 red. What is out of
            // bounds is left out.
            (
                "0a14 920111 10ffffff07 2002 2809 3012 f801 8080fc07",
                vec![TerminalProperties(around)],
                true,
            ),
            // A terminal that saves what is erased, ED 0 included, and one of a kind that is not known.
            (
                "0a05 92010238 02",
                vec![TerminalProperties(rove_term::TerminalProperties {
                    saves_erased: rove_term::SavesErased::FromHome,
                    ..Default::default()
                })],
                true,
            ),
            ("0a05 92010238 03", vec![TerminalProperties(Default::default())], false),
            ("0a05 92010228 09", vec![TerminalProperties(Default::default())], false),
            ("0a08 920105 0880808008", vec![TerminalProperties(Default::default())], false),
        ] {
            check_user(hex, &events, same_octets);
        }
    }

    /// The ends of the range, and our extensions.
    #[test]
    fn host_messages() {
        use HostEvent::{EchoAck, ExitStatus, Line};
        let kept = LineReport { mode: LineMode::Hidden, hidden: Some(3), may_be_kept: true };
        for (hex, events, same_octets) in [
            ("0a0d3a0b40ffffffffffffffffff01", vec![EchoAck(u64::MAX)], true),
            ("0a0582010208 03", vec![Line(LineMode::Cooked.into())], true),
            ("0a0582010208 09", vec![Line(LineMode::Hidden.into())], false),
            ("0a0582010208 05", vec![Line(LineMode::Hidden.into())], false),
            ("0a0782010408 051003", vec![Line(kept)], true),
            ("0a03820100", vec![Line(LineMode::Raw.into())], false),
            ("0a058a01020802", vec![ExitStatus(2)], true),
            ("0a0e8a010b08ffffffffffffffffff01", vec![ExitStatus(-1)], true),
        ] {
            check_host(hex, &events, same_octets);
        }
    }

    #[test]
    fn what_is_no_message() {
        let too_many = [0x0a, 0x00].repeat(EVENTS_MAX + 1);
        let groups = [0x0b].repeat(1000);
        for (diff, why) in [
            (&[0x0a][..], MALFORMED),
            (&[0x0a, 0x05, 0x12], MALFORMED),
            (&[0x0a, 0x02, 0x12, 0x01], MALFORMED),
            (&[0x02, 0x00], MALFORMED),
            (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], MALFORMED),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], MALFORMED),
            (&groups, MALFORMED),
            (&too_many, TOO_MANY),
        ] {
            assert_eq!(read_user(diff), Err(why), "{:?}...", &diff[..diff.len().min(20)]);
            assert_eq!(read_host(diff), Err(why), "{:?}...", &diff[..diff.len().min(20)]);
        }
        assert_eq!(read_user(&too_many[2..]), Ok(vec![]));
    }

    /// Threats row 9: every pair of sizes is refused or cut, and a pty is never given 0.
    #[test]
    fn sizes() {
        let sides = [i32::MIN, -1, 0, 1, 1000, 65_535, i32::MAX];
        for (width, height) in sides.iter().flat_map(|&w| sides.map(|h| (w, h))) {
            let size = resize(width, height).to_size();
            assert_eq!(size.is_some(), width > 0 && height > 0, "{width}x{height}");
            let Some(size) = size else { continue };
            assert!((1..=1000).contains(&size.rows) && (1..=1000).contains(&size.cols));
            assert!(u32::from(size.rows) * u32::from(size.cols) <= 200_000, "{size:?}");
        }
    }
}
