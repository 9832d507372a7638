//! One TCP connection over a path that carries as much as it can: random octets, which the receiver checks.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_congestion};

use crate::net::{End, Net};
use crate::relay::Direction;
use crate::rng::Rng;

/// A running connection. It ends when it is dropped.
pub(super) struct Flow {
    is_over: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    ends: Vec<JoinHandle<io::Result<()>>>,
}

impl Flow {
    /// Connects the near end to `to`, where the far end or a forwarding listens, and lets octets go this way, under
    /// this congestion control or the network's.
    ///
    /// # Errors
    /// If no connection is made, or the system has no such control.
    pub(super) fn start(
        net: &Net,
        way: Direction,
        to: SocketAddrV4,
        at: SocketAddrV4,
        congestion: Option<&'static str>,
    ) -> io::Result<Flow> {
        let listener = net.within(End::Far, move || TcpListener::bind(at))?;
        set_socket_timeout(&listener, Timeout::Recv, Some(ACCEPT_MAX))?;
        let near = net.within(End::Near, move || TcpStream::connect(to))?;
        if let Some(congestion) = congestion {
            match way {
                Direction::Up => set_tcp_congestion(&near, congestion)?,
                // Connections have their listener's.
                Direction::Down => set_tcp_congestion(&listener, congestion)?,
            }
        }
        let (is_over, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let [over_near, over_far] = [Arc::clone(&is_over), Arc::clone(&is_over)];
        let [sum_near, sum_far] = [Arc::clone(&received), Arc::clone(&received)];
        let near = move || match way {
            Direction::Up => send(near, &over_near),
            Direction::Down => sink(near, &over_near, &sum_near),
        };
        let far = move || match (way, listener.accept()?.0) {
            (Direction::Up, far) => sink(far, &over_far, &sum_far),
            (Direction::Down, far) => send(far, &over_far),
        };
        let ends = vec![
            Builder::new().name("flow near".into()).spawn(near)?,
            Builder::new().name("flow far".into()).spawn(far)?,
        ];
        Ok(Flow { is_over, received, ends })
    }

    /// Octets that have arrived so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it broke, or something else arrived than was sent.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        let done = |end: JoinHandle<io::Result<()>>| {
            end.join().map_err(|_| io::Error::other("an end of a connection panicked"))?
        };
        // All are waited for, the first error counts.
        std::mem::take(&mut self.ends).into_iter().map(done).fold(Ok(()), Result::and)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn send(mut to: TcpStream, is_over: &AtomicBool) -> io::Result<()> {
    to.set_write_timeout(Some(LOOK))?;
    let mut octets = Octets::new();
    while !is_over.load(Ordering::Relaxed) {
        match to.write(octets.next()) {
            Ok(length) => octets.pass(length),
            Err(error) if is_pause(&error) => {}
            // The other end may have seen first that it is over.
            Err(_) if is_over.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn sink(mut from: TcpStream, is_over: &AtomicBool, received: &AtomicU64) -> io::Result<()> {
    from.set_read_timeout(Some(LOOK))?;
    let mut octets = Octets::new();
    let mut buffer = vec![0; PART_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let next = octets.next();
        match from.read(&mut buffer[..next.len()]) {
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
            Err(_) if is_over.load(Ordering::Relaxed) => break,
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
