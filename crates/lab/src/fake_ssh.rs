//! A fake `ssh` that runs the remote command on this machine and puts a relay between client and server. It
//! replaces the port in the server's answer with the relay's. Programs that bootstrap over ssh then cross the
//! emulated link without knowing.
//!
//! `rove-lab here --gate SOCKET [ssh options] HOST COMMAND` is the ssh. It sends the server's port through the
//! socket to a [`FakeSsh`] in the process that owns the relay, which answers with the relay's port.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread::JoinHandle;

use crate::relay::Relay;

/// Where servers started by `rove-lab here` get their relay.
#[derive(Debug)]
pub(crate) struct FakeSsh {
    relay: Arc<Relay>,
    open: Arc<AtomicBool>,
    /// The port of the server that came last; 0: none has come.
    server: Arc<AtomicU16>,
    socket: std::path::PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl FakeSsh {
    /// Listens on a new socket at this path for the relay's servers.
    pub(crate) fn open(socket: &Path, relay: Relay) -> io::Result<FakeSsh> {
        let listener = UnixListener::bind(socket)?;
        let relay = Arc::new(relay);
        let open = Arc::new(AtomicBool::new(true));
        let server = Arc::new(AtomicU16::new(0));
        let (tended, is_open, newest) =
            (Arc::clone(&relay), Arc::clone(&open), Arc::clone(&server));
        let thread = std::thread::Builder::new().name("gate".into()).spawn(move || {
            for stream in listener.incoming() {
                if !is_open.load(Ordering::Acquire) {
                    return;
                }
                // A visitor that says nothing sensible gets no answer and fails with a message of its own.
                let _ = stream.and_then(|stream| admit(stream, &tended, &newest));
            }
        })?;
        Ok(FakeSsh { relay, open, server, socket: socket.to_owned(), thread: Some(thread) })
    }

    /// The relay behind it.
    pub(crate) fn relay(&self) -> &Relay {
        &self.relay
    }

    /// Whether the server that came last still has its port.
    pub(crate) fn has_server(&self) -> bool {
        let port = self.server.load(Ordering::Acquire);
        port != 0 && UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_err()
    }
}

impl Drop for FakeSsh {
    fn drop(&mut self) {
        self.open.store(false, Ordering::Release);
        // The thread wakes up for one more visitor and finds the gate closed.
        if UnixStream::connect(&self.socket).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn admit(mut stream: UnixStream, relay: &Relay, server: &AtomicU16) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).take(LINE_BYTES_MAX).read_line(&mut line)?;
    let port: u16 = line.trim().parse().map_err(io::Error::other)?;
    server.store(port, Ordering::Release);
    relay.set_target(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    writeln!(stream, "{}", relay.address().port())
}

/// Does what `ssh` is asked to, here. Returns the command's exit status.
pub(crate) fn run(gate: &Path, words: &[OsString]) -> io::Result<i32> {
    let command = remote_command(words).ok_or_else(|| io::Error::other("no host and command"))?;
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .env("SSH_CONNECTION", "127.0.0.1 40000 127.0.0.1 22")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or_else(|| io::Error::other("the pipe is missing"))?;
    let mut stdout = io::stdout().lock();
    // The servers print far less; a command that floods is cut short rather than held in memory.
    for line in BufReader::new(output.take(OUTPUT_BYTES_MAX)).split(b'\n') {
        let mut line = line?;
        if let Some((port, at)) = announced_port(&line) {
            let new = exchange(gate, port)?;
            line.splice(at, new.to_string().into_bytes());
        }
        line.push(b'\n');
        stdout.write_all(&line)?;
        stdout.flush()?;
    }
    Ok(child.wait()?.code().unwrap_or(255))
}

fn exchange(gate: &Path, port: u16) -> io::Result<u16> {
    let mut stream = UnixStream::connect(gate)?;
    writeln!(stream, "{port}")?;
    let mut answer = String::new();
    stream.take(LINE_BYTES_MAX).read_to_string(&mut answer)?;
    answer.trim().parse().map_err(io::Error::other)
}

/// The command in the words after `ssh`: all that follow the options and the host.
pub(crate) fn remote_command(words: &[OsString]) -> Option<OsString> {
    let mut rest = words.iter();
    loop {
        let word = rest.next()?.to_str()?;
        if word == "--" {
            rest.next()?;
            break;
        }
        if !word.starts_with('-') {
            break;
        }
        if word.len() == 2 && OPTIONS_WITH_VALUE.contains(&word[1..]) {
            rest.next()?;
        }
    }
    let words: Vec<&OsString> = rest.skip_while(|word| *word == "--").collect();
    let mut command = OsString::new();
    for (n, word) in words.iter().enumerate() {
        if n > 0 {
            command.push(" ");
        }
        command.push(word);
    }
    (!command.is_empty()).then_some(command)
}

/// The UDP port in a server's answer, and where it stands in the line: `ROVE <version> <nonce> <port> ...` or
/// `MOSH CONNECT <port> ...`.
fn announced_port(line: &[u8]) -> Option<(u16, std::ops::Range<usize>)> {
    let text = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = text.split(' ').collect();
    let word = match words.as_slice() {
        ["MOSH", "CONNECT", port, ..] => port,
        ["ROVE", version, _, port, ..] if version.parse::<u32>().is_ok() => port,
        _ => return None,
    };
    let start = word.as_ptr() as usize - text.as_ptr() as usize;
    Some((word.parse().ok()?, start..start + word.len()))
}

/// ssh's options that take a value in the next word (ssh(1) of OpenSSH 9.2).
const OPTIONS_WITH_VALUE: &str = "BbcDEeFIiJLlmOopQRSWw";

/// The longest line that may arrive at the socket: a port number.
const LINE_BYTES_MAX: u64 = 16;

/// The most a remote command may print before its server's answer and after: a megabyte of noise fits.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_skipped() {
        for (words, command) in [
            ("host true", Some("true")),
            ("-n -tt -S none -o ProxyCommand=x user@host -- a b", Some("a b")),
            ("-4 -p 22 -- host cmd", Some("cmd")),
            ("-oA=b host cmd", Some("cmd")),
            ("host", None),
            ("-p", None),
        ] {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert_eq!(remote_command(&words), command.map(OsString::from), "{words:?}");
        }
    }

    #[test]
    fn ports_are_found() {
        for (line, port) in [
            ("MOSH CONNECT 60001 abc", Some((60001, 13..18))),
            ("ROVE 0 nonce 60002 key 10.0.0.1", Some((60002, 13..18))),
            ("ROVE BEGIN nonce 1.2.3.4 5 6.7.8.9 22", None),
            ("ROVE NONE nonce /usr/bin", None),
            ("MOSH CONNECT x abc", None),
            ("noise", None),
        ] {
            assert_eq!(announced_port(line.as_bytes()), port, "{line}");
        }
    }
}
