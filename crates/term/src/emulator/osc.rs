//! Operating system commands: titles, links, clipboard, colours.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc as StdArc;

use crate::color;
use crate::emulator::Emulator;
use crate::emulator::profile::Functions;
use crate::parser::StringEnd;
use crate::screen::cell::LinkId;
use crate::screen::{Clipboard, Palette, SPECIAL_COLORS};
use crate::utf8;

/// Characters of a title; the rest is cut, as stock mosh cuts (`mosh-protocol.md` §6).
const TITLE_CHARS_MAX: usize = 256;
/// Bytes of a hyperlink's address; longer ones are ignored (the limit VTE and others agreed on).
const URI_BYTES_MAX: usize = 2083;
/// Bytes of a hyperlink's id; longer ones are ignored (VTE).
const LINK_ID_BYTES_MAX: usize = 250;
/// The part of a clipboard's selection that stock mosh keeps.
const STOCK_SELECTION: &str = "c;";
const SELECTIONS: &str = "cpqs01234567";

impl Emulator<'_> {
    /// One command, without introducer and terminator.
    pub(crate) fn system_command(&mut self, data: &[u8], end: StringEnd) {
        // Text that is kept is shown to users and sent on: nothing but printable characters may stay.
        let mut text = utf8::decode(self.profile.parser.utf8, data);
        text.retain(|c| !c.is_control());
        let (number, rest) = text.split_once(';').unwrap_or((&text, ""));
        if self.profile.functions == Functions::Stock {
            return self.stock_command(&text);
        }
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        if let Ok(number) = digits.parse::<u16>() {
            self.command(number, rest, end);
        }
    }

    fn stock_command(&mut self, text: &str) {
        let Some((number, rest)) = text.split_once(';') else { return };
        // Stock's limit counts the number and the semicolon too.
        let room = TITLE_CHARS_MAX - number.len().min(2) - 1;
        let title: String = rest.chars().take(room).collect();
        match number {
            "" | "0" => self.set_titles(Some(&title), Some(&title)),
            "1" => self.set_titles(None, Some(&title)),
            "2" => self.set_titles(Some(&title), None),
            "52" => {
                if let Some(data) = rest.strip_prefix(STOCK_SELECTION) {
                    self.set_clipboard("c", data);
                }
            }
            _ => {}
        }
    }

    fn command(&mut self, number: u16, rest: &str, end: StringEnd) {
        match number {
            0 => self.set_titles(Some(rest), Some(rest)),
            1 => self.set_titles(None, Some(rest)),
            2 => self.set_titles(Some(rest), None),
            4 => self.palette_command(4, rest, end),
            5 => self.palette_command(5, rest, end),
            7 => self.extras_mut().directory = rest.into(),
            8 => self.set_link(rest),
            9 => self.notify_or_progress(rest),
            10..=19 => self.dynamic_color_command(number, rest, end),
            52 => self.clipboard_command(rest),
            104 => self.reset_palette(rest),
            105 => self.reset_special(rest),
            110..=119 => {
                let slot = usize::from(number - 110);
                self.palette_mut().dynamic[slot] = None;
            }
            99 => self.notify_in_parts(rest),
            133 => self.shell_mark(rest),
            777 => self.notify_titled(rest),
            _ => {}
        }
    }

    fn set_titles(&mut self, window: Option<&str>, icon: Option<&str>) {
        let cut = |title: &str| -> StdArc<str> {
            title.chars().take(TITLE_CHARS_MAX).collect::<String>().into()
        };
        let titles = &mut self.extras_mut().titles;
        if let Some(window) = window {
            titles.window = Some(cut(window));
        }
        if let Some(icon) = icon {
            titles.icon = Some(cut(icon));
        }
    }

    fn set_clipboard(&mut self, selection: &str, data: &str) {
        let extras = self.extras_mut();
        extras.clipboard = StdArc::new(Clipboard {
            count: extras.clipboard.count + 1,
            selection: selection.to_owned(),
            data: data.to_owned(),
        });
    }

    /// OSC 52. A query is never answered (threats row 7). Data that is not base64 empties the clipboard, as in xterm.
    fn clipboard_command(&mut self, rest: &str) {
        let Some((selection, data)) = rest.split_once(';') else { return };
        if data == "?" || !selection.chars().all(|c| SELECTIONS.contains(c)) {
            return;
        }
        let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        let data = if data.chars().all(base64) { data } else { "" };
        let selection = if selection.is_empty() { "c" } else { selection };
        self.set_clipboard(selection, data);
    }

    /// OSC 8.
    fn set_link(&mut self, rest: &str) {
        let Some((params, uri)) = rest.split_once(';') else { return };
        self.sweep_if_due();
        let id = params.split(':').find_map(|param| param.strip_prefix("id=")).unwrap_or("");
        let fits = uri.len() <= URI_BYTES_MAX && id.len() <= LINK_ID_BYTES_MAX;
        self.state.pen.link =
            if uri.is_empty() || !fits { LinkId::NONE } else { self.pool.intern_link(id, uri) };
        self.pen_changed();
    }

    pub(crate) fn palette_mut(&mut self) -> &mut Palette {
        StdArc::make_mut(&mut self.extras_mut().palette)
    }

    /// OSC 4: pairs of index and colour, or `?`. The special colours (bold, underlined, blinking, reverse, italic
    /// text) follow the 256, and OSC 5 sets them too. They are only kept for queries.
    fn palette_command(&mut self, command: u16, rest: &str, end: StringEnd) {
        let mut words = rest.split(';');
        while let (Some(index), Some(spec)) = (words.next(), words.next()) {
            let Ok(index) = index.parse::<u16>() else { continue };
            let special = if command == 5 { Some(index) } else { index.checked_sub(256) };
            if special.is_some_and(|special| usize::from(special) >= SPECIAL_COLORS) {
                continue;
            }
            if spec == "?" {
                let rgb = self.indexed_color(special, index as u8);
                self.reply_color(&format!("{command};{index}"), rgb, end);
            } else if let Some(rgb) = color::parse(spec) {
                match special {
                    Some(special) => self.extras_mut().special[usize::from(special)] = Some(rgb),
                    None => drop(self.palette_mut().entries.insert(index as u8, rgb)),
                }
            }
        }
    }

    fn indexed_color(&self, special: Option<u16>, index: u8) -> (u8, u8, u8) {
        let palette = &self.extras.palette;
        match special {
            Some(special) => self.extras.special[usize::from(special)]
                .or(palette.dynamic[0])
                .unwrap_or_else(|| self.around.dynamic_color(10)),
            None => palette
                .entries
                .get(&index)
                .copied()
                .unwrap_or_else(|| self.around.palette_color(index)),
        }
    }

    /// OSC 104.
    fn reset_palette(&mut self, rest: &str) {
        if rest.is_empty() {
            return self.palette_mut().entries.clear();
        }
        for index in rest.split(';').filter_map(|word| word.parse::<u8>().ok()) {
            self.palette_mut().entries.remove(&index);
        }
    }

    /// OSC 105.
    fn reset_special(&mut self, rest: &str) {
        let special = &mut self.extras_mut().special;
        if rest.is_empty() {
            return *special = Default::default();
        }
        for index in rest.split(';').filter_map(|word| word.parse::<usize>().ok()) {
            if let Some(color) = special.get_mut(index) {
                *color = None;
            }
        }
    }

    /// OSC 10 to 19: further colours go to the numbers that follow.
    fn dynamic_color_command(&mut self, first: u16, rest: &str, end: StringEnd) {
        for (number, spec) in (first..=19).zip(rest.split(';')) {
            let slot = usize::from(number - 10);
            if spec == "?" {
                let rgb = self.extras.palette.dynamic[slot];
                let rgb = rgb.unwrap_or_else(|| self.around.dynamic_color(number));
                self.reply_color(&number.to_string(), rgb, end);
            } else if let Some(rgb) = color::parse(spec) {
                self.palette_mut().dynamic[slot] = Some(rgb);
            }
        }
    }

    fn reply_color(&mut self, what: &str, (red, green, blue): (u8, u8, u8), end: StringEnd) {
        let end = match end {
            StringEnd::Bell => "\x07",
            StringEnd::Terminator => "\x1b\\",
        };
        let answer = format!(
            "\x1b]{what};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}{end}"
        );
        self.reply(answer.as_bytes());
    }
}
