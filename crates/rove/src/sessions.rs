//! Sessions that outlive their clients, as their user finds them on a machine: names, the directory of their control
//! sockets, the lines that are spoken there, and who asks. A session's own side is `server/control.rs`.

pub(crate) mod age;
pub(crate) mod ask;
pub(crate) mod directory;
pub(crate) mod line;
pub(crate) mod name;
pub(crate) mod release;
pub(crate) mod words;
