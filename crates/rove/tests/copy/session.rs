//! `rove cp` over a session's streams, from the user's words to the server's answer.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rove::testing::Failure;
use rove::testing::copy::client::{Direction as Route, Host, Plan, Status, Style, run};
use rove::testing::copy::message::{Entry, Kind, Message, Times};
use rove::testing::copy::receiver::Waits;
use rove::testing::copy::{Links, Receive};
use rove::testing::os::Clock;
use rove::testing::services::Request;
use rove_streams::Streams;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ends::{Scratch, noise, snapshot, tree};

/// Which way a copy goes, between this machine and one or two others.
#[derive(Clone, Copy, Debug)]
enum Direction {
    There,
    Here,
    Between,
}

fn plan(sources: &[&Path], target: &Path) -> Plan {
    let path = |path: &Path| path.as_os_str().as_bytes().to_vec();
    Plan {
        sources: sources.iter().map(|source| path(source)).collect(),
        target: path(target),
        receive: Receive {
            recursive: true,
            preserve: false,
            links: Links::All,
            several: sources.len() > 1,
        },
        limit: 0,
        style: Style::Quiet,
        give_up: rove::testing::services::COMMAND_KEPT,
    }
}

/// A server whose user is at home in `home`.
async fn serve(far: &Streams, home: &Path) {
    while let Some((request, channel)) = far.accept().await {
        let Some(Request::Copy(order)) = Request::decode(&request) else {
            panic!("{request:?} is no copy");
        };
        rove::testing::copy::serve(&order, channel, far, home, Waits::Told).await;
    }
}

/// Runs a copy with a server whose user is at home in `home`, and perhaps another of the same.
fn copy(direction: Direction, plan: &Plan, home: &Path) -> Result<Status, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (near, far) = rove_streams::in_memory();
        let (second, other) = rove_streams::in_memory();
        let running = async {
            let (host, to) =
                (Host { name: "far", streams: &near }, Host { name: "other", streams: &second });
            let way = match direction {
                Direction::There => Route::There(host),
                Direction::Here => Route::Here(host),
                Direction::Between => Route::Between { from: host, to },
            };
            let status = run(Clock::start(), way, plan).await;
            near.close();
            second.close();
            status
        };
        tokio::join!(running, serve(&far, home), serve(&other, home)).0
    })
}

#[test]
fn there_and_back() {
    let scratch = Scratch::new();
    let top = tree(&scratch);
    let home = scratch.directory("home");
    let there = plan(&[&top], Path::new("~/new"));
    assert_eq!(copy(Direction::There, &there, &home), Ok(Status::Copied));
    assert_eq!(snapshot(&home.join("new")), snapshot(&top));

    let back = scratch.directory("back");
    let here = plan(&[Path::new("new/file*"), Path::new("new/a/.")], &back);
    assert_eq!(copy(Direction::Here, &here, &home), Ok(Status::Copied));
    assert_eq!(fs::read(back.join("file 7")).unwrap(), noise(7, 3 << 20));
    assert_eq!(snapshot(&back.join("b")), snapshot(&top.join("a/b")));

    // The home directory by each of its names.
    for name in ["", "~", "~/", "."] {
        let all = scratch.directory("all");
        let here = plan(&[Path::new(name)], &all);
        assert_eq!(copy(Direction::Here, &here, &home), Ok(Status::Copied), "{name:?}");
        assert_eq!(snapshot(&all), snapshot(&home), "{name:?}");
        fs::remove_dir_all(all).unwrap();
    }
}

#[test]
fn what_fails_there_is_told_here() {
    let scratch = Scratch::new();
    let home = scratch.directory("home");
    fs::write(scratch.join("file"), "x").unwrap();
    let missing = plan(&[Path::new("missing")], &scratch.0);
    assert_eq!(copy(Direction::Here, &missing, &home), Ok(Status::Failed));
    let nowhere = plan(&[&scratch.join("file")], Path::new("no/such/place"));
    let failure = copy(Direction::There, &nowhere, &home).unwrap_err();
    let place = home.join("no/such");
    assert_eq!(failure.what, format!("far:{}: no such file or directory", place.display()));
    // Before there is a session at all.
    let gone = plan(&[&scratch.join("gone")], Path::new("x"));
    assert!(gone.check_sources().unwrap_err().what.ends_with("gone: no such file or directory"));
    let several = [Path::new("a"), Path::new("b")];
    let file = plan(&several, &scratch.join("file"));
    assert!(file.check_target().unwrap_err().what.contains("not a directory"));
}

#[test]
fn from_one_host_to_another() {
    let scratch = Scratch::new();
    let home = scratch.directory("home");
    let top = tree(&scratch);
    fs::rename(&top, home.join("tree")).unwrap();
    let top = home.join("tree");
    let between = plan(&[Path::new("tree")], Path::new("copy"));
    assert_eq!(copy(Direction::Between, &between, &home), Ok(Status::Copied));
    assert_eq!(snapshot(&home.join("copy")), snapshot(&top));

    // Several, by a pattern and with one that is not there.
    fs::create_dir(home.join("into")).unwrap();
    let sources = [Path::new("tree/file*"), Path::new("missing"), Path::new("tree/a/.")];
    let several = plan(&sources, Path::new("into"));
    assert_eq!(copy(Direction::Between, &several, &home), Ok(Status::Failed));
    assert_eq!(fs::read(home.join("into/file 7")).unwrap(), noise(7, 3 << 20));
    assert_eq!(snapshot(&home.join("into/b")), snapshot(&top.join("a/b")));

    let nowhere = plan(&[Path::new("tree")], Path::new("no/such/place"));
    let failure = copy(Direction::Between, &nowhere, &home).unwrap_err();
    let place = home.join("no/such");
    assert_eq!(failure.what, format!("other:{}: no such file or directory", place.display()));
}

/// A host can send another only files that the user named.
#[test]
fn a_host_that_lies_to_another_is_not_believed() {
    let scratch = Scratch::new();
    let home = scratch.directory("home");
    let entry = |name: &'static [u8]| {
        let (kind, times) = (Kind::File { size: 1 }, Times::default());
        Message::Entry(Entry { parent: 0, source: 0, name, kind, mode: 0o644, times })
    };
    for (name, is_asked_for) in [(&b"a.log"[..], true), (b".bashrc", false), (b"../x", false)] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(async {
            let (near, far) = rove_streams::in_memory();
            let (second, other) = rove_streams::in_memory();
            let running = async {
                let from = Host { name: "far", streams: &near };
                let to = Host { name: "other", streams: &second };
                let asked = plan(&[Path::new("*.log")], Path::new(""));
                let status = run(Clock::start(), Route::Between { from, to }, &asked).await;
                near.close();
                second.close();
                status
            };
            let lying = async {
                let (_, mut channel) = far.accept().await.unwrap();
                let mut told = Vec::new();
                let digest = *blake3::hash(b"x").as_bytes();
                let begin = Message::Begin { index: 1, offset: 0 };
                for message in
                    [entry(name), Message::Listed, begin, Message::Data(b"x"), Message::End(digest)]
                {
                    message.encode(&mut told);
                }
                channel.write_all(&told).await.unwrap();
                let mut heard = Vec::new();
                let _ = channel.read_to_end(&mut heard).await;
            };
            tokio::join!(running, lying, serve(&other, &home)).0
        });
        let there: Vec<_> = snapshot(&scratch.0).into_keys().collect();
        if is_asked_for {
            assert_eq!(outcome, Ok(Status::Copied));
            assert_eq!(there, [Path::new("home"), Path::new("home/a.log")]);
            fs::remove_file(home.join("a.log")).unwrap();
        } else {
            let failure = outcome.unwrap_err();
            assert!(failure.what.starts_with("other:the other end sent"), "{}", failure.what);
            assert!(failure.what.ends_with("which was not asked for"), "{}", failure.what);
            assert_eq!(there, [Path::new("home")]);
        }
    }
}

#[test]
fn an_order_of_another_version_is_answered() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(async {
        let (near, far) = rove_streams::in_memory();
        let mut channel = near.open(b"\x02\xff").await.unwrap();
        let (request, there) = far.accept().await.unwrap();
        rove::testing::copy::serve(&request[1..], there, &far, Path::new("/"), Waits::Told).await;
        let mut said = Vec::new();
        channel.read_to_end(&mut said).await.unwrap();
        said
    });
    assert!(String::from_utf8_lossy(&said).contains("update the older of the two"));
}
