//! Puts a rove on a host through the user's own ssh: one conversation, in which the host first says what it is, and
//! then reads the program from its standard input.
//!
//! The program goes to a directory of its own under a name that nobody runs, and gets its place by a rename once it is
//! whole and has run there: a copy that breaks off replaces nothing. Sessions of an older rove
//! go on, since their file stays until three newer ones are there.

pub(crate) mod executable;
mod order;
mod program;
mod script;

use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;

use crate::bootstrap::{Facts, Reader};
use crate::failure::Failure;
use crate::os;
use crate::ssh::{Conversation, Heard, Login, no_answer};
use crate::trace::Trace;

use order::shown;
pub(crate) use order::{Order, version};
pub(crate) use program::{Program, own_sum};

/// What came of it.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Installed {
    /// It is there.
    Copied {
        /// Its version and kind of machine.
        what: String,
        /// Another rove that comes before it on the PATH there, and its version.
        hidden_by: Option<(String, String)>,
    },
    /// The same was there already.
    AlreadyThere(String),
}

/// Copies a rove to the host of `login`.
pub(crate) async fn install(
    login: &Login,
    order: &Order,
    trace: &Trace,
) -> Result<Installed, Failure> {
    let remote = script::script(&login.request.nonce, order.to.as_deref());
    let report = login.config().await.unwrap_or_default();
    let mut command = login.remote(&remote, report);
    trace.step(format_args!("to run {remote}"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| login.not_started(&error))?;
    let mut input = child.stdin.take().expect("standard input is a pipe");
    let output = child.stdout.take().expect("standard output is a pipe");
    let mut reader = Reader::new(login.request.nonce.clone());
    let mut conversation = Conversation { child, output, reader: &mut reader };
    let has = |word| move |reader: &Reader| reader.facts().get(word).is_some();
    let heard = conversation.listen(has("READY")).await;
    if heard.map_err(|refusal| login.refused(&refusal))? == Heard::End {
        let ended = no_answer(&mut conversation.child).await;
        return Err(login.silent(&reader, ended));
    }
    let facts = conversation.reader.facts();
    let program = order.program(login, facts.get("HOST").unwrap_or_default())?;
    if !order.force && program.is_there(facts) {
        return Ok(Installed::AlreadyThere(program.title()));
    }
    order.check(login, &program, facts)?;
    trace.note(format_args!("copying {} to {}", program.title(), login.host));
    // A host that stops reading says why.
    let sent = input.write_all(program.head().as_bytes()).await;
    let sent = match sent {
        Ok(()) => input.write_all(&program.octets).await,
        failed => failed,
    };
    drop(input);
    let over = |reader: &Reader| has("DONE")(reader) || has("FAILED")(reader);
    let heard = conversation.listen(over).await.map_err(|refusal| login.refused(&refusal))?;
    let facts = conversation.reader.facts();
    match (facts.get("FAILED"), heard) {
        (Some(why), _) => Err(order.failed(login, why)),
        (None, Heard::Wanted) => {
            Ok(Installed::Copied { what: program.title(), hidden_by: hidden_by(facts, &program) })
        }
        (None, Heard::End) => Err(broken_off(login, sent)),
    }
}

/// The rove that comes before the copy on the PATH there, if it is another one.
fn hidden_by(facts: &Facts, program: &Program) -> Option<(String, String)> {
    let said = |word| Some(shown(facts.get(word)?));
    let (path, version) = (said("FIRST")?, said("ITS")?);
    (program.version() != Some(version.as_str())).then_some((path, version))
}

fn broken_off(login: &Login, sent: io::Result<()>) -> Failure {
    let why = sent.err().map(|error| format!(": {error}")).unwrap_or_default();
    Failure::new(
        format!("the connection to {} ended before the copy was whole{why}", login.host),
        "Nothing there has changed. Try it again.",
    )
}

impl Login {
    /// The same login for another attempt.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn again(&self) -> Result<Login, Failure> {
        let random =
            os::random().map_err(|error| Failure::new(format!("no randomness: {error}"), ""))?;
        let mut login = self.clone();
        login.request.nonce = crate::bootstrap::nonce::Nonce::new(*random);
        Ok(login)
    }
}
