//! Forwardings beside a shell: a thread of their own serves them. So the thread that runs the session, and reads what
//! its peer sends, can give up the files and sockets that forwardings need (threats row 38).

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use rove_streams::Streams;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::notice::Notice;
use crate::os::sandbox::{Reach, confine};
use crate::os::threads;
use crate::services::calls::Callbacks;
use crate::services::forward::wishes::Ready;
use crate::trace::Trace;

/// Forwardings in service. Dropping it ends them, and waits until their socket files are gone.
#[derive(Debug)]
pub(crate) struct Serving {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Serves these in a thread that has given up all access that they do not name. `lost` is called if a
    /// fault of ours ends it.
    pub(crate) fn start(
        ready: Ready,
        streams: Streams,
        news: mpsc::Sender<Notice>,
        lost: impl FnOnce() + Send + 'static,
        trace: &Trace,
    ) -> io::Result<Serving> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let work = move || {
            // The receiver waits for this, so the send cannot fail.
            let _ = tell.send(confine(&Reach::Named(ready.named())));
            let served = move || serve(runtime, ready, streams, news, stopped);
            if catch_unwind(AssertUnwindSafe(served)).is_err() {
                lost();
            }
        };
        let thread = threads::spawn("forwardings", work)?;
        let confined = told.recv().map_err(io::Error::other)?;
        trace.step(format_args!("the forwarding thread is confined: {confined}"));
        Ok(Serving { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread catches its own panics and calls `lost`.
            let _ = thread.join();
        }
    }
}

fn serve(
    runtime: Runtime,
    ready: Ready,
    streams: Streams,
    news: mpsc::Sender<Notice>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        let ready = match ready.moved_here() {
            Ok(ready) => ready,
            Err(error) => {
                let _ = news.send(Notice::Failed(format!("cannot forward: {error}"))).await;
                return;
            }
        };
        tokio::select! {
            () = ready.serve(streams, Callbacks::default(), news) => {}
            _ = stopped => {}
        }
    });
    // A name that is still being looked up must not keep the program.
    runtime.shutdown_background();
}
