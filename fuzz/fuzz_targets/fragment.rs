//! Fragments: headers survive a round trip; whatever order and repetition the input asks for, an
//! assembler gives back exactly what was cut, or nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_ssp::{
    Assembler, ConnId, Fragment, FragmentId, NativeWire, Piece, Role, SessionSecrets, Wire,
    fragments,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(fragment) = Fragment::decode(bytes) {
        let mut payload = Vec::new();
        fragment.encode(&mut payload);
        assert_eq!(payload, bytes);
    }

    // A hostile peer: a list of payloads, each preceded by its length.
    let secrets = SessionSecrets::from_bytes([1; 32], [2; 32], [3; 32]);
    let native = NativeWire::new(&secrets, ConnId::new(7), Role::Client);
    let (mut assembler, mut several) = (Assembler::new(1), Assembler::new(64));
    let mut rest = bytes;
    while let Some((&length, tail)) = rest.split_first() {
        let (payload, tail) = tail.split_at(usize::from(length).min(tail.len()));
        rest = tail;
        if let Ok(fragment) = Fragment::decode(payload) {
            let _ = assembler.add(fragment);
        }
        assert!(assembler.held_bytes() <= bytes.len());
        // The same as the native wire reads it, parity and all: it never makes more than came.
        if let Ok(piece) = native.decode_piece(payload) {
            if let Piece::Parity(parity) = &piece {
                let mut again = Vec::new();
                native.encode_parity(parity, &mut again);
                assert_eq!(again, payload);
            }
            if let Ok(Some(done)) = several.take(piece) {
                assert!(done.len() <= bytes.len());
            }
        }
        assert!(several.held_bytes() <= bytes.len());
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
