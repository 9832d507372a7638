//! Looks up the addresses of a host by its name.
//!
//! Each look-up has a thread of its own, which ends with it. A runtime would keep the thread for other work,
//! with the rights it had at its start: in a client confined since then (threats row 38) it would be the one
//! thread that is not.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use tokio::sync::oneshot;

use crate::os::threads;

/// The addresses of a host, each with port 0. A cancelled look-up continues in its thread until the C
/// library returns.
pub(crate) async fn look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, 0).into()]);
    }
    // Some systems take it for this machine.
    if host.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the host's name is empty"));
    }
    let host = host.to_owned();
    let (tell, told) = oneshot::channel();
    let work = move || {
        let addresses = (host, 0).to_socket_addrs().map(Iterator::collect);
        // Nobody may be waiting any more.
        let _ = tell.send(addresses);
    };
    threads::spawn("names", work)?;
    told.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_and_addresses() {
        for (host, address) in [("192.0.2.7", "192.0.2.7:0"), ("2001:db8::7", "[2001:db8::7]:0")] {
            assert_eq!(look_up(host).await.unwrap(), [address.parse().unwrap()], "{host}");
        }
        let found = look_up("localhost").await.unwrap();
        assert!(found.iter().all(|it| it.ip().is_loopback()) && !found.is_empty(), "{found:?}");
        assert!(look_up("a name that is none").await.is_err());
        assert!(look_up("").await.is_err());
    }
}
