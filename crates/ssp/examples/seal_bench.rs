//! What sealing and opening a packet costs: ours beside the `ocb3` crate and the native wire, on the same
//! thread, in turns.
//!
//! `cargo run --release -p rove-ssp --example seal_bench`
#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use std::hint::black_box;
use std::time::Instant;

use aes::Aes128;
use ocb3::Ocb3;
use ocb3::aead::{AeadInOut, KeyInit};
use rove_ssp::{ConnId, Envelope, Key, MoshWire, NativeWire, Role, SessionSecrets, Wire};

const KEY: [u8; 16] = *b"0123456789abcdef";
/// Measurements of each kind and size; each measures a run of packets, so that the clock's own cost and
/// granularity vanish.
const MEASUREMENTS: usize = 301;
const PACKETS: u32 = 1000;
/// Octets of a mosh datagram beside its payload: nonce, stamps, tag.
const NONCE: usize = 8;
const STAMPS: usize = 4;

fn main() {
    println!("seal + open, ns per packet; n = {MEASUREMENTS} runs of {PACKETS} packets");
    println!(
        "{:>7} {:>12} {:>12} {:>7} {:>14}",
        "octets", "ours median", "ocb3 median", "ratio", "native median"
    );
    for octets in [32, 100, 1200] {
        let payload = vec![0x5a; octets];
        let mut ours = Ours::mosh();
        let mut native = Ours::native();
        let mut theirs = Theirs::new();
        let (mut ours_ns, mut theirs_ns, mut native_ns) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..MEASUREMENTS {
            ours_ns.push(measure(|| ours.round(&payload)));
            theirs_ns.push(measure(|| theirs.round(&payload)));
            native_ns.push(measure(|| native.round(&payload)));
        }
        let (ours, theirs, native) = (median(ours_ns), median(theirs_ns), median(native_ns));
        let ratio = theirs / ours;
        println!("{octets:>7} {ours:>12.0} {theirs:>12.0} {ratio:>7.2} {native:>14.0}");
    }
}

fn measure(mut round: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..PACKETS {
        round();
    }
    start.elapsed().as_nanos() as f64 / f64::from(PACKETS)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Ours {
    client: Box<dyn Wire>,
    server: Box<dyn Wire>,
    datagram: Vec<u8>,
}

impl Ours {
    fn mosh() -> Ours {
        let wire = |role| Box::new(MoshWire::new(Key::from_bytes(KEY), role));
        Ours { client: wire(Role::Client), server: wire(Role::Server), datagram: Vec::new() }
    }

    fn native() -> Ours {
        let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
        let wire = |role| Box::new(NativeWire::new(&secrets, ConnId::new(1), role));
        Ours { client: wire(Role::Client), server: wire(Role::Server), datagram: Vec::new() }
    }

    fn round(&mut self, payload: &[u8]) {
        let sealed = self.client.seal(&Envelope::default(), black_box(payload), &mut self.datagram);
        sealed.expect("a fresh key");
        let (_, range) = self.server.open(&mut self.datagram).expect("sealed just now");
        black_box(&self.datagram[range]);
    }
}

/// The same datagram, made with the crate.
struct Theirs {
    ocb: Ocb3<Aes128>,
    seq: u64,
    datagram: Vec<u8>,
}

impl Theirs {
    fn new() -> Theirs {
        let ocb = Ocb3::new_from_slice(&KEY).expect("16 octets");
        Theirs { ocb, seq: 0, datagram: Vec::new() }
    }

    fn round(&mut self, payload: &[u8]) {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.seq.to_be_bytes());
        self.seq += 1;
        self.datagram.clear();
        self.datagram.extend_from_slice(&nonce[4..]);
        self.datagram.extend_from_slice(&[0xff; STAMPS]);
        self.datagram.extend_from_slice(black_box(payload));
        let text = &mut self.datagram[NONCE..];
        let tag = self.ocb.encrypt_inout_detached(&nonce.into(), b"", text.into());
        self.datagram.extend_from_slice(&tag.expect("short enough"));

        let (text, tag) = self.datagram[NONCE..].split_at_mut(STAMPS + payload.len());
        let tag: [u8; 16] = (*tag).try_into().expect("16 octets");
        let opened = self.ocb.decrypt_inout_detached(&nonce.into(), b"", text.into(), &tag.into());
        opened.expect("sealed just now");
        black_box(&self.datagram[NONCE + STAMPS..]);
    }
}
