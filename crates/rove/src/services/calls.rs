//! Calls back from the server, found by the number that it was given.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rove_streams::{Channel, Streams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::notice::Notice;
use crate::os::local_socket;
use crate::services::forward::agent;
use crate::services::{Call, Id};

/// The calls that the server may make.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) expected: Arc<Mutex<BTreeMap<Id, mpsc::Sender<Channel>>>>,
    pub(crate) next: Arc<AtomicU32>,
}

impl Callbacks {
    /// A number to give to the server, and the channels that it opens under that number, as long as the
    /// receiver lives.
    pub(crate) fn expect(&self) -> (Id, mpsc::Receiver<Channel>) {
        let id = Id(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = mpsc::channel(CALLED_BACK_MAX);
        self.expected().insert(id, sender);
        (id, receiver)
    }

    /// Answers the server's calls until the session is over. Closes unexpected ones.
    pub(crate) async fn answer(
        self,
        streams: Streams,
        agent: Option<PathBuf>,
        news: mpsc::Sender<Notice>,
    ) {
        let mut tasks = tokio::task::JoinSet::new();
        // One question at a time: a host's programs must not bury the user in dialogs.
        let turn = Arc::new(tokio::sync::Mutex::new(()));
        while let Some((request, channel)) = streams.accept().await {
            while tasks.try_join_next().is_some() {}
            match (Call::decode(&request), &agent) {
                (Some(Call::Back(id)), _) => self.deliver(id, channel),
                (Some(Call::Agent), Some(agent)) if tasks.len() < QUESTIONS_MAX => {
                    let asking = ask_agent(agent.clone(), channel, news.clone());
                    let turn = Arc::clone(&turn);
                    tasks.spawn(async move {
                        let _turn = turn.lock().await;
                        asking.await;
                    });
                }
                _ => {
                    let _ =
                        news.try_send(Notice::Step("the server asked for what it may not".into()));
                }
            }
        }
    }

    pub(crate) fn deliver(&self, id: Id, channel: Channel) {
        let mut expected = self.expected();
        let taken = expected.get(&id).map(|sender| sender.try_send(channel));
        if let Some(Err(mpsc::error::TrySendError::Closed(_))) = taken {
            expected.remove(&id);
        }
    }

    pub(crate) fn expected(&self) -> MutexGuard<'_, BTreeMap<Id, mpsc::Sender<Channel>>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connections that the server may have opened to us at a time, all of which may come at once when an outage is over;
/// more are closed at once.
pub(crate) const CALLED_BACK_MAX: usize = 256;

/// Questions to the agent that wait for their turn; more are given up at once. Twice as many as a server asks at a
/// time: it may ask the next before the end of one that it has the answer to was seen here.
pub(crate) const QUESTIONS_MAX: usize = 32;

/// Passes one question of a program on the host to the user's agent, if the question may pass. A question
/// that was given up does not reach it, or is withdrawn.
pub(crate) async fn ask_agent(path: PathBuf, channel: Channel, news: mpsc::Sender<Notice>) {
    let (mut reader, mut writer) = channel.split();
    let conversation = async {
        let Some(message) = agent::read(&mut reader).await? else { return Ok(()) };
        let Some(question) = agent::Question::of(&message) else {
            let _ = news
                .try_send(Notice::Note("the host asked for more of your agent than it may".into()));
            return agent::write(&mut writer, agent::FAILURE).await;
        };
        let answer = async {
            if question == agent::Question::Sign {
                let _ = news.try_send(Notice::Note("a program on the host uses your agent".into()));
            }
            let mut agent = local_socket::connect(&path).await?;
            agent::write(&mut agent, &message).await?;
            agent::read(&mut agent).await
        };
        let answer = tokio::select! {
            biased;
            // Nothing follows the question but its end.
            _ = reader.read_u8() => return Ok(()),
            answer = answer => answer.ok().flatten(),
        };
        let answer = answer.filter(|answer| question.is_answered_by(answer));
        agent::write(&mut writer, answer.as_deref().unwrap_or(agent::FAILURE)).await?;
        writer.shutdown().await
    };
    if let Err(error) = conversation.await {
        let _ = news.try_send(Notice::Step(format!("the host's question to the agent: {error}")));
    }
}
