//! UDP sockets: whether datagrams may be cut in pieces, and how large ones a route takes.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

use crate::os::unix::interfaces::address;

/// What becomes of a datagram that is larger than a link on its way takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Large {
    /// The system and routers cut it in pieces.
    Cut,
    /// It is sent whole, and lost.
    Whole,
}

/// Says what becomes of large datagrams. A socket of IPv6 carries those of IPv4 as well, for which it cannot be said:
/// FreeBSD and macOS cut them only if asked, and quinn-udp has asked for neither there.
pub(crate) fn set_large(socket: &UdpSocket, large: Large) -> io::Result<()> {
    let (level, option) = match socket.local_addr()?.is_ipv6() {
        true => (libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG),
        false => (libc::IPPROTO_IP, libc::IP_DONTFRAG),
    };
    let whole: libc::c_int = (large == Large::Whole).into();
    let (from, size) = ((&raw const whole).cast(), size_of_val(&whole) as libc::socklen_t);
    // SAFETY: an open socket, and a number that the call reads.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, from, size) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The largest IP packet that the interface of a connected socket takes, in octets. Neither system tells it of the
/// route.
pub(crate) fn route_mtu(socket: &UdpSocket) -> io::Result<u32> {
    let own = socket.local_addr()?.ip().to_canonical();
    interface_mtu(own)?.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// The MTU of the interface with this address; `None` if there is none.
fn interface_mtu(own: IpAddr) -> io::Result<Option<u32>> {
    let mut list = ptr::null_mut();
    // SAFETY: `list` is a live local; it is freed below.
    if unsafe { libc::getifaddrs(&mut list) } == -1 {
        return Err(io::Error::last_os_error());
    }
    let mut mtu = None;
    // SAFETY: a null-terminated chain that nobody else changes, with names that are strings; an address, where there is
    // one, has the layout that its family says, and a link's data is an `if_data`.
    unsafe {
        let mut named = list;
        while !named.is_null() && address((*named).ifa_addr) != Some(own) {
            named = (*named).ifa_next;
        }
        let mut entry = if named.is_null() { named } else { list };
        while !entry.is_null() && mtu.is_none() {
            let is_it = CStr::from_ptr((*entry).ifa_name) == CStr::from_ptr((*named).ifa_name);
            let is_link = !(*entry).ifa_addr.is_null()
                && i32::from((*(*entry).ifa_addr).sa_family) == libc::AF_LINK;
            if is_it && is_link && !(*entry).ifa_data.is_null() {
                mtu = Some((*entry).ifa_data.cast::<libc::if_data>().read_unaligned().ifi_mtu);
            }
            entry = (*entry).ifa_next;
        }
        libc::freeifaddrs(list);
    }
    Ok(mtu)
}
