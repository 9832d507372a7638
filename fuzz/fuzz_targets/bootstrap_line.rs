//! What comes back over ssh: how it is cut into pieces changes nothing, noise before it changes
//! nothing, and without our nonce there is no answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::bootstrap::Nonce;
use rove::testing::bootstrap::{Answer, Reader, Refusal, Wire};

/// Stands for the nonce in the input, which no fuzzer would guess.
const NONCE_MARK: u8 = 0xff;

fuzz_target!(|bytes: &[u8]| {
    let nonce = Nonce::new([0x5a; 16]);
    let mut text = Vec::new();
    for &byte in bytes {
        match byte {
            NONCE_MARK => text.extend_from_slice(nonce.to_string().as_bytes()),
            _ => text.push(byte),
        }
    }
    let whole = outcome(&nonce, [text.as_slice()]);
    let cut = bytes.first().map_or(1, |&byte| usize::from(byte).max(1));
    assert_eq!(whole, outcome(&nonce, text.chunks(cut)));
    assert_eq!(whole, outcome(&nonce, [b"motd\n\x1b[31mROVE 0 x\n".as_slice(), &text]));
    if !bytes.contains(&NONCE_MARK) {
        let nonce = Nonce::new([0xa5; 16]);
        assert_eq!(outcome(&nonce, [text.as_slice()]), Ok(None));
    }
});

fn outcome<'a>(
    nonce: &Nonce,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<String>, Refusal> {
    let mut reader = Reader::new(nonce.clone());
    for piece in pieces {
        reader.read(piece)?;
    }
    let reply = reader.finish()?;
    assert!(reply.is_none() || reader.begun());
    Ok(reply.map(|reply| match reply.answer {
        Answer::Rove { port, wire, addresses } => {
            let wire = match wire {
                Wire::Mosh(key) => key.to_base64().to_string(),
                Wire::Native { key, conn } => format!("{key:?} {conn}"),
            };
            format!("rove {port} {wire} {addresses:?} {:?}", reply.ssh_address)
        }
        Answer::Stock { port, key } => {
            format!("stock {port} {} {:?}", *key.to_base64(), reply.ssh_address)
        }
        Answer::Missing { path } => format!("missing {path}"),
        Answer::Listed => format!("listed {:?}", reply.entries),
        Answer::Denied(why) => format!("denied {why}"),
    }))
}
