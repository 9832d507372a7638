//! UDP sockets: whether datagrams may be cut in pieces, and how large ones a route takes.
#![allow(unsafe_code)]

use std::io;
use std::net::UdpSocket;
use std::os::windows::io::AsRawSocket;

use windows_sys::Win32::Networking::WinSock::{
    IP_DONTFRAGMENT, IP_MTU, IPPROTO_IP, IPPROTO_IPV6, IPV6_DONTFRAG, IPV6_MTU, SOCKET,
    WSAGetLastError, getsockopt, setsockopt,
};

/// What becomes of a datagram that is larger than a link on its way takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Large {
    /// The system and routers cut it in pieces.
    Cut,
    /// It is sent whole, and lost.
    Whole,
}

/// Says what becomes of large datagrams. A socket of IPv6 carries those of IPv4 as well; that it cannot be said for
/// these is no failure.
pub(crate) fn set_large(socket: &UdpSocket, large: Large) -> io::Result<()> {
    let whole = i32::from(large == Large::Whole);
    let v4 = set(socket, IPPROTO_IP, IP_DONTFRAGMENT, whole);
    match socket.local_addr()?.is_ipv6() {
        true => set(socket, IPPROTO_IPV6, IPV6_DONTFRAG, whole),
        false => v4,
    }
}

fn set(socket: &UdpSocket, level: i32, option: i32, value: i32) -> io::Result<()> {
    let (from, size) = ((&raw const value).cast(), size_of_val(&value) as i32);
    // SAFETY: an open socket, and a number that the call reads.
    match unsafe { setsockopt(raw(socket), level, option, from, size) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// The largest IP packet that the route of a connected socket takes, in octets. Windows before 10 2004 does not tell.
pub(crate) fn route_mtu(socket: &UdpSocket) -> io::Result<u32> {
    let (level, option) = match socket.peer_addr()?.is_ipv4() {
        true => (IPPROTO_IP, IP_MTU),
        false => (IPPROTO_IPV6, IPV6_MTU),
    };
    let mut mtu = 0_u32;
    let mut size = size_of_val(&mtu) as i32;
    // SAFETY: an open socket, and a number of that size that the call writes.
    match unsafe { getsockopt(raw(socket), level, option, (&raw mut mtu).cast(), &mut size) } {
        0 => Ok(mtu),
        _ => Err(last_error()),
    }
}

fn raw(socket: &UdpSocket) -> SOCKET {
    socket.as_raw_socket() as SOCKET
}

fn last_error() -> io::Error {
    // SAFETY: the call takes nothing.
    io::Error::from_raw_os_error(unsafe { WSAGetLastError() })
}
