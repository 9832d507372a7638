//! The life of the program: when it starts, and when its end ends the session.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rove_ssp::Time;

use super::{Running, Shell};
use crate::server::login::Login;

/// How long after the end of the program to wait for its last output, where another program holds the
/// terminal. The kernel has it already; this gives it time to hand it over.
const LAST_OUTPUT: Duration = Duration::from_millis(100);

/// Pieces to take at the end of that time, if there are more: all that the kernel holds, and all read ahead.
/// Another program that floods the terminal does not keep the session.
const LAST_PIECES: usize = 16;

impl Shell {
    pub(super) fn start_program(&mut self, now: Time) {
        let login = match std::mem::replace(&mut self.program, Running::Reported { ended: now }) {
            Running::Waiting(login) => login,
            other => {
                self.program = other;
                return;
            }
        };
        let Login { command, motd, .. } = *login;
        self.show(now, &motd);
        let name = command.get_program().to_string_lossy().into_owned();
        // It is let go only once the program has ended.
        let pty = self.pty.as_ref().expect("a program that has not begun has its terminal");
        match pty.get_ref().start(command, self.cores) {
            Ok(child) => self.program = Running::Started(child),
            Err(error) => {
                self.show(now, format!("rove server: {name}: {error}\n").as_bytes());
                let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
                self.end_program(now, ExitStatus::from_raw(code << 8));
            }
        }
    }

    pub(super) fn end_program(&mut self, now: Time, status: ExitStatus) {
        self.program = Running::Ended { at: now, status };
        if let Some(pty) = &mut self.pty {
            pty.get_mut().release();
        }
    }

    /// Puts text of our own on the screen, each line from its start as a terminal driver would.
    pub(super) fn show(&mut self, now: Time, text: &[u8]) {
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => {
                    self.session.handle_output(now, line);
                    self.session.handle_output(now, b"\r\n");
                }
                None => self.session.handle_output(now, line),
            }
        }
    }

    /// Starts the session's end when the program has ended and its last output is in.
    ///
    /// As with sshd, the end of the session leader is what counts: what it left running in the
    /// background may hold the terminal open for ever, and a leader that lets go of it is still at work.
    pub(super) fn watch_program(&mut self, now: Time) {
        let Running::Ended { at, status } = self.program else { return };
        if !self.hung_up && self.last_output_by().is_some_and(|by| now < by) {
            return;
        }
        for _ in 0..LAST_PIECES {
            if self.hung_up || !self.has_output() {
                break;
            }
            self.read_program(now);
        }
        self.program = Running::Reported { ended: at };
        self.let_terminal_go();
        if !self.closing {
            self.closing = true;
            self.session.child_exited(now, exit_code(status));
            self.program_reported(now);
        }
    }

    /// Nothing comes from the terminal any more. What programs left running on it lose it as at any end of a session, and
    /// not a day later, when nobody has come back.
    fn let_terminal_go(&mut self) {
        self.hung_up = true;
        self.output = None;
        self.pty = None;
        self.records.remove();
    }

    /// Until when, the program having ended, the end of its output is awaited.
    pub(super) fn last_output_by(&self) -> Option<Time> {
        match self.program {
            Running::Ended { at, .. } => Some(at + LAST_OUTPUT),
            Running::Waiting(_) | Running::Started(_) | Running::Reported { .. } => None,
        }
    }
}

/// What a shell would report of a program that ended so.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
