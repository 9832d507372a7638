//! Frames beside a command's standard input and output: its errors and its end one way, signals and
//! window sizes the other.
//!
//! A frame is an octet that names it, four octets of length, and the contents.

use std::io;

use rove_term::Size;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::os::signals::Signal;

/// Longest contents of a frame.
pub(crate) const CONTENTS_BYTES_MAX: usize = 64 << 10;

/// The octets before a frame's contents.
pub const HEAD_BYTES: usize = 5;

/// One frame.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame {
    /// Of a kind, or with a signal, that this version does not know; 0 when it is written.
    Unknown,
    /// 1, from the server: what the command wrote to its standard error.
    Stderr(Vec<u8>),
    /// 2, from the server: the command has ended with this status. The last frame.
    Exited(u8),
    /// 3, from the server: a signal has ended the command. The last frame.
    Killed(SignalName),
    /// 4, from the server: the command did not start; why. The last frame.
    NotStarted(String),
    /// 5, from the client: send the command this signal.
    Signal(SignalName),
    /// 6, from the client: the window has this size now.
    Window(Size),
}

/// A signal by its name: numbers differ between systems.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SignalName(pub Signal);

/// The signals that have a name here: those of POSIX that end a program.
const SIGNALS: [(&str, Signal); 20] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("ILL", Signal::ILL),
    ("TRAP", Signal::TRAP),
    ("ABRT", Signal::ABORT),
    ("BUS", Signal::BUS),
    ("FPE", Signal::FPE),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("SEGV", Signal::SEGV),
    ("USR2", Signal::USR2),
    ("PIPE", Signal::PIPE),
    ("ALRM", Signal::ALARM),
    ("TERM", Signal::TERM),
    ("XCPU", Signal::XCPU),
    ("XFSZ", Signal::XFSZ),
    ("VTALRM", Signal::VTALARM),
    ("PROF", Signal::PROF),
    ("SYS", Signal::SYS),
];

impl SignalName {
    /// The signal of this number, if it has a name.
    pub fn of(number: i32) -> Option<SignalName> {
        let known = SIGNALS.iter().find(|(_, signal)| signal.as_raw() == number);
        known.map(|(_, signal)| SignalName(*signal))
    }

    /// The name without `SIG`.
    pub fn name(self) -> &'static str {
        SIGNALS.iter().find(|(_, signal)| *signal == self.0).map_or("KILL", |(name, _)| name)
    }

    fn named(name: &[u8]) -> Option<SignalName> {
        let known = SIGNALS.iter().find(|(known, _)| known.as_bytes() == name);
        known.map(|(_, signal)| SignalName(*signal))
    }
}

/// Octets that are no frame: the other end is not ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadFrame;

impl From<BadFrame> for io::Error {
    fn from(_: BadFrame) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, "no frame of a command's")
    }
}

/// Reads one frame; `None` at the end.
///
/// # Errors
/// The stream's; `InvalidData` for what is no frame.
pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Frame>> {
    let mut head = [0; HEAD_BYTES];
    match from.read_exact(&mut head).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut contents = vec![0; length(head)?];
    from.read_exact(&mut contents).await?;
    Ok(Some(Frame::decode(head, &contents)?))
}

/// Writes one frame.
pub(crate) async fn write(to: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> io::Result<()> {
    let mut octets = Vec::new();
    frame.encode(&mut octets);
    to.write_all(&octets).await
}

/// How many octets of contents follow a head.
pub fn length(head: [u8; HEAD_BYTES]) -> Result<usize, BadFrame> {
    let [_, length @ ..] = head;
    let length = u32::from_be_bytes(length) as usize;
    if length <= CONTENTS_BYTES_MAX { Ok(length) } else { Err(BadFrame) }
}

impl Frame {
    /// Appends the frame. Contents beyond [`CONTENTS_BYTES_MAX`] are cut.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let window;
        let status;
        let (kind, contents) = match self {
            Frame::Unknown => (0, [].as_slice()),
            Frame::Stderr(octets) => (1, octets.as_slice()),
            Frame::Exited(code) => {
                status = [*code];
                (2, status.as_slice())
            }
            Frame::Killed(signal) => (3, signal.name().as_bytes()),
            Frame::NotStarted(why) => (4, why.as_bytes()),
            Frame::Signal(signal) => (5, signal.name().as_bytes()),
            Frame::Window(size) => {
                let ([a, b], [c, d]) = (size.rows.to_be_bytes(), size.cols.to_be_bytes());
                window = [a, b, c, d];
                (6, window.as_slice())
            }
        };
        let contents = &contents[..contents.len().min(CONTENTS_BYTES_MAX)];
        out.push(kind);
        out.extend((contents.len() as u32).to_be_bytes());
        out.extend(contents);
    }

    /// Reads a frame from its head and its contents.
    pub fn decode(head: [u8; HEAD_BYTES], contents: &[u8]) -> Result<Frame, BadFrame> {
        if length(head)? != contents.len() {
            return Err(BadFrame);
        }
        Ok(match (head[0], contents) {
            (1, octets) => Frame::Stderr(octets.to_vec()),
            (2, &[status]) => Frame::Exited(status),
            (3, name) => SignalName::named(name).map_or(Frame::Unknown, Frame::Killed),
            (4, why) => Frame::NotStarted(String::from_utf8_lossy(why).into_owned()),
            (5, name) => SignalName::named(name).map_or(Frame::Unknown, Frame::Signal),
            (6, &[a, b, c, d]) => {
                Frame::Window(Size::clamped(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
            }
            (2 | 6, _) => return Err(BadFrame),
            _ => Frame::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_back() {
        let mut frames = vec![
            Frame::Stderr(b"no such file\n".to_vec()),
            Frame::Stderr(Vec::new()),
            Frame::Exited(0),
            Frame::Exited(255),
            Frame::NotStarted("no shell".into()),
            Frame::Window(Size::clamped(24, 80)),
        ];
        for (_, signal) in SIGNALS {
            frames.extend([Frame::Killed(SignalName(signal)), Frame::Signal(SignalName(signal))]);
        }
        for frame in frames {
            let mut octets = Vec::new();
            frame.encode(&mut octets);
            let (head, contents) = octets.split_first_chunk().unwrap();
            assert_eq!(length(*head), Ok(contents.len()));
            assert_eq!(Frame::decode(*head, contents), Ok(frame));
        }
    }

    #[test]
    fn what_is_no_frame() {
        for (head, contents) in [
            ([2, 0, 0, 0, 0], &b""[..]),
            ([2, 0, 0, 0, 2], b"12"),
            ([5, 0, 0, 0, 3], b"TERM"),
            ([6, 0, 0, 0, 3], b"123"),
            ([1, 0, 1, 0, 1], b""),
        ] {
            assert_eq!(Frame::decode(head, contents), Err(BadFrame), "{head:?} {contents:?}");
        }
    }

    #[test]
    fn what_a_newer_version_says_is_passed_over() {
        for (head, contents) in
            [([0, 0, 0, 0, 0], &b""[..]), ([5, 0, 0, 0, 4], b"STOP"), ([7, 0, 0, 0, 2], b"ab")]
        {
            assert_eq!(Frame::decode(head, contents), Ok(Frame::Unknown), "{head:?}");
        }
    }

    #[test]
    fn signals_without_a_name() {
        assert_eq!(SignalName::of(Signal::TERM.as_raw()).map(SignalName::name), Some("TERM"));
        assert_eq!(SignalName::of(0), None);
        assert_eq!(SignalName::of(Signal::STOP.as_raw()), None);
    }
}
