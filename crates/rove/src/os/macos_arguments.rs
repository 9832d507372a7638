//! The words that a process was started with, as macOS tells them (`KERN_PROCARGS2`).

/// Takes the words out of what the system says of a process: how many there are, its file, zeros, the words and then its
/// environment, each with a zero at its end. The process may have written over all but the number.
pub(crate) fn words(said: &[u8]) -> &[u8] {
    let Some((count, rest)) = said.split_first_chunk() else { return &[] };
    let count = usize::try_from(i32::from_ne_bytes(*count)).unwrap_or(0);
    let after = |at: &[u8], is_end: fn(&u8) -> bool| at.iter().position(is_end).unwrap_or(at.len());
    let rest = &rest[after(rest, |octet| *octet == 0)..];
    let rest = &rest[after(rest, |octet| *octet != 0)..];
    let ends = rest.iter().enumerate().filter(|(_, octet)| **octet == 0).map(|(at, _)| at + 1);
    // An empty first word is taken for one of the zeros before it: there is one word too many then.
    let length = if count == 0 { 0 } else { ends.take(count).last().unwrap_or(rest.len()) };
    &rest[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_between_the_file_and_the_environment() {
        for (count, said, expected) in [
            (2, &b"/bin/cat\0\0\0cat\0-n\0HOME=/\0"[..], &b"cat\0-n\0"[..]),
            (3, b"/bin/cat\0cat\0\0-n\0HOME=/\0", b"cat\0\0-n\0"),
            (1, b"/bin/cat\0cat", b"cat"),
            (5, b"/bin/cat\0cat\0-n\0", b"cat\0-n\0"),
            (i32::MAX, b"/bin/cat\0\0", b""),
            (0, b"/bin/cat\0HOME=/\0", b""),
            (-1, b"/bin/cat\0HOME=/\0", b""),
            (1, b"/bin/cat", b""),
            (1, b"", b""),
        ] {
            let said = [&i32::to_ne_bytes(count), said].concat();
            assert_eq!(words(&said), expected, "{}", said.escape_ascii());
        }
        assert_eq!(words(&[1, 0, 0]), b"");
    }
}
