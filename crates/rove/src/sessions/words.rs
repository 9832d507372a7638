//! Any octets as one word of a line: others than plain characters are written `%XX`.

/// Writes octets as a word; `%` alone stands for none.
pub fn word(octets: &[u8]) -> String {
    if octets.is_empty() {
        return "%".into();
    }
    let mut word = String::with_capacity(octets.len());
    for &octet in octets {
        match octet {
            _ if octet.is_ascii_alphanumeric() || b"_.-+/:@,=".contains(&octet) => {
                word.push(octet.into());
            }
            _ => word.push_str(&format!("%{octet:02X}")),
        }
    }
    word
}

/// Reads such a word. `None` if it is none.
pub fn octets(word: &str) -> Option<Vec<u8>> {
    if word == "%" {
        return Some(Vec::new());
    }
    let mut octets = Vec::with_capacity(word.len());
    let mut rest = word.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            b'!'..=b'~' => octet,
            _ => return None,
        });
    }
    Some(octets).filter(|octets| !octets.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_octets() {
        for (given, written) in [
            (&b"vim"[..], "vim"),
            (b"", "%"),
            (b"a b%\n", "a%20b%25%0A"),
            ("\u{e4}".as_bytes(), "%C3%A4"),
        ] {
            assert_eq!(word(given), written);
            assert_eq!(octets(written).as_deref(), Some(given));
        }
        for bad in ["", "%4", "%GG", "a b", "%%", "\u{e4}", "a%"] {
            assert_eq!(octets(bad), None, "{bad}");
        }
    }
}
