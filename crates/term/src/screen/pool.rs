//! Keeps the tables behind the numbers in cells: styles, hyperlinks and grapheme clusters.
//!
//! Tables only grow. Clones of a screen share them, and a write copies a shared table first. So two clones agree on
//! every number they had in common, and a row shared by pointer means the same in both. When a table is full the
//! emulator renumbers the entries still in use and rewrites *every* row, so that rule survives. Numbers never leave
//! the process.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hasher};
use core::ops::Range;

use triomphe::Arc;

use crate::screen::cell::{Cell, ClusterId, Glyph, LinkId, StyleId};
use crate::screen::style::Style;

/// Styles a cell can name (20 bits).
const STYLES_MAX: usize = 1 << 20;
/// Hyperlinks a cell can name (16 bits). Beyond it text is written without a link.
const LINKS_MAX: usize = 1 << 16;
/// Clusters kept. At 64 bytes each they take 16 MiB at most; beyond it a mark is dropped.
const CLUSTERS_MAX: usize = 1 << 18;
/// Bytes of hyperlinks kept. Beyond it text is written without a link.
const LINK_BYTES_MAX: usize = 4 << 20;
/// Slots that a search looks at; beyond them the table counts as full for that entry. The hashes are not secret, so a
/// program can write styles or texts that all hash to one slot; of 400,000 honest ones none is so far from its slot
/// (`crowds_are_refused`).
const PROBES_MAX: usize = 128;
/// How many numbers are given out, at least, before those no longer in use are collected.
const NEWS_MIN: Common = Common { styles: 8192, links: 1024, clusters: 8192 };

/// A hyperlink (OSC 8).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Link<'a> {
    /// The `id` parameter, which joins cells that are apart; empty when the program gave none.
    pub id: &'a str,
    /// Where it leads.
    pub uri: &'a str,
}

/// The tables of one screen. Cloning costs three reference counts.
#[derive(Clone, Debug)]
pub struct Pool {
    styles: Arc<Styles>,
    links: Arc<Texts>,
    clusters: Arc<Texts>,
    /// Numbers that may still be given out, or refused, before a sweep is worth its while.
    news_left: Common,
}

/// How far two pools agree: below these indices a number means the same in both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Common {
    /// Styles that agree.
    pub styles: usize,
    /// Links that agree.
    pub links: usize,
    /// Clusters that agree.
    pub clusters: usize,
}

impl Pool {
    /// Tables that hold the plain style and the empty link alone.
    pub fn new() -> Self {
        let mut links = Texts::default();
        links.push("\t");
        let mut clusters = Texts::default();
        clusters.push("\u{fffd}");
        Self {
            styles: Arc::new(Styles::with_room(0)),
            links: Arc::new(links),
            clusters: Arc::new(clusters),
            news_left: NEWS_MIN,
        }
    }

    /// The octets the tables take, in O(1).
    pub fn weight(&self) -> usize {
        let styles = self.styles.entries.capacity() * size_of::<Style>();
        styles + self.styles.index.weight() + self.links.weight() + self.clusters.weight()
    }

    /// The style of a number; unknown numbers are plain.
    pub fn style(&self, id: StyleId) -> Style {
        self.styles.entries.get(id.index()).copied().unwrap_or(Style::PLAIN)
    }

    /// The link of a number; `None` for [`LinkId::NONE`].
    pub fn link(&self, id: LinkId) -> Option<Link<'_>> {
        if id == LinkId::NONE {
            return None;
        }
        let (id, uri) = self.links.get(id.index())?.split_once('\t')?;
        Some(Link { id, uri })
    }

    /// The octets of the longest link that any cell may have, id and address.
    pub(crate) fn longest_link(&self) -> usize {
        self.links.longest
    }

    /// The text of a cluster.
    pub fn cluster(&self, id: ClusterId) -> &str {
        self.clusters.get(id.index()).unwrap_or("\u{fffd}")
    }

    /// The same in UTF-8.
    pub(crate) fn cluster_octets(&self, id: ClusterId) -> &[u8] {
        self.clusters.octets(id.index()).unwrap_or("\u{fffd}".as_bytes())
    }

    /// Appends a cell's text: nothing for the right half of a wide cell.
    pub fn push_text(&self, cell: Cell, out: &mut String) {
        if cell.is_tail() {
            return;
        }
        match cell.glyph() {
            Glyph::Char(c) => out.push(c),
            Glyph::Cluster(id) => out.push_str(self.cluster(id)),
        }
    }

    /// How far this pool agrees with another.
    pub fn common(&self, other: &Self) -> Common {
        Common {
            styles: if Arc::ptr_eq(&self.styles, &other.styles) {
                self.styles.entries.len()
            } else {
                agreeing(&self.styles.entries, &other.styles.entries)
            },
            links: Texts::common(&self.links, &other.links),
            clusters: Texts::common(&self.clusters, &other.clusters),
        }
    }

    /// The number of a style, new or known. Plain when the table is full.
    pub(crate) fn intern_style(&mut self, style: Style) -> StyleId {
        let found = self.styles.find(&style);
        if let Found::Entry(entry) = found {
            return StyleId(entry);
        }
        self.news_left.styles = self.news_left.styles.saturating_sub(1);
        if found == Found::Crowd || self.styles.entries.len() >= STYLES_MAX {
            return StyleId::PLAIN;
        }
        Arc::make_mut(&mut self.styles).push(style)
    }

    /// The number of a link, new or known; none when the table is full. `id` and `uri` must not hold
    /// control characters.
    pub(crate) fn intern_link(&mut self, id: &str, uri: &str) -> LinkId {
        let text = [id, "\t", uri].concat();
        let found = self.links.find(&text);
        if let Found::Entry(index) = found {
            return LinkId(index as u16);
        }
        self.news_left.links = self.news_left.links.saturating_sub(1);
        let bytes = self.links.bytes.len() + text.len();
        let full = self.links.len() >= LINKS_MAX || bytes > LINK_BYTES_MAX;
        if full || found == Found::Crowd {
            return LinkId::NONE;
        }
        LinkId(Arc::make_mut(&mut self.links).push(&text) as u16)
    }

    /// The number of a cluster, new or known; `None` when the table is full.
    pub(crate) fn intern_cluster(&mut self, text: &str) -> Option<ClusterId> {
        let found = self.clusters.find(text);
        if let Found::Entry(index) = found {
            return Some(ClusterId(index));
        }
        self.news_left.clusters = self.news_left.clusters.saturating_sub(1);
        let free = found == Found::Room && self.clusters.len() < CLUSTERS_MAX;
        free.then(|| ClusterId(Arc::make_mut(&mut self.clusters).push(text)))
    }

    /// Enough numbers were given out that collecting the unused ones pays.
    #[inline]
    pub(crate) fn needs_sweep(&self) -> bool {
        let Common { styles, links, clusters } = self.news_left;
        styles == 0 || links == 0 || clusters == 0
    }

    /// How many styles, links and clusters are held.
    pub fn lens(&self) -> Common {
        Common {
            styles: self.styles.entries.len(),
            links: self.links.len(),
            clusters: self.clusters.len(),
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

/// Collects the numbers in use: show it every cell, then rewrite every cell by what it returns.
pub(crate) struct Sweep<'a> {
    old: &'a Pool,
    new: Pool,
    styles: Vec<Option<StyleId>>,
    links: Vec<Option<LinkId>>,
    clusters: Vec<Option<ClusterId>>,
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(old: &'a Pool) -> Self {
        let Common { styles, links, clusters } = old.lens();
        let mut new = Pool::new();
        new.styles = Arc::new(Styles::with_room(styles));
        let mut styles = vec![None; styles];
        styles[StyleId::PLAIN.index()] = Some(StyleId::PLAIN);
        Self { old, new, styles, links: vec![None; links], clusters: vec![None; clusters] }
    }

    /// The cell with its new numbers.
    pub(crate) fn renumber(&mut self, cell: Cell) -> Cell {
        let mut cell = cell.with_style(self.style(cell.style())).with_link(self.link(cell.link()));
        if let Glyph::Cluster(id) = cell.glyph() {
            cell = cell.with_glyph(Glyph::Cluster(self.cluster(id)), cell.width());
        }
        cell
    }

    fn style(&mut self, id: StyleId) -> StyleId {
        let (old, new) = (self.old, &mut self.new);
        let Some(slot) = self.styles.get_mut(id.index()) else { return StyleId::PLAIN };
        // A style not seen before is new: no style had two numbers.
        *slot.get_or_insert_with(|| Arc::make_mut(&mut new.styles).push(old.style(id)))
    }

    pub(crate) fn link(&mut self, id: LinkId) -> LinkId {
        let (old, new) = (self.old, &mut self.new);
        let Some(slot) = self.links.get_mut(id.index()) else { return LinkId::NONE };
        *slot.get_or_insert_with(|| match old.link(id) {
            Some(link) => new.intern_link(link.id, link.uri),
            None => LinkId::NONE,
        })
    }

    fn cluster(&mut self, id: ClusterId) -> ClusterId {
        let (old, new) = (self.old, &mut self.new);
        let Some(slot) = self.clusters.get_mut(id.index()) else { return ClusterId(0) };
        *slot.get_or_insert_with(|| new.intern_cluster(old.cluster(id)).unwrap_or(ClusterId(0)))
    }

    /// The tables with what was shown. The next sweep comes when they may have doubled.
    pub(crate) fn finish(mut self) -> Pool {
        let live = self.new.lens();
        self.new.news_left = Common {
            styles: live.styles.max(NEWS_MIN.styles),
            links: live.links.max(NEWS_MIN.links),
            clusters: live.clusters.max(NEWS_MIN.clusters),
        };
        self.new
    }
}

fn agreeing<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let shorter = a.len().min(b.len());
    if a[..shorter] == b[..shorter] {
        return shorter;
    }
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The result of a search for an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Found {
    Entry(u32),
    /// It is not there, and there is room for it.
    Room,
    /// Too many others are where it would be.
    Crowd,
}

/// An open-addressed index from hashes to entry numbers, kept at most half full.
#[derive(Clone, Debug, Default)]
struct Index {
    /// Entry number + 1; 0 is a free slot. The length is a power of two.
    slots: Vec<u32>,
    used: usize,
}

impl Index {
    /// An index that stays sparse up to `entries` entries, so that a search for a missing one takes one look.
    fn with_room(entries: usize) -> Self {
        let slots = if entries == 0 { 0 } else { (entries * 4).next_power_of_two() };
        Self { slots: vec![0; slots], used: 0 }
    }

    fn weight(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Found {
        let Some(mask) = self.slots.len().checked_sub(1) else { return Found::Room };
        let first = (hash >> 32) as usize;
        for at in first..first + PROBES_MAX {
            let Some(entry) = self.slots[at & mask].checked_sub(1) else { return Found::Room };
            if same(entry) {
                return Found::Entry(entry);
            }
        }
        Found::Crowd
    }

    fn insert(&mut self, hash: u64, entry: u32, rehash: impl Fn(u32) -> u64) {
        if (self.used + 1) * 2 > self.slots.len() {
            let larger = (self.slots.len() * 2).max(16);
            let old = core::mem::replace(&mut self.slots, vec![0; larger]);
            for slot in old.into_iter().filter(|slot| *slot != 0) {
                self.fill_slot(rehash(slot - 1), slot);
            }
        }
        self.fill_slot(hash, entry + 1);
        self.used += 1;
    }

    fn fill_slot(&mut self, hash: u64, slot: u32) {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

#[derive(Clone, Debug)]
struct Styles {
    entries: Vec<Style>,
    index: Index,
}

impl Styles {
    fn with_room(entries: usize) -> Self {
        let index = Index::with_room(entries.min(STYLES_MAX));
        let mut styles = Self { entries: Vec::with_capacity(entries), index };
        styles.push(Style::PLAIN);
        styles
    }

    fn find(&self, style: &Style) -> Found {
        self.index.find(hash_style(style), |entry| self.entries[entry as usize] == *style)
    }

    fn push(&mut self, style: Style) -> StyleId {
        let entry = self.entries.len() as u32;
        self.entries.push(style);
        let entries = &self.entries;
        self.index.insert(hash_style(&style), entry, |entry| hash_style(&entries[entry as usize]));
        StyleId(entry)
    }
}

/// A multiplicative mix: styles come from programs, but collisions cost little time ([`PROBES_MAX`]).
fn hash_style(style: &Style) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let colors = u64::from(style.fg.bits()) << 32 | u64::from(style.bg.bits());
    let rest = u64::from(style.underline_color.bits()) << 16 | u64::from(style.attrs.bits());
    let mixed = (colors.wrapping_mul(ODD).rotate_left(31) ^ rest).wrapping_mul(ODD);
    mixed ^ mixed << 29
}

/// Strings in one buffer.
#[derive(Clone, Debug, Default)]
struct Texts {
    bytes: String,
    /// Where each string ends.
    ends: Vec<u32>,
    index: Index,
    /// Octets of the longest string.
    longest: usize,
}

impl Texts {
    fn weight(&self) -> usize {
        let ends = self.ends.capacity() * size_of::<u32>();
        self.bytes.capacity() + ends + self.index.weight()
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, index: usize) -> Option<&str> {
        self.bytes.get(self.range(index)?)
    }

    /// Without a look at where characters begin.
    fn octets(&self, index: usize) -> Option<&[u8]> {
        self.bytes.as_bytes().get(self.range(index)?)
    }

    fn range(&self, index: usize) -> Option<Range<usize>> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        Some(start..end)
    }

    fn find(&self, text: &str) -> Found {
        self.index.find(hash_text(text), |entry| self.get(entry as usize) == Some(text))
    }

    fn push(&mut self, text: &str) -> u32 {
        let entry = self.ends.len() as u32;
        self.bytes.push_str(text);
        self.longest = self.longest.max(text.len());
        self.ends.push(self.bytes.len() as u32);
        let mut index = core::mem::take(&mut self.index);
        index.insert(hash_text(text), entry, |entry| {
            hash_text(self.get(entry as usize).unwrap_or_default())
        });
        self.index = index;
        entry
    }

    fn common(a: &Arc<Self>, b: &Arc<Self>) -> usize {
        if Arc::ptr_eq(a, b) {
            return a.len();
        }
        let agreeing = (0..a.len().min(b.len())).take_while(|&index| a.get(index) == b.get(index));
        agreeing.count()
    }
}

/// FNV-1a with a final mix, through std's trait so that `str` feeds it.
fn hash_text(text: &str) -> u64 {
    Fnv.hash_one(text)
}

struct Fnv;

impl BuildHasher for Fnv {
    type Hasher = FnvState;

    fn build_hasher(&self) -> FnvState {
        FnvState(0xcbf2_9ce4_8422_2325)
    }
}

struct FnvState(u64);

impl Hasher for FnvState {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed << 29
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::style::Color;

    fn style(n: u32) -> Style {
        Style { fg: Color::rgb((n >> 16) as u8, (n >> 8) as u8, n as u8), ..Style::PLAIN }
    }

    #[test]
    fn interning_is_stable_and_clones_agree() {
        let mut pool = Pool::new();
        assert_eq!(pool.intern_style(Style::PLAIN), StyleId::PLAIN);
        let ids: Vec<_> = (0..5000).map(|n| pool.intern_style(style(n))).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(pool.intern_style(style(n as u32)), *id);
            assert_eq!(pool.style(*id), style(n as u32));
        }
        let mut left = pool.clone();
        let mut right = pool.clone();
        let a = left.intern_style(style(9000));
        let b = right.intern_style(style(9001));
        assert_eq!(a, b, "diverging clones may use one number for two styles");
        assert_eq!(left.common(&right).styles, a.index());
        assert_eq!(left.common(&pool), pool.lens());
    }

    #[test]
    fn texts() {
        let mut pool = Pool::new();
        let link = pool.intern_link("x", "http://a/");
        assert_eq!(pool.link(link), Some(Link { id: "x", uri: "http://a/" }));
        assert_eq!(pool.intern_link("x", "http://a/"), link);
        assert_ne!(pool.intern_link("", "http://a/"), link);
        assert_eq!(pool.link(LinkId::NONE), None);
        let cluster = pool.intern_cluster("e\u{301}").unwrap();
        assert_eq!(pool.cluster(cluster), "e\u{301}");
        assert_eq!(pool.intern_cluster("e\u{301}"), Some(cluster));
    }

    /// The cost of one entry is bounded even with chosen hashes, and honest tables are not crowded: a colour of its
    /// own in each cell of the largest screen, on both of its grids.
    #[test]
    fn crowds_are_refused() {
        let mut pool = Pool::new();
        let (mut tried, mut kept) = (0, 0);
        let first_slot = |style: &Style| (hash_style(style) >> 32) & 0xfff;
        for crowded in (0..).map(style).filter(|style| first_slot(style) == 7) {
            let id = pool.intern_style(crowded);
            assert_eq!(pool.intern_style(crowded), id);
            kept += usize::from(pool.style(id) == crowded);
            tried += 1;
            if tried == 1000 {
                break;
            }
        }
        assert!((PROBES_MAX / 2..=PROBES_MAX).contains(&kept), "{kept}");
        let mut pool = Pool::new();
        for n in 0..400_000 {
            let id = pool.intern_style(style(n));
            assert_eq!(pool.style(id), style(n), "{n}");
        }
    }

    #[test]
    fn links_end_at_sixteen_bits() {
        let mut pool = Pool::new();
        for n in 0..LINKS_MAX {
            pool.intern_link("", &n.to_string());
        }
        assert_eq!(pool.lens().links, LINKS_MAX);
        assert_eq!(pool.intern_link("", "one more"), LinkId::NONE);
    }
}
