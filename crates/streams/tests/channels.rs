//! Tests channels as programs use them, between two ends in one process.
#![allow(clippy::disallowed_methods, reason = "a test waits in real time")]
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::io::ErrorKind;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use rove_streams::{CHANNELS_MAX, Channel, Ended, REQUEST_BYTES_MAX, Streams, in_memory};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, copy};

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await.unwrap() });
}

async fn pair() -> ((Streams, Streams), Channel, Channel) {
    let (client, server) = in_memory();
    let near = client.open(b"request").await.unwrap();
    let (request, far) = server.accept().await.unwrap();
    assert_eq!(request, b"request");
    ((client, server), near, far)
}

#[test]
fn octets_arrive_and_each_half_closes_by_itself() {
    run(async {
        let (_ends, mut near, mut far) = pair().await;
        near.write_all(b"question").await.unwrap();
        near.shutdown().await.unwrap();
        let mut question = String::new();
        far.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        far.write_all(b"answer").await.unwrap();
        // What was written before the end arrives though the writer is gone.
        far.shutdown().await.unwrap();
        drop(far);
        let mut answer = String::new();
        near.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer");
        let refused = near.write_all(b"more").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BrokenPipe, "it was shut down");
    });
}

#[test]
fn either_end_opens_channels() {
    run(async {
        let (client, server) = in_memory();
        assert!(client.is_heard() && server.is_heard());
        let mut near = server.open(&vec![7; REQUEST_BYTES_MAX]).await.unwrap();
        let (request, mut far) = client.accept().await.unwrap();
        assert_eq!(request, vec![7; REQUEST_BYTES_MAX]);
        near.write_all(b"x").await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'x');
        let oversized = server.open(&vec![7; REQUEST_BYTES_MAX + 1]).await;
        assert_eq!(oversized.unwrap_err(), Ended::Oversized);
    });
}

#[test]
fn dropping_gives_up_both_directions() {
    run(async {
        let (_ends, near, mut far) = pair().await;
        drop(near);
        assert_eq!(far.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(far.write_u8(1).await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn dropping_a_half_gives_up_that_direction() {
    run(async {
        let (_ends, near, mut far) = pair().await;
        let (near_reader, mut near_writer) = near.split();
        drop(near_reader);
        assert_eq!(far.write_u8(1).await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        near_writer.write_all(b"still").await.unwrap();
        near_writer.shutdown().await.unwrap();
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "still");
    });
}

#[test]
fn what_was_read_before_a_reset_counts() {
    run(async {
        let (_ends, mut near, mut far) = pair().await;
        near.write_all(b"some").await.unwrap();
        drop(near);
        let mut some = [0; 4];
        far.read_exact(&mut some).await.unwrap();
        assert_eq!(&some, b"some");
        assert_eq!(far.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

fn echo(far: Channel) {
    let (mut reader, mut writer) = far.split();
    tokio::spawn(async move {
        copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
    });
}

#[test]
fn long_streams_come_back_as_they_were() {
    run(async {
        let (_ends, near, far) = pair().await;
        echo(far);
        let octets: Vec<u8> = (0..20_000_000u32).map(|n| (n % 251) as u8).collect();
        let (mut reader, mut writer) = near.split();
        let sent = octets.clone();
        let writing = tokio::spawn(async move {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
            writer.arrived().await.unwrap();
        });
        let mut back = Vec::new();
        reader.read_to_end(&mut back).await.unwrap();
        assert!(back == octets, "all came back as it was");
        writing.await.unwrap();
    });
}

/// If no program reads the echo, both directions fill, and writing stops.
#[test]
fn a_writer_waits_for_its_reader() {
    run(async {
        let (_ends, mut near, far) = pair().await;
        echo(far);
        let octets = vec![1; 1 << 20];
        let mut written = 0;
        // Everything is in one process: once others had a hundred turns and nothing moved, it is stuck.
        let mut idle = 0;
        while idle < 100 {
            let write = std::future::poll_fn(|cx| {
                Poll::Ready(match Pin::new(&mut near).poll_write(cx, &octets) {
                    Poll::Ready(count) => count.unwrap(),
                    Poll::Pending => 0,
                })
            });
            let count = write.await;
            written += count;
            idle = if count == 0 { idle + 1 } else { 0 };
            tokio::task::yield_now().await;
        }
        assert!((256 << 10..20 << 20).contains(&written), "{written} octets were taken");
    });
}

#[test]
fn opening_waits_while_too_many_are_open() {
    run(async {
        let (client, server) = in_memory();
        let mut open = Vec::new();
        for _ in 0..CHANNELS_MAX {
            open.push(client.open(b"").await.unwrap());
        }
        let more = client.clone();
        let waiting = tokio::spawn(async move { more.open(b"last").await.unwrap() });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        for _ in 0..CHANNELS_MAX {
            drop(server.accept().await.unwrap());
        }
        open.clear();
        waiting.await.unwrap();
    });
}

#[test]
fn the_end_of_the_session_ends_all() {
    run(async {
        let ((client, server), mut near, mut far) = pair().await;
        client.close();
        assert_eq!(near.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionAborted);
        assert_eq!(far.write_u8(1).await.unwrap_err().kind(), ErrorKind::ConnectionAborted);
        assert!(server.accept().await.is_none());
        assert_eq!(client.open(b"").await.unwrap_err(), Ended::Closed);
    });
}
