//! The table of control sequences: the function of each, and whether stock mosh knows it.

use crate::parser::Sequence;

/// The function of a control sequence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Function {
    InsertCharacters,
    CursorUp,
    CursorDown,
    CursorRight,
    CursorLeft,
    NextLine,
    PreviousLine,
    Column,
    Position,
    TabForward,
    EraseDisplay,
    EraseLine,
    InsertLines,
    DeleteLines,
    DeleteCharacters,
    ScrollUp,
    ScrollDown,
    EraseCharacters,
    TabBack,
    ColumnRight,
    Repeat,
    Attributes,
    Row,
    RowDown,
    ClearTabs,
    SetMode,
    ResetMode,
    Rendition,
    Report,
    Margins,
    SaveOrSideMargins,
    Window,
    RestoreCursor,
    ColumnLeft,
    RowUp,
    SetPrivate,
    ResetPrivate,
    SelectiveEraseDisplay,
    SelectiveEraseLine,
    ReportPrivate,
    SavePrivate,
    RestorePrivate,
    TabsEveryEight,
    QueryKeyModifiers,
    QueryKeyboard,
    SecondaryAttributes,
    TertiaryAttributes,
    KeyModifiers,
    ResetKeyModifiers,
    PushKeyboard,
    PopKeyboard,
    SetKeyboard,
    TitleModes,
    Version,
    SoftReset,
    CursorStyle,
    Protect,
    Conformance,
    ScrollLeft,
    ScrollRight,
    QueryMode,
    QueryPrivate,
    CopyRectangle,
    FillRectangle,
    EraseRectangle,
    SelectiveEraseRectangle,
    ChangeRectangle,
    ReverseRectangle,
    ChecksumRectangle,
    RectangleExtent,
    InsertColumns,
    DeleteColumns,
    PushRendition,
    PopRendition,
    QueryRendition,
    TerminalParameters,
    PresentationState,
    LinesPerScreen,
    ColumnsPerPage,
    PushColors,
    PopColors,
    ReportColors,
}

/// Whether stock mosh knows a function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stock {
    /// It ignores the sequence.
    Unknown,
    /// It does the same as we do.
    Known,
    /// It does the same as we do, and keeps a deferred wrap.
    KeepsWrap,
}

use Function as F;
use Stock::{KeepsWrap, Known, Unknown};

/// Marker, intermediate and last byte; their function; whether stock mosh knows it.
#[rustfmt::skip]
const FUNCTIONS: [(u8, u8, u8, Function, Stock); 84] = [
    (0, 0, b'@', F::InsertCharacters, Known),
    (0, 0, b'A', F::CursorUp, Known),
    (0, 0, b'B', F::CursorDown, Known),
    (0, 0, b'C', F::CursorRight, Known),
    (0, 0, b'D', F::CursorLeft, Known),
    (0, 0, b'E', F::NextLine, Unknown),
    (0, 0, b'F', F::PreviousLine, Unknown),
    (0, 0, b'G', F::Column, Known),
    (0, 0, b'H', F::Position, Known),
    (0, 0, b'I', F::TabForward, KeepsWrap),
    (0, 0, b'J', F::EraseDisplay, Known),
    (0, 0, b'K', F::EraseLine, Known),
    (0, 0, b'L', F::InsertLines, Known),
    (0, 0, b'M', F::DeleteLines, Known),
    (0, 0, b'P', F::DeleteCharacters, Known),
    (0, 0, b'S', F::ScrollUp, Known),
    (0, 0, b'T', F::ScrollDown, Known),
    (0, 0, b'X', F::EraseCharacters, Known),
    (0, 0, b'Z', F::TabBack, KeepsWrap),
    (0, 0, b'^', F::ScrollDown, Unknown),
    (0, 0, b'`', F::Column, Known),
    (0, 0, b'a', F::ColumnRight, Unknown),
    (0, 0, b'b', F::Repeat, Unknown),
    (0, 0, b'c', F::Attributes, Known),
    (0, 0, b'd', F::Row, Known),
    (0, 0, b'e', F::RowDown, Unknown),
    (0, 0, b'f', F::Position, Known),
    (0, 0, b'g', F::ClearTabs, KeepsWrap),
    (0, 0, b'h', F::SetMode, Known),
    (0, 0, b'j', F::ColumnLeft, Unknown),
    (0, 0, b'k', F::RowUp, Unknown),
    (0, 0, b'l', F::ResetMode, Known),
    (0, 0, b'm', F::Rendition, KeepsWrap),
    (0, 0, b'n', F::Report, Known),
    (0, 0, b'r', F::Margins, Known),
    (0, 0, b's', F::SaveOrSideMargins, Unknown),
    (0, 0, b't', F::Window, Unknown),
    (0, 0, b'u', F::RestoreCursor, Unknown),
    (0, 0, b'x', F::TerminalParameters, Unknown),
    (b'?', 0, b'J', F::SelectiveEraseDisplay, Unknown),
    (b'?', 0, b'K', F::SelectiveEraseLine, Unknown),
    (b'?', 0, b'W', F::TabsEveryEight, Unknown),
    (b'?', 0, b'h', F::SetPrivate, KeepsWrap),
    (b'?', 0, b'l', F::ResetPrivate, KeepsWrap),
    (b'?', 0, b'm', F::QueryKeyModifiers, Unknown),
    (b'?', 0, b'n', F::ReportPrivate, Unknown),
    (b'?', 0, b'r', F::RestorePrivate, Unknown),
    (b'?', 0, b's', F::SavePrivate, Unknown),
    (b'?', 0, b'u', F::QueryKeyboard, Unknown),
    (b'>', 0, b'c', F::SecondaryAttributes, Known),
    (b'=', 0, b'c', F::TertiaryAttributes, Unknown),
    (b'>', 0, b'm', F::KeyModifiers, Unknown),
    (b'>', 0, b'n', F::ResetKeyModifiers, Unknown),
    (b'>', 0, b'q', F::Version, Unknown),
    (b'>', 0, b't', F::TitleModes, Unknown),
    (b'>', 0, b'T', F::TitleModes, Unknown),
    (b'>', 0, b'u', F::PushKeyboard, Unknown),
    (b'<', 0, b'u', F::PopKeyboard, Unknown),
    (b'=', 0, b'u', F::SetKeyboard, Unknown),
    (0, b'!', b'p', F::SoftReset, Known),
    (0, b' ', b'q', F::CursorStyle, Unknown),
    (0, b' ', b'@', F::ScrollLeft, Unknown),
    (0, b' ', b'A', F::ScrollRight, Unknown),
    (0, b'"', b'p', F::Conformance, Unknown),
    (0, b'"', b'q', F::Protect, Unknown),
    (0, b'$', b'p', F::QueryMode, Unknown),
    (b'?', b'$', b'p', F::QueryPrivate, Unknown),
    (0, b'$', b'r', F::ChangeRectangle, Unknown),
    (0, b'$', b't', F::ReverseRectangle, Unknown),
    (0, b'$', b'v', F::CopyRectangle, Unknown),
    (0, b'$', b'w', F::PresentationState, Unknown),
    (0, b'$', b'x', F::FillRectangle, Unknown),
    (0, b'$', b'z', F::EraseRectangle, Unknown),
    (0, b'$', b'{', F::SelectiveEraseRectangle, Unknown),
    (0, b'$', b'|', F::ColumnsPerPage, Unknown),
    (0, b'*', b'x', F::RectangleExtent, Unknown),
    (0, b'*', b'y', F::ChecksumRectangle, Unknown),
    (0, b'*', b'|', F::LinesPerScreen, Unknown),
    (0, b'\'', b'}', F::InsertColumns, Unknown),
    (0, b'\'', b'~', F::DeleteColumns, Unknown),
    (0, b'#', b'|', F::QueryRendition, Unknown),
    (0, b'#', b'P', F::PushColors, Unknown),
    (0, b'#', b'Q', F::PopColors, Unknown),
    (0, b'#', b'R', F::ReportColors, Unknown),
];

/// `CSI # p`, `CSI # q` and their other spellings.
const RENDITION_STACK: [(u8, Function); 4] = [
    (b'p', F::PushRendition),
    (b'q', F::PopRendition),
    (b'{', F::PushRendition),
    (b'}', F::PopRendition),
];

/// The index in `FUNCTIONS` for each marker and last byte without an intermediate, so that a lookup searches nothing.
static PLAIN: [[u8; 64]; 5] = index();

const NO_FUNCTION: u8 = u8::MAX;

const fn index() -> [[u8; 64]; 5] {
    let mut index = [[NO_FUNCTION; 64]; 5];
    let mut entry = 0;
    while entry < FUNCTIONS.len() {
        let (marker, intermediate, last, ..) = FUNCTIONS[entry];
        if intermediate == 0 {
            index[marker_index(marker)][last as usize & 63] = entry as u8;
        }
        entry += 1;
    }
    index
}

const fn marker_index(marker: u8) -> usize {
    match marker {
        b'<'..=b'?' => 1 + (marker - b'<') as usize,
        _ => 0,
    }
}

/// The function of a sequence, and whether stock mosh knows it.
#[inline]
pub(crate) fn lookup(sequence: &Sequence) -> Option<(Function, Stock)> {
    if sequence.last < 0x40 {
        return None;
    }
    if sequence.intermediate == 0 {
        let entry = PLAIN[marker_index(sequence.marker)][usize::from(sequence.last & 63)];
        return FUNCTIONS.get(usize::from(entry)).map(|entry| (entry.3, entry.4));
    }
    if (sequence.marker, sequence.intermediate) == (0, b'#') {
        let found = RENDITION_STACK.iter().find(|(last, _)| *last == sequence.last);
        if let Some((_, function)) = found {
            return Some((*function, Unknown));
        }
    }
    let key = (sequence.marker, sequence.intermediate, sequence.last);
    FUNCTIONS
        .iter()
        .find(|entry| (entry.0, entry.1, entry.2) == key)
        .map(|entry| (entry.3, entry.4))
}

/// The VT level that introduced a function, if it is above 2: a program that sets a lower level does without it.
pub(crate) fn level_of(function: Function) -> u8 {
    match function {
        F::QueryMode | F::PresentationState => 3,
        F::TertiaryAttributes | F::InsertColumns | F::DeleteColumns => 4,
        F::CopyRectangle | F::FillRectangle | F::EraseRectangle => 4,
        F::SelectiveEraseRectangle | F::ChangeRectangle | F::ReverseRectangle => 4,
        F::ChecksumRectangle | F::RectangleExtent => 4,
        _ => 1,
    }
}
