//! Sessions that outlive their clients, as a client hears of them. This system has none of its own.

#[path = "../sessions/age.rs"]
pub(crate) mod age;
#[path = "../sessions/line.rs"]
pub(crate) mod line;
#[path = "../sessions/name.rs"]
pub(crate) mod name;
#[path = "../sessions/words.rs"]
pub(crate) mod words;
