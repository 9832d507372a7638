//! Frames of the streams beside a session: what is read is written back and read as the same, and what is
//! too short takes nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_streams::frame::{Frame, Head, REQUEST_BYTES_MAX};

fuzz_target!(|octets: &[u8]| {
    let mut rest = octets;
    loop {
        let before = rest;
        match Frame::decode(&mut rest) {
            Ok(Some(frame)) => {
                assert!(rest.len() < before.len());
                if let Frame::Open { request, .. } = &frame {
                    assert!(request.len() <= REQUEST_BYTES_MAX);
                }
                let mut written = Vec::new();
                frame.encode(&mut written);
                assert!(written.len() <= before.len() - rest.len(), "ours is the shortest form");
                assert_eq!(Frame::decode(&mut written.as_slice()), Ok(Some(frame)));
            }
            Ok(None) | Err(_) => {
                assert_eq!(rest, before);
                break;
            }
        }
    }
    let mut rest = octets;
    if let Some(head) = Head::decode(&mut rest) {
        let mut written = Vec::new();
        head.encode(&mut written);
        assert!(written.len() <= octets.len() - rest.len());
        assert_eq!(Head::decode(&mut written.as_slice()), Some(head));
    } else {
        assert_eq!(rest, octets);
    }
});
