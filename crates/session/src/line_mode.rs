//! What the program's terminal line does with keys: whether they are echoed, and by whom. A rove
//! server reports it to a rove client (host extension 16).

/// The mode of a terminal line, as far as echo depends on it (termios(3): ICANON and ECHO).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LineMode {
    /// ICANON and ECHO: the kernel echoes.
    Cooked,
    /// ICANON without ECHO: a password is read. Nothing may be shown.
    Hidden,
    /// No ICANON: the program echoes, or does not.
    Raw,
}

/// The bits that travel.
const CANONICAL: u64 = 1;
const ECHO: u64 = 2;

impl LineMode {
    /// Of a line with these two modes on or off.
    pub const fn of(canonical: Mode, echo: Mode) -> Self {
        match (canonical, echo) {
            (Mode::Off, _) => Self::Raw,
            (Mode::On, Mode::Off) => Self::Hidden,
            (Mode::On, Mode::On) => Self::Cooked,
        }
    }

    /// As it travels.
    pub(crate) const fn to_bits(self) -> u64 {
        match self {
            Self::Cooked => CANONICAL | ECHO,
            Self::Hidden => CANONICAL,
            Self::Raw => 0,
        }
    }

    /// Bits that mean nothing yet are ignored.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self::of(Mode::of(bits & CANONICAL), Mode::of(bits & ECHO))
    }
}

/// Whether a mode of a terminal line is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// It is.
    On,
    /// It is not.
    Off,
}

impl Mode {
    const fn of(bit: u64) -> Self {
        match bit {
            0 => Self::Off,
            _ => Self::On,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits() {
        use LineMode::{Cooked, Hidden, Raw};
        for (bits, mode) in [(0, Raw), (1, Hidden), (2, Raw), (3, Cooked), (5, Hidden), (6, Raw)] {
            assert_eq!(LineMode::from_bits(bits), mode, "{bits}");
            assert_eq!(LineMode::from_bits(mode.to_bits()), mode);
        }
    }
}
