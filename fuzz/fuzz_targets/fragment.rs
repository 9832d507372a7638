//! Fragments: headers survive a round trip; whatever order and repetition the input asks for, an
//! assembler gives back exactly what was cut, or nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_ssp::{Assembler, Fragment, FragmentId, fragments};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(fragment) = Fragment::decode(bytes) {
        let mut payload = Vec::new();
        fragment.encode(&mut payload);
        assert_eq!(payload, bytes);
    }

    // A hostile peer: a list of payloads, each preceded by its length.
    let mut assembler = Assembler::new(1);
    let mut rest = bytes;
    while let Some((&length, tail)) = rest.split_first() {
        let (payload, tail) = tail.split_at(usize::from(length).min(tail.len()));
        rest = tail;
        if let Ok(fragment) = Fragment::decode(payload) {
            let _ = assembler.add(fragment);
        }
        assert!(assembler.held_bytes() <= bytes.len());
    }

    // An honest peer over a network that picks, from the input, which piece comes next.
    let packed = [bytes; 5].concat();
    let pieces: Vec<Fragment<'_>> = fragments(FragmentId::from(1), &packed, 128).collect();
    let mut assembler = Assembler::new(1);
    for &pick in bytes {
        let piece = pieces[usize::from(pick) % pieces.len()];
        if let Some(done) = assembler.add(piece).expect("pieces of one instruction agree") {
            assert_eq!(done, packed);
        }
    }
});
