//! A client whose machine gets another address, in network namespaces of the test's own. Needs root and
//! `ip`; without them it says that it was skipped.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod terminal;

use std::process::{Command, Stdio};

use terminal::{Directory, ROVE, Terminal};

/// Two namespaces with a cable between them; gone when dropped.
struct Cable {
    client: String,
    server: String,
}

impl Cable {
    /// `None` where that is not allowed.
    fn new() -> Option<Cable> {
        let id = std::process::id();
        let cable = Cable { client: format!("rovec{id}"), server: format!("roves{id}") };
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
                .all(|(space, link)| ip(&["-n", space, "link", "set", link, "up"]));
        made.then_some(cable)
    }
}

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
    let Some(cable) = Cable::new() else {
        eprintln!("SKIPPED: no network namespaces to be had (they need root and ip)");
        return;
    };
    let directory = Directory::new("roam");
    let server = &cable.server;
    let login = directory.script("login", &format!(r#"exec ip netns exec {server} sh -c "$2""#));
    let (ssh, server) = (format!("--ssh={login}"), format!("--server={ROVE}"));
    let words = ["netns", "exec", &cable.client, ROVE, "-v", &ssh, &server, "10.77.1.2"];
    let script = "stty -echo; echo ready; read a; echo got-$a; read b; echo then-$b; exit 7";
    let mut terminal = Terminal::run("ip", &[&words[..], &["sh", "-c", script]].concat(), &[]);
    terminal.expect("ready");
    terminal.type_keys("one\r");
    terminal.expect("got-one");
    let change =
        |verb, address| ip(&["-n", &cable.client, "address", verb, address, "dev", "cable"]);
    assert!(change("del", "10.77.1.1/24") && change("add", "10.77.1.9/24"));
    terminal.type_keys("two\r");
    assert_eq!(terminal.finish(), 7, "{}", terminal.text());
    let shown = terminal.text();
    assert!(shown.contains("then-two") && shown.contains("the network has changed"), "{shown}");
}
