//! The output of `-v`: one line for each step of the connection, with the seconds since the start.
//!
//! While the session has the screen, lines are kept and shown at the end, unless standard error
//! goes elsewhere.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IsTerminal, Write};

use rove_ssp::Time;

use crate::os::clock::Clock;
use crate::os::tty;

/// Lines kept while the session has the screen; the oldest go first.
const HELD_LINES_MAX: usize = 1000;

/// How much is told.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verbosity {
    /// Failures only.
    Quiet,
    /// And which server was found.
    #[default]
    Usual,
    /// And every step.
    Steps,
}

/// Tells the user what happens.
#[derive(Debug)]
pub struct Trace {
    clock: Clock,
    verbosity: Verbosity,
    /// The lines that wait until the screen is free.
    held: RefCell<Option<VecDeque<String>>>,
}

impl Trace {
    /// A trace whose times count from the start of `clock`.
    pub fn new(clock: Clock, verbosity: Verbosity) -> Trace {
        Trace { clock, verbosity, held: RefCell::new(None) }
    }

    /// Prints a step, if steps are printed.
    pub fn step(&self, text: fmt::Arguments<'_>) {
        if self.verbosity < Verbosity::Steps {
            return;
        }
        let seconds = self.clock.now().since(Time::ZERO).as_secs_f64();
        let line = format!("rove {seconds:8.3}: {text}");
        match &mut *self.held.borrow_mut() {
            None => say(&line),
            Some(held) => {
                if held.len() == HELD_LINES_MAX {
                    held.pop_front();
                }
                held.push_back(line);
            }
        }
    }

    /// Prints a line that the user did not ask for but wants to know; only at a terminal.
    pub fn note(&self, text: fmt::Arguments<'_>) {
        if self.verbosity >= Verbosity::Usual && io::stderr().is_terminal() {
            say(&format!("rove: {text}"));
        }
    }

    /// Prints a warning: a request was not met, or the user cannot guess it. Scripts' logs get it too.
    pub fn warn(&self, text: fmt::Arguments<'_>) {
        if self.verbosity >= Verbosity::Usual {
            say(&format!("rove: {text}"));
        }
    }

    /// From here on the screen belongs to the session.
    pub fn hold(&self) {
        if io::stderr().is_terminal() {
            *self.held.borrow_mut() = Some(VecDeque::new());
        }
    }

    /// The screen is free again: tells what was held.
    pub fn release(&self) {
        for line in self.held.borrow_mut().take().into_iter().flatten() {
            say(&line);
        }
    }
}

fn say(line: &str) {
    // A terminal that is raw starts no line by itself.
    let end = if tty::is_borrowed() { "\r\n" } else { "\n" };
    if !tty::takes_line() {
        return;
    }
    // Nobody is left to be told when standard error is closed.
    let _ = write!(io::stderr(), "{line}{end}");
}
