//! Writes the parts of a screen outside its grid: titles, clipboard, notifications, colours, the working directory.
//! Text that a program stored is filtered here before it reaches a reader.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::dialect::{Ability, Dialect, Notices, Reader};
use crate::flag;
use crate::render::pen::put;
use crate::screen::cell::Semantic;
use crate::screen::grid::Grid;
use crate::screen::prompt_marks::Marks;
use crate::screen::{Clipboard, Notification, Palette, Progress, Screen};

/// Characters of a title: stock cuts the whole string, number and semicolon included, at 256.
const TITLE_MAX: usize = 254;
/// Octets of clipboard data a stock peer is sent: it cuts silently beyond 16,384 (mosh-protocol.md
/// §6), and half a base64 text is worse than none.
const STOCK_CLIPBOARD_MAX: usize = 16_384 - "52;c;".len();

/// Palette entries that are reset one by one: a crash has 2 KiB for all that it undoes.
const RESETS_MAX: usize = 32;

/// A frame from `old` to `new` would ring the bell, set the clipboard or notify.
///
/// These are events, not state: [`same`](crate::same) does not look at them, because one frame
/// rings once however often the bell rang.
pub fn announces(old: &Screen, new: &Screen, dialect: &Dialect) -> bool {
    if old.bells() != new.bells() {
        return true;
    }
    !old.shares_extras(new)
        && (clipboard(old, new, dialect).is_some() || notifies(old, new, dialect))
}

/// Bell, clipboard and notification.
pub(super) fn write_events(old: &Screen, new: &Screen, dialect: &Dialect, out: &mut Vec<u8>) {
    if old.bells() != new.bells() {
        out.push(b'\x07');
    }
    if old.shares_extras(new) {
        return;
    }
    if let Some((selection, data)) = clipboard(old, new, dialect) {
        put(out, format_args!("\x1b]52;{selection};{data}\x07"));
    }
    if notifies(old, new, dialect) {
        write_notification(new.notification(), dialect.notices(), out);
    }
}

fn write_notification(notification: &Notification, notices: Notices, out: &mut Vec<u8>) {
    let (title, body) = (filter(&notification.title), filter(&notification.body));
    match notices {
        Notices::None => {}
        Notices::Plain => {
            let colon = if title.is_empty() || body.is_empty() { "" } else { ": " };
            let text = format!("{title}{colon}{body}");
            // ConEmu's numbers are commands; one of them runs what follows.
            let guard = if text.starts_with(|c: char| c.is_ascii_digit()) { " " } else { "" };
            put(out, format_args!("\x1b]9;{guard}{text}\x07"));
        }
        Notices::Titled => {
            // Its parts are separated by semicolons.
            put(out, format_args!("\x1b]777;notify;{};{body}\x07", title.replace(';', ",")));
        }
        Notices::Kitty if title.is_empty() || body.is_empty() => {
            put(out, format_args!("\x1b]99;;{title}{body}\x07"));
        }
        Notices::Kitty => {
            let id = notification.count;
            put(out, format_args!("\x1b]99;i={id}:d=0;{title}\x07"));
            put(out, format_args!("\x1b]99;i={id}:p=body;{body}\x07"));
        }
    }
}

/// Takes back the parts that a terminal keeps showing after the programs are gone. `None`: it is unknown which it
/// shows.
pub(super) fn write_end(shown: Option<&Screen>, dialect: &Dialect, out: &mut Vec<u8>) {
    let progress = shown.is_none_or(|shown| shown.progress() != Progress::default());
    if progress && dialect.can(Ability::Progress) {
        out.extend_from_slice(b"\x1b]9;4;0;0\x07");
    }
    let directory = shown.is_none_or(|shown| !directory(shown, dialect).is_empty());
    if directory && dialect.can(Ability::Shell) {
        out.extend_from_slice(b"\x1b]7;\x07");
    }
    // The text after this belongs to no prompt.
    if shown.is_none_or(has_marks) && dialect.can(Ability::ShellMarks) {
        out.extend_from_slice(b"\x1b]133;D\x07");
    }
}

fn has_marks(screen: &Screen) -> bool {
    let marked = |grid: &Arc<Grid>| grid.iter().any(|row| row.marks() != Marks::NONE);
    screen.pen().semantic != Semantic::Output
        || marked(&screen.grid)
        || screen.hidden.as_ref().is_some_and(marked)
}

/// The parts that are state: titles, colours, progress and directory.
pub(super) fn write_state(
    old: Option<&Screen>,
    new: &Screen,
    dialect: &Dialect,
    out: &mut Vec<u8>,
) {
    if old.is_some_and(|old| old.shares_extras(new)) {
        return;
    }
    if dialect.can(Ability::Titles) {
        write_titles(old, new, out);
    }
    if dialect.can(Ability::Palette) {
        let none = Palette::default();
        write_palette(old.map_or(&none, Screen::palette), new.palette(), out);
    }
    if dialect.can(Ability::Shell) {
        let new = directory(new, dialect);
        if old.map(|old| directory(old, dialect)).unwrap_or_default() != new {
            put(out, format_args!("\x1b]7;{new}\x07"));
        }
    }
    if dialect.can(Ability::Progress) {
        let progress = new.progress();
        if old.map(Screen::progress).unwrap_or_default() != progress {
            put(out, format_args!("\x1b]9;4;{};{}\x07", progress.state, progress.percent));
        }
    }
}

/// Both screens show the same there.
pub(super) fn same_state(a: &Screen, b: &Screen, dialect: &Dialect) -> bool {
    if a.shares_extras(b) {
        return true;
    }
    let titles = titles(a) == titles(b) || !dialect.can(Ability::Titles);
    let palette = a.palette() == b.palette() || !dialect.can(Ability::Palette);
    let shell = directory(a, dialect) == directory(b, dialect) || !dialect.can(Ability::Shell);
    let progress = a.progress() == b.progress() || !dialect.can(Ability::Progress);
    titles && palette && shell && progress
}

/// The working directory as the reader may have it; none is empty.
pub(super) fn directory<'a>(screen: &'a Screen, dialect: &Dialect) -> Cow<'a, str> {
    let directory = filter(screen.directory());
    if dialect.may_enter(&directory) { directory } else { Cow::Borrowed("") }
}

/// Window title and icon name as shown; a reader cannot tell an empty one from none.
pub(super) fn titles(screen: &Screen) -> (Cow<'_, str>, Cow<'_, str>) {
    let shown = |title: Option<&'_ str>| -> Cow<'_, str> {
        let title = filter(title.unwrap_or_default());
        match title.char_indices().nth(TITLE_MAX) {
            // Half a flag may be left at the end.
            Some((end, _)) => Cow::Owned(filter(&title[..end]).into_owned()),
            None => Cow::Owned(title.into_owned()),
        }
    };
    (shown(screen.title()), shown(screen.icon()))
}

fn write_titles(old: Option<&Screen>, new: &Screen, out: &mut Vec<u8>) {
    let (old_window, old_icon) = old.map(titles).unwrap_or_default();
    let (window, icon) = titles(new);
    match (window != old_window, icon != old_icon) {
        (false, false) => {}
        _ if window == icon => put(out, format_args!("\x1b]0;{window}\x07")),
        (true, true) => put(out, format_args!("\x1b]1;{icon}\x07\x1b]2;{window}\x07")),
        (true, false) => put(out, format_args!("\x1b]2;{window}\x07")),
        (false, true) => put(out, format_args!("\x1b]1;{icon}\x07")),
    }
}

/// Selection and data, if they were set since `old` and the reader takes them.
fn clipboard<'a>(old: &Screen, new: &'a Screen, dialect: &Dialect) -> Option<(&'a str, &'a str)> {
    let Clipboard { count, selection, data } = new.clipboard();
    if *count == old.clipboard().count || !dialect.can(Ability::Clipboard) {
        return None;
    }
    let base64 =
        |byte: u8| matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=');
    if !data.bytes().all(base64) {
        return None;
    }
    let named =
        selection.bytes().all(|byte| matches!(byte, b'c' | b'p' | b'q' | b's' | b'0'..=b'7'));
    if dialect.can(Ability::Selections) {
        return named.then_some((selection, data));
    }
    let fits = dialect.reader() != Reader::StockPeer || data.len() <= STOCK_CLIPBOARD_MAX;
    let clipboard = selection.is_empty() || selection.contains('c');
    (clipboard && fits).then_some(("c", data))
}

fn notifies(old: &Screen, new: &Screen, dialect: &Dialect) -> bool {
    dialect.notices() != Notices::None && old.notification().count != new.notification().count
}

fn write_palette(old: &Palette, new: &Palette, out: &mut Vec<u8>) {
    for index in old.entries.keys().filter(|index| !new.entries.contains_key(index)) {
        put(out, format_args!("\x1b]104;{index}\x07"));
    }
    for (index, rgb) in
        new.entries.iter().filter(|(index, rgb)| old.entries.get(index) != Some(rgb))
    {
        let (r, g, b) = rgb;
        put(out, format_args!("\x1b]4;{index};rgb:{r:02x}/{g:02x}/{b:02x}\x07"));
    }
    let dynamic = old.dynamic.iter().zip(&new.dynamic).enumerate();
    for (index, (old, new)) in dynamic {
        match new {
            Some((r, g, b)) if old != new => {
                put(out, format_args!("\x1b]{};rgb:{r:02x}/{g:02x}/{b:02x}\x07", 10 + index));
            }
            None if old.is_some() => put(out, format_args!("\x1b]{}\x07", 110 + index)),
            _ => {}
        }
    }
}

/// Resets the colours that programs changed. The others stay, since the user may have set them, unless too many
/// changed.
pub(super) fn reset_palette(changed: &Palette, out: &mut Vec<u8>) {
    if changed.entries.len() > RESETS_MAX {
        out.extend_from_slice(b"\x1b]104\x07");
    } else {
        let indices = changed.entries.keys();
        indices.for_each(|index| put(out, format_args!("\x1b]104;{index}\x07")));
    }
    let dynamic = (110..).zip(&changed.dynamic).filter(|(_, color)| color.is_some());
    dynamic.for_each(|(number, _)| put(out, format_args!("\x1b]{number}\x07")));
}

/// Removes controls, which would end the string, characters that reorder text to make it read as something else, and
/// text hidden in tags (threats rows 6 and 35).
pub(super) fn filter(text: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_control() || is_reordering(c);
    let text = match text.contains(bad) {
        true => Cow::Owned(text.replace(bad, "")),
        false => Cow::Borrowed(text),
    };
    match text.contains(flag::is_tag) {
        true => Cow::Owned(flag::without_strays(&text)),
        false => text,
    }
}

/// Bidirectional controls and line separators.
pub(super) fn is_reordering(c: char) -> bool {
    let mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    mark || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::screen::Size;
    use crate::terminal::Terminal;
    use crate::uri::LocalNames;

    static LOCAL: LazyLock<LocalNames> = LazyLock::new(|| LocalNames::new("desk", ""));

    /// The octets for a terminal that showed an empty screen, after a program wrote `output`.
    fn sent(dialect: &Dialect, output: &str) -> String {
        let mut program = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        let before = program.screen().clone();
        program.advance(output.as_bytes());
        let mut out = Vec::new();
        let plain = dialect.without(Ability::Synchronized);
        crate::frame(&before, program.screen(), &plain, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_no_picture_reaches_the_terminal() {
        let note = "\x1b]777;notify;a;b\x07";
        for (term, output, want) in [
            ("xterm-256color", "\x1b]7;file://h/tmp\x07", "\x1b]7;file://h/tmp\x07"),
            ("xterm-256color", "\x1b]7;file://desk/tmp\x07", ""),
            ("xterm-256color", "\x1b]7;file://h/\x07\x1b]7;file://de\u{202e}sk/\x07", ""),
            ("xterm-256color", "\x1b]7;file:///tmp\x07", ""),
            ("xterm-256color", "\x1b]7;http://h/tmp\x07", ""),
            ("linux", "\x1b]7;file://h/tmp\x07", ""),
            ("xterm-256color", "\x1b]9;4;1;50\x07", "\x1b]9;4;1;50\x07"),
            ("foot", "\x1b]9;4;1;50\x07", ""),
            ("xterm-256color", note, note),
            ("foot", "\x1b]9;hello\x07", "\x1b]777;notify;;hello\x07"),
            ("xterm-kitty", "\x1b]9;hello\x07", "\x1b]99;;hello\x07"),
            ("kitty", note, "\x1b]99;i=1:d=0;a\x07\x1b]99;i=1:p=body;b\x07"),
            ("alacritty", note, ""),
            ("xterm", "\x1b]52;p;YQ==\x07", "\x1b]52;p;YQ==\x07"),
            ("screen", "\x1b]52;p;YQ==\x07", ""),
            ("xterm", "\x1b[?2031h", ""),
            (
                "kitty",
                "\x1b]133;D;1\x07\x1b]133;A\x07$ \x1b]133;B\x07",
                "$ \r\x1b]133;D;1\x07\x1b]133;A;redraw=0\x07\x1b[1;3H\x1b]133;B\x07",
            ),
            ("vt220", "\x1b]133;A\x07", ""),
        ] {
            let dialect = Dialect::tty(term, "").with_local_names(&LOCAL);
            assert_eq!(sent(&dialect, output), want, "{term} {output:?}");
        }
        let nobody = Dialect::tty("xterm-256color", "");
        assert_eq!(sent(&nobody, "\x1b]7;file://h/tmp\x07"), "", "whose machine is not known");
    }

    /// A directory that may not pass takes the one before back.
    #[test]
    fn directories_follow_each_other() {
        let dialect = Dialect::tty("xterm-256color", "").with_local_names(&LOCAL);
        let mut shown = Terminal::new(Size::DEFAULT, Dialect::ROVE).into_screen();
        for (directory, want) in [
            ("file://h/a", "\x1b]7;file://h/a\x07"),
            ("file://h/\u{202e}a", ""),
            ("file://desk/a", "\x1b]7;\x07"),
            ("file:///a", ""),
            ("file://h/b", "\x1b]7;file://h/b\x07"),
            ("", "\x1b]7;\x07"),
        ] {
            let mut program = Terminal::resume(shown.clone(), Dialect::ROVE);
            program.advance(format!("\x1b]7;{directory}\x07").as_bytes());
            let mut out = Vec::new();
            crate::frame(&shown, program.screen(), &dialect, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want, "{directory:?}");
            shown = program.into_screen();
        }
    }

    #[test]
    fn no_title_ends_in_half_a_flag() {
        let flag = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
        for (before, after) in [(TITLE_MAX - 7, flag), (TITLE_MAX - 6, "\u{1f3f4}")] {
            let text = "x".repeat(before);
            let mut program = Terminal::new(Size::DEFAULT, Dialect::ROVE);
            program.advance(format!("\x1b]2;{text}{flag}\x07").as_bytes());
            assert_eq!(titles(program.screen()).0, format!("{text}{after}"));
        }
    }

    /// A number in front of an OSC 9 is a command of ConEmu's.
    #[test]
    fn a_plain_notification_is_no_command() {
        let dialect = Dialect::tty("xterm-256color", "").with_notices(Notices::Plain);
        for (output, want) in [
            ("\x1b]777;notify;a;b\x07", "\x1b]9;a: b\x07"),
            ("\x1b]777;notify;;4;1;50\x07", "\x1b]9; 4;1;50\x07"),
            ("\x1b]9;6;calc\x07", ""),
            ("\x1b]777;notify;\u{e0061}6;calc\x07", "\x1b]9; 6: calc\x07"),
        ] {
            assert_eq!(sent(&dialect, output), want, "{output:?}");
        }
    }

    #[test]
    fn leaving_takes_progress_and_directory_back() {
        let dialect = Dialect::tty("xterm-256color", "");
        for (output, want) in [
            ("", ""),
            ("\x1b]9;4;1;50\x07", "\x1b]9;4;0;0\x07"),
            ("\x1b]7;file://h/\x07", "\x1b]7;\x07"),
            ("\x1b]7;file://desk/\x07", ""),
            ("\x1b]133;A\x07$ \x1b]133;B\x07", "\x1b]133;D\x07"),
        ] {
            let dialect = dialect.with_local_names(&LOCAL);
            let mut program = Terminal::new(Size::DEFAULT, Dialect::ROVE);
            program.advance(output.as_bytes());
            let mut out = Vec::new();
            write_end(Some(program.screen()), &dialect, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want, "{output:?}");
        }
    }

    #[test]
    fn nothing_in_a_string_can_end_it() {
        for (text, shown) in [
            ("plain", "plain"),
            ("a\x1b]52;c;?\x07b", "a]52;c;?b"),
            ("a\u{9c}b\r\nc\u{7f}", "abc"),
            ("abc\u{202e}txt.exe", "abctxt.exe"),
            ("a\u{e0072}\u{e006d}\u{e007f}b\u{e0001}", "ab"),
        ] {
            assert_eq!(filter(text), shown);
        }
    }
}
