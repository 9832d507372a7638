//! Compares lines above the screen with those of the program: the ones that a client was told, exactly, and those in the
//! history of the user's terminal, as far as that can show them.

use rove_term::{
    Cell, Dialect, History, LineEdge, Pool, Row, Screen, Size, Terminal, unlike_row, write_line,
};

/// Lines that were alike when they were compared last, which are not compared again.
#[derive(Debug, Default)]
pub(super) struct LinesAlike {
    told: Compared,
    shown: Compared,
    /// How far apart the positions of the terminal's history and the program's were.
    apart: Option<u64>,
}

/// Up to where a history was compared, and how often lines had been taken back from it.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    end: u64,
    falls: u64,
}

impl LinesAlike {
    /// The first line that is told otherwise than the program's history has it. Each is told. That a line goes on is not
    /// told where the width of its end is disputed.
    pub(super) fn unlike_told(&mut self, told: &History, meant: &History) -> Option<String> {
        let first = self.told.after(meant).max(meant.first()).max(told.first());
        let mut pool = Pool::new();
        for position in first..meant.end() {
            let mut row = |history: &History| history.row_at(position, 0, &mut pool);
            let rows = [row(told), row(meant)];
            if let [Some(told), Some(meant)] = &rows
                && same_cells(told, meant)
                && told.size() == meant.size()
                && told.is_wrapped() <= meant.is_wrapped()
            {
                continue;
            }
            let [was, must] = rows.map(|row| row.map(|row| (text(&row, &pool), row.cells().len())));
            let end = meant.end();
            return Some(format!("{position} of {end} is told as {was:?}, which is {must:?}"));
        }
        self.told = Compared::all_of(meant);
        None
    }

    /// The newest line in which the history of the user's terminal looks otherwise than the program's to a reader of this
    /// dialect. Of those before the given position the text counts alone.
    pub(super) fn unlike_shown(
        &mut self,
        shown: &History,
        meant: &History,
        looks: (u64, Dialect),
    ) -> Option<String> {
        // Those that were compared have not changed, unless others came in between.
        let apart = shown.end().wrapping_sub(meant.end());
        let known = if self.apart == Some(apart) { self.shown.after(meant) } else { 0 };
        let new = usize::try_from(meant.end() - known).unwrap_or(usize::MAX);
        let other = unlike_lines([shown, meant], meant.len().min(LINES_SURE).min(new), looks);
        if other.is_none() {
            (self.apart, self.shown) = (Some(apart), Compared::all_of(meant));
        }
        other
    }
}

impl Compared {
    fn all_of(history: &History) -> Compared {
        Compared { end: history.end(), falls: history.falls() }
    }

    /// The first line that is to be compared.
    fn after(&self, history: &History) -> u64 {
        if history.falls() == self.falls { self.end } else { 0 }
    }
}

/// The newest of the last `count` lines of a terminal's history that does not look like the program's to a reader of
/// this dialect. Of those before `looks_from` the text counts alone.
fn unlike_lines(
    [shown, meant]: [&History; 2],
    count: usize,
    (looks_from, dialect): (u64, Dialect),
) -> Option<String> {
    let mut pool = Pool::new();
    let mut others: Vec<(usize, [Row; 2])> = Vec::new();
    for back in 1..=count {
        let line = |history: &History, pool: &mut Pool| {
            history.row(history.len().checked_sub(back)?, 0, pool)
        };
        let rows = [line(shown, &mut pool), line(meant, &mut pool)];
        if let [Some(shown), Some(meant)] = &rows
            && same_cells(shown, meant)
        {
            continue;
        }
        let [was, must] = rows.each_ref().map(|row| row.as_ref().map(|row| text(row, &pool)));
        if was != must {
            return Some(format!("{back} from its end, {was:?} for {must:?}"));
        }
        if let [Some(was), Some(must)] = rows
            && shown.end() - back as u64 >= looks_from
        {
            others.push((back, [was, must]));
        }
    }
    others.chunks(PRINTED_MAX).find_map(|lines| {
        let screens = [0, 1].map(|which| printed(lines, which, &pool));
        let row = unlike_row(&screens[0], &screens[1], &dialect, 0..lines.len() as u16)?;
        let looks = screens.map(|screen| format!("{:?}", screen.row(row).cells()));
        let back = lines[usize::from(row)].0;
        Some(format!("{back} from its end, in its looks: {} for {}", looks[0], looks[1]))
    })
}

/// Whether two rows of one pool have the same cells, up to the last one that either has.
fn same_cells(a: &Row, b: &Row) -> bool {
    let (a, b) = (a.cells(), b.cells());
    let (shorter, longer) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let (both, more) = longer.split_at(shorter.len());
    both == shorter && more.iter().all(|cell| *cell == Cell::BLANK)
}

fn text(row: &Row, pool: &Pool) -> String {
    let mut text = String::new();
    row.cells().iter().for_each(|cell| pool.push_text(*cell, &mut text));
    text.trim_end().to_owned()
}

/// A screen on which one of each two lines is printed.
fn printed(lines: &[(usize, [Row; 2])], which: usize, pool: &Pool) -> Screen {
    let cols = lines.iter().flat_map(|(_, rows)| rows).map(|row| row.cells().len()).max();
    let size = Size::clamped(lines.len() as i64 + 1, cols.unwrap_or(1) as i64);
    let mut octets = Vec::new();
    for (_, rows) in lines {
        if write_line(&rows[which], LineEdge::Hard, pool, &Dialect::ROVE, &mut octets)
            == LineEdge::Wrapped
        {
            octets.extend_from_slice(b"\r\n");
        }
    }
    let mut terminal = Terminal::new(size, Dialect::ROVE);
    terminal.advance(&octets);
    terminal.into_screen()
}

/// Lines that are printed on one screen.
const PRINTED_MAX: usize = 100;

/// A client gets the newest 10,000 lines at least, less those of a screen or two that it had before.
const LINES_SURE: usize = 9_000;
