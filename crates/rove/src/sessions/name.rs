//! Names of sessions: a user's own, or a number that the server gives.

use std::fmt;

use rove_session::session_info::NAME_OCTETS_MAX;

/// A session's name: 1 to 32 letters, digits, dots, underscores and hyphens.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Name(String);

impl Name {
    /// Reads a name, also a number.
    pub fn parse(text: &str) -> Option<Name> {
        let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"._-".contains(&octet);
        let is_name = !text.is_empty() && text.len() <= NAME_OCTETS_MAX;
        (is_name && text.bytes().all(is_plain)).then(|| Name(text.to_owned()))
    }

    /// Reads a name that a user gives to a session.
    ///
    /// # Errors
    /// Why it cannot be one.
    pub fn of_user(text: &str) -> Result<Name, &'static str> {
        let name = Name::parse(text)
            .ok_or("a name is 1 to 32 letters, digits, dots, underscores and hyphens")?;
        match name.is_number() {
            true => Err("numbers are the names that sessions get by themselves"),
            false => Ok(name),
        }
    }

    /// The name of a session to which no user gave one.
    pub fn number(number: u32) -> Name {
        Name(number.to_string())
    }

    /// Whether the server gave it.
    pub fn is_number(&self) -> bool {
        self.0.bytes().all(|octet| octet.is_ascii_digit())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A session's number among all that its machine ever had: 8 hexadecimal digits, at random.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(u32);

impl SessionId {
    /// The id with this number.
    pub fn new(number: u32) -> SessionId {
        SessionId(number)
    }

    /// Reads the digits, which are in lower case.
    pub fn parse(text: &str) -> Option<SessionId> {
        let id = SessionId(u32::from_str_radix(text, 16).ok()?);
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, is_name, is_users) in [
            ("work", true, true),
            ("a.b_c-1", true, true),
            ("12", true, false),
            ("", false, false),
            ("a b", false, false),
            ("a/b", false, false),
            ("a:b", false, false),
            ("\u{e4}", false, false),
        ] {
            assert_eq!(Name::parse(text).is_some(), is_name, "{text}");
            assert_eq!(Name::of_user(text).is_ok(), is_users, "{text}");
        }
        assert!(Name::parse(&"x".repeat(32)).is_some() && Name::parse(&"x".repeat(33)).is_none());
        assert!(Name::number(7).is_number());
    }

    #[test]
    fn ids() {
        let id = SessionId::new(0xab);
        assert_eq!(id.to_string(), "000000ab");
        assert_eq!(SessionId::parse("000000ab"), Some(id));
        for bad in ["", "ab", "000000AB", "+00000ab", "0000000ab", "0000000g"] {
            assert_eq!(SessionId::parse(bad), None, "{bad}");
        }
    }
}
