//! The way back to a session over ssh, on a system whose processes cannot split off a part of themselves: there is none.

#[path = "../keeper/message.rs"]
pub(crate) mod message;

use std::convert::Infallible;
use std::io;
use std::task::{Context, Poll};

use self::message::{Reply, Wish};
use crate::os::pipe::File;
use crate::ssh::Login;

/// The client's end: there is none.
#[derive(Debug)]
pub(crate) struct Keeper(Infallible);

/// The same, waited for by the client's driver.
#[derive(Debug)]
pub(crate) struct Asked(Infallible);

/// What a keeper has answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// ssh's output and input, and the octets that came already.
    Way(File, File, Vec<u8>),
    /// Any other reply.
    Other(Reply),
}

impl Keeper {
    /// Refuses.
    pub(crate) fn start(_: &Login) -> io::Result<Keeper> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "not on this system"))
    }

    /// There is none to watch.
    pub(crate) fn watch(self) -> io::Result<Asked> {
        match self.0 {}
    }
}

impl Asked {
    /// There is none to ask.
    pub(crate) fn ask(&self, _: Wish) -> io::Result<()> {
        match self.0 {}
    }

    /// There is none to answer.
    pub(crate) fn poll_answer(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Answer>> {
        match self.0 {}
    }
}
