//! Sessions that outlive their clients, as a client hears of them. This system has none of its own.

#[path = "../sessions/age.rs"]
pub(crate) mod age;
#[path = "../sessions/line.rs"]
pub(crate) mod line;
#[path = "../sessions/name.rs"]
pub(crate) mod name;
#[path = "../sessions/words.rs"]
pub(crate) mod words;

pub(crate) mod release {
    //! Other copies of this user that hold a file: no server of theirs runs here.

    /// Nobody is asked.
    pub(crate) fn release(_: (u64, u64)) -> Option<u32> {
        None
    }
}
