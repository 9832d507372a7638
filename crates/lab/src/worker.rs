//! A thread that carries packets in real time, and takes orders meanwhile.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A running worker. It is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker<O> {
    orders: Sender<O>,
    wake: UnixStream,
    /// The order to end.
    stop: fn() -> O,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Where a worker finds its orders.
#[derive(Debug)]
pub(crate) struct Inbox<O> {
    orders: Receiver<O>,
    /// Readable once there is an order.
    pub(crate) woken: UnixStream,
}

impl<O: Send + 'static> Worker<O> {
    /// Starts one.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn start(
        name: String,
        stop: fn() -> O,
        work: impl FnOnce(Inbox<O>) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Worker<O>> {
        let (orders, inbox) = channel();
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let inbox = Inbox { orders: inbox, woken };
        let thread = std::thread::Builder::new().name(name).spawn(move || work(inbox))?;
        Ok(Worker { orders, wake, stop, thread: Some(thread) })
    }
}

impl<O> Worker<O> {
    /// Gives it an order.
    pub(crate) fn order(&self, order: O) {
        // One that has stopped on an error says so at its end; orders to it go nowhere.
        let _ = self.orders.send(order);
        let _ = (&self.wake).write(&[0]);
    }

    /// Stops it.
    ///
    /// # Errors
    /// With what stopped it before.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.order((self.stop)());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("a worker panicked")),
            None => Ok(()),
        }
    }
}

impl<O> Drop for Worker<O> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

impl<O> Inbox<O> {
    /// The next order, if one has come.
    pub(crate) fn next(&self) -> Option<O> {
        self.orders.try_recv().ok()
    }

    /// Makes [`Inbox::woken`] wait for further orders; those that have come are to be taken after it.
    pub(crate) fn rest(&mut self) {
        while matches!(self.woken.read(&mut [0; 64]), Ok(1..)) {}
    }
}
