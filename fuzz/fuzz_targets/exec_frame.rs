//! Frames beside a command, and the requests that open channels: what is read is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::services::exec::{Frame, HEAD_BYTES, length};
use rove::testing::services::{Call, Request};

fuzz_target!(|octets: &[u8]| {
    if let Some(request) = Request::decode(octets) {
        assert_eq!(request.encode(), octets);
    }
    if let Some(call) = Call::decode(octets) {
        assert_eq!(call.encode(), octets);
    }
    let Some((head, rest)) = octets.split_first_chunk::<HEAD_BYTES>() else { return };
    let Some(contents) = length(*head).ok().and_then(|length| rest.get(..length)) else { return };
    if let Ok(frame) = Frame::decode(*head, contents) {
        let mut again = Vec::new();
        frame.encode(&mut again);
        let (head, contents) = again.split_first_chunk().unwrap();
        assert_eq!(Frame::decode(*head, contents), Ok(frame));
    }
});
