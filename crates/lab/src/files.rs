//! Reads files of others up to a limit, so that none of them fills the memory.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Reads a file of at most this length.
///
/// # Errors
/// Errors of the file system, or that it is longer; the message names the file.
pub(crate) fn read_octets(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let faulty = |kind, what: &dyn std::fmt::Display| {
        io::Error::new(kind, format!("{}: {what}", path.display()))
    };
    let mut octets = Vec::new();
    File::open(path)
        .and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut octets))
        .map_err(|error| faulty(error.kind(), &error))?;
    if octets.len() as u64 > bytes_max {
        return Err(faulty(io::ErrorKind::InvalidData, &format!("longer than {bytes_max} octets")));
    }
    Ok(octets)
}

/// Reads a text file of at most this length.
///
/// # Errors
/// As [`read_octets`], or that it is not UTF-8.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_octets(path, bytes_max)?).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: no UTF-8 text", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.join("x");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        std::fs::write(&path, [b'\xff']).unwrap();
        for (path, most, want) in [
            (scratch.join("x"), 0, "x: longer than 0 octets"),
            (scratch.join("x"), 9, "x: no UTF-8"),
            (scratch.join("gone"), 9, "gone: No such file"),
            // It has no end.
            ("/dev/zero".into(), 9, "/dev/zero: longer than 9"),
        ] {
            let error = read_text(&path, most).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
