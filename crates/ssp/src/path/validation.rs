//! Whether the peer is where its datagrams come from (`docs/wire.md` §8). Until it has proved that by
//! repeating what was sent there, whoever rewrites source addresses could make us flood a stranger. It
//! must not know how datagrams are sealed.

use std::net::SocketAddr;
use std::time::Duration;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::time::Time;

/// Octets sent to an unproven address for each received from it (RFC 9000 §8.1).
const AMPLIFICATION_MAX: u64 = 3;
/// How often a proof is asked for before a proven address is taken again. Three: at 30 % loss each way,
/// one in eight is missed, and asked again when the peer is heard there again.
const QUESTIONS_MAX: u32 = 3;
/// What is known of the peer's address.
pub(crate) struct Proof {
    /// Makes the questions, each from its number.
    secret: Box<Zeroizing<[u8; 32]>>,
    asked: u64,
    /// The longest datagram that only asks. What may not even carry that is not worth waking up for.
    question_bytes: usize,
    /// The last address that was proven.
    proven: Option<SocketAddr>,
    /// A newer one that is not.
    doubt: Option<Doubt>,
    /// The last one that was given up, and its question: the way may just be longer than our patience.
    given_up: Option<(SocketAddr, u64)>,
}

struct Doubt {
    address: SocketAddr,
    token: u64,
    /// Octets received from it and sent there.
    received: u64,
    sent: u64,
    questions: u32,
    ask_at: Time,
}

impl Proof {
    /// `secret` is known to nobody else, the peer included: who could foresee a question could answer
    /// for an address that he is not at.
    pub fn new(secret: Box<Zeroizing<[u8; 32]>>, question_bytes: usize) -> Proof {
        Proof { secret, asked: 0, question_bytes, proven: None, doubt: None, given_up: None }
    }

    /// A datagram newer than all before has come from here.
    pub fn hear(&mut self, now: Time, from: SocketAddr, bytes: usize) {
        if self.proven == Some(from) {
            self.doubt = None;
            return;
        }
        match &mut self.doubt {
            Some(doubt) if doubt.address == from => {
                doubt.received += bytes as u64;
                if doubt.questions >= QUESTIONS_MAX {
                    (doubt.questions, doubt.ask_at) = (0, now);
                }
            }
            _ => {
                let known = self.given_up.take_if(|(address, _)| *address == from);
                self.doubt = Some(Doubt {
                    address: from,
                    token: known.map_or_else(|| self.next_token(), |(_, token)| token),
                    received: bytes as u64,
                    sent: 0,
                    questions: 0,
                    ask_at: now,
                });
            }
        }
    }

    fn next_token(&mut self) -> u64 {
        self.asked += 1;
        let mut token = [0; 8];
        let expand = Hkdf::<Sha256>::from_prk(&**self.secret).expect("a secret is a hash long");
        expand
            .expand(&self.asked.to_be_bytes(), &mut token)
            .expect("8 octets are within the limit");
        u64::from_be_bytes(token)
    }

    /// An answer has come from here.
    pub fn answer(&mut self, from: SocketAddr, token: u64) {
        let answered = |doubt: &Doubt| doubt.address == from && doubt.token == token;
        if self.doubt.as_ref().is_some_and(answered) {
            self.proven = Some(from);
            self.doubt = None;
        } else if self.given_up == Some((from, token)) {
            self.proven = Some(from);
            self.given_up = None;
        }
    }

    /// Whether a datagram of this length may go to the peer.
    pub fn admits(&self, bytes: usize) -> bool {
        self.doubt.as_ref().is_none_or(|doubt| {
            doubt.sent + bytes as u64 <= doubt.received.saturating_mul(AMPLIFICATION_MAX)
        })
    }

    /// The question that the next datagram is to carry.
    pub fn question(&self) -> Option<u64> {
        self.doubt.as_ref().map(|doubt| doubt.token)
    }

    /// A datagram has gone to the peer, with the question.
    pub fn sent(&mut self, now: Time, bytes: usize, patience: Duration) {
        if let Some(doubt) = &mut self.doubt {
            doubt.sent += bytes as u64;
            if doubt.ask_at <= now {
                doubt.questions += 1;
                doubt.ask_at = now + patience;
            }
        }
    }

    /// Gives up an address that does not answer. The one to go back to, if that is the case.
    pub fn give_up(&mut self, now: Time) -> Option<SocketAddr> {
        let proven = self.proven?;
        let is_asked_out = self.is_asked_out();
        let doubt = self.doubt.take_if(|doubt| is_asked_out && doubt.ask_at <= now)?;
        self.given_up = Some((doubt.address, doubt.token));
        Some(proven)
    }

    /// When to ask, or to give up.
    pub fn wake(&self) -> Option<Time> {
        let doubt = self.doubt.as_ref()?;
        let asks = doubt.questions < QUESTIONS_MAX && self.admits(self.question_bytes);
        let gives_up = self.is_asked_out() && self.proven.is_some();
        (asks || gives_up).then_some(doubt.ask_at)
    }

    /// Whether the address was asked as often as it may be: what it has sent may allow fewer questions.
    fn is_asked_out(&self) -> bool {
        self.doubt.as_ref().is_some_and(|doubt| {
            let is_spent = !self.admits(self.question_bytes);
            doubt.questions >= QUESTIONS_MAX || doubt.questions > 0 && is_spent
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

    fn fresh() -> Proof {
        Proof::new(Box::new(Zeroizing::new([1; 32])), QUESTION)
    }

    #[test]
    fn no_question_is_asked_of_two_addresses_or_by_two_servers() {
        let mut seen = std::collections::HashSet::new();
        for octet in 0..4 {
            let mut proof = Proof::new(Box::new(Zeroizing::new([octet; 32])), QUESTION);
            for turn in 0..1000 {
                proof.hear(Time::ZERO, address(1 + turn % 2), 100);
                assert!(seen.insert(proof.question().unwrap()));
            }
        }
    }

    fn proven() -> Proof {
        let mut proof = fresh();
        proof.hear(Time::ZERO, address(1), 100);
        let token = proof.question().unwrap();
        proof.answer(address(1), token);
        proof
    }

    #[test]
    fn an_unproven_address_gets_three_times_what_it_sent() {
        for (mut proof, from) in [(fresh(), 1), (proven(), 2)] {
            proof.hear(Time::ZERO, address(from), 100);
            assert!(proof.admits(300) && !proof.admits(301));
            proof.sent(Time::ZERO, 250, PATIENCE);
            assert!(proof.admits(50) && !proof.admits(51));
            proof.hear(Time::ZERO, address(from), 10);
            assert!(proof.admits(80) && !proof.admits(81));
            let token = proof.question().unwrap();
            proof.answer(address(from), token ^ 1);
            proof.answer(address(from + 1), token);
            assert!(!proof.admits(81), "neither another's answer nor from elsewhere");
            proof.answer(address(from), token);
            assert!(proof.admits(1 << 30));
            assert_eq!((proof.question(), proof.wake()), (None, None));
        }
    }

    #[test]
    fn a_proven_address_is_kept_until_another_proves_itself() {
        let mut proof = proven();
        let start = Time::from_millis(1000);
        proof.hear(start, address(66), 100);
        assert_eq!(proof.wake(), Some(start));
        for question in 1..=3 {
            let now = start + PATIENCE * (question - 1);
            assert_eq!(proof.give_up(now), None);
            proof.sent(now, 50, PATIENCE);
            assert_eq!(proof.wake(), Some(now + PATIENCE));
        }
        assert_eq!(proof.give_up(start + PATIENCE * 3), Some(address(1)));
        assert!(proof.admits(1 << 30));
        // Heard there again, it is asked again; heard at the proven one, it is not.
        proof.hear(start, address(66), 100);
        assert!(!proof.admits(301));
        proof.hear(start, address(1), 100);
        assert!(proof.admits(1 << 30));
    }

    #[test]
    fn an_address_that_cannot_be_asked_again_is_given_up() {
        // Octets that came from there; questions that they allow.
        for (heard, questions) in [(30, 1), (50, 2), (100, 3), (1000, 3)] {
            let mut proof = proven();
            let mut now = Time::from_millis(1000);
            proof.hear(now, address(66), heard);
            for question in 1..=questions {
                assert_eq!(proof.wake(), Some(now), "{heard} octets, question {question}");
                assert_eq!(proof.give_up(now), None);
                proof.sent(now, USUAL, PATIENCE);
                now = now + PATIENCE;
            }
            assert_eq!(proof.wake(), Some(now), "{heard} octets");
            assert_eq!(proof.give_up(now), Some(address(1)), "{heard} octets");
            assert_eq!(proof.wake(), None);
        }
    }

    /// On a path slower than our patience the answer to a question that was given up counts all the same.
    #[test]
    fn a_late_answer_proves() {
        for heard_between in [false, true] {
            let mut proof = proven();
            let start = Time::from_millis(1000);
            proof.hear(start, address(66), 30);
            let token = proof.question().unwrap();
            proof.sent(start, USUAL, PATIENCE);
            assert_eq!(proof.give_up(start + PATIENCE), Some(address(1)));
            if heard_between {
                proof.hear(start + PATIENCE, address(66), 30);
                assert_eq!(proof.question(), Some(token));
            }
            proof.answer(address(67), token);
            proof.answer(address(66), token ^ 1);
            proof.hear(start + PATIENCE, address(66), 30);
            assert!(!proof.admits(1 << 30));
            proof.answer(address(66), token);
            assert!(proof.admits(1 << 30));
            proof.hear(start + PATIENCE, address(66), 30);
            assert_eq!(proof.question(), None, "it is proven");
        }
    }

    #[test]
    fn a_first_address_is_asked_again_only_when_heard_again() {
        let mut proof = fresh();
        proof.hear(Time::ZERO, address(1), 1000);
        (0..3).for_each(|_| proof.sent(Time::ZERO + PATIENCE * 9, 50, Duration::ZERO));
        assert_eq!((proof.wake(), proof.give_up(Time::from_millis(99_000))), (None, None));
        proof.hear(Time::from_millis(99_000), address(1), 50);
        assert_eq!(proof.wake(), Some(Time::from_millis(99_000)));
        // Nothing is left that could be sent there.
        proof.sent(Time::from_millis(99_000), 3000, PATIENCE);
        assert_eq!(proof.wake(), None);
    }
}
