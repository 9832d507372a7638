//! What sealing and opening a packet of the streams costs with AES-128-GCM by the crate that the native wire has, and by
//! ring, which the streams have, on the same thread, in turns.
//!
//! `cargo run --release -p rove-ssp --example packet_bench`
#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use std::hint::black_box;
use std::time::Instant;

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

const KEY: [u8; 16] = *b"0123456789abcdef";
/// Associated data, as long as QUIC's headers are.
const HEAD: &[u8] = &[7; 13];
/// Measurements of each kind and size; each measures a run of packets, so that the clock's own cost and
/// granularity vanish.
const MEASUREMENTS: usize = 301;
const PACKETS: u32 = 300;

fn main() {
    println!("seal + open, ns per packet; n = {MEASUREMENTS} runs of {PACKETS} packets");
    println!("{:>7} {:>14} {:>12} {:>6}", "octets", "aes-gcm median", "ring median", "ratio");
    // Small ones, what Ethernet takes, and what goes within a machine.
    for octets in [100, 1452, 6550] {
        let mut packet = vec![0x5a; octets];
        let (aes_gcm, ring) = (AesGcm::new(), Ring::new());
        let (mut aes_gcm_ns, mut ring_ns) = (Vec::new(), Vec::new());
        for _ in 0..MEASUREMENTS {
            aes_gcm_ns.push(measure(|| aes_gcm.round(&mut packet)));
            ring_ns.push(measure(|| ring.round(&mut packet)));
        }
        let (aes_gcm, ring) = (median(aes_gcm_ns), median(ring_ns));
        println!("{octets:>7} {aes_gcm:>14.0} {ring:>12.0} {:>6.2}", aes_gcm / ring);
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

struct AesGcm(Aes128Gcm);

impl AesGcm {
    fn new() -> AesGcm {
        AesGcm(Aes128Gcm::new(&KEY.into()))
    }

    fn round(&self, packet: &mut [u8]) {
        let nonce = [1; 12].into();
        let tag = self.0.encrypt_inout_detached(&nonce, HEAD, black_box(&mut *packet).into());
        let tag = tag.expect("short enough");
        let opened = self.0.decrypt_inout_detached(&nonce, HEAD, packet.into(), &tag);
        opened.expect("sealed just now");
    }
}

struct Ring(LessSafeKey);

impl Ring {
    fn new() -> Ring {
        Ring(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &KEY).expect("16 octets")))
    }

    fn round(&self, packet: &mut [u8]) {
        let nonce = || Nonce::assume_unique_for_key([1; 12]);
        let text = black_box(&mut *packet);
        let tag = self.0.seal_in_place_separate_tag(nonce(), Aad::from(HEAD), text);
        let tag = tag.expect("short enough");
        let opened = self.0.open_in_place_separate_tag(nonce(), Aad::from(HEAD), tag, packet, 0..);
        opened.expect("sealed just now");
    }
}
