//! Instructions: what decodes survives a round trip, both as protobuf and packed for the mosh wire.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_ssp::{Deflater, Instruction, Key, MESSAGE_BYTES_MAX, MoshWire, Role, Wire};

fuzz_target!(|bytes: &[u8]| {
    let wire = MoshWire::new(Key::from_bytes([7; Key::BYTES]), Role::Client);
    if let Ok(message) = Instruction::decode(bytes) {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        assert_eq!(Instruction::decode(&encoded).as_ref(), Ok(&message));

        let mut packed = Vec::new();
        wire.pack(&message, &mut Deflater::default(), &mut packed);
        assert_eq!(wire.unpack(&packed), Ok(message));
    }
    // As a zlib stream the same octets must never make more than an instruction may hold.
    if let Ok(message) = wire.unpack(bytes) {
        assert!(message.diff.len() + message.chaff.len() <= MESSAGE_BYTES_MAX);
    }
});
