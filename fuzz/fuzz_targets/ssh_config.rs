//! ssh's configuration for a host, as any `ssh -G` may print it: forwardings that are read are written as they read,
//! nothing is lost without being named, lines of others change nothing, none is open to more than loopback on the
//! host, and what ssh is told against it is of our own words.
#![no_main]

use std::ffi::OsString;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rove::testing::cli::{HostConfig, RoveArgs};
use rove::testing::os::Clock;
use rove::testing::services::forward::{Config, Side, is_public};
use rove::testing::services::spec::Spec;
use rove::testing::ssh::{Login, against_hindrances, host_name};
use rove::testing::{Trace, Verbosity};

static WORDS: LazyLock<RoveArgs> = LazyLock::new(|| RoveArgs::read(&["h".into()]).unwrap());
static LOGIN: LazyLock<Login> = LazyLock::new(|| WORDS.login(&HostConfig::default()).unwrap());

/// All that ssh is ever told because of its configuration.
const AGAINST: [&str; 3] = ["-o", "SessionType=default", "ForkAfterAuthentication=no"];

fuzz_target!(|octets: &[u8]| {
    let report = String::from_utf8_lossy(octets);
    let config = Config::read(&report);
    for (side, spec) in &config.forwards {
        let text = spec.to_string();
        let read = match side {
            Side::Local => Spec::local(&text).or_else(|_| Spec::dynamic(&text)),
            Side::Remote => Spec::remote(&text),
        };
        assert_eq!(read.as_ref(), Ok(spec), "{text:?}");
    }
    let is_forward = |line: &&str| {
        let word = line.split(' ').next().unwrap_or_default();
        line.contains(' ') && word.ends_with("forward") && !word.starts_with("exit")
    };
    assert!(
        config.forwards.len() + config.unread.len() <= report.lines().filter(is_forward).count()
    );

    let among = format!("user root\nport 22\n{report}\nciphers x y z\n\n");
    assert_eq!(Config::read(&among), config);
    assert_eq!(host_name(&among), host_name(&report));
    if let Some(name) = host_name(&report) {
        assert!(report.contains(name) && name.trim() == name && !name.contains('\n'));
    }

    let trace = Trace::new(Clock::start(), Verbosity::Quiet);
    let wishes = WORDS.forward.wishes("h", config, &trace).expect("the words ask for nothing");
    let mut remote = wishes.forwards.iter().filter(|(side, _)| *side == Side::Remote);
    assert!(remote.all(|(_, spec)| !is_public(&spec.listen)));

    assert!(against_hindrances(&report).all(|word| AGAINST.contains(&word)));
    let plain = said(&LOGIN, "");
    let told = said(&LOGIN, &report);
    let known = told.iter().filter(|word| !AGAINST.iter().any(|ours| **word == *ours));
    assert!(known.eq(plain.iter().filter(|word| **word != "-o")));
});

/// The words that ssh gets.
fn said(login: &Login, report: &str) -> Vec<OsString> {
    let command = login.command(None, report);
    command.as_std().get_args().map(ToOwned::to_owned).collect()
}
