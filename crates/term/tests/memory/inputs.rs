//! Output without end that would like to be remembered: what each kind writes, a mebibyte at a time.

/// One kind of hostile output.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    pub name: &'static str,
    /// Written once, first.
    head: &'static str,
    body: Body,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    /// The same over and over.
    Same(&'static str),
    /// Something else each time.
    Numbered(fn(u64, &mut String)),
}

/// Octets of a piece.
const PIECE_BYTES: usize = 1 << 20;

impl Input {
    const fn same(name: &'static str, head: &'static str, body: &'static str) -> Self {
        Self { name, head, body: Body::Same(body) }
    }

    const fn numbered(name: &'static str, body: fn(u64, &mut String)) -> Self {
        Self { name, head: "", body: Body::Numbered(body) }
    }

    /// The pieces, without end.
    pub fn pieces(self) -> impl Iterator<Item = Vec<u8>> {
        let mut count = 0;
        let mut head = self.head;
        std::iter::from_fn(move || {
            let mut piece = std::mem::take(&mut head).to_owned();
            while piece.len() < PIECE_BYTES {
                match self.body {
                    Body::Same(body) => piece += body,
                    Body::Numbered(body) => body(count, &mut piece),
                }
                count += 1;
            }
            Some(piece.into_bytes())
        })
    }
}

pub const INPUTS: [Input; 31] = [
    Input::same("marks on one cell", "a", "\u{301}"),
    Input::same("joiners", "", "a\u{200d}"),
    Input::same("a title without end", "\x1b]0;", "title"),
    Input::same("a clipboard without end", "\x1b]52;c;", "QUJD"),
    Input::same("an unknown OSC without end", "\x1b]nonsense", "x"),
    Input::same("XTGETTCAP without end", "\x1bP+q", "4142;"),
    Input::same("an unknown DCS without end", "\x1bPx", "4142;"),
    Input::same("an APC without end", "\x1b_G", "kitty"),
    Input::same("numbers without end", "\x1b[", "1;"),
    Input::same("parts without end", "\x1b[", "1:"),
    Input::same("intermediates without end", "\x1b[", " "),
    Input::same("titles pushed", "", "\x1b[22t"),
    Input::same("keyboard flags pushed", "", "\x1b[>5u"),
    Input::same("renditions pushed", "", "\x1b[#{"),
    Input::same("a query", "", "\x1b[c"),
    Input::same("a colour asked for", "", "\x1b]4;1;?\x07"),
    Input::same("capabilities asked for", "", "\x1bP+q436F;524742;536D756C78\x1b\\"),
    Input::same("alternate screens", "", "\x1b[?1049hx\x1b[?1049l"),
    Input::same("blank lines", "", "\n"),
    Input::numbered("styles", |n, out| {
        *out += &format!("\x1b[38;2;{};{};{}mx", n >> 16 & 255, n >> 8 & 255, n & 255);
    }),
    Input::numbered("links", |n, out| {
        *out += &format!("\x1b]8;id={n};http://x/{n}\x07y");
    }),
    Input::numbered("clusters", |n, out| {
        let letter = char::from_u32(0x3400 + (n % 6000) as u32).unwrap_or('x');
        let mark = |n: u64| char::from_u32(0x300 + (n % 112) as u32).unwrap_or('x');
        out.extend([letter, mark(n / 6000), mark(n / 672_000)]);
    }),
    Input::numbered("lines", |n, out| *out += &format!("\x1b[3{}mline {n}\r\n", n % 8)),
    Input::numbered("titles", |n, out| *out += &format!("\x1b]2;{n}\x07\x1b]1;{n}\x07")),
    Input::numbered("clipboards", |n, out| {
        *out += &format!("\x1b]52;c;{}\x07", ["QUJD", "REVG"][(n % 2) as usize].repeat(1000));
    }),
    Input::numbered("palette entries", |n, out| {
        *out += &format!("\x1b]4;{n};#{:06x}\x07", n & 0xff_ffff)
    }),
    Input::numbered("modes saved", |n, out| *out += &format!("\x1b[?{}s", n % 65536)),
    Input::numbered("notifications", |n, out| *out += &format!("\x1b]777;notify;{n};{n}\x07")),
    Input::numbered("parts of notifications", |n, out| {
        *out += &format!("\x1b]99;i={n}:d=0;part\x07")
    }),
    Input::numbered("directories", |n, out| *out += &format!("\x1b]7;file:///{n}\x07")),
    // SplitMix64 (Steele, Lea, Flood 2014).
    Input::numbered("noise", |n, out| {
        let mut mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        out.extend((mixed ^ mixed >> 31).to_be_bytes().map(|byte| char::from(byte & 127)));
    }),
];
