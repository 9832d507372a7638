//! A copy between two hosts: passes the messages of the sender at one to the receiver at the other, and
//! back, and counts them. The two need neither know nor trust each other: the receiver has the user's words,
//! and takes only names that match them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::copy::message::{Kind, Message, Outcome, shown};
use crate::copy::outgoing::FILES_MAX;
use crate::copy::pipe::{self, Broken, Inbox, Outbox};
use crate::copy::watch::{Current, Watch};
use crate::copy::workers::wait;

/// The longest name to keep for showing; longer ones are not shown.
const NAME_BYTES_MAX: usize = 255;

/// Why a relay stops.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Over {
    /// Everything is in its place.
    Complete,
    /// This host ended it, for this reason.
    Refused(String, String),
    /// The connection with this host has ended.
    Ended(String),
    /// This host breaks the protocol.
    Malformed(String),
}

/// One host's end of a channel: its name for the user, and the channel.
pub(crate) struct End<R, W> {
    /// Its name before paths there.
    pub host: String,
    /// The channel to it.
    pub channel: (R, W),
}

/// Passes on the messages of a copy until it is over.
pub(crate) async fn relay(
    from: End<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    to: End<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    watch: Arc<Watch>,
) -> Over {
    let buggify = watch.buggify();
    let (from_sender, to_sender, sender) =
        pipe::join(from.channel.0, from.channel.1, 0, || true, buggify.clone());
    let (from_receiver, to_receiver, receiver) =
        pipe::join(to.channel.0, to.channel.1, 0, || true, buggify.clone());
    watch.count_queue(to_receiver.queued());
    let over = Arc::new(OnceLock::new());
    let passing = |host: &str| Passing {
        host: host.to_owned(),
        watch: Arc::clone(&watch),
        over: Arc::clone(&over),
        listed: 0,
        names: HashMap::new(),
    };
    let (there, back) = (passing(&from.host), passing(&to.host));
    let there =
        tokio::task::spawn_blocking(|| wait(there.pass(from_sender, to_receiver, Passing::sent)));
    let back =
        tokio::task::spawn_blocking(|| wait(back.pass(from_receiver, to_sender, Passing::told)));
    // What was said first counts, and whoever has said it goes: that ends the threads too. A direction that
    // ends without a reason leaves it to the other, which is still to hear why.
    let said = async |task: JoinHandle<()>| {
        let _ = task.await;
        if over.get().is_none() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = said(there) => {}
        () = said(back) => {}
        _ = async { tokio::join!(sender, receiver) } => {}
    }
    over.get().cloned().unwrap_or(Over::Ended(to.host))
}

/// One direction.
struct Passing {
    /// The host that speaks.
    host: String,
    watch: Arc<Watch>,
    /// The first reason to stop counts.
    over: Arc<OnceLock<Over>>,
    /// Entries so far.
    listed: u32,
    /// Names of listed files that have not begun, to be shown. At most [`FILES_MAX`] are kept.
    names: HashMap<u32, Vec<u8>>,
}

impl Passing {
    async fn pass(
        mut self,
        mut inbox: Inbox,
        mut out: Outbox,
        count: fn(&mut Passing, &Message<'_>) -> Option<Over>,
    ) {
        loop {
            if !inbox.is_ready() && out.flush().await.is_err() {
                // The other direction knows why.
                return;
            }
            let (message, octets) = match inbox.hear_octets().await {
                Ok(heard) => heard,
                Err(Broken::Silent) => continue,
                Err(Broken::Ended) => return self.end(Over::Ended(self.host.clone())),
                Err(Broken::Malformed) => return self.end(Over::Malformed(self.host.clone())),
            };
            if let Some(over) = count(&mut self, &message) {
                self.end(over);
                if out.pass_on(octets).await.is_ok() {
                    let _ = out.flush().await;
                }
                return;
            }
            // The sender need not know of it, and an older one does not.
            if matches!(message, Message::Waiting { .. }) {
                continue;
            }
            if out.pass_on(octets).await.is_err() {
                return;
            }
        }
    }

    fn end(&self, over: Over) {
        let _ = self.over.set(over);
    }

    /// Counts the sender's messages; returns the reason to stop, if any.
    fn sent(&mut self, message: &Message<'_>) -> Option<Over> {
        match message {
            Message::Entry(entry) => {
                self.listed = self.listed.saturating_add(1);
                if let Kind::File { size } = entry.kind {
                    self.watch.list(size);
                    if self.names.len() < FILES_MAX && entry.name.len() <= NAME_BYTES_MAX {
                        self.names.insert(self.listed, entry.name.to_vec());
                    }
                }
            }
            Message::Listed => self.watch.listed(),
            Message::Begin { index, offset } => {
                self.watch.begin(&self.names.remove(index).unwrap_or_default(), *offset);
            }
            Message::Data(data) => self.watch.pass(data.len() as u64),
            Message::Packed { length, .. } => self.watch.pass(u64::from(*length)),
            Message::Hole(length) => self.watch.pass(*length),
            Message::End(_) | Message::Marks { .. } | Message::Gone { why: b"", .. } => {}
            Message::Gone { why: text, .. } | Message::Trouble(text) => {
                self.watch.trouble_at(&self.host, text);
            }
            Message::Fatal(text) => return Some(Over::Refused(self.host.clone(), shown(text))),
            Message::Ask { .. }
            | Message::Want { .. }
            | Message::Waiting { .. }
            | Message::Done { .. }
            | Message::Complete => {
                return Some(Over::Malformed(self.host.clone()));
            }
        }
        None
    }

    /// Counts the receiver's messages.
    fn told(&mut self, message: &Message<'_>) -> Option<Over> {
        match message {
            Message::Ask { .. } | Message::Want { .. } => {}
            Message::Waiting { heard, .. } => match self.watch.current() {
                Current::Copying(name) => self.watch.wait(&name, *heard),
                _ => self.watch.wait("a file", *heard),
            },
            Message::Done { outcome: Outcome::Done, .. } => self.watch.done(),
            Message::Done { outcome: Outcome::Skipped, .. } => self.watch.skip(),
            Message::Done { outcome: Outcome::Failed(text), .. } | Message::Trouble(text) => {
                self.watch.trouble_at(&self.host, text);
            }
            Message::Fatal(text) => return Some(Over::Refused(self.host.clone(), shown(text))),
            Message::Complete => return Some(Over::Complete),
            _ => return Some(Over::Malformed(self.host.clone())),
        }
        None
    }
}
