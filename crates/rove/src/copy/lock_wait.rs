//! A part that another copy has locked: how long it is waited for, and who is told.

use std::time::Duration;

use crate::copy::buggify::Point;
use crate::copy::held::FileNumber;
use crate::copy::message::{Message, shown};
use crate::copy::pipe::Outbox;
use crate::copy::watch::Watch;
use crate::copy::workers::Workers;
use crate::sessions::release::release;

/// How often to try the lock of a part before concluding that another copy is at work, and the pause between
/// tries.
pub(super) const LOCK_TRIES: u32 = 300;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// How often its holder is asked to let it go.
const ASK_EACH: u32 = 5;

/// The try at which the user is told: after 1 s. A holder whose client is gone has let go by then.
const TOLD_AT: u32 = 10;

/// The wait for one part.
pub(super) struct LockWait<'a> {
    /// Where the work is done.
    pub(super) workers: Workers,
    /// The number of the file's entry.
    pub(super) index: u32,
    /// Its path for the user.
    pub(super) path: &'a [u8],
    pub(super) watch: &'a Watch,
    /// Where the sender is told, if it knows that message.
    pub(super) sender: Option<&'a mut Outbox>,
    /// Whether the file is asked for anew if another copy has written to the part meanwhile.
    pub(super) is_borne: bool,
}

impl LockWait<'_> {
    /// Waits until the lock of this file is to be tried again, and asks its holder for it now and then.
    pub(super) async fn pause(&mut self, tried: u32, file: FileNumber) {
        let mut heard = None;
        if tried.is_multiple_of(ASK_EACH) && self.workers == Workers::Threads {
            // Its client may be gone, which it is to look at.
            heard = release(file);
        }
        if tried == TOLD_AT {
            self.tell(heard).await;
        }
        self.workers.pause(LOCK_PAUSE).await;
    }

    /// Whether to find that another copy has written to the part, by choice.
    pub(super) fn takes_disturbance(&self) -> bool {
        self.is_borne && self.watch.buggify().takes(Point::PartDisturbed)
    }

    async fn tell(&mut self, heard: Option<u32>) {
        self.watch.wait(&shown(self.path), heard);
        if let Some(sender) = &mut self.sender
            && sender.send(&Message::Waiting { index: self.index, heard }).await.is_ok()
        {
            // A sender that is gone is noticed where it is heard.
            let _ = sender.flush().await;
        }
    }
}
