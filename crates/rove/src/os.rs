//! What the system offers, each call behind a safe function. What every Unix has is in `unix`, what only Linux
//! has in `linux`; those two alone use `unsafe`. They know nothing of sessions, keys or protocols.

mod linux;
pub(crate) mod lookup;
pub(crate) mod names;
mod unix;

use std::io;

use zeroize::Zeroizing;

pub(crate) use linux::{clock, files, netlink, sandbox};
pub(crate) use unix::watch::watch;
pub(crate) use unix::{
    account, environment, interfaces, locked, process, pty, signals, socket_file, terminfo, tty,
};

/// An error in the system's words, without its number.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Fresh random bytes from the kernel.
pub fn random<const N: usize>() -> io::Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    let mut filled = 0;
    while filled < N {
        let rest = &mut bytes[filled..];
        match rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_differ() {
        assert_ne!(*random::<16>().unwrap(), *random::<16>().unwrap());
    }
}
