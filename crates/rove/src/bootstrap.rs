//! What is said over ssh to start a server: the remote command, and the lines that answer it.
//!
//! Pure text: `ssh` runs the processes. The nonce tells our lines from whatever login scripts
//! print; it proves nothing, ssh has already authenticated the host.

mod answer;
mod request;

use std::fmt;

pub use answer::{Answer, Reader, Refusal, Reply, Wire};
pub use request::{Bind, Ports, Purpose, Request, Server, Tariff};

/// 128 bits chosen afresh for each attempt, as 32 hexadecimal digits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Nonce {
    octets: [u8; 16],
    text: String,
}

impl Nonce {
    /// A nonce of random octets.
    pub fn new(octets: [u8; 16]) -> Nonce {
        let text = octets.iter().fold(String::new(), |text, octet| text + &format!("{octet:02x}"));
        Nonce { octets, text }
    }

    /// Reads the digits. `None`: they are none, or not 32 in lower case.
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
