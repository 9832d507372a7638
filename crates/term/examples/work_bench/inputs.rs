//! Inputs that cost more than their length suggests.

use rove_term::Size;

/// Octets that are repeated, after others that are written once and not measured.
pub struct Input {
    pub name: &'static str,
    pub set_up: String,
    pub octets: String,
    pub times: usize,
}

/// All inputs for a screen of this size.
pub fn all(size: Size) -> Vec<Input> {
    [screens(size), rows(size), tables(size), answers(size), text()].into_iter().flatten().collect()
}

fn input(name: &'static str, set_up: &str, octets: &str, times: usize) -> Input {
    Input { name, set_up: set_up.to_owned(), octets: octets.to_owned(), times }
}

/// Two cells copied over the whole screen (DECCRA), which takes twenty sequences.
fn copied(two: &str, size: Size) -> String {
    let Size { rows, cols, .. } = size;
    let mut octets = two.to_owned();
    for width in (1..10).map(|power| 1 << power).filter(|width| *width < cols) {
        octets += &format!("\x1b[1;1;1;{width};1;1;{};1$v", width + 1);
    }
    for height in (0..10).map(|power| 1 << power).filter(|height| *height < rows) {
        octets += &format!("\x1b[1;1;{height};{cols};1;{};1;1$v", height + 1);
    }
    octets
}

/// A colour of its own in each cell.
fn colours(count: u32) -> String {
    let colour = |n: u32| format!("{};{};{}", n >> 16, n >> 8 & 255, n & 255);
    (0..count).map(|n| format!("\x1b[38;2;{};48;2;{};1;2mx", colour(n), n & 255)).collect()
}

/// Whole screens.
fn screens(size: Size) -> Vec<Input> {
    let renditions = copied("\x1b[31mx\x1b[32mx", size);
    let link = |letter: &str| format!("\x1b]8;;http://{}\x07x", letter.repeat(2000));
    let links = link("a") + &link("b");
    let codes = format!("\x1b[;;;{}$t", ";0".repeat(28));
    let colours = colours(size.rows as u32 * size.cols as u32);
    vec![
        input("DECALN", "", "\x1b#8", 300),
        input("RIS", "x", "\x1bc", 300),
        input("ED, coloured", "\x1b[41m", "\x1b[2J", 300),
        input("ED, guarded", "\x1b#8\x1bV", "\x1b[2J", 300),
        input("DECFRA", "", "\x1b[65$x", 300),
        input("DECRARA", "\x1b#8", "\x1b[;;;;1;4;5;7$t", 100),
        input("DECRARA, two renditions", &renditions, "\x1b[;;;;1;4;5;7$t", 100),
        input("DECRARA, 28 codes", &renditions, &codes, 100),
        input("DECRARA, all renditions", &colours, "\x1b[;;;;1;4;5;7$t", 10),
        input("DECCRA", "\x1b#8", "\x1b[1;1;;;1;2;1$v", 100),
        input("DECSERA", "\x1b#8", "\x1b[${", 100),
        input("SU", "", "\x1b[1000S\x1b#8", 100),
        input("SU of links", "", &(copied(&links, size) + "\x1b[1000S"), 3),
        input("alternate screens", "", "\x1b[?1047h\x1b[?1047l", 100),
        input("REP", "", "x\x1b[65535b", 30),
    ]
}

/// Many rows, or a whole row, for little.
fn rows(size: Size) -> Vec<Input> {
    let letters = "x\n".repeat(size.rows.into());
    let update = format!("\x1b[?2026l\x1b[?2026h\x1b[H{letters}");
    let margins = "\x1b[?69h\x1b[2;3s\x1b[1000B";
    vec![
        input("text in narrow margins", margins, "xxxx", 3000),
        input("IL", "", "\x1b[L", 30_000),
        input("RI", "", "\x1bM", 30_000),
        input("text in insert mode", "\x1b[4h", "\rx", 30_000),
        input("ECH, guarded", "\x1bV", "\x1b[X", 30_000),
        input("ICH", "", "\x1b[@", 30_000),
        input("rows copied by updates", "\x1b#8", &update, 100),
        input("titles copied by updates", "", "\x1b[?2026l\x1b[?2026h\x1b]0;\x07", 3000),
        input("double lines", "", "\x1b#6\x1b[?69h\x1b[?69l", 1000),
        input("marks of lines", "", "\x1b[999H\x1b]133;C\x07\x1b[H\x1b]133;A\x07", 3000),
    ]
}

/// Entries kept in tables.
fn tables(size: Size) -> Vec<Input> {
    let palette: String = (0..256).map(|n| format!("\x1b]4;{n};#123456\x07")).collect();
    let marked = |n: u32| format!("{}\u{301}", char::from_u32(0x4e00 + n).unwrap_or('x'));
    let links: String = (0..30_000).map(|n| format!("\x1b]8;;a:{n}\x07x")).collect();
    let modes = "\x1b[?1;2;3;4;5;6;7;8;9;12;25;40;41;45;66;67;69;95;1000s";
    let tabs = "\x1bH\x1b[C".repeat(size.cols.into());
    vec![
        input("colours pushed", &palette, "\x1b[1#P\x1b]4;0;#123\x07", 3000),
        input("colours", "", &colours(200_000), 1),
        input("clusters", "", &(0..20_000).map(marked).collect::<String>(), 10),
        input("links", "", &links, 3),
        input("XTSAVE", "", modes, 10_000),
        input("CHT", "", "\r\x1b[1000I", 3000),
        input("CHT, all stops", &tabs, "\r\x1b[1000I", 3000),
        input("CBT, no stops", "\x1b[3g", "\x1b[999C\x1b[1000Z", 3000),
    ]
}

/// Questions.
fn answers(size: Size) -> Vec<Input> {
    let names = format!("\x1bP+q{}\x1b\\", ["6B6632"; 580].join(";"));
    let tabs = "\x1bH\x1b[C".repeat(size.cols.into());
    vec![
        input("DECTABSR", &tabs, "\x1b[2$w", 3000),
        input("XTGETTCAP", "", &names, 30),
        input("DA", "", "\x1b[c", 30_000),
        input("DECRQM", "", "\x1b[?1$p", 30_000),
        input("CPR", "", "\x1b[6n", 30_000),
        input("colour queries", "", "\x1b]4;1;?\x07", 30_000),
    ]
}

/// Inputs that cost no more than their octets.
fn text() -> Vec<Input> {
    let marks: String = ('\u{301}'..'\u{30e}').collect();
    vec![
        input("plain text", "", "lorem ipsum dolor sit amet consectetur\r\n", 30_000),
        input("marks", "", &format!("x{marks}"), 30_000),
        input("marks beyond the limit", "x", "\u{301}", 100_000),
        input("joined emoji", "\u{1f468}", "\u{200d}\u{1f469}", 30_000),
        input("renditions", "", "\x1b[1mx\x1b[0my", 30_000),
        input("titles", "", "\x1b]0;abc\x07", 30_000),
        input("notifications", "", &format!("\x1b]99;i=1:d=0;{}\x07", "b".repeat(30)), 3000),
        input("DECSTR", "", "\x1b[!p", 30_000),
        input("DECSC", "", "\x1b7\x1b8", 30_000),
    ]
}
