//! Frames over ssh: read in pieces of any size they are what they are in one, and written they are what was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::net::{FrameKind, FrameQueue, FrameReader};

/// All frames up to the first octets that are none, and whether there are such.
fn read(octets: &[u8], piece: usize) -> (Vec<(FrameKind, Vec<u8>)>, bool) {
    let (mut reader, mut frames) = (FrameReader::new(b""), Vec::new());
    for piece in octets.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            let room = reader.room();
            let count = room.len().min(rest.len());
            assert!(count > 0, "no room, and no frame");
            room[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            reader.filled(count);
            loop {
                let has_frame = reader.has_frame();
                match reader.take_frame() {
                    Ok(Some((kind, octets))) => frames.push((kind, octets.to_vec())),
                    Ok(None) => {
                        assert!(!has_frame);
                        break;
                    }
                    Err(_) => return (frames, true),
                }
            }
        }
    }
    (frames, false)
}

fuzz_target!(|octets: &[u8]| {
    let (frames, is_noise) = read(octets, 1 << 20);
    assert_eq!(read(octets, 3), (frames.clone(), is_noise));
    let mut written = Vec::new();
    for (kind, octets) in &frames {
        let mut queue = FrameQueue::default();
        assert!(queue.push(*kind, octets));
        let frame = queue.octets().to_vec();
        queue.wrote(frame.len());
        assert!(queue.is_empty());
        written.extend(frame);
    }
    assert!(octets.starts_with(&written));
});
