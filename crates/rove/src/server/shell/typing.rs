//! Moves the client's input to the terminal.

use std::io;

use rove_ssp::Time;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Shell;

/// Octets held that the terminal has no room for. More stay with the session, which has a limit of its
/// own; a Ctrl-C among those is not seen until there is room.
const TYPED_OCTETS_MAX: usize = 4 << 20;

impl Shell {
    /// Types what the client sent, as far as the terminal takes it.
    pub(super) fn type_input(&mut self, now: Time) {
        let mut fresh = Vec::new();
        while !self.hung_up {
            if self.typed.is_empty() {
                self.session.poll_input(&mut fresh);
                self.typed.extend(&fresh);
            }
            let typed = self.typed.first();
            if typed.is_empty() {
                return;
            }
            let Some(pty) = &self.pty else { return };
            let written = pty.try_io(Interest::WRITABLE, |pty| match pty.write(typed)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                count => Ok(count),
            });
            match written {
                Ok(count) => {
                    self.watch.on_keys(now, &typed[..count]);
                    self.typed.took(count);
                    self.life.used(now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !fresh.is_empty() || self.session.pending_input() > 0 {
                        self.look_for_interrupts(now);
                    }
                    return;
                }
                // The terminal is gone, which reading it will tell.
                Err(_) => return,
            }
        }
    }

    /// Lets Ctrl-C and its like overtake input that the terminal has no room for: they are the way out of a
    /// program that does not read.
    pub(super) fn look_for_interrupts(&mut self, now: Time) {
        let mut octets = Vec::new();
        while self.typed.len() < TYPED_OCTETS_MAX && self.session.pending_input() > 0 {
            self.session.poll_input(&mut octets);
            self.typed.extend(&octets);
        }
        let Some(pty) = self.pty.as_ref().map(AsyncFd::get_ref) else { return };
        let Ok(interrupts) = pty.interrupts() else { return };
        for signal in self.typed.take_interrupts(interrupts) {
            // The line is emptied as well.
            self.watch.on_keys(now, b"\x03");
            // A terminal that is gone is seen when it is read.
            let _ = pty.interrupt(interrupts, signal);
        }
    }
}
