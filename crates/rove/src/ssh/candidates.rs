//! The addresses at which to try a server, in order.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

/// Addresses tried at most.
const CANDIDATES_MAX: usize = 8;

/// Which addresses of the host are used, and in which order they are tried.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Family {
    /// All, in the system's order.
    #[default]
    Any,
    /// IPv4 only; ssh is told too.
    Inet,
    /// IPv6 only; ssh is told too.
    Inet6,
    /// All, IPv4 first.
    PreferInet,
    /// All, IPv6 first.
    PreferInet6,
}

impl Family {
    fn admits(self, address: &SocketAddr) -> bool {
        match self {
            Family::Inet => address.is_ipv4(),
            Family::Inet6 => address.is_ipv6(),
            Family::Any | Family::PreferInet | Family::PreferInet6 => true,
        }
    }

    fn sort(self, addresses: &mut [SocketAddr]) {
        match self {
            Family::PreferInet => addresses.sort_by_key(SocketAddr::is_ipv6),
            Family::PreferInet6 => addresses.sort_by_key(SocketAddr::is_ipv4),
            Family::Any | Family::Inet | Family::Inet6 => {}
        }
    }
}

/// The addresses a server may be reached at; at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidates {
    /// Best first.
    pub addresses: Vec<SocketAddr>,
    /// How many at the front are the host's by name; the rest are what the other end says of
    /// itself, which behind a NAT may be somebody else's here.
    pub named: usize,
}

impl Candidates {
    /// Puts the addresses in the order in which they are likely to work; `None` if there is none.
    pub(super) fn gather(
        family: Family,
        port: NonZeroU16,
        mut named: Vec<SocketAddr>,
        ssh_address: Option<IpAddr>,
        announced: &[IpAddr],
    ) -> Option<Candidates> {
        family.sort(&mut named);
        // The address that ssh itself reached has shown that it works.
        named.sort_by_key(|address| Some(address.ip()) != ssh_address);
        // Our own machine is meant only if the name says so: what ssh's connection has there is the host's word as well.
        // Where the name says nothing that word is all there is.
        let is_here = match named.as_slice() {
            [] => ssh_address.is_some_and(|ip| ip.is_loopback()),
            named => named.iter().any(|address| address.ip().is_loopback()),
        };
        // An IPv4 address may come as IPv6's, which is loopback and link-local to nobody but the kernel.
        let told = ssh_address.iter().chain(announced).map(IpAddr::to_canonical);
        let told = told.filter(|ip| is_reachable(ip) && (is_here || !ip.is_loopback()));
        let told = told.map(|ip| SocketAddr::new(ip, 0)).collect();

        let mut addresses = Vec::new();
        let mut add = |more: Vec<SocketAddr>| {
            for mut address in more.into_iter().filter(|address| family.admits(address)) {
                address.set_port(port.get());
                if addresses.len() < CANDIDATES_MAX && !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            addresses.len()
        };
        let named = add(named);
        (add(told) > 0).then_some(Candidates { addresses, named })
    }
}

/// Whether an address that a host claims to have can mean that host here.
fn is_reachable(ip: &IpAddr) -> bool {
    let local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(local || ip.is_unspecified() || ip.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_the_order_in_which_they_may_work() {
        let (v4, v6, link) = ("192.0.2.1", "2001:db8::1", "fe80::1%3");
        for (family, named, ssh_address, announced, expected) in [
            (Family::Any, &[v6, v4][..], None, &[][..], "2001:db8::1 192.0.2.1 |"),
            (
                Family::Any,
                &[v6, v4],
                Some(v4),
                &[v6, "10.0.0.1"],
                "192.0.2.1 2001:db8::1 | 10.0.0.1",
            ),
            (Family::Any, &[v4, v4], None, &[v4], "192.0.2.1 |"),
            (Family::Inet, &[v6, v4], Some(v6), &[v6], "192.0.2.1 |"),
            (Family::Inet6, &[v6, v4], Some(v4), &[v4], "2001:db8::1 |"),
            (Family::PreferInet, &[v6, v4], None, &[], "192.0.2.1 2001:db8::1 |"),
            (Family::PreferInet6, &[v4, v6], None, &[], "2001:db8::1 192.0.2.1 |"),
            (Family::PreferInet6, &[v4, v6], Some(v4), &[], "192.0.2.1 2001:db8::1 |"),
            (Family::Any, &[], Some("10.0.0.2"), &["::", "169.254.1.1"], "| 10.0.0.2"),
            (Family::Any, &[link], None, &["fe80::2", "ff02::1"], "fe80::1%3 |"),
            (Family::Any, &[v4], None, &["127.0.0.1", "::1"], "192.0.2.1 |"),
            (Family::Any, &["::1"], None, &["127.0.0.1"], "::1 | 127.0.0.1"),
            // In IPv6's clothes they are the same.
            (Family::Any, &[v4], None, &["::ffff:127.0.0.1", "::ffff:169.254.1.1"], "192.0.2.1 |"),
            (Family::Any, &[v4], None, &["::ffff:224.0.0.1", "::ffff:0.0.0.0"], "192.0.2.1 |"),
            (Family::Any, &[v4], None, &["::ffff:192.0.2.1"], "192.0.2.1 |"),
            (Family::Any, &[v4], None, &["::ffff:10.0.0.1"], "192.0.2.1 | 10.0.0.1"),
            (Family::Inet6, &[v6], None, &["::ffff:10.0.0.1"], "2001:db8::1 |"),
            // SSH_CONNECTION is the host's word too.
            (Family::Any, &[v4], Some("127.0.0.1"), &["::1"], "192.0.2.1 |"),
            (Family::Any, &[], Some("127.0.0.1"), &["::1"], "| 127.0.0.1 ::1"),
            (Family::Inet6, &[v4], None, &[], "none"),
        ] {
            let socket = |ip: &&str| match ip.parse() {
                Ok(ip) => SocketAddr::new(ip, 0),
                Err(_) => format!("[{ip}]:0").parse().expect("a scoped address"),
            };
            let ip = |ip: &str| ip.parse::<IpAddr>().expect("an address");
            let announced: Vec<IpAddr> = announced.iter().map(|text| ip(text)).collect();
            let named = named.iter().map(socket).collect();
            let port = NonZeroU16::MIN;
            let gathered = Candidates::gather(family, port, named, ssh_address.map(ip), &announced);
            let shown = gathered.map_or("none".to_owned(), |Candidates { addresses, named }| {
                let show = |address: &SocketAddr| {
                    assert_eq!(address.port(), 1);
                    address.to_string().trim_end_matches(":1").replace(['[', ']'], "")
                };
                let (first, rest) = addresses.split_at(named);
                let words = first.iter().map(show).chain(["|".to_owned()]);
                words.chain(rest.iter().map(show)).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(shown, expected, "{family:?}");
        }
    }

    #[test]
    fn addresses_are_bounded() {
        let named: Vec<SocketAddr> =
            (0..100).map(|host| SocketAddr::new([192, 0, 2, host].into(), 0)).collect();
        let gathered = Candidates::gather(Family::Any, NonZeroU16::MIN, named, None, &[]);
        assert_eq!(gathered.map(|all| (all.addresses.len(), all.named)), Some((8, 8)));
    }
}
