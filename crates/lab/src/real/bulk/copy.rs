//! Runs and measures one copy from the near end to the far end: its time, its processor time, and whether the copy
//! equals the original.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::ping::Pinger;
use super::super::sessions::OverLink;
use super::super::stage::{Shell, Stage};
use super::copier::{Copier, Load};
use crate::clock::Clock;
use crate::link::Profile;
use crate::net::scenario::Scenario;
use crate::net::{End, Net};
use crate::proc::cpu_seconds;
use crate::rng::Rng;
use crate::scratch::Scratch;
use crate::stats::Summary;

impl fmt::Display for Load {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::File { bytes } => write!(out, "{} MiB", bytes >> 20),
            Load::Tree { files, bytes } => write!(out, "{files} files of {bytes} octets"),
        }
    }
}

/// A copy that is about to begin.
pub(super) struct Transfer {
    pub(super) stage: Stage,
    load: Load,
    source: PathBuf,
    /// The directory it goes into.
    target: PathBuf,
    /// Whether there is a path that can be pinged.
    is_far: bool,
    /// Whether others send over the path too, so that what passes says nothing of this copy.
    pub(super) is_shared: bool,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Since its first octets were on the path; where others send there too, since the first arrived.
    pub(super) since: Duration,
    /// Octets of the file that the far end has written; of a tree only whether there are any.
    pub(super) arrived: u64,
}

/// How a copy ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Ending {
    /// All is there.
    Whole,
    /// Its time was over.
    Cut,
    /// With an error, and the text on the screen.
    Failed(String),
}

/// The result of a copy.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    /// Of the data.
    pub(super) bytes: u64,
    /// From when more octets were on the path than logging in takes ([`BEGUN_BYTES`]) to the end of the program.
    pub(super) span: Duration,
    pub(super) ending: Ending,
    /// Seconds on a processor, near and far, if its processes were looked at often enough to know.
    pub(super) cpu: Option<[f64; 2]>,
    /// Round trips beside it in milliseconds, ten a second.
    pub(super) pings: Vec<f64>,
}

impl Copied {
    pub(super) fn mbit(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.span.as_secs_f64() / 1e6
    }

    /// Seconds on a processor for 10^9 octets, near and far, where that is known.
    pub(super) fn cpu_per_gigabyte(&self) -> Option<[f64; 2]> {
        Some(self.cpu?.map(|seconds| seconds * 1e9 / self.bytes.max(1) as f64))
    }

    /// This, if it is whole or was cut off.
    ///
    /// # Errors
    /// If the program failed.
    pub(super) fn unbroken(self) -> io::Result<Copied> {
        match &self.ending {
            Ending::Failed(said) => Err(io::Error::other(format!("it failed: {said}"))),
            Ending::Whole | Ending::Cut => Ok(self),
        }
    }
}

impl Transfer {
    /// Writes what will be copied, and starts a shell that waits with the copy; over loopback, if there is no path.
    ///
    /// # Errors
    /// As [`Stage::shell`].
    pub(super) fn open(
        copier: &Copier,
        load: Load,
        path: Option<&Scenario>,
        seed: u64,
    ) -> io::Result<Transfer> {
        let scratch = Scratch::new()?;
        let (source, target) = (scratch.join("source"), scratch.join("arrived"));
        write(&source, load, seed)?;
        fs::create_dir_all(&target)?;
        let near = if path.is_some() { End::Near } else { End::Far };
        let loopback = || Scenario::alike(Profile::default(), seed);
        let shell = Shell { ssh: &copier.ssh, near, path: path.cloned().unwrap_or_else(loopback) };
        let stage = Stage::shell(shell, scratch, |ssh, config| {
            let copy = copier.words(load, ssh, config, &source, &target.join("data"));
            format!("echo ready$; read line; {copy}; echo over-$?-")
        })?;
        widen(&stage.net)?;
        stage.begin();
        Ok(Transfer { stage, load, source, target, is_far: path.is_some(), is_shared: false })
    }

    /// Lets it begin, and looks at it until it ends or `limit` is over.
    ///
    /// # Errors
    /// If it does not begin, or the copy differs from the original.
    pub(super) fn run(
        &mut self,
        limit: Duration,
        mut each: impl FnMut(&Stage, Look) -> io::Result<()>,
    ) -> io::Result<OverLink<Copied>> {
        let pinger = self.is_far.then(|| Pinger::start(&self.stage.net)).transpose()?;
        let clock = Clock::start();
        let before = self.stage.net.passed()[0].link.delivered_bytes;
        self.stage.client.send("\r");
        let mut began: Option<Duration> = None;
        let mut scale = Scale::default();
        let mut ending = None;
        while ending.is_none() {
            self.stage.client.pump(LOOK)?;
            let (now, arrived) = (clock.elapsed(), self.arrived()?);
            let passed = self.stage.net.passed()[0].link.delivered_bytes - before;
            let is_under_way = passed > BEGUN_BYTES && !self.is_shared;
            if began.is_none() && (is_under_way || arrived > 0) {
                began = Some(now);
            }
            if now >= scale.last + WEIGH {
                scale.weigh(now, &self.stage)?;
            }
            ending = self.ending();
            match began {
                Some(began) => each(&self.stage, Look { since: now - began, arrived })?,
                None if now < LOGIN_MAX => continue,
                None => return Err(self.stage.client.missed("data on its way", LOGIN_MAX).into()),
            }
            if ending.is_none() && began.is_some_and(|began| now >= began + limit) {
                ending = Some(Ending::Cut);
            }
        }
        let over = clock.elapsed();
        let span = over.saturating_sub(began.unwrap_or_default()).max(LOOK);
        scale.weigh(over, &self.stage)?;
        let ending = ending.unwrap_or(Ending::Cut);
        let bytes = match ending {
            Ending::Whole => self.load.bytes(),
            Ending::Cut | Ending::Failed(_) => size(&self.target)?,
        };
        if ending == Ending::Whole && !is_same(&self.source, &self.target.join("data"))? {
            return Err(io::Error::other("what arrived is not what was sent"));
        }
        let cpu = scale.told(span);
        let pings = pinger.map_or(Vec::new(), Pinger::finish);
        let found = Copied { bytes, span, ending, cpu, pings };
        Ok(OverLink { found, late: self.stage.net.late() })
    }

    /// How it ended, if it has.
    fn ending(&self) -> Option<Ending> {
        let client = &self.stage.client;
        match (client.shows("over-0-"), client.shows("over-")) {
            (true, _) => Some(Ending::Whole),
            (false, true) => Some(Ending::Failed(client.screen().text().join(" ").trim().into())),
            (false, false) => None,
        }
    }

    /// The length of the file at the far end, under its temporary name as well; 1 as soon as there is any of a
    /// tree.
    fn arrived(&self) -> io::Result<u64> {
        let mut sum = 0;
        for entry in fs::read_dir(&self.target)? {
            // One may get its last name meanwhile.
            sum += match self.load {
                Load::File { .. } => entry?.metadata().map_or(0, |metadata| metadata.len()),
                Load::Tree { .. } => return entry.map(|_| 1),
            };
        }
        Ok(sum)
    }
}

/// The processor time of each end's processes. A process that has ended takes with it its time since the last look,
/// so that a short copy has no result.
#[derive(Debug, Default)]
struct Scale {
    /// Seconds on a processor of each, by its end and number.
    seen: [BTreeMap<u32, f64>; 2],
    /// When they were looked at, and the longest time between two looks.
    last: Duration,
    gap: Duration,
}

impl Scale {
    /// Notes their processor time so far.
    fn weigh(&mut self, now: Duration, stage: &Stage) -> io::Result<()> {
        for (seen, end) in self.seen.iter_mut().zip([End::Near, End::Far]) {
            for pid in stage.processes(end)? {
                seen.extend(cpu_seconds(pid).map(|seconds| (pid, seconds)));
            }
        }
        self.looked(now);
        Ok(())
    }

    fn looked(&mut self, now: Duration) {
        self.gap = self.gap.max(now.saturating_sub(self.last));
        self.last = now;
    }

    /// The sums of both ends for a copy that took `span`; `None` if more than a tenth may have been missed.
    fn told(&self, span: Duration) -> Option<[f64; 2]> {
        let sums: [f64; 2] = self.seen.each_ref().map(|seen| seen.values().sum());
        (span >= 10 * self.gap && sums.iter().all(|sum| *sum > 0.0)).then_some(sums)
    }
}

/// Medians of the seconds on a processor for 10^9 octets: near, far, and both together, where they are known.
pub(super) fn cpu_medians(samples: &[Copied]) -> [Option<f64>; 3] {
    let sides: [fn([f64; 2]) -> f64; 3] =
        [|[near, _]| near, |[_, far]| far, |[near, far]| near + far];
    sides.map(|side| {
        let each = samples.iter().filter_map(|copied| copied.cpu_per_gigabyte().map(side));
        Summary::of(&each.collect::<Vec<f64>>()).map(|cpu| cpu.median)
    })
}

/// One copy with no more to see than its end.
///
/// # Errors
/// As [`Transfer`]'s, and if the program failed.
pub(super) fn copy(
    copier: &Copier,
    load: Load,
    path: Option<&Scenario>,
    limit: Duration,
    seed: u64,
) -> io::Result<OverLink<Copied>> {
    let mut transfer = Transfer::open(copier, load, path, seed)?;
    let OverLink { found, late } = transfer.run(limit, |_, _| Ok(()))?;
    Ok(OverLink { found: found.unbroken()?, late })
}

/// Lets TCP use windows as long pipes need; /proc/sys may not be ours, and then it is as the system has it.
pub(super) fn widen(net: &Net) -> io::Result<()> {
    for end in [End::Near, End::Far] {
        net.within(end, || {
            for (name, usual) in [("tcp_rmem", 131_072), ("tcp_wmem", 16_384)] {
                let path = format!("/proc/sys/net/ipv4/{name}");
                let _ = fs::write(path, format!("4096 {usual} {WINDOW_BYTES_MAX}"));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes it, and lets the disk have it before anything is measured.
pub(super) fn write(path: &Path, load: Load, seed: u64) -> io::Result<()> {
    let mut rng = Rng::new(seed);
    match load {
        Load::File { bytes } => write_random(path, bytes, &mut rng)?,
        Load::Tree { files, bytes } => {
            for number in 0..files {
                let directory = path.join((number / 1_000).to_string());
                if number % 1_000 == 0 {
                    fs::create_dir_all(&directory)?;
                }
                write_random(&directory.join(number.to_string()), bytes, &mut rng)?;
            }
        }
    }
    rustix::fs::sync();
    Ok(())
}

fn write_random(path: &Path, bytes: u64, rng: &mut Rng) -> io::Result<()> {
    let mut file = io::BufWriter::new(File::create(path)?);
    for _ in 0..bytes / 8 {
        file.write_all(&rng.next_u64().to_le_bytes())?;
    }
    file.flush()
}

/// Octets of all files in a directory and below it.
pub(super) fn size(path: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // One may get its last name meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        sum += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}

/// Whether two files hold the same, or two directories the same files.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    if one.is_dir() {
        let mut count = 0;
        for entry in fs::read_dir(one)? {
            let name = entry?.file_name();
            count += 1;
            if !is_same(&one.join(&name), &other.join(&name))? {
                return Ok(false);
            }
        }
        return Ok(fs::read_dir(other)?.count() == count);
    }
    let (one, other) = (File::open(one)?, File::open(other)?);
    let mut parts = [Vec::new(), Vec::new()];
    loop {
        parts.iter_mut().for_each(Vec::clear);
        (&one).take(PART_BYTES).read_to_end(&mut parts[0])?;
        (&other).take(PART_BYTES).read_to_end(&mut parts[1])?;
        if parts[0] != parts[1] {
            return Ok(false);
        }
        if parts[0].is_empty() {
            return Ok(true);
        }
    }
}

/// How often a copy is looked at: an end is seen so late at most.
const LOOK: Duration = Duration::from_millis(10);
/// How often its processes are, which takes about a millisecond.
const WEIGH: Duration = Duration::from_millis(50);
/// How long it may take until data is on its way.
const LOGIN_MAX: Duration = Duration::from_secs(60);
/// More than any login takes on the way up.
const BEGUN_BYTES: u64 = 64 << 10;
/// Of TCP's buffers.
const WINDOW_BYTES_MAX: u64 = 32 << 20;
/// Octets compared at a time.
const PART_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_at_too_seldom_is_not_told() {
        let ms = Duration::from_millis;
        let mut scale = Scale::default();
        (1..=4).for_each(|look| scale.looked(ms(50 * look)));
        assert_eq!(scale.told(ms(500)), None, "nobody was seen");
        scale.seen[0].insert(7, 0.5);
        assert_eq!(scale.told(ms(500)), None, "of one end");
        scale.seen[1].extend([(8, 0.25), (9, 0.5)]);
        assert_eq!(scale.told(ms(500)), Some([0.5, 0.75]));
        assert_eq!(scale.told(ms(499)), None, "over too soon");
        scale.looked(ms(300));
        assert_eq!(scale.told(ms(500)), None, "a long time without a look");
    }

    #[test]
    fn trees_are_the_same_or_not() {
        let scratch = Scratch::new().unwrap();
        let load = Load::Tree { files: 1_002, bytes: 16 };
        let [one, other] = ["one", "other"].map(|name| scratch.join(name));
        write(&one, load, 1).unwrap();
        write(&other, load, 1).unwrap();
        assert_eq!(size(&one).unwrap(), load.bytes());
        assert!(is_same(&one, &other).unwrap());
        fs::write(other.join("1/1001"), "another").unwrap();
        assert!(!is_same(&one, &other).unwrap());
        fs::copy(one.join("1/1001"), other.join("1/1001")).unwrap();
        fs::write(other.join("0/more"), "").unwrap();
        assert!(!is_same(&one, &other).unwrap());
        fs::remove_file(other.join("0/more")).unwrap();
        fs::remove_file(other.join("0/7")).unwrap();
        assert!(is_same(&one, &other).is_err(), "a file is missing");
    }
}
