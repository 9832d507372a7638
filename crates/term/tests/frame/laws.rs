//! The laws every frame obeys, over random pairs of screens.

use rove_term::screen::{Buffer, Palette, Pen};
use rove_term::{
    Ability, Colors, Dialect, Glyph, LineSize, Modes, Screen, Size, Terminal, announces, enter,
    frame, leave, project, repaint, same, unlike_row,
};

use crate::grammar;
use crate::streams::{Random, edit, output, page, seeds};

/// A name, and what the reader understands.
pub fn dialects() -> Vec<(&'static str, Dialect)> {
    vec![
        ("mosh", Dialect::MOSH),
        ("rove", Dialect::ROVE),
        ("xterm-256color", grammar::tty("xterm-256color", "")),
        ("kitty", grammar::tty("xterm-kitty", "truecolor")),
        ("own screen", grammar::tty("xterm-256color", "truecolor").without(Ability::Alternate)),
        ("screen", grammar::tty("screen", "")),
        ("linux", grammar::tty("linux", "")),
        ("vt100", grammar::tty("vt100", "")),
        ("unknown", grammar::tty("", "")),
        ("no colours", Dialect::ROVE.with_colors(Colors::Monochrome)),
    ]
}

fn frame_bytes(old: &Screen, new: &Screen, dialect: &Dialect) -> Vec<u8> {
    let mut out = Vec::new();
    frame(old, new, dialect, &mut out);
    out
}

/// A terminal of that reader, showing `screen`.
pub fn reader(screen: &Screen, dialect: &Dialect) -> Terminal {
    let mut terminal = Terminal::resume(project(screen, dialect), *dialect);
    if !dialect.can(Ability::SoftWrap) {
        terminal.advance(b"\x1b[?7l");
    }
    terminal
}

struct Case<'a> {
    seed: u64,
    name: &'a str,
    dialect: Dialect,
}

impl Case<'_> {
    /// Feeds the reader the frame between two screens and checks what it shows then.
    fn step(&self, reader: &mut Terminal, old: &Screen, new: &Screen) {
        let bytes = frame_bytes(old, new, &self.dialect);
        self.grammar(&bytes);
        if old.size() != new.size() {
            reader.resize(new.size());
        }
        reader.advance(&bytes);
        let shown = String::from_utf8_lossy(&bytes);
        assert!(
            same(reader.screen(), new, &self.dialect),
            "SEED={} {}: {shown:?}\nfrom {:?}\n{}",
            self.seed,
            self.name,
            (old.cursor(), old.text(), old.size()),
            difference(reader.screen(), &project(new, &self.dialect)),
        );
        assert_eq!(reader.take_replies(), b"", "SEED={} {}: a query", self.seed, self.name);
        let quiet = old.size() == new.size() && same(old, new, &self.dialect);
        assert_eq!(
            quiet && !announces(old, new, &self.dialect),
            bytes.is_empty(),
            "SEED={} {}: {shown:?}",
            self.seed,
            self.name
        );
    }

    fn idempotent(&self, screen: &Screen) {
        let seen = project(screen, &self.dialect);
        for (a, b) in [(screen, screen), (screen, &seen), (&seen, screen), (&seen, &seen)] {
            assert!(same(a, b, &self.dialect), "SEED={} {}", self.seed, self.name);
            let bytes = frame_bytes(a, b, &self.dialect);
            assert_eq!(String::from_utf8_lossy(&bytes), "", "SEED={} {}", self.seed, self.name);
        }
        if self.dialect != Dialect::MOSH {
            self.repaint(screen);
        }
    }

    /// A terminal that programs left in any state is repainted.
    fn repaint(&self, screen: &Screen) {
        let seen = project(screen, &self.dialect);
        let mut bytes = Vec::new();
        repaint(screen, &self.dialect, &mut bytes);
        self.grammar(&bytes);
        let mut dirty = Terminal::new(screen.size(), self.dialect);
        dirty.advance(b"\x1b[4h\x1b[1;31mdirt\x1b[2;2r\x1b[?1000;1004h\x1b[?6h\x1b[?1049hmore");
        dirty.advance(&bytes);
        assert!(
            same(dirty.screen(), screen, &self.dialect),
            "SEED={} {}: {:?}\n{}",
            self.seed,
            self.name,
            String::from_utf8_lossy(&bytes),
            difference(dirty.screen(), &seen),
        );
    }

    fn grammar(&self, bytes: &[u8]) {
        if let Err(fault) = grammar::check(bytes, &self.dialect) {
            let shown = String::from_utf8_lossy(bytes);
            panic!("SEED={} {}: {fault} in {shown:?}", self.seed, self.name);
        }
    }
}

/// Everything that `same` looks at, one thing a line, so that two descriptions can be compared.
fn describe(screen: &Screen) -> Vec<String> {
    let modes = format!("{:?}", screen.modes());
    let mut lines: Vec<String> = modes.split(", ").map(str::to_owned).collect();
    lines.push(format!("{:?} {:?}", screen.cursor(), screen.pen().style));
    lines.push(format!("{:?} {:?} {:?}", screen.title(), screen.icon(), screen.buffer()));
    for (index, row) in screen.rows().enumerate() {
        let (text, wrapped) = (screen.row_text(index as u16), row.is_wrapped());
        lines.push(format!("row {index} {text:?} {:?} {wrapped}", row.size()));
        for (col, cell) in row.cells().iter().enumerate() {
            let mut text = String::new();
            screen.pool().push_text(*cell, &mut text);
            let style = screen.cell_style(index as u16, col as u16);
            let link = screen.pool().link(cell.link());
            lines.push(format!("{index},{col} {text:?} {:?} {style:?} {link:?}", cell.width()));
        }
    }
    lines
}

/// What a reader sees of a row, cell by cell. The columns behind a double line's are not shown.
fn row_seen(screen: &Screen, row: u16) -> impl PartialEq + use<> {
    let line = screen.row(row);
    let shown = match line.size() {
        LineSize::Single => line.cells().len(),
        _ => (line.cells().len() / 2).max(1),
    };
    let cells = line.cells()[..shown].iter().enumerate().map(|(col, cell)| {
        let mut text = String::new();
        screen.pool().push_text(*cell, &mut text);
        let link = screen.pool().link(cell.link()).map(|link| format!("{link:?}"));
        (text, cell.width(), screen.cell_style(row, col as u16), link)
    });
    (line.size(), line.is_wrapped(), line.marks(), cells.collect::<Vec<_>>())
}

/// The lines in which two screens differ.
pub fn difference(a: &Screen, b: &Screen) -> String {
    let pairs = describe(a).into_iter().zip(describe(b));
    pairs.filter(|(a, b)| a != b).map(|(a, b)| format!("  {a}\n  {b}\n")).collect()
}

fn random_size(random: &mut Random) -> Size {
    match random.below(10) {
        0 => Size::DEFAULT,
        1 => Size::clamped(1, 1 + random.below(10) as u16),
        2 => Size::clamped(1 + random.below(10) as u16, 1),
        _ => Size::clamped(1 + random.below(8) as u16, 1 + random.below(24) as u16),
    }
}

/// A run of screens, as one program makes them.
fn history(random: &mut Random) -> Vec<Screen> {
    let mut program = Terminal::new(random_size(random), Dialect::ROVE);
    let mut screens = Vec::new();
    for _ in 0..4 {
        let size = program.screen().size();
        let steps = random.below(30);
        program.advance(&output(random, steps, size.rows.into(), size.cols.into()));
        if random.chance(10) {
            program.resize(random_size(random));
        }
        screens.push(program.screen().clone());
    }
    screens
}

#[test]
fn a_reader_of_the_frame_shows_the_new_screen() {
    for seed in seeds(1500) {
        let screens = history(&mut Random::new(seed));
        for (name, dialect) in dialects() {
            let case = Case { seed, name, dialect };
            // One reader that is fed frame after frame, and one that starts anew from each pair.
            let mut lasting = reader(&screens[0], &dialect);
            for pair in screens.windows(2) {
                case.step(&mut lasting, &pair[0], &pair[1]);
                case.step(&mut reader(&pair[0], &dialect), &pair[0], &pair[1]);
            }
            // Frames need no common history.
            case.step(&mut reader(&screens[3], &dialect), &screens[3], &screens[0]);
            case.idempotent(&screens[random_index(seed)]);
        }
    }
}

/// What people do to a screen full of text: little by little, with much that stays.
#[test]
fn edits_of_a_page() {
    for seed in seeds(600) {
        let mut random = Random::new(seed ^ 0xed17);
        let size = Size::clamped(2 + random.below(6) as i64, 8 + random.below(60) as i64);
        let (rows, cols) = (usize::from(size.rows), usize::from(size.cols));
        let mut program = Terminal::new(size, Dialect::ROVE);
        program.advance(&page(&mut random, rows, cols));
        let mut screens = vec![program.screen().clone()];
        for _ in 0..6 {
            for _ in 0..1 + random.below(2) {
                program.advance(&edit(&mut random, rows, cols));
            }
            screens.push(program.screen().clone());
        }
        for (name, dialect) in dialects() {
            let case = Case { seed, name, dialect };
            let mut lasting = reader(&screens[0], &dialect);
            screens.windows(2).for_each(|pair| case.step(&mut lasting, &pair[0], &pair[1]));
        }
    }
}

/// Rows are compared many cells at a time, and those of two pools by what their numbers mean. All of that finds the row
/// that a comparison of each cell finds.
#[test]
fn rows_are_compared_as_their_cells_are() {
    let (mut differed, seeds) = (0, seeds(600));
    let least = seeds.clone().count() / 6;
    for seed in seeds {
        let mut random = Random::new(seed ^ 0xce11);
        let size = Size::clamped(1 + random.below(5) as i64, 1 + random.below(60) as i64);
        let (rows, cols) = (usize::from(size.rows), usize::from(size.cols));
        let shared = match random.below(2) {
            0 => page(&mut random, rows, cols),
            _ => output(&mut random, 30, rows, cols),
        };
        let mut programs = [(); 2].map(|()| Terminal::new(size, Dialect::ROVE));
        // The other pool numbers styles, links and clusters in another order.
        let before: &[&[u8]] = &[
            b"",
            b"\x1b[35;46mx\x1b[3my\x1b[m\x1b]8;;http://z/\x07z\x1b]8;;\x07\x1b[2J",
            "o\u{308}\u{1f1eb}\u{1f1f7}\x1b[41m\x1b[2J\x1b[m\x1b[2J".as_bytes(),
        ];
        programs[1].advance(random.pick(before));
        for program in &mut programs {
            program.advance(b"\x1b[H\x1b[3J");
            program.advance(&shared);
        }
        for _ in 0..random.below(3) {
            programs[1].advance(&edit(&mut random, rows, cols));
        }
        // Where the cursor stands is no matter of cells.
        programs.iter_mut().for_each(|program| program.advance(b"\x1b[r\x1b[?6;69l\x1b[H"));
        let [a, b] = programs.map(Terminal::into_screen);
        for (name, dialect) in dialects() {
            let [seen_a, seen_b] = [&a, &b].map(|screen| project(screen, &dialect));
            let other =
                (0..size.rows).find(|row| row_seen(&seen_a, *row) != row_seen(&seen_b, *row));
            differed += usize::from(other.is_some());
            for (old, new) in [(&a, &b), (&seen_a, &b), (&a, &seen_b), (&seen_a, &seen_b)] {
                let found = unlike_row(old, new, &dialect, 0..size.rows);
                assert_eq!(found, other, "SEED={seed} {name}\n{}", difference(&seen_a, &seen_b));
            }
        }
    }
    assert!(differed >= least, "rows hardly ever differed");
}

fn random_index(seed: u64) -> usize {
    (seed % 4) as usize
}

/// The client's way: what a server's frames made of its screen is painted on the user's terminal.
#[test]
fn frames_go_through_two_emulators() {
    for seed in seeds(400) {
        let mut random = Random::new(seed ^ 0x5eed);
        let screens = history(&mut random);
        for wire in [Dialect::MOSH, Dialect::ROVE] {
            let mut tty = grammar::tty("xterm-256color", "truecolor");
            if wire == Dialect::MOSH {
                tty = tty.without(Ability::Alternate);
            }
            let case = Case { seed, name: "tty behind a wire", dialect: tty };
            let mut client = reader(&screens[0], &wire);
            let mut user = reader(client.screen(), &tty);
            for pair in screens.windows(2) {
                let shown = client.screen().clone();
                if pair[0].size() != pair[1].size() {
                    client.resize(pair[1].size());
                }
                client.advance(&frame_bytes(&pair[0], &pair[1], &wire));
                case.step(&mut user, &shown, client.screen());
            }
        }
    }
}

/// Erasing over a wide cell of a stock screen leaves no trace of it on the user's terminal, which
/// keeps the style of a right half that has lost its left.
#[test]
fn orphaned_halves_are_drawn_over() {
    let tty = grammar::tty("xterm-256color", "truecolor");
    for output in
        ["\x1b[48;5;17m\x1b[2K", "\x1b[1;4H\x1b[X", "\x1b[1;4Hx", "\x1b[1;2H\x1b[P", "\x1b[1;5Hy"]
    {
        let mut client = Terminal::new(Size::DEFAULT, Dialect::MOSH);
        client.advance("\x1b[48;5;17m   \x1b[1;3;4;7;31m\u{6f22}\x1b[0;48;5;17m  ".as_bytes());
        let old = client.screen().clone();
        client.advance(output.as_bytes());
        let case = Case { seed: 0, name: output, dialect: tty };
        case.step(&mut reader(&old, &tty), &old, client.screen());
    }
}

/// Threats row 35: a reader that gives some characters other widths than we do shows all else in its
/// place. A stock peer's frames are read here by an emulator that joins emoji and widens hearts.
#[test]
fn disputed_widths_move_nothing_else() {
    for seed in seeds(1000) {
        let screens = history(&mut Random::new(seed ^ 0xd15b));
        for pair in screens.windows(2).filter(|pair| pair[0].size() == pair[1].size()) {
            let mut peer = Terminal::resume(project(&pair[0], &Dialect::MOSH), Dialect::ROVE);
            peer.advance(&frame_bytes(&pair[0], &pair[1], &Dialect::MOSH));
            let wanted = project(&pair[1], &Dialect::MOSH);
            for (row, cells) in wanted.rows().enumerate() {
                let shown = peer.screen().row(row as u16).cells();
                for (col, cell) in cells.cells().iter().enumerate() {
                    let covered = col > 0 && cells.cells()[col - 1].is_wide();
                    let ascii = matches!(cell.glyph(), Glyph::Char(' '..='~'));
                    if ascii && !covered {
                        assert_eq!(shown[col].glyph(), cell.glyph(), "SEED={seed} {row},{col}");
                    }
                }
            }
            let position = |screen: &Screen| (screen.cursor().row, screen.cursor().col);
            assert_eq!(position(peer.screen()), position(&wanted), "SEED={seed}");
        }
    }
}

/// Weakness 10 of mosh-protocol.md §11: what a session did to the user's terminal is undone.
#[test]
fn leaving_undoes_everything() {
    let tty = grammar::tty("xterm-kitty", "truecolor");
    for seed in seeds(500) {
        let screens = history(&mut Random::new(seed ^ 0x1eaf));
        for shown in [None, Some(&screens[3])] {
            let mut user = Terminal::new(screens[3].size(), tty);
            let mut bytes = Vec::new();
            enter(&tty, &mut bytes);
            repaint(&screens[3], &tty, &mut bytes);
            leave(shown, screens[3].palette(), &tty, &mut bytes);
            user.advance(&bytes);
            let left = user.screen();
            let scroll = left.modes().alternate_scroll;
            let modes = Modes { alternate_scroll: scroll, ..Modes::RESET };
            assert_eq!(*left.modes(), modes, "SEED={seed}");
            assert_eq!(left.buffer(), Buffer::Primary, "SEED={seed}");
            assert_eq!(left.pen(), Pen::default(), "SEED={seed}");
            assert_eq!(*left.palette(), Palette::default(), "SEED={seed}");
            assert_eq!(left.title(), None, "SEED={seed}");
        }
    }
}

/// Colours that the user has set and no program has changed are nobody else's.
#[test]
fn the_users_colours_stay() {
    const OWN: &str = "\x1b]4;1;#010203\x07\x1b]4;200;#040506\x07\x1b]11;#070809\x07";
    let tty = grammar::tty("xterm-256color", "truecolor");
    let size = Size::clamped(3, 20);
    let mut found = Terminal::new(size, tty);
    found.advance(OWN.as_bytes());
    let many: String = (2..100).map(|index| format!("\x1b]4;{index};#aabbcc\x07")).collect();
    for (program, left) in [
        ("", found.screen().palette().clone()),
        ("\x1b]4;7;#aabbcc\x07\x1b]12;#aabbcc\x07", found.screen().palette().clone()),
        // One by one they would be more than a crash may write.
        (&many, Palette { entries: [].into(), ..found.screen().palette().clone() }),
    ] {
        let mut session = Terminal::new(size, Dialect::ROVE);
        session.advance(program.as_bytes());
        let screen = session.screen();
        for shown in [None, Some(screen)] {
            let mut bytes = Vec::new();
            enter(&tty, &mut bytes);
            repaint(screen, &tty, &mut bytes);
            let entered = bytes.len();
            leave(shown, screen.palette(), &tty, &mut bytes);
            assert!(bytes.len() - entered < 1000, "{} octets", bytes.len() - entered);
            let mut user = found.clone();
            user.advance(&bytes);
            assert_eq!(*user.screen().palette(), left, "{program:?}");
        }
    }
}

/// Some terminals read `CSI > 4 m` as SGR 4. None of their text is underlined for it, and nothing after us.
#[test]
fn keys_with_modifiers_leave_no_underline() {
    let tty = grammar::tty("xterm", "").with(Ability::ModifyOtherKeys);
    let size = Size::clamped(3, 20);
    let screen = |program: &str| {
        let mut terminal = Terminal::new(size, Dialect::ROVE);
        terminal.advance(program.as_bytes());
        terminal.screen().clone()
    };
    let (none, plain) = (Screen::new(size), screen("a"));
    let (set, bold) = (screen("a\x1b[>4;2m"), screen("a\x1b[1mb\x1b[>4;2m"));
    for (old, new) in [(&plain, &set), (&set, &plain), (&none, &bold), (&bold, &none)] {
        let mut written = [const { Vec::new() }; 3];
        frame(old, new, &tty, &mut written[0]);
        repaint(new, &tty, &mut written[1]);
        leave(Some(new), new.palette(), &tty, &mut written[2]);
        for bytes in written {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("\x1b[>4"), "{text:?}");
            let mut user = Terminal::new(size, tty);
            user.advance(text.replace("\x1b[>4", "\x1b[4").as_bytes());
            user.advance(b"x");
            let underline = user.screen().pen().style.attrs;
            assert_eq!(underline, Pen::default().style.attrs, "{text:?}");
        }
    }
}

/// What a stock emulator hangs on a cell and the full one drops reaches no full reader.
#[test]
fn characters_that_readers_drop_are_not_sent() {
    for dropped in ["\u{fff5}", "\u{200b}", "\u{2060}", "\u{200e}"] {
        for text in [format!("U{dropped}\u{5a4}"), format!("\x1b[2C{dropped}x")] {
            let size = Size::clamped(3, 50);
            let mut client = Terminal::resume(Screen::new(size), Dialect::MOSH);
            client.advance(text.as_bytes());
            for reader in [Dialect::ROVE, grammar::tty("xterm-256color", "truecolor")] {
                let mut bytes = Vec::new();
                frame(&Screen::new(size), client.screen(), &reader, &mut bytes);
                let mut shown = Terminal::resume(Screen::new(size), reader);
                shown.advance(&bytes);
                assert!(same(shown.screen(), client.screen(), &reader), "{dropped:?} {bytes:?}");
                assert!(!String::from_utf8_lossy(&bytes).contains(dropped));
            }
        }
    }
}
