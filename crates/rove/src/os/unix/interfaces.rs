//! The network interfaces of this machine.
#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// The addresses of this machine's network interfaces, in the system's order.
pub(crate) fn interface_addresses() -> io::Result<Vec<IpAddr>> {
    let mut list = ptr::null_mut();
    // SAFETY: `list` is a live local; it is freed below.
    if unsafe { libc::getifaddrs(&mut list) } == -1 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut entry = list;
    // SAFETY: a null-terminated chain that nobody else changes; an address, where there is one, has
    // the layout that its family says.
    unsafe {
        while !entry.is_null() {
            addresses.extend(address((*entry).ifa_addr));
            entry = (*entry).ifa_next;
        }
        libc::freeifaddrs(list);
    }
    Ok(addresses)
}

/// The address of IP in this one, if it is one.
///
/// # Safety
/// `socket` is null or points to a socket address whose layout its family names.
pub(crate) unsafe fn address(socket: *const libc::sockaddr) -> Option<IpAddr> {
    if socket.is_null() {
        return None;
    }
    // SAFETY: the caller's promise. The system's addresses need not be aligned for the wider types.
    unsafe {
        match i32::from((*socket).sa_family) {
            libc::AF_INET => {
                let v4 = socket.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = socket.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_an_interface() {
        assert!(interface_addresses().unwrap().contains(&Ipv4Addr::LOCALHOST.into()));
    }
}
