//! An ssh that stays: its standard input and output are a way to the session beside UDP (`docs/wire.md` §11).

use std::fmt;

use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::os::pipe;
use crate::ssh::said::Shown;

/// ssh's files, and what came by them already.
pub struct SshStream {
    input: pipe::File,
    output: pipe::File,
    first: Vec<u8>,
    machine: String,
    _said: Option<Shown>,
}

impl SshStream {
    /// The files of this ssh, which is waited for from now on. `None` if they are not to be had.
    pub(super) fn of(
        mut child: Child,
        input: Option<ChildStdin>,
        output: ChildStdout,
        (first, machine): (Vec<u8>, String),
        said: Option<Shown>,
    ) -> Option<SshStream> {
        let input = pipe::of_input(input?).ok()?;
        let output = pipe::of_output(output).ok()?;
        // It ends once both files are closed here, unless it serves others as their ControlMaster.
        tokio::spawn(async move { child.wait().await });
        Some(SshStream { input, output, first, machine, _said: said })
    }

    /// The machine that the session is on.
    pub(crate) fn machine(&self) -> &str {
        &self.machine
    }

    /// Where it is read from and written to, and what was read already. What ssh says from now on is dropped.
    pub(crate) fn into_files(self) -> (pipe::File, pipe::File, Vec<u8>) {
        (self.output, self.input, self.first)
    }
}

impl fmt::Debug for SshStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshStream").field("first", &self.first.len()).finish_non_exhaustive()
    }
}
