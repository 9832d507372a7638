//! What the other end of a copy says: how it is cut into pieces changes nothing, and what is read is
//! written the same way again. So with the order that a copy begins with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::copy::Order;
use rove::testing::copy::message::{Malformed, Message, Parser};
use rove::testing::copy::{Name, fits};

fuzz_target!(|bytes: &[u8]| {
    let whole = read(&[bytes]);
    let cut = bytes.first().map_or(1, |&byte| usize::from(byte).max(1));
    let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
    assert_eq!(whole, read(&pieces));
    if let Ok(written) = whole {
        assert_eq!(read(&[&written]), Ok(written.clone()));
    }
    if let Ok(order) = Order::decode(bytes) {
        let again = order.encode().expect("what was read is short enough");
        assert_eq!(Order::decode(&again), Ok(order));
    }
    let (pattern, name) = bytes.split_at(bytes.len() / 2);
    if let Some(name) = Name::new(name) {
        assert!(!name.as_bytes().contains(&b'/') && Name::new(&name.part()).is_none());
        let _ = fits(pattern, name.as_bytes());
    }
});

/// The messages in these pieces of a stream, written again one after the other, data joined.
fn read(pieces: &[&[u8]]) -> Result<Vec<u8>, Malformed> {
    let mut parser = Parser::default();
    let mut written = Vec::new();
    let mut data: Vec<u8> = Vec::new();
    let mut left: Vec<u8> = Vec::new();
    for piece in pieces {
        left.extend_from_slice(piece);
        while let Some(length) = parser.extent(&left)? {
            let rest = left.split_off(length);
            match parser.read(&left)? {
                Message::Data(more) => data.extend_from_slice(more),
                message => {
                    join(&mut data, &mut written);
                    message.encode(&mut written);
                }
            }
            left = rest;
        }
    }
    join(&mut data, &mut written);
    Ok(written)
}

fn join(data: &mut Vec<u8>, written: &mut Vec<u8>) {
    for block in data.chunks(1024) {
        Message::Data(block).encode(written);
    }
    data.clear();
}
