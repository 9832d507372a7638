//! What a forwarding is to join, as the user or ssh's configuration writes it: ssh's syntax
//! (ssh(1), `-D`, `-L`, `-R` and `-W`). Pure text; names are looked up elsewhere.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// Longest specification read.
const TEXT_BYTES_MAX: usize = 8192;

/// Longest name of a host (RFC 1035 §2.3.4).
pub(crate) const HOST_BYTES_MAX: usize = 255;

/// One forwarding: connections that come in here go on there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spec {
    /// Where connections come in.
    pub listen: Listen,
    /// Where they go on, from the other end.
    pub target: Target,
}

/// Where to listen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Listen {
    /// A TCP port; 0 lets the system choose one, for remote forwardings only.
    Tcp {
        /// On which addresses.
        bind: Bind,
        /// The port.
        port: u16,
    },
    /// A Unix socket of this path.
    Unix(PathBuf),
}

impl Listen {
    /// The same, at the port that the system chose.
    pub fn at(&self, port: u16) -> Listen {
        match self {
            Listen::Tcp { bind, .. } => Listen::Tcp { bind: bind.clone(), port },
            Listen::Unix(path) => Listen::Unix(path.clone()),
        }
    }
}

/// On which addresses to listen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Bind {
    /// Nothing was said: loopback, unless the configuration's GatewayPorts says otherwise.
    Unsaid,
    /// The loopback addresses, IPv4's and IPv6's.
    Loopback,
    /// All.
    Any,
    /// The addresses of this name.
    Host(String),
}

/// Where a connection goes on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target {
    /// A TCP port of a host, by a name for the other end to look up.
    Tcp(Endpoint),
    /// A Unix socket.
    Unix(PathBuf),
    /// Where each connection says for itself, by SOCKS.
    Socks,
}

/// A host and a port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Endpoint {
    /// A name, or an address without brackets; not empty, at most `HOST_BYTES_MAX` octets.
    pub host: String,
    /// Not 0.
    pub port: u16,
}

/// Why a specification cannot be read.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum BadSpec {
    /// Brackets do not match, or something touches them.
    #[error("its brackets do not match")]
    Brackets,
    /// Too few or too many fields.
    #[error("it has not the form [ADDRESS:]PORT:HOST:PORT, nor one with sockets")]
    Fields,
    /// A port is not a number from 1 to 65535.
    #[error("a port is a number from 1 to 65535")]
    Port,
    /// A host is empty or too long.
    #[error("a host in it is empty or too long")]
    Host,
    /// Only a remote forwarding may leave the choice of the port to the system.
    #[error("port 0 is for -R only")]
    PortChosen,
    /// Longer than any sensible one.
    #[error("it is too long")]
    Length,
}

impl Spec {
    /// Reads what stands after `-L`, or after LocalForward with a colon for the space.
    pub fn local(text: &str) -> Result<Spec, BadSpec> {
        match joined(&fields(text)?)? {
            Spec { listen: Listen::Tcp { port: 0, .. }, .. } => Err(BadSpec::PortChosen),
            Spec { target: Target::Socks, .. } => Err(BadSpec::Fields),
            spec => Ok(spec),
        }
    }

    /// Reads what stands after `-R`; without a target it is SOCKS that the connections speak.
    pub fn remote(text: &str) -> Result<Spec, BadSpec> {
        let fields = fields(text)?;
        match listening(&fields) {
            Some(listen) => Ok(Spec { listen: listen?, target: Target::Socks }),
            None => joined(&fields),
        }
    }

    /// Reads what stands after `-D`.
    pub fn dynamic(text: &str) -> Result<Spec, BadSpec> {
        match listening(&fields(text)?).ok_or(BadSpec::Fields)?? {
            Listen::Tcp { port: 0, .. } => Err(BadSpec::PortChosen),
            listen => Ok(Spec { listen, target: Target::Socks }),
        }
    }
}

/// How ssh writes it, with every host in brackets.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.listen)?;
        match &self.target {
            Target::Tcp(endpoint) => write!(f, ":{endpoint}"),
            Target::Unix(path) => write!(f, ":{}", escaped(&path.to_string_lossy(), IN_PATH)),
            Target::Socks => Ok(()),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp { bind: Bind::Unsaid, port } => write!(f, "{port}"),
            Listen::Tcp { bind: Bind::Loopback, port } => write!(f, "[localhost]:{port}"),
            Listen::Tcp { bind: Bind::Any, port } => write!(f, "[*]:{port}"),
            Listen::Tcp { bind: Bind::Host(host), port } => {
                write!(f, "[{}]:{port}", escaped(host, IN_BRACKETS))
            }
            Listen::Unix(path) => f.write_str(&escaped(&path.to_string_lossy(), IN_PATH)),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(endpoint) => write!(f, "{endpoint}"),
            Target::Unix(path) => write!(f, "{}", path.display()),
            Target::Socks => f.write_str("where SOCKS says"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]:{}", escaped(&self.host, IN_BRACKETS), self.port)
    }
}

impl std::str::FromStr for Endpoint {
    type Err = BadSpec;

    /// Reads `HOST:PORT`, as after `-W`.
    fn from_str(text: &str) -> Result<Endpoint, BadSpec> {
        match fields(text)?.as_slice() {
            [host, port] => endpoint(host, port).and_then(|endpoint| match endpoint.port {
                0 => Err(BadSpec::Port),
                _ => Ok(endpoint),
            }),
            _ => Err(BadSpec::Fields),
        }
    }
}

/// Text with a backslash before each of `marks`, as [`fields`] reads it back.
fn escaped(text: &str, marks: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if marks.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// What ends a host in brackets, or makes a backslash.
const IN_BRACKETS: &str = r"\[]";

/// What ends a path, or makes a backslash.
const IN_PATH: &str = r"\:[]";

/// A piece between colons.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Field {
    text: String,
    bracketed: bool,
}

impl Field {
    /// A field with a slash is a socket's path, unless brackets say that it is a host.
    fn is_path(&self) -> bool {
        !self.bracketed && self.text.contains('/')
    }

    fn path(&self) -> PathBuf {
        OsString::from(&self.text).into()
    }

    fn port(&self) -> Result<u16, BadSpec> {
        match self.text.bytes().all(|octet| octet.is_ascii_digit()) && !self.bracketed {
            true => self.text.parse().map_err(|_| BadSpec::Port),
            false => Err(BadSpec::Port),
        }
    }

    fn bind(&self) -> Result<Bind, BadSpec> {
        match self.text.as_str() {
            "" | "*" => Ok(Bind::Any),
            "localhost" => Ok(Bind::Loopback),
            host if host.len() > HOST_BYTES_MAX => Err(BadSpec::Host),
            host => Ok(Bind::Host(host.to_owned())),
        }
    }
}

/// Cuts at colons outside of brackets; a backslash takes the meaning from what follows it.
fn fields(text: &str) -> Result<Vec<Field>, BadSpec> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(BadSpec::Length);
    }
    let mut fields = vec![Field { text: String::new(), bracketed: false }];
    let mut open = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let field = fields.last_mut().expect("there is a first field");
        match c {
            '[' if !open && field.text.is_empty() && !field.bracketed => {
                open = true;
                field.bracketed = true;
            }
            ']' if open => {
                open = false;
                if !matches!(rest.peek(), None | Some(':')) {
                    return Err(BadSpec::Brackets);
                }
            }
            '[' | ']' => return Err(BadSpec::Brackets),
            ':' if !open => fields.push(Field { text: String::new(), bracketed: false }),
            '\\' => field.text.push(rest.next().unwrap_or('\\')),
            _ => field.text.push(c),
        }
    }
    if open { Err(BadSpec::Brackets) } else { Ok(fields) }
}

/// Reads fields that say only where to listen; `None` if there is more in them.
fn listening(fields: &[Field]) -> Option<Result<Listen, BadSpec>> {
    match fields {
        [path] if path.is_path() => Some(Ok(Listen::Unix(path.path()))),
        [port] => Some(port.port().map(|port| Listen::Tcp { bind: Bind::Unsaid, port })),
        [bind, port] if !bind.is_path() && !port.is_path() => Some(tcp(bind, port)),
        _ => None,
    }
}

/// Reads fields that say where to listen and where to go on.
fn joined(fields: &[Field]) -> Result<Spec, BadSpec> {
    let unsaid = |port: &Field| Ok(Listen::Tcp { bind: Bind::Unsaid, port: port.port()? });
    let (listen, target) = match fields {
        [from, to] if from.is_path() && to.is_path() => {
            (Listen::Unix(from.path()), Target::Unix(to.path()))
        }
        [port, to] if to.is_path() => (unsaid(port)?, Target::Unix(to.path())),
        [from, host, port] if from.is_path() => {
            (Listen::Unix(from.path()), Target::Tcp(endpoint(host, port)?))
        }
        [bind, port, to] if to.is_path() => (tcp(bind, port)?, Target::Unix(to.path())),
        [from, host, port] => (unsaid(from)?, Target::Tcp(endpoint(host, port)?)),
        [bind, from, host, port] => (tcp(bind, from)?, Target::Tcp(endpoint(host, port)?)),
        _ => return Err(BadSpec::Fields),
    };
    // How `ssh -G` writes a remote forwarding without a target.
    let target = match target {
        Target::Tcp(Endpoint { host, port: 0 }) if host == "socks" => Target::Socks,
        Target::Tcp(Endpoint { port: 0, .. }) => return Err(BadSpec::Port),
        other => other,
    };
    Ok(Spec { listen, target })
}

fn tcp(bind: &Field, port: &Field) -> Result<Listen, BadSpec> {
    Ok(Listen::Tcp { bind: bind.bind()?, port: port.port()? })
}

fn endpoint(host: &Field, port: &Field) -> Result<Endpoint, BadSpec> {
    if host.text.is_empty() || host.text.len() > HOST_BYTES_MAX {
        return Err(BadSpec::Host);
    }
    Ok(Endpoint { host: host.text.clone(), port: port.port()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_takes() {
        for (text, local, remote, dynamic) in [
            ("8080:localhost:80", Some("8080:[localhost]:80"), Some("8080:[localhost]:80"), None),
            (
                "127.0.0.1:81:[::1]:81",
                Some("[127.0.0.1]:81:[::1]:81"),
                Some("[127.0.0.1]:81:[::1]:81"),
                None,
            ),
            ("*:82:h:1", Some("[*]:82:[h]:1"), Some("[*]:82:[h]:1"), None),
            (":83:h:1", Some("[*]:83:[h]:1"), Some("[*]:83:[h]:1"), None),
            ("[]:83:[h]:1", Some("[*]:83:[h]:1"), Some("[*]:83:[h]:1"), None),
            ("[::1]:84:h:2", Some("[::1]:84:[h]:2"), Some("[::1]:84:[h]:2"), None),
            (
                "/a.sock:[localhost]:80",
                Some("/a.sock:[localhost]:80"),
                Some("/a.sock:[localhost]:80"),
                None,
            ),
            ("85:/b.sock", Some("85:/b.sock"), Some("85:/b.sock"), None),
            ("h:85:/b.sock", Some("[h]:85:/b.sock"), Some("[h]:85:/b.sock"), None),
            ("/c:/d", Some("/c:/d"), Some("/c:/d"), None),
            (r"/a\:b:/d\\", Some(r"/a\:b:/d\\"), Some(r"/a\:b:/d\\"), None),
            ("9002", None, Some("9002"), Some("9002")),
            ("9002:[socks]:0", None, Some("9002"), None),
            ("localhost:1080", None, Some("[localhost]:1080"), Some("[localhost]:1080")),
            ("[::1]:1080", None, Some("[::1]:1080"), Some("[::1]:1080")),
            ("*:1080", None, Some("[*]:1080"), Some("[*]:1080")),
            ("0:h:80", None, Some("0:[h]:80"), None),
            ("0", None, Some("0"), None),
        ] {
            let shown = |spec: Result<Spec, BadSpec>| spec.ok().map(|spec| spec.to_string());
            assert_eq!(shown(Spec::local(text)).as_deref(), local, "-L {text}");
            assert_eq!(shown(Spec::remote(text)).as_deref(), remote, "-R {text}");
            assert_eq!(shown(Spec::dynamic(text)).as_deref(), dynamic, "-D {text}");
        }
    }

    #[test]
    fn what_ssh_does_not_take() {
        let long = format!("1:{}:1", "h".repeat(256));
        let longer = "1:".repeat(5000);
        for text in [
            "",
            ":",
            "::",
            ":::",
            "a",
            "a:b",
            "80:h",
            "80::80",
            "80:h:",
            "80:h:x",
            "80:h:0",
            "80:h:65536",
            "65536:h:80",
            "x:h:80",
            "-1:h:80",
            "+1:h:80",
            "a:80:h:80:b",
            "[a:80:h:80",
            "a]:80:h:80",
            "[a]b:80:h:80",
            "b[a]:80:h:80",
            "[80]:h:80",
            "80:h:[80]",
            "/a:80",
            "/a:/b:/c",
            &long,
            &longer,
        ] {
            assert!(Spec::local(text).is_err(), "-L {text}: {:?}", Spec::local(text));
            assert!(Spec::remote(text).is_err() || text == "/a", "-R {text}");
            assert!(Spec::dynamic(text).is_err(), "-D {text}");
        }
    }

    #[test]
    fn hosts_and_ports() {
        for (text, shown) in [
            ("h:22", Some("[h]:22")),
            ("[::1]:22", Some("[::1]:22")),
            ("::1:22", None),
            ("h", None),
            (":22", None),
            ("h:0", None),
            ("h:", None),
        ] {
            let read = text.parse::<Endpoint>().ok().map(|endpoint| endpoint.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }
}
