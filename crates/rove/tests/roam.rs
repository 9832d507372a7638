//! A client whose machine gets another address, or whose path takes only short datagrams, in network
//! namespaces of the test's own, which need root and `ip`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod gate;
mod terminal;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use gate::not_checked;
use terminal::{Directory, ROVE, Terminal};

/// Two namespaces with a cable between them; gone when dropped.
struct Cable {
    client: String,
    server: String,
}

impl Cable {
    /// `None`, told as not checked, where that is not allowed.
    fn new(test: &str) -> Option<Cable> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let id = std::process::id();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("rove{end}{id}x{number}");
        let cable = Cable { client: name('c'), server: name('s') };
        let (client, server) = (&cable.client, &cable.server);
        let made = ip(&["netns", "add", client])
            && ip(&["netns", "add", server])
            && ip(&[
                "-n", client, "link", "add", "cable", "type", "veth", "peer", "end", "netns",
                server,
            ])
            && ip(&["-n", client, "address", "add", "10.77.1.1/24", "dev", "cable"])
            && ip(&["-n", server, "address", "add", "10.77.1.2/24", "dev", "end"])
            && [(client, "lo"), (client, "cable"), (server, "lo"), (server, "end")]
                .iter()
                .all(|(space, link)| ip(&["-n", space, "link", "set", link, "up"]))
            && ip(&["netns", "exec", client, "true"]);
        if !made {
            not_checked(test, "no network namespaces to be had (they need root and ip)");
        }
        made.then_some(cable)
    }

    /// Changes an address at the client's end.
    fn change(&self, verb: &str, address: &str) -> bool {
        ip(&["-n", &self.client, "address", verb, address, "dev", "cable"])
    }

    /// A session from one end to the other.
    fn session(&self, directory: &Directory, script: &str) -> Terminal {
        let server = &self.server;
        let login =
            directory.script("login", &format!(r#"exec ip netns exec {server} sh -c "$2""#));
        let (ssh, server) = (format!("--ssh={login}"), format!("--server={ROVE}"));
        let words = ["netns", "exec", &self.client, ROVE, "-v", &ssh, &server, "10.77.1.2"];
        Terminal::run("ip", &[&words[..], &["--", "sh", "-c", script]].concat(), &[])
    }
}

/// Says each line it reads again, with a word before it.
const ECHO: &str = "stty -echo; echo re\"\"ady; read a; echo got-$a; read b; echo then-$b; exit 7";

impl Drop for Cable {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.client]);
        ip(&["netns", "del", &self.server]);
    }
}

fn ip(words: &[&str]) -> bool {
    let status = Command::new("ip").args(words).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn a_new_address_is_noticed_and_the_session_goes_on() {
    let Some(cable) = Cable::new("a_new_address_is_noticed_and_the_session_goes_on") else {
        return;
    };
    let directory = Directory::new("roam");
    let mut terminal = cable.session(&directory, ECHO);
    terminal.expect("ready");
    terminal.type_keys("one\r");
    terminal.expect("got-one");
    assert!(cable.change("del", "10.77.1.1/24") && cable.change("add", "10.77.1.9/24"));
    terminal.type_keys("two\r");
    assert_eq!(terminal.finish(), 7, "{}", terminal.text());
    let shown = terminal.text();
    assert!(shown.contains("then-two") && shown.contains("the network has changed"), "{shown}");
}

/// The client loses IPv4 and has IPv6 alone; the server has told that it has both.
#[test]
fn a_session_goes_on_over_the_other_family() {
    let Some(cable) = Cable::new("a_session_goes_on_over_the_other_family") else { return };
    let (client, server) = (&cable.client, &cable.server);
    let both = ip(&["-n", server, "address", "add", "fd77::2/64", "dev", "end", "nodad"])
        && ip(&["-n", client, "address", "add", "fd77::1/64", "dev", "cable", "nodad"]);
    if !both {
        return not_checked("a_session_goes_on_over_the_other_family", "no IPv6 here");
    }
    let directory = Directory::new("families");
    let mut terminal = cable.session(&directory, ECHO);
    terminal.expect("ready");
    terminal.type_keys("one\r");
    terminal.expect("got-one");
    assert!(cable.change("del", "10.77.1.1/24"));
    terminal.type_keys("two\r");
    assert_eq!(terminal.finish(), 7, "{}", terminal.text());
    let shown = terminal.text();
    assert!(shown.contains("then-two") && shown.contains("fd77::2"), "{shown}");
}

/// A path of 576 octets. What the client sends vanishes where it is longer, and nothing tells it so; what the
/// server sends is refused by its own system.
#[test]
fn a_path_of_576_octets_takes_a_session() {
    let Some(cable) = Cable::new("a_path_of_576_octets_takes_a_session") else { return };
    assert!(ip(&["-n", &cable.server, "link", "set", "end", "mtu", "576"]));
    // The screen is filled with what no deflate shortens, and a long paste is counted.
    let script = "stty -echo -icanon; head -c 1300 /dev/urandom | base64 -w 79; echo re\"\"ady; \
                  read a; echo got-$a; head -c 3000 | wc -c | sed s/^/counted-/; exit 7";
    let directory = Directory::new("narrow");
    let mut terminal = cable.session(&directory, script);
    terminal.expect("ready");
    terminal.type_keys("one\r");
    terminal.expect("got-one");
    // Without a pattern: a generator of Lehmer's picks the letters.
    let mut number = 7_u64;
    let paste = (0..3000).map(|_| {
        number = number * 48_271 % 0x7fff_ffff;
        char::from(b'a' + (number % 26) as u8)
    });
    terminal.type_keys(&paste.collect::<String>());
    assert_eq!(terminal.finish(), 7, "{}", terminal.text());
    assert!(terminal.text().contains("counted-3000"), "{}", terminal.text());
}
