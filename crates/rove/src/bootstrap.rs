//! What is said over ssh to start a server: the remote command, and the lines that answer it.
//!
//! Pure text: `ssh` runs the processes. The nonce tells our lines from whatever login scripts
//! print; it proves nothing, ssh has already authenticated the host.

pub mod nonce;

mod answer;
mod request;

pub use answer::{Answer, Reader, Refusal, Reply, Wire};
pub use request::{Bind, CostProfile, Ports, Purpose, Request, Server};
