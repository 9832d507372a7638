//! The agent's messages: what is read is written as it was, no question passes but listing and signing,
//! and a length alone makes nobody wait for more than there may be.
#![no_main]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use rove::testing::services::agent::{MESSAGE_BYTES_MAX, Question, read, write};

fuzz_target!(|octets: &[u8]| {
    let mut rest = octets;
    let mut again = Vec::new();
    while let Ok(Some(message)) = now(read(&mut rest)) {
        assert!((1..=MESSAGE_BYTES_MAX).contains(&message.len()));
        match Question::of(&message) {
            Some(Question::Identities) => assert_eq!(message, [11]),
            Some(Question::Sign) => assert_eq!(message[0], 13),
            None => {}
        }
        now(write(&mut again, &message)).unwrap();
    }
    assert!(octets.starts_with(&again));
});

/// What a future comes to that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("memory makes nobody wait"),
    }
}
