//! Command lines of all programs, rove's own and those that rove takes in the place of mosh's: a host never becomes
//! an option of ssh's, what a server is to run is taken word by word, and nothing but the locale enters its
//! environment.
#![no_main]

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rove::testing::cli::{CopyArgs, ExecArgs, HostConfig, RoveArgs, mosh_client};
use rove::testing::server::{self, Greeting, Options, Program};
use rove::testing::ssh::{Login, Via};

fuzz_target!(|octets: &[u8]| {
    let Some((&program, octets)) = octets.split_first() else { return };
    // As the system has it, a word ends with a NUL.
    let words: Vec<OsString> =
        octets.split(|&octet| octet == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    match program % 6 {
        0 => {
            let Ok(read) = RoveArgs::read(&words) else { return };
            if let Ok(login) = read.login(&HostConfig::default()) {
                check(&login);
            }
        }
        1 => {
            let Ok(read) = ExecArgs::read(&words) else { return };
            if let Ok(login) = read.login(&HostConfig::default()) {
                check(&login);
            }
        }
        2 => {
            let Ok(read) = CopyArgs::read(&words) else { return };
            for plan in read.errands().iter().flatten() {
                for host in plan.hosts() {
                    if let Ok(login) = read.login(host, &HostConfig::default()) {
                        check(&login);
                    }
                }
            }
        }
        3 => mosh_client(&words),
        4 => serve(Program::Mosh, &words),
        _ => serve(Program::Rove, &words),
    }
});

/// What logs in is what the user named, with the host behind all options.
fn check(login: &Login) {
    assert!(!login.host.is_empty() && !login.host.starts_with('-'), "{:?}", login.host);
    let command = login.command(None, "");
    let words: Vec<&OsStr> = command.as_std().get_args().collect();
    let Via::Ssh(named) = &login.via else {
        assert_eq!((command.as_std().get_program(), words[0]), ("/bin/sh".as_ref(), "-c".as_ref()));
        return;
    };
    assert_eq!(Some(command.as_std().get_program()), named.first().map(OsString::as_os_str));
    let [before @ .., host, _remote] = &words[..] else { panic!("{words:?}") };
    assert_eq!(*host, OsStr::new(&login.host));
    if Path::new(&named[0]).file_name() == Some(OsStr::new("ssh")) {
        assert_eq!(before.last(), Some(&OsStr::new("--")));
        assert!(before.ends_with(&[&options(login)[..], &[OsStr::new("--")]].concat()));
    } else {
        assert_eq!(before, &named[1..]);
    }
}

fn options(login: &Login) -> Vec<&OsStr> {
    login.options.iter().map(OsString::as_os_str).collect()
}

fn mosh_client(words: &[OsString]) {
    use mosh_client::{Request, parse};
    let Ok(Request::Session { server, verbosity }) = parse(words) else { return };
    assert_ne!(server.port(), 0);
    let says =
        |wanted: &dyn Fn(&str) -> bool| words.iter().filter_map(|word| word.to_str()).any(wanted);
    assert!(says(&|word| word.parse() == Ok(server.ip())));
    assert!(says(&|word| word.parse() == Ok(server.port())));
    // Behind what it has read, or before, an option that it knows changes nothing else.
    let again = [&["-#ignored".into()], words].concat();
    assert_eq!(parse(&again), Ok(Request::Session { server, verbosity }));
}

fn serve(program: Program, words: &[OsString]) {
    let read = match server::parse(program, words) {
        Ok(server::Request::Serve(options)) => options,
        Ok(_) | Err(_) => return,
    };
    let Options { greeting, ports, locale, command, complaints, .. } = &read;
    assert!(ports.low <= ports.high && (ports.low > 0 || ports.high == 0));
    for (name, _) in locale {
        let name = name.as_bytes();
        assert!(name == b"LANG" || name == b"LANGUAGE" || name.starts_with(b"LC_"), "{name:?}");
    }
    let is_mosh = program == Program::Mosh || words.first().is_some_and(|word| word == "new");
    assert_eq!(*greeting == Greeting::Mosh, is_mosh);
    assert!(is_mosh || complaints.is_empty());
    let behind = words.iter().position(|word| word == "--").map_or(&[][..], |at| &words[at + 1..]);
    assert!(command.is_empty() || behind.ends_with(command), "{command:?}");
    // What a server is told to run it does not read.
    let hostile = [words, &["--help".into(), "-p".into(), "x".into()]].concat();
    if !command.is_empty() {
        let again = server::parse(program, &hostile);
        let command = [&command[..], &hostile[words.len()..]].concat();
        assert_eq!(again, Ok(server::Request::Serve(Options { command, ..read })));
    }
}
