//! One TCP connection from near to far that carries as much as it can: random octets, which the receiver checks.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_congestion};

use crate::net::{End, Net};
use crate::rng::Rng;

/// A running connection.
pub(super) struct Flow {
    is_over: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    sender: JoinHandle<io::Result<()>>,
    sink: JoinHandle<io::Result<()>>,
}

impl Flow {
    /// Starts one from the near end to `to`, where the far end or a forwarding listens, with this congestion
    /// control or the network's.
    ///
    /// # Errors
    /// If no connection is made, or the system has no such control.
    pub(super) fn start(
        net: &Net,
        to: SocketAddrV4,
        at: SocketAddrV4,
        congestion: Option<&'static str>,
    ) -> io::Result<Flow> {
        let listener = net.within(End::Far, move || TcpListener::bind(at))?;
        set_socket_timeout(&listener, Timeout::Recv, Some(ACCEPT_MAX))?;
        let near = net.within(End::Near, move || TcpStream::connect(to))?;
        if let Some(congestion) = congestion {
            set_tcp_congestion(&near, congestion)?;
        }
        near.set_write_timeout(Some(LOOK))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let received = Arc::new(AtomicU64::new(0));
        let over = Arc::clone(&is_over);
        let sender = Builder::new().name("flow".into()).spawn(move || send(near, &over))?;
        let (over, sum) = (Arc::clone(&is_over), Arc::clone(&received));
        let sink = Builder::new().name("sink".into()).spawn(move || {
            let (far, _) = listener.accept()?;
            far.set_read_timeout(Some(LOOK))?;
            sink(far, &over, &sum)
        })?;
        Ok(Flow { is_over, received, sender, sink })
    }

    /// Octets that have arrived so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it broke, or something else arrived than was sent.
    pub(super) fn finish(self) -> io::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        let done = |thread: JoinHandle<io::Result<()>>| {
            thread.join().map_err(|_| io::Error::other("an end of a connection panicked"))?
        };
        done(self.sender).and(done(self.sink))
    }
}

fn send(mut near: TcpStream, is_over: &AtomicBool) -> io::Result<()> {
    let mut octets = Octets::new();
    while !is_over.load(Ordering::Relaxed) {
        match near.write(octets.next()) {
            Ok(length) => octets.pass(length),
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn sink(mut far: TcpStream, is_over: &AtomicBool, received: &AtomicU64) -> io::Result<()> {
    let mut octets = Octets::new();
    let mut buffer = vec![0; PART_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let next = octets.next();
        match far.read(&mut buffer[..next.len()]) {
            Ok(0) if is_over.load(Ordering::Relaxed) => break,
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) if next[..length] != buffer[..length] => {
                return Err(io::Error::other("something else arrived than was sent"));
            }
            Ok(length) => {
                octets.pass(length);
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The octets sent: the same for all.
struct Octets {
    rng: Rng,
    part: Vec<u8>,
    at: usize,
}

impl Octets {
    fn new() -> Octets {
        Octets { rng: Rng::new(1), part: Vec::new(), at: 0 }
    }

    /// Those that come next, never none.
    fn next(&mut self) -> &[u8] {
        if self.at == self.part.len() {
            let rng = &mut self.rng;
            self.part = (0..PART_BYTES / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
            self.at = 0;
        }
        &self.part[self.at..]
    }

    /// This many octets have passed.
    fn pass(&mut self, length: usize) {
        self.at += length;
    }
}

/// How soon an end is noticed.
const LOOK: Duration = Duration::from_millis(100);
/// How long a connection may take to be made, over what forwards it.
const ACCEPT_MAX: Duration = Duration::from_secs(60);
/// Octets made at a time.
const PART_BYTES: usize = 64 << 10;
