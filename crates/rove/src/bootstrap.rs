//! The conversation over ssh that starts a server: the remote command and the lines that answer it.
//!
//! This is text only; `ssh` runs the processes. The nonce tells our lines from the output of login
//! scripts. It authenticates nothing: ssh has already authenticated the host.

pub(crate) mod nonce;

mod answer;
mod request;

pub(crate) use answer::Facts;
pub(crate) use answer::Noise;
pub(crate) use answer::Reply;
pub use answer::{Answer, Reader, Refusal, Wire};
pub use request::{Bind, CostProfile, Goal, Ports, Purpose, Request, Server};
pub(crate) use request::{DECODE, SEARCHED, SFTP_SERVERS, program_line, sh, version_line};
