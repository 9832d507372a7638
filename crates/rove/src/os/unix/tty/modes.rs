//! The modes of a user's terminal, for a command's terminal on the host: which keys erase and interrupt, and
//! how input and output are processed.

use rustix::termios::{InputModes, LocalModes, OutputModes, SpecialCodeIndex, Termios};

use crate::os::modes::Modes;
use crate::os::system::terminal::{DISABLED, IUTF8};

/// The meaning of a number here.
enum Mode {
    /// The character for something.
    Key(SpecialCodeIndex),
    Input(InputModes),
    Local(LocalModes),
    Output(OutputModes),
}

/// The value of a key that is switched off, in RFC 4254.
const OFF: u8 = 255;

/// RFC 4254 §8, and RFC 8160 for 42. Modes that not all systems have are left out.
const MODES: [(u8, Mode); 43] = [
    (1, Mode::Key(SpecialCodeIndex::VINTR)),
    (2, Mode::Key(SpecialCodeIndex::VQUIT)),
    (3, Mode::Key(SpecialCodeIndex::VERASE)),
    (4, Mode::Key(SpecialCodeIndex::VKILL)),
    (5, Mode::Key(SpecialCodeIndex::VEOF)),
    (6, Mode::Key(SpecialCodeIndex::VEOL)),
    (7, Mode::Key(SpecialCodeIndex::VEOL2)),
    (8, Mode::Key(SpecialCodeIndex::VSTART)),
    (9, Mode::Key(SpecialCodeIndex::VSTOP)),
    (10, Mode::Key(SpecialCodeIndex::VSUSP)),
    (12, Mode::Key(SpecialCodeIndex::VREPRINT)),
    (13, Mode::Key(SpecialCodeIndex::VWERASE)),
    (14, Mode::Key(SpecialCodeIndex::VLNEXT)),
    (18, Mode::Key(SpecialCodeIndex::VDISCARD)),
    (30, Mode::Input(InputModes::IGNPAR)),
    (31, Mode::Input(InputModes::PARMRK)),
    (32, Mode::Input(InputModes::INPCK)),
    (33, Mode::Input(InputModes::ISTRIP)),
    (34, Mode::Input(InputModes::INLCR)),
    (35, Mode::Input(InputModes::IGNCR)),
    (36, Mode::Input(InputModes::ICRNL)),
    (38, Mode::Input(InputModes::IXON)),
    (39, Mode::Input(InputModes::IXANY)),
    (40, Mode::Input(InputModes::IXOFF)),
    (41, Mode::Input(InputModes::IMAXBEL)),
    (42, Mode::Input(IUTF8)),
    (50, Mode::Local(LocalModes::ISIG)),
    (51, Mode::Local(LocalModes::ICANON)),
    (53, Mode::Local(LocalModes::ECHO)),
    (54, Mode::Local(LocalModes::ECHOE)),
    (55, Mode::Local(LocalModes::ECHOK)),
    (56, Mode::Local(LocalModes::ECHONL)),
    (57, Mode::Local(LocalModes::NOFLSH)),
    (58, Mode::Local(LocalModes::TOSTOP)),
    (59, Mode::Local(LocalModes::IEXTEN)),
    (60, Mode::Local(LocalModes::ECHOCTL)),
    (61, Mode::Local(LocalModes::ECHOKE)),
    (62, Mode::Local(LocalModes::PENDIN)),
    (70, Mode::Output(OutputModes::OPOST)),
    (72, Mode::Output(OutputModes::ONLCR)),
    (73, Mode::Output(OutputModes::OCRNL)),
    (74, Mode::Output(OutputModes::ONOCR)),
    (75, Mode::Output(OutputModes::ONLRET)),
];

/// The modes of a terminal.
pub(crate) fn of(terminal: &Termios) -> Modes {
    let pairs = MODES.iter().map(|(number, mode)| {
        let value = match *mode {
            Mode::Key(key) => match terminal.special_codes[key] {
                DISABLED => OFF,
                octet => octet,
            },
            Mode::Input(bit) => terminal.input_modes.contains(bit).into(),
            Mode::Local(bit) => terminal.local_modes.contains(bit).into(),
            Mode::Output(bit) => terminal.output_modes.contains(bit).into(),
        };
        (*number, value)
    });
    Modes::from_pairs(pairs)
}

/// Sets a terminal to these modes. The last pair of a repeated number counts.
pub(crate) fn apply(modes: &Modes, terminal: &mut Termios) {
    for (number, value) in modes.pairs() {
        let known = MODES.iter().find(|(known, _)| known == number);
        match known.map(|(_, mode)| mode) {
            Some(&Mode::Key(key)) => {
                terminal.special_codes[key] = if *value == OFF { DISABLED } else { *value };
            }
            Some(&Mode::Input(bit)) => terminal.input_modes.set(bit, *value != 0),
            Some(&Mode::Local(bit)) => terminal.local_modes.set(bit, *value != 0),
            Some(&Mode::Output(bit)) => terminal.output_modes.set(bit, *value != 0),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::pty::{OpenptFlags, openpt};
    use rustix::termios::tcgetattr;

    use super::*;

    #[test]
    fn a_terminal_is_set_as_another_was() {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let plain = tcgetattr(openpt(flags).unwrap()).unwrap();
        let mut other = plain.clone();
        other.special_codes[SpecialCodeIndex::VERASE] = 8;
        other.special_codes[SpecialCodeIndex::VINTR] = 0;
        other.input_modes.toggle(InputModes::IXON | IUTF8);
        other.local_modes.toggle(LocalModes::ECHO | LocalModes::ECHOCTL);
        other.output_modes.toggle(OutputModes::ONLCR);
        let mut set = plain;
        apply(&of(&other), &mut set);
        assert_eq!(of(&set), of(&other));
        assert_eq!(set.special_codes[SpecialCodeIndex::VINTR], 0);
        assert_eq!(set.input_modes, other.input_modes);
        assert_eq!(set.local_modes, other.local_modes);
        assert_eq!(set.output_modes, other.output_modes);
        apply(&Modes::from_pairs([(3, 9), (0, 1), (255, 255), (3, 127)]), &mut set);
        assert_eq!(set.special_codes[SpecialCodeIndex::VERASE], 127);
        assert_eq!(set.input_modes, other.input_modes);
    }
}
