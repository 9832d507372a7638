//! Agent forwarding: which messages of the agent protocol (draft-ietf-sshm-ssh-agent) pass.
//!
//! A program on the host may list the keys and have something signed, and nothing else: it cannot
//! add keys, remove or lock them, nor have the agent load a library (CVE-2023-38408). Both ends
//! check: the server for its user's sake, the client because it must not trust the server.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest message, as OpenSSH has it.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// The answer to everything that is not passed on (SSH_AGENT_FAILURE).
pub(crate) const FAILURE: &[u8] = &[5];

/// What a program may ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Question {
    /// SSH_AGENTC_REQUEST_IDENTITIES: which keys are there.
    Identities,
    /// SSH_AGENTC_SIGN_REQUEST: a signature.
    Sign,
}

impl Question {
    /// What a message asks for; `None`: something that is not passed on.
    pub fn of(message: &[u8]) -> Option<Question> {
        match message {
            [11] => Some(Question::Identities),
            [13, ..] => Some(Question::Sign),
            _ => None,
        }
    }

    /// Whether a message answers this: with what was asked for, or with failure.
    pub fn is_answered_by(self, message: &[u8]) -> bool {
        matches!(
            (self, message),
            (Question::Identities, [12, ..]) | (Question::Sign, [14, ..]) | (_, [5])
        )
    }
}

fn length_of(octets: [u8; 4]) -> Option<usize> {
    let length = usize::try_from(u32::from_be_bytes(octets)).ok()?;
    (1..=MESSAGE_BYTES_MAX).contains(&length).then_some(length)
}

/// Reads one message; `None` at the end.
///
/// # Errors
/// The stream's; `InvalidData` for what is no message.
pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = length_of(length).ok_or(io::ErrorKind::InvalidData)?;
    // As it comes, so that a length alone costs nothing.
    let mut message = Vec::new();
    from.take(length as u64).read_to_end(&mut message).await?;
    match message.len() == length {
        true => Ok(Some(message)),
        false => Ok(None),
    }
}

/// Writes one message.
pub async fn write(to: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    to.write_all(&[&length.to_be_bytes(), message].concat()).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listing_and_signing_pass() {
        for (message, question) in [
            (&[11][..], Some(Question::Identities)),
            (&[11, 0], None),
            (&[13, 0, 0], Some(Question::Sign)),
            (&[], None),
        ] {
            assert_eq!(Question::of(message), question, "{message:?}");
        }
        for kind in (0..=255).filter(|kind| ![11, 13].contains(kind)) {
            assert_eq!(Question::of(&[kind]), None, "{kind}");
        }
        for (question, answer, fits) in [
            (Question::Identities, &[12, 0][..], true),
            (Question::Identities, &[14, 0], false),
            (Question::Sign, &[14, 0], true),
            (Question::Sign, &[12, 0], false),
            (Question::Sign, &[5], true),
            (Question::Identities, &[5], true),
            (Question::Identities, &[6], false),
            (Question::Sign, &[], false),
        ] {
            assert_eq!(question.is_answered_by(answer), fits, "{question:?} {answer:?}");
        }
    }

    #[tokio::test]
    async fn messages_have_a_length() {
        for (octets, message) in [
            (&[0, 0, 0, 1, 11, 9][..], Ok(Some(vec![11]))),
            (&[0, 0, 0, 2, 11], Ok(None)),
            (&[0, 0, 0], Ok(None)),
            (&[], Ok(None)),
            (&[0, 0, 0, 0], Err(io::ErrorKind::InvalidData)),
            (&[0, 4, 0, 1], Err(io::ErrorKind::InvalidData)),
            (&[0, 4, 0, 0], Ok(None)),
        ] {
            let read = read(&mut &octets[..]).await.map_err(|error| error.kind());
            assert_eq!(read, message, "{octets:?}");
        }
    }
}
