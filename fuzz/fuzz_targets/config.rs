//! rove's configuration file, as anybody may write it: comments change nothing, the first value counts, each error
//! names a line that is there, and neither case nor a user before the name matters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove::testing::cli::{Config, HostConfig};

const HOSTS: [&str; 5] =
    ["build7", "u@a.b.example.org", "ssh://u@[::1]:22", "aaaaaaaaaaaaaaaaaaaaaaa", ""];

fuzz_target!(|octets: &[u8]| {
    let text = String::from_utf8_lossy(octets);
    let commented = |line: &str| format!("  # comment\n{line}\n");
    let among: String = text.lines().map(commented).collect();
    let config = match Config::read(&text) {
        Ok(config) => config,
        Err(error) => {
            assert!((1..=text.lines().count()).contains(&error.line));
            let later = Config::read(&among).expect_err("the fault is still there");
            assert_eq!(later.line, 2 * error.line);
            // What stands before the fault is without one.
            let before: Vec<&str> = text.lines().take(error.line - 1).collect();
            assert!(Config::read(&before.join("\n")).is_ok());
            return;
        }
    };
    let same = Config::read(&among).expect("comments do no harm");
    let twice = Config::read(&format!("{text}\nHost *\n{text}")).expect("both halves can be read");
    let none = Config::read(&format!("Host nobody\n{text}")).expect("the same lines");
    for host in HOSTS {
        let found = config.of_host(host);
        assert_eq!(same.of_host(host), found);
        assert_eq!(twice.of_host(host), found);
        assert_eq!(config.of_host(&host.to_uppercase().replace("SSH://", "ssh://")), found);
        assert_eq!(config.of_host(&format!("me@{host}")), config.of_host(&format!("you@{host}")));
        if !text.to_ascii_lowercase().contains("host") {
            assert_eq!(none.of_host(host), HostConfig::default());
        }
    }
});
