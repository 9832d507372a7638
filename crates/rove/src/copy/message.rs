//! The messages between the two ends of a copy: one octet of kind, four of length and a body, over one byte
//! stream in each direction.
//!
//! The sender lists entries; the receiver asks by number for those it accepts, and gets them. Of a file that
//! it already has in part, the receiver sends the length and never the hash: the sender sends its own hash,
//! and the receiver compares. Nothing here opens a file. All numbers are little-endian.

use thiserror::Error;

/// The most octets of data in one message.
pub(crate) const DATA_BYTES_MAX: usize = 256 * 1024;

/// The longest body without data: a name, a link's target or a line of text, each at most 4,096 octets, and
/// fixed fields.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// Octets of kind and length.
pub(crate) const HEADER_BYTES: usize = 5;

/// The bit of a file's mode by which its sender says that it hears `Ask` and `Want` again. Receivers that do not know it
/// take the permissions alone.
pub(crate) const ANEW: u16 = 1 << 15;

/// The most beginnings of a file whose hashes a receiver asks for.
pub(crate) const MARKS_MAX: usize = 4;

/// The longest line of text; the end that shows it cuts longer ones.
const TEXT_BYTES_MAX: usize = 4096;

/// A BLAKE3 hash.
pub type Digest = [u8; 32];

/// One message. It borrows from the octets it was read from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message<'a> {
    /// From the sender: one thing to copy. Entries are numbered from 1, in order.
    Entry(Entry<'a>),
    /// From the sender: there are no more entries.
    Listed,
    /// From the sender: the messages up to `End` or `Gone` are this file, from this offset on.
    Begin {
        /// The number of its entry.
        index: u32,
        /// 0, or the offset that the receiver asked for.
        offset: u64,
    },
    /// From the sender: the file's next octets. A message of data may be read in several pieces.
    Data(&'a [u8]),
    /// From the sender: the file's next octets, as an LZ4 block.
    Packed {
        /// Its unpacked length; 1 to `DATA_BYTES_MAX`.
        length: u32,
        /// The block.
        block: &'a [u8],
    },
    /// From the sender: the next octets are this many zeros that take no space.
    Hole(u64),
    /// From the sender: the file is complete. The hash covers everything since `Begin`: data as in the file,
    /// and the lengths of holes.
    End(Digest),
    /// From the sender: this file will not come, or not to its end.
    Gone {
        /// The number of its entry.
        index: u32,
        /// The reason, for the user; empty if the receiver gave it up, or wants it anew.
        why: &'a [u8],
    },
    /// From the sender: the hashes of the requested beginnings of this file, as far as the file is long
    /// enough.
    Marks {
        /// The number of its entry.
        index: u32,
        /// In the order asked.
        marks: Vec<Mark>,
    },
    /// From the receiver: asks for hashes of beginnings of this file, before `Want`. Once for each file, and again where
    /// `Want` may come again.
    Ask {
        /// The number of its entry.
        index: u32,
        /// How long each beginning is, shortest first; at least one, at most `MARKS_MAX`.
        lengths: Vec<u64>,
    },
    /// From the receiver: send this file. Once for each file; a few times more, each after its `Begin`, if the sender
    /// hears that (`mode` of its entry). It then breaks off what it sends of the file, and begins anew.
    Want {
        /// The number of its entry.
        index: u32,
        /// The offset to start at: 0, or the length of one of the sender's marks.
        offset: u64,
    },
    /// From the receiver: another copy writes this file, and it is waited for. Only to a sender that knows the message.
    Waiting {
        /// The number of its entry.
        index: u32,
        /// Seconds since that copy's client was heard, if that is known.
        heard: Option<u32>,
    },
    /// From the receiver: no more is needed of this entry.
    Done {
        /// Its number.
        index: u32,
        /// The result.
        outcome: Outcome<'a>,
    },
    /// From either: something else failed, for the user.
    Trouble(&'a [u8]),
    /// From either: the copy ends here, for this reason.
    Fatal(&'a [u8]),
    /// From the receiver: everything is in its place.
    Complete,
}

/// One thing to copy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry<'a> {
    /// The number of its directory; 0 for the user's own sources.
    pub parent: u32,
    /// Which of the user's sources it comes from, from 0.
    pub source: u16,
    /// Its name: one component. Empty for a directory whose contents go into the target itself.
    pub name: &'a [u8],
    /// Its type and size or target.
    pub kind: Kind<'a>,
    /// Its permissions in the lowest nine bits. The highest one says of a file that its sender begins it anew when it is
    /// asked to; others do not count.
    pub mode: u16,
    /// Its times.
    pub times: Times,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind<'a> {
    /// A directory.
    Directory,
    /// A regular file of this size.
    File {
        /// In octets, as it was listed.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// Its text.
        target: &'a [u8],
    },
}

/// When a file was last read and last changed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Times {
    /// Last read.
    pub accessed: Moment,
    /// Last changed.
    pub modified: Moment,
}

/// A time as file systems keep it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Moment {
    /// Since 1970; negative before.
    pub seconds: i64,
    /// Below 10^9.
    pub nanoseconds: u32,
}

/// The hash of the beginning of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mark {
    /// How long it is, in octets.
    pub length: u64,
    /// BLAKE3 of the BLAKE3s of its blocks of 1 MiB, where a run of blocks of zeros is the BLAKE3 of one and
    /// their number in 8 octets.
    pub digest: Digest,
}

/// The result for an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome<'a> {
    /// It is in its place.
    Done,
    /// It failed, for this reason.
    Failed(&'a [u8]),
    /// Its directory failed, so it was skipped.
    Skipped,
}

/// The other end breaks the protocol.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the other end does not keep to the protocol of copies")]
pub struct Malformed;

/// The octet for each kind of message.
mod tag {
    pub(super) const DIRECTORY: u8 = 1;
    pub(super) const FILE: u8 = 2;
    pub(super) const LINK: u8 = 3;
    pub(super) const LISTED: u8 = 4;
    pub(super) const BEGIN: u8 = 5;
    pub(super) const DATA: u8 = 6;
    pub(super) const PACKED: u8 = 7;
    pub(super) const HOLE: u8 = 8;
    pub(super) const END: u8 = 9;
    pub(super) const GONE: u8 = 10;
    pub(super) const MARKS: u8 = 11;
    pub(super) const WANT: u8 = 32;
    pub(super) const DONE: u8 = 33;
    pub(super) const FAILED: u8 = 34;
    pub(super) const SKIPPED: u8 = 35;
    pub(super) const COMPLETE: u8 = 36;
    pub(super) const ASK: u8 = 37;
    pub(super) const WAITING: u8 = 38;
    pub(super) const TROUBLE: u8 = 64;
    pub(super) const FATAL: u8 = 65;
}

/// Reads messages off the front of a stream.
#[derive(Debug, Default)]
pub struct Parser {
    /// Octets of a data message still to come.
    data_left: usize,
}

impl Parser {
    /// How many of `bytes` the next message takes, or the next piece of a data message; `None` if more are
    /// needed.
    pub fn extent(&self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        if self.data_left > 0 {
            return Ok((!bytes.is_empty()).then(|| bytes.len().min(self.data_left)));
        }
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *header;
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| Malformed)?;
        let (min, max) = match kind {
            tag::DATA => (1, DATA_BYTES_MAX),
            tag::PACKED => (5, DATA_BYTES_MAX),
            _ => (0, BODY_BYTES_MAX),
        };
        if length < min || length > max {
            return Err(Malformed);
        }
        Ok(match (kind, rest.len()) {
            (tag::DATA, 0) => None,
            (tag::DATA, have) => Some(HEADER_BYTES + have.min(length)),
            (_, have) => (have >= length).then_some(HEADER_BYTES + length),
        })
    }

    /// Reads the message from exactly the octets that [`Parser::extent`] has measured.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Message<'a>, Malformed> {
        if self.data_left > 0 {
            self.data_left = self.data_left.checked_sub(bytes.len()).ok_or(Malformed)?;
            return Ok(Message::Data(bytes));
        }
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed)?;
        let [kind, length @ ..] = *header;
        if kind == tag::DATA {
            let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| Malformed)?;
            self.data_left = length.checked_sub(body.len()).ok_or(Malformed)?;
            return Ok(Message::Data(body));
        }
        let mut fields = Fields(body);
        let message = read_body(kind, &mut fields)?;
        match fields.0 {
            [] => Ok(message),
            _ => Err(Malformed),
        }
    }
}

fn read_body<'a>(kind: u8, fields: &mut Fields<'a>) -> Result<Message<'a>, Malformed> {
    Ok(match kind {
        tag::DIRECTORY => Message::Entry(fields.entry(|_| Ok(Kind::Directory))?),
        tag::FILE => Message::Entry(fields.entry(|fields| Ok(Kind::File { size: fields.u64()? }))?),
        tag::LINK => {
            Message::Entry(fields.entry(|fields| Ok(Kind::Link { target: fields.text()? }))?)
        }
        tag::LISTED => Message::Listed,
        tag::BEGIN => Message::Begin { index: fields.u32()?, offset: fields.u64()? },
        tag::PACKED => {
            let length = fields.u32()?;
            if length == 0 || length as usize > DATA_BYTES_MAX {
                return Err(Malformed);
            }
            Message::Packed { length, block: fields.rest() }
        }
        tag::HOLE => Message::Hole(fields.u64()?),
        tag::END => Message::End(fields.array()?),
        tag::GONE => Message::Gone { index: fields.u32()?, why: fields.text()? },
        tag::WANT => Message::Want { index: fields.u32()?, offset: fields.u64()? },
        tag::ASK => {
            let index = fields.u32()?;
            let lengths = fields.list(|fields| fields.u64())?;
            if lengths.is_empty() {
                return Err(Malformed);
            }
            Message::Ask { index, lengths }
        }
        tag::MARKS => {
            let index = fields.u32()?;
            let mark = |fields: &mut Fields<'a>| {
                Ok(Mark { length: fields.u64()?, digest: fields.array()? })
            };
            Message::Marks { index, marks: fields.list(mark)? }
        }
        tag::WAITING => {
            let index = fields.u32()?;
            let heard = if fields.0.is_empty() { None } else { Some(fields.u32()?) };
            Message::Waiting { index, heard }
        }
        tag::DONE => Message::Done { index: fields.u32()?, outcome: Outcome::Done },
        tag::FAILED => {
            Message::Done { index: fields.u32()?, outcome: Outcome::Failed(fields.text()?) }
        }
        tag::SKIPPED => Message::Done { index: fields.u32()?, outcome: Outcome::Skipped },
        tag::COMPLETE => Message::Complete,
        tag::TROUBLE => Message::Trouble(fields.text()?),
        tag::FATAL => Message::Fatal(fields.text()?),
        _ => return Err(Malformed),
    })
}

impl Message<'_> {
    /// Appends the message to `out`. Cuts a text longer than 4,096 octets.
    ///
    /// # Panics
    /// If a name or a target is longer than that, or there are more than [`DATA_BYTES_MAX`] octets of data:
    /// no system has such names, and the caller cuts the data.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let kind = self.encode_body(out);
        let length = out.len() - start - HEADER_BYTES;
        assert!(length <= DATA_BYTES_MAX, "a message fits its limit");
        out[start..start + HEADER_BYTES].copy_from_slice(&header(kind, length));
    }

    fn encode_body(&self, out: &mut Vec<u8>) -> u8 {
        let mut put = |kind: u8, parts: &[&[u8]]| {
            parts.iter().for_each(|part| out.extend_from_slice(part));
            kind
        };
        match self {
            Message::Entry(entry) => entry.encode_body(out),
            Message::Listed => tag::LISTED,
            Message::Complete => tag::COMPLETE,
            Message::Begin { index, offset } => {
                put(tag::BEGIN, &[&index.to_le_bytes(), &offset.to_le_bytes()])
            }
            Message::Data(data) => put(tag::DATA, &[data]),
            Message::Packed { length, block } => put(tag::PACKED, &[&length.to_le_bytes(), block]),
            Message::Hole(length) => put(tag::HOLE, &[&length.to_le_bytes()]),
            Message::End(digest) => put(tag::END, &[digest]),
            Message::Want { index, offset } => {
                put(tag::WANT, &[&index.to_le_bytes(), &offset.to_le_bytes()])
            }
            Message::Waiting { index, heard } => {
                let heard = heard.map(u32::to_le_bytes);
                put(tag::WAITING, &[&index.to_le_bytes(), heard.as_ref().map_or(&[], |it| it)])
            }
            Message::Ask { index, lengths } => {
                assert!((1..=MARKS_MAX).contains(&lengths.len()), "few marks are asked for");
                put(tag::ASK, &[&index.to_le_bytes()]);
                lengths.iter().for_each(|length| out.extend_from_slice(&length.to_le_bytes()));
                tag::ASK
            }
            Message::Marks { index, marks } => {
                assert!(marks.len() <= MARKS_MAX, "no more marks are told than asked for");
                put(tag::MARKS, &[&index.to_le_bytes()]);
                for mark in marks {
                    put(tag::MARKS, &[&mark.length.to_le_bytes(), &mark.digest]);
                }
                tag::MARKS
            }
            Message::Done { index, outcome } => {
                put(tag::DONE, &[&index.to_le_bytes()]);
                outcome.encode_body(out)
            }
            Message::Gone { index, why } => {
                put(tag::GONE, &[&index.to_le_bytes()]);
                put_text(cut(why), out);
                tag::GONE
            }
            Message::Trouble(text) => {
                put_text(cut(text), out);
                tag::TROUBLE
            }
            Message::Fatal(text) => {
                put_text(cut(text), out);
                tag::FATAL
            }
        }
    }
}

impl Outcome<'_> {
    fn encode_body(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            Outcome::Done => tag::DONE,
            Outcome::Skipped => tag::SKIPPED,
            Outcome::Failed(why) => {
                put_text(cut(why), out);
                tag::FAILED
            }
        }
    }
}

impl Entry<'_> {
    fn encode_body(&self, out: &mut Vec<u8>) -> u8 {
        out.extend_from_slice(&self.parent.to_le_bytes());
        out.extend_from_slice(&self.source.to_le_bytes());
        out.extend_from_slice(&self.mode.to_le_bytes());
        for moment in [self.times.accessed, self.times.modified] {
            out.extend_from_slice(&moment.seconds.to_le_bytes());
            out.extend_from_slice(&moment.nanoseconds.to_le_bytes());
        }
        put_text(self.name, out);
        match self.kind {
            Kind::Directory => tag::DIRECTORY,
            Kind::File { size } => {
                out.extend_from_slice(&size.to_le_bytes());
                tag::FILE
            }
            Kind::Link { target } => {
                put_text(target, out);
                tag::LINK
            }
        }
    }
}

/// The header of a data message of this length, for data that is read right behind it.
pub(crate) fn data_header(length: usize) -> [u8; HEADER_BYTES] {
    assert!((1..=DATA_BYTES_MAX).contains(&length), "data is cut to its limit");
    header(tag::DATA, length)
}

fn header(kind: u8, length: usize) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    [kind, a, b, c, d]
}

fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(TEXT_BYTES_MAX)]
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    assert!(text.len() <= TEXT_BYTES_MAX, "texts are cut, and no path is longer");
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text);
}

/// The unread fields of a body.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[octet]| octet)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::from(self.u16()?);
        if length > TEXT_BYTES_MAX {
            return Err(Malformed);
        }
        let (text, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(text)
    }

    /// Reads the rest as a list of at most [`MARKS_MAX`] items.
    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let mut items = Vec::new();
        while !self.0.is_empty() {
            if items.len() == MARKS_MAX {
                return Err(Malformed);
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn moment(&mut self) -> Result<Moment, Malformed> {
        let (seconds, nanoseconds) = (self.array().map(i64::from_le_bytes)?, self.u32()?);
        match nanoseconds < 1_000_000_000 {
            true => Ok(Moment { seconds, nanoseconds }),
            false => Err(Malformed),
        }
    }

    fn entry(
        &mut self,
        kind: impl FnOnce(&mut Fields<'a>) -> Result<Kind<'a>, Malformed>,
    ) -> Result<Entry<'a>, Malformed> {
        let (parent, source, mode) = (self.u32()?, self.u16()?, self.u16()?);
        let times = Times { accessed: self.moment()?, modified: self.moment()? };
        let name = self.text()?;
        Ok(Entry { parent, source, name, kind: kind(self)?, mode, times })
    }
}

/// Text of the other end, made safe to show.
pub(crate) fn shown(text: &[u8]) -> String {
    crate::printable::printable(text, SHOWN_CHARS_MAX)
}

/// The most characters of it to show.
const SHOWN_CHARS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Message<'static>> {
        let times = Times {
            accessed: Moment { seconds: -1, nanoseconds: 999_999_999 },
            modified: Moment { seconds: i64::MAX, nanoseconds: 0 },
        };
        let entry = |kind| {
            Message::Entry(Entry {
                parent: 7,
                source: 3,
                name: b"a\xffb",
                kind,
                mode: 0o755,
                times,
            })
        };
        let mark = Mark { length: u64::MAX, digest: [9; 32] };
        vec![
            entry(Kind::Directory),
            entry(Kind::File { size: 1 << 40 }),
            entry(Kind::Link { target: b"../x" }),
            Message::Listed,
            Message::Begin { index: 1, offset: 2 },
            Message::Data(b"some data"),
            Message::Packed { length: 10, block: b"block" },
            Message::Hole(1 << 33),
            Message::End([1; 32]),
            Message::Gone { index: 4, why: b"vanished" },
            Message::Want { index: 5, offset: 0 },
            Message::Ask { index: 5, lengths: vec![1, u64::MAX] },
            Message::Waiting { index: 5, heard: None },
            Message::Waiting { index: 5, heard: Some(2) },
            Message::Marks { index: 5, marks: vec![] },
            Message::Marks { index: 5, marks: vec![mark; MARKS_MAX] },
            Message::Done { index: 6, outcome: Outcome::Done },
            Message::Done { index: 6, outcome: Outcome::Failed(b"full") },
            Message::Done { index: 6, outcome: Outcome::Skipped },
            Message::Trouble(b"x"),
            Message::Fatal(b""),
            Message::Complete,
        ]
    }

    /// All messages of a stream, with data in separate pieces.
    fn read_all(mut bytes: &[u8]) -> Result<Vec<Message<'_>>, Malformed> {
        let mut parser = Parser::default();
        let mut messages = Vec::new();
        while let Some(length) = parser.extent(bytes)? {
            let (message, rest) = bytes.split_at(length);
            messages.push(parser.read(message)?);
            bytes = rest;
        }
        Ok(messages)
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        for message in samples() {
            message.encode(&mut bytes);
        }
        assert_eq!(read_all(&bytes), Ok(samples()));
    }

    #[test]
    fn no_prefix_is_another_message() {
        for message in samples() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            for length in 0..bytes.len() {
                let read = read_all(&bytes[..length]);
                match (&message, &read) {
                    (Message::Data(_), Ok(pieces)) => assert!(pieces.len() <= 1),
                    _ => assert_eq!(read, Ok(vec![]), "{message:?} cut to {length}"),
                }
            }
        }
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        let header = |kind: u8, length: u32| {
            let mut bytes = vec![kind];
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes
        };
        let with = |mut bytes: Vec<u8>, body: &[u8]| {
            bytes.extend_from_slice(body);
            bytes
        };
        for bytes in [
            header(0, 0),
            header(99, 0),
            header(tag::DATA, 0),
            header(tag::DATA, DATA_BYTES_MAX as u32 + 1),
            header(tag::PACKED, u32::MAX),
            header(tag::TROUBLE, BODY_BYTES_MAX as u32 + 1),
            with(header(tag::LISTED, 1), b"x"),
            with(header(tag::PACKED, 5), b"\0\0\0\0x"),
            with(header(tag::TROUBLE, 4), b"\x09\0ab"),
            with(header(tag::WANT, 5), b"abcde"),
            with(header(tag::ASK, 4), b"\x05\0\0\0"),
            with(header(tag::WAITING, 5), b"\x05\0\0\0\0"),
            with(header(tag::ASK, 44), &[0; 44]),
            with(header(tag::MARKS, 204), &[0; 204]),
        ] {
            assert_eq!(read_all(&bytes), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn nothing_shown_moves_the_cursor() {
        assert_eq!(shown(b"a\x1b[2Jb\r\n\xff\xe2\x80\xae."), "a?[2Jb??\u{fffd}?.");
        assert_eq!(shown(&[b'x'; 5000]).len(), 1000);
    }
}
