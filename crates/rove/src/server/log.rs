//! Complaints of a server, on its standard error.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Says one line on the standard error; there is nowhere to say that this failed.
pub(crate) fn note(what: &dyn Display) {
    let _ = writeln!(io::stderr(), "rove server: {what}");
}
