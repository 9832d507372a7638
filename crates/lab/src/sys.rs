//! The only unsafe code of the lab: gives a child its own session and controlling terminal, and puts it into
//! networks of its own with TUN devices.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Setter, ioctl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Opens a pseudoterminal of this size and starts the command on it, as the leader of a session with that
/// controlling terminal. Returns the master side.
pub(crate) fn spawn_on_pty(
    mut command: Command,
    rows: u16,
    cols: u16,
) -> io::Result<(Child, OwnedFd)> {
    let (master, slave) = open_pty(rows, cols)?;
    command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
    lead_session_on_stdin(&mut command);
    let child = command.spawn()?;
    Ok((child, master))
}

/// Opens a pseudoterminal of this size: its master's side, and its program's.
pub(crate) fn open_pty(rows: u16, cols: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty())?;
    set_window_size(&master, rows, cols)?;
    Ok((master, slave))
}

/// Tells the programs on this terminal its new size.
pub(crate) fn set_window_size(terminal: impl AsFd, rows: u16, cols: u16) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}

fn lead_session_on_stdin(command: &mut Command) {
    let lead = || {
        rustix::process::setsid()?;
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls; it allocates nothing, takes no lock
    // and touches no memory but its own stack.
    unsafe { command.pre_exec(lead) };
}

/// Puts the calling thread into a network of its own; its child processes inherit it.
///
/// # Errors
/// If the system does not allow it: it needs root, or a user namespace of one's own.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: without NEWFILES nothing that Rust's library keeps is taken apart; the thread goes on with the
    // same memory and descriptors.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Makes this process root in a user namespace of its own, where it may make networks.
///
/// # Errors
/// If the system does not allow it, or the process has more than one thread.
pub(crate) fn become_root_within() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // SAFETY: as above.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    std::fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
}

/// Starts the command in this network.
pub(crate) fn start_in_network(command: &mut Command, network: Arc<OwnedFd>) {
    let enter = move || {
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(network.as_fd(), kind).map_err(io::Error::from)
    };
    // SAFETY: between fork and exec the closure makes one system call; it allocates nothing, takes no lock
    // and touches no memory but its own.
    unsafe { command.pre_exec(enter) };
}

/// Makes a TUN device of this name in the calling thread's network. Its descriptor reads and writes whole IP
/// packets, without waiting.
///
/// # Errors
/// If /dev/net/tun is missing or may not be opened, or the device cannot be made.
pub(crate) fn open_tun(name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let tun = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    let mut request = [0; IFREQ_BYTES];
    let room = name.len().min(IFNAME_BYTES - 1);
    request[..room].copy_from_slice(&name.as_bytes()[..room]);
    request[IFNAME_BYTES..IFNAME_BYTES + 2].copy_from_slice(&(IFF_TUN | IFF_NO_PI).to_ne_bytes());
    // SAFETY: TUNSETIFF reads and writes a struct ifreq behind the pointer, which is as long as the array.
    let set = unsafe { Setter::<TUNSETIFF, [u8; IFREQ_BYTES]>::new(request) };
    // SAFETY: the descriptor is a TUN device's, for which this request is made (linux/if_tun.h).
    unsafe { ioctl(&tun, set) }?;
    Ok(tun)
}

/// Lets the calling thread go before all that share the processor: real-time scheduling, at the lowest of its
/// priorities.
///
/// # Errors
/// If the system does not allow it.
pub(crate) fn go_first() -> io::Result<()> {
    // SAFETY: the struct is as the call expects it, all zero where nothing is set.
    let mut wanted: libc::sched_param = unsafe { std::mem::zeroed() };
    wanted.sched_priority = 1;
    // SAFETY: 0 is the calling thread; the pointer is to a struct that outlives the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &wanted) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// From linux/if_tun.h and linux/if.h; the struct's size is that of 64-bit systems.
const TUNSETIFF: rustix::ioctl::Opcode = 0x4004_54ca;
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
const IFNAME_BYTES: usize = 16;
const IFREQ_BYTES: usize = 40;
