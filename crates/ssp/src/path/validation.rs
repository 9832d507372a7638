//! Address validation (`docs/wire.md` §8). Until the peer has echoed our challenge, a spoofed
//! source address could make us flood a third party (RFC 9000 §8). It must not know how datagrams
//! are sealed.

use alloc::boxed::Box;
use core::net::SocketAddr;
use core::time::Duration;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::time::Time;

/// Octets sent to an unproven address for each received from it (RFC 9000 §8.1).
const AMPLIFICATION_MAX: u64 = 3;
/// How often a proof is asked for before a proven address is taken again. Three: at 30 % loss each way,
/// one in eight is missed, and asked again when the peer is heard there again.
const CHALLENGES_MAX: u32 = 3;
/// Whether the peer's address has proven itself.
pub(crate) struct AddressValidation {
    /// Makes the questions, each from its number.
    secret: Box<Zeroizing<[u8; 32]>>,
    asked: u64,
    /// The longest datagram that only asks. What may not even carry that is not worth waking up for.
    challenge_bytes: usize,
    /// The last address that was proven.
    validated: Option<SocketAddr>,
    /// A newer one that is not.
    unvalidated: Option<Unvalidated>,
    /// The last one that was given up, and its question: the way may just be longer than our patience.
    abandoned: Option<(SocketAddr, u64)>,
}

struct Unvalidated {
    address: SocketAddr,
    token: u64,
    /// Octets received from it and sent there.
    received: u64,
    sent: u64,
    challenges: u32,
    ask_at: Time,
}

impl AddressValidation {
    /// `secret` is known to nobody else, the peer included: who could foresee a question could answer
    /// for an address that he is not at.
    pub(super) fn new(
        secret: Box<Zeroizing<[u8; 32]>>,
        challenge_bytes: usize,
    ) -> AddressValidation {
        AddressValidation {
            secret,
            asked: 0,
            challenge_bytes,
            validated: None,
            unvalidated: None,
            abandoned: None,
        }
    }

    /// The same while a stream is in use. UDP may work one way only by now, so that an earlier proof does not count.
    pub(super) fn on_datagram_beside(&mut self, now: Time, from: SocketAddr, bytes: usize) {
        self.validated = None;
        self.on_datagram(now, from, bytes);
    }

    /// A stream is in use, which needs no proof.
    pub(super) fn rest(&mut self) {
        (self.validated, self.unvalidated) = (None, None);
    }

    /// The address that is asked.
    pub(super) fn asked(&self) -> Option<SocketAddr> {
        self.unvalidated.as_ref().map(|unvalidated| unvalidated.address)
    }

    /// A datagram newer than all before has come from here.
    pub(super) fn on_datagram(&mut self, now: Time, from: SocketAddr, bytes: usize) {
        // The newest datagram came from the proven address, so the peer is there.
        if self.validated == Some(from) {
            self.unvalidated = None;
            return;
        }
        match &mut self.unvalidated {
            Some(unvalidated) if unvalidated.address == from => {
                unvalidated.received += bytes as u64;
                if unvalidated.challenges >= CHALLENGES_MAX {
                    // Somebody is there and still sends, so the answers may only have been lost.
                    (unvalidated.challenges, unvalidated.ask_at) = (0, now);
                }
            }
            _ => {
                // The same question as before: an answer to it may be on its way.
                let known = self.abandoned.take_if(|(address, _)| *address == from);
                self.unvalidated = Some(Unvalidated {
                    address: from,
                    token: known.map_or_else(|| self.next_token(), |(_, token)| token),
                    received: bytes as u64,
                    sent: 0,
                    challenges: 0,
                    ask_at: now,
                });
            }
        }
    }

    fn next_token(&mut self) -> u64 {
        // A question that was asked before, of another address, could be answered from there.
        self.asked += 1;
        let mut token = [0; 8];
        let expand = Hkdf::<Sha256>::from_prk(&**self.secret).expect("a secret is a hash long");
        expand
            .expand(&self.asked.to_be_bytes(), &mut token)
            .expect("8 octets are within the limit");
        u64::from_be_bytes(token)
    }

    /// An answer has come from here. Whether it proves the address, and whether that comes after another one.
    pub(super) fn on_response(&mut self, from: SocketAddr, token: u64) -> Option<bool> {
        let answered =
            |unvalidated: &Unvalidated| unvalidated.address == from && unvalidated.token == token;
        if self.unvalidated.as_ref().is_some_and(answered) {
            self.unvalidated = None;
        // Slower than our patience, but an answer.
        } else if self.abandoned == Some((from, token)) {
            self.abandoned = None;
        } else {
            return None;
        }
        Some(self.validated.replace(from).is_some_and(|before| before != from))
    }

    /// Whether a datagram of this length may go to the peer.
    pub(super) fn admits(&self, bytes: usize) -> bool {
        self.unvalidated.as_ref().is_none_or(|unvalidated| {
            unvalidated.sent + bytes as u64
                <= unvalidated.received.saturating_mul(AMPLIFICATION_MAX)
        })
    }

    /// The question that the next datagram is to carry.
    pub(super) fn challenge(&self) -> Option<u64> {
        self.unvalidated.as_ref().map(|unvalidated| unvalidated.token)
    }

    /// A datagram has gone to the peer, with the question.
    pub(super) fn sent(&mut self, now: Time, bytes: usize, patience: Duration) {
        if let Some(unvalidated) = &mut self.unvalidated {
            unvalidated.sent += bytes as u64;
            if unvalidated.ask_at <= now {
                unvalidated.challenges += 1;
                unvalidated.ask_at = now + patience;
            }
        }
    }

    /// Gives up an address that does not answer. The one to go back to, if that is the case.
    pub(super) fn abandon(&mut self, now: Time) -> Option<SocketAddr> {
        // Without another address to go back to, this one is all there is.
        let validated = self.validated?;
        let is_spent_out = self.is_spent_out();
        let unvalidated =
            self.unvalidated.take_if(|unvalidated| is_spent_out && unvalidated.ask_at <= now)?;
        self.abandoned = Some((unvalidated.address, unvalidated.token));
        Some(validated)
    }

    /// When to ask, or to give up.
    pub(super) fn wake(&self) -> Option<Time> {
        let unvalidated = self.unvalidated.as_ref()?;
        let asks = unvalidated.challenges < CHALLENGES_MAX && self.admits(self.challenge_bytes);
        let abandons = self.is_spent_out() && self.validated.is_some();
        (asks || abandons).then_some(unvalidated.ask_at)
    }

    /// Whether the address was asked as often as it may be: what it has sent may allow fewer questions.
    fn is_spent_out(&self) -> bool {
        self.unvalidated.as_ref().is_some_and(|unvalidated| {
            let is_spent = !self.admits(self.challenge_bytes);
            unvalidated.challenges >= CHALLENGES_MAX || unvalidated.challenges > 0 && is_spent
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest datagram that only asks, and one as it usually is.
    const QUESTION: usize = 81;
    const USUAL: usize = 59;
    const PATIENCE: Duration = Duration::from_millis(300);

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn fresh() -> AddressValidation {
        AddressValidation::new(Box::new(Zeroizing::new([1; 32])), QUESTION)
    }

    #[test]
    fn no_question_is_asked_of_two_addresses_or_by_two_servers() {
        let mut seen = std::collections::HashSet::new();
        for octet in 0..4 {
            let mut validation =
                AddressValidation::new(Box::new(Zeroizing::new([octet; 32])), QUESTION);
            for turn in 0..1000 {
                validation.on_datagram(Time::ZERO, address(1 + turn % 2), 100);
                assert!(seen.insert(validation.challenge().unwrap()));
            }
        }
    }

    fn validated() -> AddressValidation {
        let mut validation = fresh();
        validation.on_datagram(Time::ZERO, address(1), 100);
        let token = validation.challenge().unwrap();
        validation.on_response(address(1), token);
        validation
    }

    #[test]
    fn an_unproven_address_gets_three_times_what_it_sent() {
        for (mut validation, from) in [(fresh(), 1), (validated(), 2)] {
            validation.on_datagram(Time::ZERO, address(from), 100);
            assert!(validation.admits(300) && !validation.admits(301));
            validation.sent(Time::ZERO, 250, PATIENCE);
            assert!(validation.admits(50) && !validation.admits(51));
            validation.on_datagram(Time::ZERO, address(from), 10);
            assert!(validation.admits(80) && !validation.admits(81));
            let token = validation.challenge().unwrap();
            validation.on_response(address(from), token ^ 1);
            validation.on_response(address(from + 1), token);
            assert!(!validation.admits(81), "neither another's answer nor from elsewhere");
            validation.on_response(address(from), token);
            assert!(validation.admits(1 << 30));
            assert_eq!((validation.challenge(), validation.wake()), (None, None));
        }
    }

    #[test]
    fn a_proven_address_is_kept_until_another_proves_itself() {
        let mut validation = validated();
        let start = Time::from_millis(1000);
        validation.on_datagram(start, address(66), 100);
        assert_eq!(validation.wake(), Some(start));
        for challenge in 1..=3 {
            let now = start + PATIENCE * (challenge - 1);
            assert_eq!(validation.abandon(now), None);
            validation.sent(now, 50, PATIENCE);
            assert_eq!(validation.wake(), Some(now + PATIENCE));
        }
        assert_eq!(validation.abandon(start + PATIENCE * 3), Some(address(1)));
        assert!(validation.admits(1 << 30));
        // Heard there again, it is asked again; heard at the proven one, it is not.
        validation.on_datagram(start, address(66), 100);
        assert!(!validation.admits(301));
        validation.on_datagram(start, address(1), 100);
        assert!(validation.admits(1 << 30));
    }

    #[test]
    fn an_address_that_cannot_be_asked_again_is_given_up() {
        // Octets that came from there; questions that they allow.
        for (heard, challenges) in [(30, 1), (50, 2), (100, 3), (1000, 3)] {
            let mut validation = validated();
            let mut now = Time::from_millis(1000);
            validation.on_datagram(now, address(66), heard);
            for challenge in 1..=challenges {
                assert_eq!(validation.wake(), Some(now), "{heard} octets, question {challenge}");
                assert_eq!(validation.abandon(now), None);
                validation.sent(now, USUAL, PATIENCE);
                now = now + PATIENCE;
            }
            assert_eq!(validation.wake(), Some(now), "{heard} octets");
            assert_eq!(validation.abandon(now), Some(address(1)), "{heard} octets");
            assert_eq!(validation.wake(), None);
        }
    }

    /// On a path slower than our patience the answer to a question that was given up counts all the same.
    #[test]
    fn a_late_answer_proves() {
        for heard_between in [false, true] {
            let mut validation = validated();
            let start = Time::from_millis(1000);
            validation.on_datagram(start, address(66), 30);
            let token = validation.challenge().unwrap();
            validation.sent(start, USUAL, PATIENCE);
            assert_eq!(validation.abandon(start + PATIENCE), Some(address(1)));
            if heard_between {
                validation.on_datagram(start + PATIENCE, address(66), 30);
                assert_eq!(validation.challenge(), Some(token));
            }
            validation.on_response(address(67), token);
            validation.on_response(address(66), token ^ 1);
            validation.on_datagram(start + PATIENCE, address(66), 30);
            assert!(!validation.admits(1 << 30));
            validation.on_response(address(66), token);
            assert!(validation.admits(1 << 30));
            validation.on_datagram(start + PATIENCE, address(66), 30);
            assert_eq!(validation.challenge(), None, "it is proven");
        }
    }

    #[test]
    fn a_first_address_is_asked_again_only_when_heard_again() {
        let mut validation = fresh();
        validation.on_datagram(Time::ZERO, address(1), 1000);
        (0..3).for_each(|_| validation.sent(Time::ZERO + PATIENCE * 9, 50, Duration::ZERO));
        assert_eq!(
            (validation.wake(), validation.abandon(Time::from_millis(99_000))),
            (None, None)
        );
        validation.on_datagram(Time::from_millis(99_000), address(1), 50);
        assert_eq!(validation.wake(), Some(Time::from_millis(99_000)));
        // Nothing is left that could be sent there.
        validation.sent(Time::from_millis(99_000), 3000, PATIENCE);
        assert_eq!(validation.wake(), None);
    }
}
