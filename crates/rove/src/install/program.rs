//! The program that is copied: this one, one of the package, or one that the user names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::bootstrap::Facts;
use crate::failure::Failure;
use crate::install::executable::{Executable, Kind};
use crate::os::process::own_program;

/// The most octets of a program.
const PROGRAM_BYTES_MAX: u64 = 256 << 20;

/// A program that can be copied.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) octets: Vec<u8>,
    pub(super) kind: &'static Kind,
    sum: String,
    /// `rove 0.1.0`; `None` for a program that only its own machine can ask.
    version: Option<String>,
}

impl Program {
    /// The program that the user names.
    pub(super) fn named(path: &Path) -> Result<Program, Failure> {
        let failed = |what: String| {
            Failure::new(
                format!("{}: {what}", path.display()),
                "Name a rove for the host's machine.",
            )
        };
        let octets = read(path).map_err(|error| failed(error.to_string()))?;
        let found = Executable::read(&octets);
        let found = found.ok_or_else(|| failed("is no program for a host that is known".into()))?;
        Ok(Program { sum: sum(&octets), kind: found.kind, octets, version: None })
    }

    /// This program, if it runs on all machines of that kind, else the package's for it.
    pub(crate) fn for_kind(kind: &'static Kind) -> Option<Program> {
        let own = read(&own_program().ok()?).ok()?;
        let octets = match Executable::read(&own) {
            Some(found) if found.is_portable && found.kind == kind => own,
            _ => of_package(&servers()?, kind)?,
        };
        let version = Some(format!("rove {}", env!("CARGO_PKG_VERSION")));
        Some(Program { sum: sum(&octets), kind, octets, version })
    }

    /// The same for what `uname -sm` says.
    pub(crate) fn for_uname(uname: &str) -> Option<Program> {
        Program::for_kind(Kind::of(uname)?)
    }

    /// What it is, for people.
    pub(crate) fn title(&self) -> String {
        let name = self.version.as_deref().unwrap_or("a rove");
        format!("{name} ({}, {:.1} MB)", self.kind.uname, self.octets.len() as f64 / 1e6)
    }

    /// Its version, as `--version` tells it.
    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The line that goes before its octets.
    pub(super) fn head(&self) -> String {
        format!("{} {} {}\n", self.octets.len(), self.sum, self.name())
    }

    /// The name of its directory.
    fn name(&self) -> String {
        let version = self.version.as_deref().and_then(|text| text.strip_prefix("rove "));
        format!("{}-{}", version.unwrap_or("file"), &self.sum[..8])
    }

    /// Whether it is in place there, and runs.
    pub(super) fn is_there(&self, facts: &Facts) -> bool {
        let linked = facts.get("LINKED").unwrap_or_default();
        let runs = facts.get("THERE").is_some_and(|said| said.starts_with("rove "));
        runs && linked.ends_with(&format!("/{}/rove", self.name()))
    }
}

/// The SHA-256 of this program, in hexadecimal digits: for a host that has no other program for it.
pub(crate) fn own_sum() -> io::Result<String> {
    Ok(sum(&read(&own_program()?)?))
}

/// Where the package keeps programs for other machines: beside its `bin`.
fn servers() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.parent()?.join("lib/rove/servers"))
}

/// The package's program for a kind of machine, if it is for that and its sum is the one in the package's list.
fn of_package(servers: &Path, kind: &Kind) -> Option<Vec<u8>> {
    let name = kind.file;
    let octets = read(&servers.join(name)).ok()?;
    let list = fs::read_to_string(servers.join("SHA256SUMS")).ok()?;
    let mut entries = list.lines().filter_map(|line| line.split_once(' '));
    let is_listed = |(sum, file): (&str, &str)| {
        file.trim_start_matches([' ', '*']) == name && sum == self::sum(&octets)
    };
    let is_for_it = Executable::read(&octets).is_some_and(|found| found.kind == kind);
    (is_for_it && entries.any(is_listed)).then_some(octets)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    // A device has no length to ask for.
    File::open(path)?.take(PROGRAM_BYTES_MAX + 1).read_to_end(&mut octets)?;
    match octets.len() as u64 > PROGRAM_BYTES_MAX {
        true => Err(io::Error::other(format!("more than {} MiB", PROGRAM_BYTES_MAX >> 20))),
        false => Ok(octets),
    }
}

fn sum(octets: &[u8]) -> String {
    let digest = Sha256::digest(octets);
    digest.iter().fold(String::new(), |text, octet| text + &format!("{octet:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_the_package_is_the_listed_one() {
        let directory = std::env::temp_dir().join(format!("rove-servers-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        // For a Mac, by its head, and for nothing at all.
        let program = [b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0\x02\0\0\0", &[0; 16][..]].concat();
        fs::write(directory.join("rove-macos-aarch64"), &program).unwrap();
        fs::write(directory.join("rove-linux-aarch64"), &program).unwrap();
        let kind = |uname| Kind::of(uname).unwrap();
        let right = sum(&program);
        for (list, is_taken) in [
            (format!("{right}  rove-macos-aarch64\n"), true),
            (format!("0 x\n{right} *rove-macos-aarch64\n"), true),
            (format!("{right}  rove-macos-x86_64\n"), false),
            (format!("{}  rove-macos-aarch64\n", sum(b"other")), false),
            (format!("{right}  rove-linux-aarch64\n"), false),
            (String::new(), false),
        ] {
            fs::write(directory.join("SHA256SUMS"), &list).unwrap();
            let taken = of_package(&directory, kind("Darwin arm64")).is_some();
            assert_eq!(taken, is_taken, "{list}");
            assert_eq!(of_package(&directory, kind("Linux aarch64")), None, "{list}");
        }
        assert_eq!(of_package(&directory, kind("Linux x86_64")), None);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn sums() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sum(b""), empty);
    }
}
