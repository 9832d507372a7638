//! Names the abilities of readers of escape sequences.

/// How many colours a reader tells apart.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Colors {
    /// No colour sequence may be sent.
    Monochrome,
    /// SGR 30-37 and 40-47.
    Eight,
    /// These and the bright ones, SGR 90-97 and 100-107.
    Sixteen,
    /// The 256 entries of xterm's palette, SGR 38;5.
    Indexed,
    /// 24-bit colour, SGR 38;2.
    Direct,
}

/// One thing a reader may or may not understand beyond the common base: printing with deferred
/// wrap, CUP, CR, LF, BS, ED, EL, DECSTBM, IL, SGR 0, 1, 4, 7.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u64)]
pub enum Ability {
    /// ECH, `CSI n X`.
    EraseCharacters = 1 << 0,
    /// Erased cells take the background of the pen.
    BackColorErase = 1 << 1,
    /// REP, `CSI n b`.
    Repeat = 1 << 2,
    /// Relative and one-axis motion: CUU, CUD, CUF, CUB, CHA, VPA.
    Motion = 1 << 3,
    /// SU and SD; without them rows scroll by LF and IL.
    ScrollUpDown = 1 << 4,
    /// OSC 0, 1 and 2 set titles and do nothing else.
    Titles = 1 << 5,
    /// OSC 8 hyperlinks.
    Links = 1 << 6,
    /// OSC 52 sets the clipboard.
    Clipboard = 1 << 7,
    /// OSC 52 with selections other than `c`.
    Selections = 1 << 8,
    /// DECSCUSR, `CSI n SP q`.
    CursorShape = 1 << 9,
    /// OSC 4, 10-19, 104, 110-119: palette and dynamic colours.
    Palette = 1 << 10,
    /// Alternate screens: the reader follows the program in and out of its own.
    Alternate = 1 << 11,
    /// Synchronized output, mode 2026.
    Synchronized = 1 << 12,
    /// Soft wraps are kept by the reader, so that copying a long line or resizing keeps it one
    /// line.
    SoftWrap = 1 << 13,
    /// SGR 3.
    Italic = 1 << 14,
    /// SGR 2.
    Faint = 1 << 15,
    /// SGR 5.
    Blink = 1 << 16,
    /// SGR 8.
    Invisible = 1 << 17,
    /// SGR 9.
    Strike = 1 << 18,
    /// SGR 53.
    Overline = 1 << 19,
    /// Underline styles, SGR 4:2 to 4:5.
    UnderlineStyles = 1 << 20,
    /// Underline colour, SGR 58.
    UnderlineColor = 1 << 21,
    /// Modes 9, 1000-1003, 1005, 1006, 1015.
    Mouse = 1 << 22,
    /// Mouse positions in pixels, mode 1016, from a terminal that tells what a cell measures. Only ever by
    /// its own answer.
    MousePixels = 1 << 23,
    /// Modes 1004 (focus) and 2004 (bracketed paste).
    FocusAndPaste = 1 << 24,
    /// Mode 1007, wheel as arrow keys on the alternate screen.
    AlternateScroll = 1 << 25,
    /// The kitty keyboard flags, `CSI = flags ; 1 u`.
    KittyKeys = 1 << 26,
    /// xterm's modifyOtherKeys, `CSI > 4 ; n m`.
    ModifyOtherKeys = 1 << 27,
    /// DECCKM and DECNKM are the reader's to know. Never for a tty: mosh-protocol.md §7 keeps that
    /// in application cursor mode, and the server translates.
    ApplicationKeys = 1 << 28,
    /// DECSCNM, mode 5.
    ReverseVideo = 1 << 29,
    /// Double-width and double-height lines, DECDWL and DECDHL.
    LineSize = 1 << 30,
    /// The working directory, OSC 7.
    Shell = 1 << 31,
    /// Progress, `OSC 9 ; 4`. Terminals that take any OSC 9 for a notification must not get it.
    Progress = 1 << 32,
    /// Mode 2031, colour-scheme reports, is the reader's to know. Never for a tty: its client asks for
    /// the reports on its own behalf, and the server makes those the program asked for.
    SchemeReports = 1 << 33,
    /// Marks of prompts, input and output, OSC 133.
    ShellMarks = 1 << 34,
    /// ED 2 puts the lines of the primary screen into the history.
    SavesErased = 1 << 35,
    /// So does ED 0 with the cursor in the first cell.
    SavesErasedFromHome = 1 << 36,
}

impl Colors {
    /// The number a terminfo entry would give, as `mosh-client -c` prints it.
    pub const fn count(self) -> u32 {
        match self {
            Colors::Monochrome => 0,
            Colors::Eight => 8,
            Colors::Sixteen => 16,
            Colors::Indexed => 256,
            Colors::Direct => 1 << 24,
        }
    }
}

/// The form in which a reader takes notifications.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Notices {
    /// It has none.
    None,
    /// `OSC 9 ; text`, of iTerm2. ConEmu gives numbers there a meaning of their own.
    Plain,
    /// `OSC 777 ; notify ; title ; text`, of rxvt-unicode.
    Titled,
    /// `OSC 99`, of kitty.
    Kitty,
}

/// The queries that a terminal answers without showing them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Questions {
    /// Nothing.
    None,
    /// Control sequences. GNU screen hands strings on to the terminal around it.
    Plain,
    /// Strings too.
    All,
}
