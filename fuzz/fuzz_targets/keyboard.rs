//! Whatever a terminal sends as keys, for a program in whatever mode: what is held is bounded, what the
//! program gets is in proportion, pasted text and what nobody translates comes through to the last octet,
//! and no control sequence is made where none came from.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_term::{
    Ability, Dialect, Keyboard, KeyboardProtocol, Size, Terminal, TerminalProperties, Typed,
};

const PROGRAMS: [&str; 8] = [
    "",
    "\x1b[>1u",
    "\x1b[>31u",
    "\x1b[>4;1m",
    "\x1b[>4;2m\x1b[?2004h",
    "\x1b[>9u\x1b[?2004;1003;1016h",
    "\x1b[?1000h\x1b[>1u",
    "\x1b[?2004;1000;1005h",
];

fuzz_target!(|bytes: &[u8]| {
    let [program, tty, cut, rest @ ..] = bytes else { return };
    let mut dialect = Dialect::tty("xterm", "").without(Ability::ModifyOtherKeys);
    if tty & 1 != 0 {
        dialect = dialect.with(Ability::KittyKeys);
    }
    if tty & 2 != 0 {
        dialect = dialect.with(Ability::ModifyOtherKeys);
    }
    let program = PROGRAMS[usize::from(program % 8)];
    let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
    terminal.advance(program.as_bytes());
    let manner =
        KeyboardProtocol::of(terminal.screen().modes(), &dialect, &TerminalProperties::default());

    let mut keyboard = Keyboard::default();
    let (mut plain, mut sent) = (Vec::new(), Vec::new());
    let mut take = |typed: Typed<'_>| match typed {
        Typed::Octets(octets) | Typed::Pasted(octets) => {
            plain.extend_from_slice(octets);
            sent.extend_from_slice(octets);
        }
        Typed::Key { plain: less, sent: more } => {
            plain.extend_from_slice(less);
            sent.extend_from_slice(more);
        }
    };
    for piece in rest.chunks(usize::from(*cut).max(1)) {
        keyboard.read(piece, &manner, &mut take);
        assert!(keyboard.held() <= 64);
    }
    keyboard.release(&manner, &mut take);
    assert_eq!(keyboard.held(), 0);
    // One octet becomes a key of at most this length: `ESC [ 97 : 65 ; 2 ; 65 u`.
    assert!(sent.len() <= 16 * rest.len() && plain.len() <= 8 * rest.len());
    let both = dialect.can(Ability::KittyKeys) && dialect.can(Ability::ModifyOtherKeys);
    if both && !program.contains("1016") || program.starts_with("\x1b[?2004") {
        assert_eq!(sent, rest);
    }
});
