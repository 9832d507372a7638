//! Looks for octets in the memory of a process (proc_pid_mem(5)). That takes root: a process that holds keys is not
//! dumpable, so that no other of its user may look.
#![allow(clippy::unwrap_used)] // A check that fails says where.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rove_ssp::{Key, PublicKeyOctets};

/// The shortest pattern: shorter ones are found by chance.
const PATTERN_BYTES_MIN: usize = 16;

/// Memory read at a time.
const READ_BYTES: usize = 1 << 20;

/// The octets to look for, by name.
#[derive(Clone, Default)]
pub struct Patterns(Vec<(String, Vec<u8>)>);

/// How often what is misplaced is looked at again, and how long after.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Where a pattern was found.
pub struct Found {
    /// Its name.
    pub name: String,
    /// Whether the kernel keeps this memory off the swap device and out of core files.
    pub is_locked: bool,
    address: u64,
    /// How far below the end of its mapping: on a stack, below what was there first.
    below: u64,
    mapping: String,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { name, is_locked, address, below, mapping } = self;
        let locked = if *is_locked { "locked" } else { "not locked" };
        write!(f, "{name} at {address:x}, {locked}, {below} octets below the end of {mapping}")
    }
}

impl Patterns {
    /// Adds one.
    pub fn add(&mut self, name: &str, octets: &[u8]) {
        assert!(octets.len() >= PATTERN_BYTES_MIN, "{name}");
        self.0.push((name.to_owned(), octets.to_vec()));
    }

    /// Adds all of others.
    pub fn extend(&mut self, others: Patterns) {
        self.0.extend(others.0);
    }

    /// Those of a name that this is so of.
    pub fn only(&self, is_so: impl Fn(&str) -> bool) -> Patterns {
        Patterns(self.0.iter().filter(|(name, _)| is_so(name)).cloned().collect())
    }

    /// What they would look like in a text: in hexadecimal, and in base64 without padding.
    pub fn texts(&self) -> Vec<String> {
        let texts = self.0.iter().flat_map(|(_, octets)| {
            let hex = octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
            let key = octets.as_slice().try_into().map(|key| Key::from_bytes(key).to_base64());
            let public = octets.as_slice().try_into().map(PublicKeyOctets::from_bytes);
            let base64 = [key.map(|text| text.to_string()), public.map(|key| key.to_string())];
            base64.into_iter().flatten().chain([hex])
        });
        texts.collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The wrong places of patterns, by the caller's test. While a datagram is sealed or opened the cipher
    /// has copies of its key on the stack: a find that is gone at the next look was such a copy.
    pub fn misplaced_in(&self, pid: u32, is_wrong: impl Fn(&Found) -> bool) -> Vec<Found> {
        let mut wrong = self.find_in(pid);
        wrong.retain(is_wrong);
        for _ in 0..LOOKS {
            if wrong.is_empty() {
                break;
            }
            std::thread::park_timeout(BETWEEN_LOOKS);
            let again = self.find_in(pid);
            let same = |a: &Found, b: &Found| a.name == b.name && a.address == b.address;
            wrong.retain(|found| again.iter().any(|again| same(again, found)));
        }
        wrong
    }

    /// All places of all of them in the memory of a process.
    pub fn find_in(&self, pid: u32) -> Vec<Found> {
        let heads: HashMap<u64, Vec<usize>> =
            self.0.iter().enumerate().fold(HashMap::new(), |mut heads, (index, (_, octets))| {
                heads.entry(head(octets)).or_default().push(index);
                heads
            });
        // Without optimisation a hash for each octet of a process takes minutes.
        let mut begins = [false; 256];
        self.0.iter().for_each(|(_, octets)| begins[usize::from(octets[0])] = true);
        let longest = self.0.iter().map(|(_, octets)| octets.len()).max().unwrap_or(0);
        let memory = File::open(format!("/proc/{pid}/mem"))
            .unwrap_or_else(|error| panic!("cannot look into {pid}, which takes root: {error}"));
        let mut found = Vec::new();
        let mut seen = 0;
        let mut octets = vec![0; READ_BYTES + longest];
        for mapping in mappings(pid) {
            let mut at = mapping.start;
            while at < mapping.end {
                let length = octets.len().min((mapping.end - at) as usize);
                // What the kernel itself maps (vvar) cannot be read.
                let Ok(length) = memory.read_at(&mut octets[..length], at) else { break };
                seen += length;
                for offset in 0..(length + 1).saturating_sub(PATTERN_BYTES_MIN) {
                    let window = &octets[offset..];
                    if !begins[usize::from(window[0])] {
                        continue;
                    }
                    let begun = heads.get(&head(window)).into_iter().flatten();
                    for (name, pattern) in begun.map(|&index| &self.0[index]) {
                        if offset < READ_BYTES && octets[offset..length].starts_with(pattern) {
                            found.push(Found {
                                name: name.clone(),
                                is_locked: mapping.is_locked,
                                address: at + offset as u64,
                                below: mapping.end - at - offset as u64,
                                mapping: mapping.name.clone(),
                            });
                        }
                    }
                }
                at += READ_BYTES as u64;
            }
        }
        assert!(seen > 1 << 20, "a process has more memory than {seen} octets");
        found
    }
}

fn head(octets: &[u8]) -> u64 {
    u64::from_ne_bytes(*octets.first_chunk().unwrap())
}

struct Mapping {
    start: u64,
    end: u64,
    is_locked: bool,
    name: String,
}

/// The readable mappings of a process (proc_pid_smaps(5)).
fn mappings(pid: u32) -> Vec<Mapping> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some((start, end)) = words[0].split_once('-')
            && let Ok(start) = u64::from_str_radix(start, 16)
        {
            let end = u64::from_str_radix(end, 16).unwrap();
            let name = words[1..].join(" ");
            mappings.push(Mapping { start, end, is_locked: false, name });
        } else if words[0] == "VmFlags:" {
            let mapping = mappings.last_mut().unwrap();
            mapping.is_locked = ["lo", "dd"].iter().all(|flag| words.contains(flag));
            if !words.contains(&"rd") {
                mappings.pop();
            }
        }
    }
    mappings
}
