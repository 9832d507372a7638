//! What the server is called in words for the user.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// This program.
const OWN: &str = concat!("rove ", env!("CARGO_PKG_VERSION"));

/// The host's name and the server's version, as far as the user's driver knows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerName {
    host: Option<String>,
    version: Option<String>,
}

impl ServerName {
    pub(crate) fn new(host: &str, version: Option<&str>) -> Self {
        Self { host: Some(host.to_owned()), version: version.map(ToOwned::to_owned) }
    }

    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Says that the server cannot do this. The version is named if it is another than ours: a server of ours may have
    /// other reasons.
    pub(crate) fn cannot(&self, what: &str) -> String {
        let host = self.host.as_deref();
        let server = host.map_or("The server there".to_owned(), |it| format!("The server on {it}"));
        match self.version.as_deref().filter(|version| *version != OWN) {
            Some(version) => format!("{server} is {version}, which cannot {what}."),
            None => format!("{server} cannot {what}."),
        }
    }

    /// Both programs: `rove 0.2.0, server 0.1.0`.
    pub(crate) fn versions(&self) -> String {
        match self.version.as_deref() {
            Some(version) => {
                let version = version.strip_prefix("rove ").unwrap_or(version);
                format!("{OWN}, server {version}")
            }
            None => OWN.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_server_cannot_do() {
        for (name, expected) in [
            (ServerName::default(), "The server there cannot fly."),
            (ServerName::new("build7", Some(OWN)), "The server on build7 cannot fly."),
            (
                ServerName::new("build7", Some("rove 0.0.9")),
                "The server on build7 is rove 0.0.9, which cannot fly.",
            ),
        ] {
            assert_eq!(name.cannot("fly"), expected);
        }
    }
}
