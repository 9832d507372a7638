//! Holds the modes that a program can set, as one small value that each snapshot copies.

/// Which mouse events a program asked for; the last request wins.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mouse {
    /// None.
    #[default]
    Off,
    /// Presses only, as X10 (9).
    X10,
    /// Presses and releases (1000).
    Normal,
    /// Highlight tracking (1001).
    Highlight,
    /// Presses, releases and drags (1002).
    Button,
    /// All motion (1003).
    Any,
}

impl Mouse {
    /// The private mode number, `None` when off.
    pub fn mode(self) -> Option<u16> {
        match self {
            Self::Off => None,
            Self::X10 => Some(9),
            Self::Normal => Some(1000),
            Self::Highlight => Some(1001),
            Self::Button => Some(1002),
            Self::Any => Some(1003),
        }
    }
}

/// How mouse events are written; the last request wins.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MouseEncoding {
    /// One byte a coordinate.
    #[default]
    Default,
    /// UTF-8 (1005).
    Utf8,
    /// SGR (1006).
    Sgr,
    /// urxvt (1015).
    Urxvt,
    /// SGR in pixels (1016).
    SgrPixels,
}

impl MouseEncoding {
    /// The private mode number, `None` for the default.
    pub fn mode(self) -> Option<u16> {
        match self {
            Self::Default => None,
            Self::Utf8 => Some(1005),
            Self::Sgr => Some(1006),
            Self::Urxvt => Some(1015),
            Self::SgrPixels => Some(1016),
        }
    }
}

/// The shape of the cursor (DECSCUSR); whether it blinks is `cursor_blink`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CursorShape {
    /// The user's own setting (DECSCUSR 0).
    #[default]
    Default,
    /// A block (1, 2).
    Block,
    /// A line under the cell (3, 4).
    Underline,
    /// A line before the cell (5, 6).
    Bar,
}

/// The cells that erasing spares.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Guard {
    /// Nothing: DECSCA's protection matters to selective erase alone.
    #[default]
    Dec,
    /// ISO guarded areas (SPA, EPA): ordinary erase spares them too.
    Iso,
}

/// The VT level after a reset: we are a VT520.
pub(crate) const LEVEL_MAX: u8 = 5;

/// Modes and other small switches. `Default` is the state after a full reset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Modes {
    /// DECCKM (?1): arrows are sent as `ESC O x`.
    pub application_cursor: bool,
    /// DECNKM (?66, `ESC =`): the keypad sends its own sequences.
    pub application_keypad: bool,
    /// DECAWM (?7).
    pub autowrap: bool,
    /// DECOM (?6).
    pub origin: bool,
    /// IRM (4).
    pub insert: bool,
    /// LNM (20): LF also returns, Return sends CR LF.
    pub newline: bool,
    /// KAM (2): the keyboard is locked.
    pub keyboard_locked: bool,
    /// SRM (12): local echo off. Set in practice.
    pub send_receive: bool,
    /// DECSCNM (?5).
    pub reverse_video: bool,
    /// DECTCEM (?25).
    pub cursor_visible: bool,
    /// ?12 and DECSCUSR.
    pub cursor_blink: bool,
    /// DECSCUSR.
    pub cursor_shape: CursorShape,
    /// ?45.
    pub reverse_wrap: bool,
    /// ?1045: reverse wrap goes on beyond lines that were not wrapped.
    pub extended_reverse_wrap: bool,
    /// DECLRMM (?69).
    pub left_right_margins: bool,
    /// DECCOLM (?3); the size does not follow, which belongs to the user.
    pub columns_132: bool,
    /// ?40: DECCOLM is obeyed.
    pub allow_columns: bool,
    /// DECNCSM (?95): DECCOLM does not clear.
    pub keep_on_columns: bool,
    /// DECBKM (?67): backarrow sends BS.
    pub backarrow: bool,
    /// ?8, DECARM. Kept for reports.
    pub auto_repeat: bool,
    /// ?41, more(1) fix: a tab after the last column wraps.
    pub more_fix: bool,
    /// ?2004.
    pub bracketed_paste: bool,
    /// ?1004.
    pub focus_events: bool,
    /// ?1007.
    pub alternate_scroll: bool,
    /// ?2026: a frame is being drawn; snapshots should wait for its end, but not for long.
    pub synchronized: bool,
    /// ?2027: clusters are formed of emoji sequences and flags.
    pub graphemes: bool,
    /// ?2031: tell about changes of the colour scheme.
    pub scheme_reports: bool,
    /// ?2048: tell about resizes in band.
    pub resize_reports: bool,
    /// Which mouse events.
    pub mouse: Mouse,
    /// How they are written.
    pub mouse_encoding: MouseEncoding,
    /// modifyOtherKeys (`CSI > 4 ; n m`): 0, 1 or 2.
    pub modify_other_keys: u8,
    /// Kitty keyboard flags of the active screen.
    pub keyboard_flags: u8,
    /// Whose protection erasing obeys.
    pub guard: Guard,
    /// DECSACE: rectangle attribute changes take exact rectangles (2) or streams (0, 1).
    pub rectangle_extent: u8,
    /// DECSCL: the VT level, 1 to 5. Below 4 there are no left and right margins and no rectangles, below 5
    /// DECCOLM always clears.
    pub level: u8,
    /// Modes that are kept for reports alone, a bit each: not as after a reset.
    pub kept: u32,
}

impl Modes {
    /// The state after a full reset.
    pub const RESET: Self = Self {
        application_cursor: false,
        application_keypad: false,
        autowrap: true,
        origin: false,
        insert: false,
        newline: false,
        keyboard_locked: false,
        send_receive: true,
        reverse_video: false,
        cursor_visible: true,
        cursor_blink: false,
        cursor_shape: CursorShape::Default,
        reverse_wrap: false,
        extended_reverse_wrap: false,
        left_right_margins: false,
        columns_132: false,
        allow_columns: false,
        keep_on_columns: false,
        backarrow: false,
        auto_repeat: true,
        more_fix: false,
        bracketed_paste: false,
        focus_events: false,
        alternate_scroll: false,
        synchronized: false,
        graphemes: true,
        scheme_reports: false,
        resize_reports: false,
        mouse: Mouse::Off,
        mouse_encoding: MouseEncoding::Default,
        modify_other_keys: 0,
        keyboard_flags: 0,
        guard: Guard::Dec,
        rectangle_extent: 0,
        level: LEVEL_MAX,
        kept: 0,
    };
}

impl Default for Modes {
    fn default() -> Self {
        Self::RESET
    }
}
