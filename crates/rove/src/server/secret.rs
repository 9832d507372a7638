//! The secrets of one client of a session, and the line that announces what is public of them.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};

use rove_ssp::{
    ConnId, Context, Key, KeyPair, MoshWire, NativeWire, PublicKeyOctets, Role, SessionSecrets,
    Wire,
};
use zeroize::Zeroizing;

use crate::bootstrap::nonce::Nonce;
use crate::os;
use crate::server::options::Greeting;

/// The keys of the session. Nothing is sealed before the fork, and the parent wipes them: so no two
/// processes ever use one key.
pub(super) enum Secret {
    Mosh(Key),
    Native {
        /// The public key for the client.
        public: PublicKeyOctets,
        conn: ConnId,
        secrets: SessionSecrets,
    },
}

impl Secret {
    pub(super) fn new(greeting: &Greeting) -> io::Result<Secret> {
        match greeting {
            Greeting::Native { nonce, key } => Secret::native(nonce, key),
            _ => Ok(Secret::Mosh(Key::from_bytes(*os::random()?))),
        }
    }

    /// A fresh pair of keys and a connection id for the client with this key.
    pub(super) fn native(nonce: &Nonce, key: &PublicKeyOctets) -> io::Result<Secret> {
        let conn = ConnId::new(u32::from_be_bytes(*os::random()?));
        let pair = KeyPair::from_random(os::random()?);
        let public = pair.public();
        let context = Context { nonce: nonce.octets(), conn };
        let secrets = pair.agree_as_server(key, &context).map_err(io::Error::other)?;
        Ok(Secret::Native { public, conn, secrets })
    }

    /// The connection id, on the wire that has them.
    pub(super) fn conn(&self) -> Option<ConnId> {
        match self {
            Secret::Mosh(_) => None,
            Secret::Native { conn, .. } => Some(*conn),
        }
    }

    /// The secret of streams beside the session, if the wire has them.
    pub(super) fn streams(&self) -> Option<&[u8; 32]> {
        match self {
            Secret::Mosh(_) => None,
            Secret::Native { secrets, .. } => Some(secrets.streams()),
        }
    }

    pub(super) fn wire(&self) -> Box<dyn Wire> {
        match self {
            Secret::Mosh(key) => Box::new(MoshWire::new(key.clone(), Role::Server)),
            Secret::Native { conn, secrets, .. } => {
                Box::new(NativeWire::new(secrets, *conn, Role::Server))
            }
        }
    }
}

/// The line that a client waits for, and the one behind it of a session that goes on over this stream. On the mosh wire the key is in it: there it travels over ssh.
///
/// It is made whole here and wiped after, and does not go through std's buffered output, which would keep a copy.
pub(super) fn announcement(
    greeting: &Greeting,
    bound: SocketAddr,
    secret: &Secret,
    carries: bool,
) -> Zeroizing<String> {
    let port = bound.port();
    let mut line = Zeroizing::new(String::with_capacity(LINE_BYTES_MAX));
    let written = match (greeting, secret) {
        (Greeting::Native { nonce, .. }, Secret::Native { public, conn, .. }) => {
            let addresses = addresses(bound);
            let answer = writeln!(line, "ROVE 1 {nonce} {port} {public} {conn} {addresses}");
            // Frames follow it.
            let carry = |()| writeln!(line, "ROVE CARRY {nonce} {}", os::machine_and_network());
            if carries { answer.and_then(carry) } else { answer }
        }
        (Greeting::Rove { nonce }, Secret::Mosh(key)) => {
            let addresses = addresses(bound);
            writeln!(line, "ROVE 0 {nonce} {port} {} {addresses}", &*key.to_base64())
        }
        (_, Secret::Mosh(key)) => {
            // A login script's half line on a terminal must not swallow ours.
            let apart = if io::stdin().is_terminal() { "\r\n\n" } else { "" };
            writeln!(line, "{apart}MOSH CONNECT {port} {}", &*key.to_base64())
        }
        (_, Secret::Native { .. }) => unreachable!("a native secret is made for that greeting"),
    };
    written.expect("a string takes all that is written to it");
    line
}

/// Writes a line to the standard output.
pub(super) fn print(line: &str) -> io::Result<()> {
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// More than the longest line: a nonce, a key and [`ADDRESSES_MAX`] addresses of 39 characters.
const LINE_BYTES_MAX: usize = 1024;

fn addresses(bound: SocketAddr) -> String {
    let addresses: Vec<_> = reachable(bound.ip()).iter().map(IpAddr::to_string).collect();
    addresses.join(",")
}

/// The addresses by which a client may find us if ssh's does not work: all except loopback.
fn reachable(bound: IpAddr) -> Vec<IpAddr> {
    if !bound.is_unspecified() {
        return vec![bound];
    }
    let local = |address: &IpAddr| match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    };
    let mut addresses = os::interfaces::interface_addresses().unwrap_or_default();
    addresses.retain(|address| !local(address) && (bound.is_ipv6() || address.is_ipv4()));
    addresses.truncate(ADDRESSES_MAX);
    addresses
}

/// Addresses announced; a client tries the first ones anyway.
const ADDRESSES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn only_what_others_can_reach_is_announced() {
        let bound: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(reachable(bound), [bound]);
        for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
            let addresses = reachable(any);
            assert!(addresses.len() <= ADDRESSES_MAX);
            assert!(addresses.iter().all(|address| !address.is_loopback()));
            assert!(any.is_ipv6() || addresses.iter().all(IpAddr::is_ipv4));
        }
    }
}
