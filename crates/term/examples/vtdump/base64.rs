//! Base64 as RFC 4648 §4 has it; the decoder takes it with and without padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let sextet = (word >> (18 - 6 * index) & 63) as usize;
            out.push(if index <= chunk.len() { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    out
}

pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=' && !byte.is_ascii_whitespace()) {
        let sextet = ALPHABET.iter().position(|known| *known == byte);
        let sextet = sextet.ok_or_else(|| format!("{byte:#x} is no base64"))? as u32;
        word = word << 6 | sextet;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Ok(out)
}
