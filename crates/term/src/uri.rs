//! Decides which URIs reach a user's terminal, as links and as the working directory. A URI from a program or a
//! server must not name a file of the user's own machine or run a command, by a click or without one (threats row 6).

use alloc::string::String;
use alloc::vec::Vec;

/// The schemes that links may have, besides files of other machines.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];
const FILE: &str = "file://";
/// Octets of a host's name, and of each label (RFC 1035 §2.3.4).
const HOST_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
/// Parts of the names that a resolver maps to its own machine.
const LOOPBACK: [&str; 3] = ["localhost", "localdomain", "loopback"];

/// The names of the machine that the user's terminal runs on.
///
/// Names count by their first label: `desk` stands for `desk.local` and for `desk.example.org`.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct LocalNames {
    /// In lower case, sorted.
    labels: Vec<String>,
}

impl LocalNames {
    /// `name` is the machine's own (`uname -n`), and `hosts` is the text of its hosts(5): every word on a line with
    /// that name is a name of the machine, too.
    pub fn new(name: &str, hosts: &str) -> Self {
        let own = first_label(name);
        let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
        let names = lines.map(|line| line.split_ascii_whitespace().skip(1));
        let aliases = names.filter(|names| names.clone().any(|name| first_label(name) == own));
        let mut labels: Vec<String> = aliases.flatten().map(first_label).collect();
        labels.push(own);
        labels.retain(|label| !label.is_empty());
        labels.sort_unstable();
        labels.dedup();
        Self { labels }
    }

    /// Whether the URI surely names a file of another machine: `file://HOST/PATH`, where HOST is a name of
    /// letters, digits, hyphens and dots, and not this machine's.
    ///
    /// Addresses are always refused: those of this machine change when it moves.
    pub fn allow(&self, uri: &str) -> bool {
        let Some(rest) = after_prefix(uri, FILE) else { return false };
        let Some((host, _)) = rest.split_once('/') else { return false };
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let labels = || host.split('.');
        let own = labels().next().is_some_and(|first| self.labels.iter().any(|own| own == first));
        let loopback = LOOPBACK.iter().any(|name| host.contains(name));
        host.len() <= HOST_BYTES_MAX
            && labels().all(is_label)
            && !labels().next_back().is_some_and(is_number)
            && !own
            && !loopback
    }
}

/// Whether a user's terminal may have the URI as a link. `local` names its machine; where nobody knows it, no
/// file passes.
pub(crate) fn may_link(uri: &str, local: Option<&LocalNames>) -> bool {
    SCHEMES.iter().any(|scheme| after_prefix(uri, scheme).is_some()) || may_enter(uri, local)
}

/// The same, as the working directory.
pub(crate) fn may_enter(uri: &str, local: Option<&LocalNames>) -> bool {
    local.is_some_and(|names| names.allow(uri))
}

fn after_prefix<'a>(uri: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = uri.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn first_label(name: &str) -> String {
    name.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

fn is_label(label: &str) -> bool {
    let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain && (1..=LABEL_BYTES_MAX).contains(&label.len())
}

/// Readers of URLs take a host that ends in a number for an IPv4 address (WHATWG URL §3.5).
fn is_number(label: &str) -> bool {
    label.starts_with("0x") || label.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &str = "127.0.0.1 localhost\n127.0.1.1\tbureau.example.org Desk  # the desk\n\
                         ::1 ip6-localhost\n#127.0.0.1 desk commented\n192.0.2.7 printer\n\n10.0.0.1";

    #[test]
    fn files_of_other_machines() {
        let local = LocalNames::new("DESK.lan", HOSTS);
        assert_eq!(local.labels, ["bureau", "desk"]);
        for uri in [
            "file://host/",
            "file://host/a/b%20c",
            "FILE://Host.Example.ORG/a",
            "file://host./a",
            "file://xn--bcher-kva.example/a",
            "file://printer/a",
            "file://desktop/a",
            "file://host.desk/a",
            "file://commented/",
            "file://ip-10-0-0-1/a",
            "file://3com/a",
            "file://host/../../desk",
            "file://host//desk/",
        ] {
            assert!(local.allow(uri), "{uri}");
        }
    }

    #[test]
    fn what_may_name_a_file_of_this_machine() {
        let local = LocalNames::new("desk", HOSTS);
        let long = format!("file://{}/", "a".repeat(64));
        let longer = format!("file://{}a/", "a.".repeat(127));
        for uri in [
            "",
            "file:",
            "file:/a",
            "file:///a",
            "file://",
            "file://host",
            "file://host?/a",
            "file:////host/a",
            "file:\\\\host/a",
            "//host/a",
            "http://host/a",
            "kitty-shell-cwd://host/a",
            " file://host/a",
            "file://desk/a",
            "file://DESK/a",
            "file://desk./a",
            "file://desk.local/a",
            "file://Desk.example.org./a",
            "file://bureau/a",
            "file://bureau.example.net/a",
            "file://localhost/a",
            "file://LocalHost./a",
            "file://localhost.localdomain/a",
            "file://x.localhost/a",
            "file://localhost4/a",
            "file://ip6-loopback/a",
            "file://127.0.0.1/a",
            "file://127.1/a",
            "file://2130706433/a",
            "file://0x7f000001/a",
            "file://0x7f.0x1./a",
            "file://0177.0.0.01/a",
            "file://192.0.2.7/a",
            "file://host.7/a",
            "file://0.0.0.0/a",
            "file://::1/a",
            "file://[::1]/a",
            "file://[::ffff:127.0.0.1]/a",
            "file://[2001:db8::1]/a",
            "file://[fe80::1%25eth0]/a",
            "file://user@host/a",
            "file://user:pass@host/a",
            "file://host@desk/a",
            "file://host:22/a",
            "file://%64esk/a",
            "file://de%73k/a",
            "file://h\u{f6}st/a",
            "file://\u{ff44}esk/a",
            "file://de sk/a",
            "file://my_host/a",
            "file://host\\a/b",
            "file://./a",
            "file://../a",
            "file://.host/a",
            "file://host../a",
            "file://a..b/a",
            long.as_str(),
            longer.as_str(),
        ] {
            assert!(!local.allow(uri), "{uri}");
        }
    }

    #[test]
    fn links() {
        let local = LocalNames::new("desk", "");
        for (uri, known, unknown) in [
            ("http://a/", true, true),
            ("HTTPS://a/", true, true),
            ("mailto:a@b", true, true),
            ("file://host/a", true, false),
            ("file://desk/a", false, false),
            ("file:///a", false, false),
            ("javascript:alert(1)", false, false),
            ("ssh://host", false, false),
            ("ftp://host/a", false, false),
            ("x-man-page://ls", false, false),
            ("data:text/html,x", false, false),
            ("vscode://file/a", false, false),
            ("http:a", false, false),
            ("\u{e9}", false, false),
        ] {
            assert_eq!(may_link(uri, Some(&local)), known, "{uri}");
            assert_eq!(may_link(uri, None), unknown, "{uri}, on a machine without a name");
        }
    }

    #[test]
    fn a_machine_without_a_name_has_no_names() {
        assert_eq!(LocalNames::new("", HOSTS).labels, [""; 0]);
        assert_eq!(LocalNames::new(".", "").labels, [""; 0]);
    }
}
