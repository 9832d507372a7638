//! Pings the far end during a measurement: small UDP datagrams to an echo server, ten a second.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::Clock;
use crate::net::{End, FAR, Net};

/// A running ping.
#[derive(Debug)]
pub(crate) struct Pinger {
    is_over: Arc<AtomicBool>,
    pinger: JoinHandle<Vec<f64>>,
    echo: JoinHandle<()>,
}

impl Pinger {
    /// Starts one over the whole path.
    ///
    /// # Errors
    /// If the system has no sockets or threads.
    pub(crate) fn start(net: &Net) -> io::Result<Pinger> {
        let far = net.within(End::Far, || UdpSocket::bind((FAR, 0)))?;
        let near = net.within(End::Near, || UdpSocket::bind("0.0.0.0:0"))?;
        near.connect(far.local_addr()?)?;
        far.set_read_timeout(Some(GAP))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, ended) = (Arc::clone(&is_over), Arc::clone(&is_over));
        let echo = std::thread::Builder::new().name("echo".into()).spawn(move || {
            let mut datagram = [0; PING_BYTES];
            while !over.load(Ordering::Relaxed) {
                // Nothing came for a while, or its sender is gone.
                if let Ok((length, from)) = far.recv_from(&mut datagram) {
                    let _ = far.send_to(&datagram[..length], from);
                }
            }
        })?;
        let pinger =
            std::thread::Builder::new().name("ping".into()).spawn(move || ping(&near, &ended))?;
        Ok(Pinger { is_over, pinger, echo })
    }

    /// Ends it: the round trips in milliseconds of all that came back.
    pub(crate) fn finish(self) -> Vec<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.echo.join();
        self.pinger.join().unwrap_or_default()
    }
}

fn ping(socket: &UdpSocket, is_over: &AtomicBool) -> Vec<f64> {
    let clock = Clock::start();
    let (mut sent, mut trips) = (0u32, Vec::new());
    let mut datagram = [0; PING_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let next = GAP * sent;
        if clock.elapsed() >= next {
            datagram[..8].copy_from_slice(&(clock.elapsed().as_micros() as u64).to_le_bytes());
            // A full queue of the device loses it, as any other packet.
            let _ = socket.send(&datagram);
            sent += 1;
            continue;
        }
        let left = (next - clock.elapsed().min(next)).max(Duration::from_micros(1));
        if socket.set_read_timeout(Some(left)).is_err() {
            break;
        }
        let mut back = [0; PING_BYTES];
        if socket.recv(&mut back).is_ok_and(|length| length == PING_BYTES) {
            let mut micros = [0; 8];
            micros.copy_from_slice(&back[..8]);
            let trip = clock.elapsed().as_micros() as u64 - u64::from_le_bytes(micros);
            trips.push(trip as f64 / 1e3);
        }
    }
    trips
}

/// Ten a second.
const GAP: Duration = Duration::from_millis(100);
/// As long as ping(8)'s.
const PING_BYTES: usize = 56;
