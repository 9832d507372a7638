//! Finds a terminal's compiled entry in the system's databases (terminfo(5), "Fetching Compiled
//! Descriptions"). `rove-term` reads the entry.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use rove_term::terminfo::{ENTRY_BYTES_MAX, Terminfo};

use crate::os::ffi::{OsStrExt, OsStringExt};

/// Where systems keep their database: Debian, most others, macOS' package managers, NixOS.
const SYSTEM: [&str; 7] = [
    "/etc/terminfo",
    "/lib/terminfo",
    "/usr/share/terminfo",
    "/usr/lib/terminfo",
    "/usr/local/share/terminfo",
    "/opt/homebrew/share/terminfo",
    "/run/current-system/sw/share/terminfo",
];

/// The most directories of `TERMINFO_DIRS` to search; more are ignored.
const LISTED_MAX: usize = 64;

/// The longest name of a terminal.
const NAME_BYTES_MAX: usize = 128;

/// The directories to look into, in order, by the variables TERMINFO, HOME and TERMINFO_DIRS.
pub(crate) fn places(
    own: Option<OsString>,
    home: Option<OsString>,
    list: Option<OsString>,
) -> Vec<PathBuf> {
    let system = || SYSTEM.map(PathBuf::from);
    let mut places: Vec<PathBuf> = own.into_iter().map(PathBuf::from).collect();
    places.extend(home.map(|home| PathBuf::from(home).join(".terminfo")));
    for place in
        list.iter().flat_map(|list| list.as_bytes().split(|&octet| octet == b':')).take(LISTED_MAX)
    {
        match place {
            // The compiled-in ones, which come last as well.
            b"" => {}
            _ => places.push(PathBuf::from(OsString::from_vec(place.to_vec()))),
        }
    }
    places.extend(system());
    places
}

/// The entry of the terminal of this name in the first of these directories that has one. Unreadable files
/// and those that are no entry are skipped.
pub(crate) fn find(term: &str, places: &[PathBuf]) -> Option<Terminfo> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-._@".contains(c);
    let first = term.chars().next().filter(|_| term.len() <= NAME_BYTES_MAX)?;
    if !term.chars().all(plain) || first == '.' {
        return None;
    }
    // By the first letter, or by its number where file names do not tell capitals.
    let names = [format!("{first}/{term}"), format!("{:x}/{term}", u32::from(first))];
    let files = places.iter().flat_map(|place| names.iter().map(|name| place.join(name)));
    files.into_iter().find_map(|file| {
        // Opening what is no file, a pipe for one, could wait for ever.
        if !std::fs::metadata(&file).ok()?.is_file() {
            return None;
        }
        let mut entry = Vec::new();
        File::open(file).ok()?.take(ENTRY_BYTES_MAX as u64).read_to_end(&mut entry).ok()?;
        Terminfo::parse(&entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of 256 colours and nothing else.
    fn entry() -> Vec<u8> {
        let header = [0o432_i16, 2, 0, 14, 0, 0];
        let mut out: Vec<u8> = header.iter().flat_map(|number| number.to_le_bytes()).collect();
        out.extend(b"x\0");
        out.extend([0xff; 26]);
        out.extend(256_i16.to_le_bytes());
        out
    }

    #[test]
    fn entries_are_found_where_they_are() {
        let root = std::env::temp_dir().join(format!("rove-terminfo-{}", std::process::id()));
        let (first, second) = (root.join("first"), root.join("second"));
        for (file, octets) in [
            (first.join("x/x-broken"), b"no entry".to_vec()),
            (second.join("x/x-broken"), entry()),
            (second.join("78/x-number"), entry()),
            (second.join("x/x-huge"), [entry(), vec![0; 1 << 20]].concat()),
        ] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, octets).unwrap();
        }
        std::fs::create_dir_all(first.join("x/x-directory")).unwrap();
        let places = [first, second];
        for (term, found) in [
            ("x-broken", true),
            ("x-number", true),
            ("x-huge", true),
            ("x-directory", false),
            ("x-none", false),
            ("", false),
            (".", false),
            ("x/../x/x-broken", false),
            ("x-broken\0", false),
        ] {
            assert_eq!(find(term, &places).is_some(), found, "{term:?}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_order_of_places() {
        let path = |text: &str| Some(OsString::from(text));
        let all = places(path("/own"), path("/home"), path("/a::/b"));
        let first = ["/own", "/home/.terminfo", "/a", "/b", "/etc/terminfo"].map(PathBuf::from);
        assert_eq!(all[..5], first);
        assert_eq!(places(None, None, None), SYSTEM.map(PathBuf::from));
    }
}
