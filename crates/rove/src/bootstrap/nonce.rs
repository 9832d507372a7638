//! The random number that frames a server's answer.

use std::fmt;

/// 128 bits, new for each attempt, as 32 hexadecimal digits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Nonce {
    pub(crate) octets: [u8; 16],
    pub(crate) text: String,
}

impl Nonce {
    /// A nonce of random octets.
    pub fn new(octets: [u8; 16]) -> Nonce {
        let text = octets.iter().fold(String::new(), |text, octet| text + &format!("{octet:02x}"));
        Nonce { octets, text }
    }

    /// Reads the digits. `None` unless they are 32 in lower case.
    pub fn parse(text: &str) -> Option<Nonce> {
        let mut octets = [0; 16];
        for (octet, digits) in octets.iter_mut().zip(text.as_bytes().chunks(2)) {
            *octet = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Nonce::new(octets)).filter(|nonce| nonce.text == text)
    }

    /// The octets themselves.
    pub fn octets(&self) -> [u8; 16] {
        self.octets
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces() {
        let nonce = Nonce::new([0xab; 16]);
        assert_eq!(Nonce::parse(&nonce.to_string()).as_ref(), Some(&nonce));
        for bad in
            ["", "x", "n-1", &"AB".repeat(16), &"ab".repeat(15), &"ab".repeat(17), &"+1".repeat(16)]
        {
            assert_eq!(Nonce::parse(bad), None, "{bad}");
        }
    }
}
