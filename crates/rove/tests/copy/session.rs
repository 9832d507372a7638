//! `rove cp` over a session's streams, from the user's words to the server's answer.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rove::clock::Clock;
use rove::copy::client::{Direction, Plan, Status, Style, run};
use rove::failure::Failure;
use rove::services::Request;

use crate::ends::{Scratch, noise, snapshot, tree};

fn plan(direction: Direction, sources: &[&Path], target: &Path) -> Plan {
    let path = |path: &Path| path.as_os_str().as_bytes().to_vec();
    Plan {
        host: "far".to_owned(),
        direction,
        sources: sources.iter().map(|source| path(source)).collect(),
        target: path(target),
        recursive: true,
        preserve: false,
        several: sources.len() > 1,
        limit: 0,
        style: Style::Quiet,
    }
}

/// Runs a copy with a server whose user is at home in `home`.
fn copy(plan: &Plan, home: &Path) -> Result<Status, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (near, far) = rove_streams::in_memory();
        let serving = async {
            while let Some((request, channel)) = far.accept().await {
                let Some(Request::Copy(order)) = Request::decode(&request) else {
                    panic!("{request:?} is no copy");
                };
                rove::copy::serve(&order, channel, &far, home).await;
            }
        };
        let running = async {
            let status = run(Clock::start(), &near, plan).await;
            near.close();
            status
        };
        tokio::join!(running, serving).0
    })
}

#[test]
fn there_and_back() {
    let scratch = Scratch::new();
    let top = tree(&scratch);
    let home = scratch.directory("home");
    let there = plan(Direction::There, &[&top], Path::new("~/new"));
    assert_eq!(copy(&there, &home), Ok(Status::Copied));
    assert_eq!(snapshot(&home.join("new")), snapshot(&top));

    let back = scratch.directory("back");
    let here = plan(Direction::Here, &[Path::new("new/file*"), Path::new("new/a/.")], &back);
    assert_eq!(copy(&here, &home), Ok(Status::Copied));
    assert_eq!(fs::read(back.join("file 7")).unwrap(), noise(7, 3 << 20));
    assert_eq!(snapshot(&back.join("b")), snapshot(&top.join("a/b")));

    // The home directory by each of its names.
    for name in ["", "~", "~/", "."] {
        let all = scratch.directory("all");
        let here = plan(Direction::Here, &[Path::new(name)], &all);
        assert_eq!(copy(&here, &home), Ok(Status::Copied), "{name:?}");
        assert_eq!(snapshot(&all), snapshot(&home), "{name:?}");
        fs::remove_dir_all(all).unwrap();
    }
}

#[test]
fn what_fails_there_is_told_here() {
    let scratch = Scratch::new();
    let home = scratch.directory("home");
    fs::write(scratch.join("file"), "x").unwrap();
    let missing = plan(Direction::Here, &[Path::new("missing")], &scratch.0);
    assert_eq!(copy(&missing, &home), Ok(Status::Failed));
    let nowhere = plan(Direction::There, &[&scratch.join("file")], Path::new("no/such/place"));
    let failure = copy(&nowhere, &home).unwrap_err();
    let place = home.join("no/such");
    assert_eq!(failure.what, format!("far:{}: no such file or directory", place.display()));
    // Before there is a session at all.
    let gone = plan(Direction::There, &[&scratch.join("gone")], Path::new("x"));
    assert!(gone.check().unwrap_err().what.ends_with("gone: no such file or directory"));
    let several = [Path::new("a"), Path::new("b")];
    let file = plan(Direction::Here, &several, &scratch.join("file"));
    assert!(file.check().unwrap_err().what.contains("not a directory"));
}

#[test]
fn an_order_of_another_version_is_answered() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(async {
        let (near, far) = rove_streams::in_memory();
        let mut channel = near.open(b"\x02\xff").await.unwrap();
        let (request, there) = far.accept().await.unwrap();
        rove::copy::serve(&request[1..], there, &far, Path::new("/")).await;
        let mut said = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut channel, &mut said).await.unwrap();
        said
    });
    assert!(String::from_utf8_lossy(&said).contains("update the older of the two"));
}
