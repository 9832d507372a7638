//! Says which field of a scenario is wrong, and why.

use std::fmt;
use std::io;

use serde_json::Value;

/// A field that cannot be read.
#[derive(Debug)]
pub struct ScenarioError {
    /// Names of the objects around the field and its own, with dots; empty for the file as a whole.
    pub field: String,
    /// The problem.
    pub fault: Fault,
}

/// The problem of a field.
#[derive(Debug)]
pub enum Fault {
    /// The file exceeds its limit of a mebibyte.
    FileTooLong,
    /// The file is not JSON.
    NoJson(serde_json::Error),
    /// The file holds JSON of another kind.
    NoScenario,
    /// No field of this object has that name.
    Unknown {
        /// Names that it may have.
        known: Vec<&'static str>,
    },
    /// A needed field is not there.
    Missing,
    /// A step before the last has no duration.
    NoDuration,
    /// A step of a repeated list has no duration.
    RepeatsForever,
    /// A list of steps has a duration outside the steps.
    OutsideSteps,
    /// Not a string.
    NoText,
    /// Not a string that names a file.
    NoFileName,
    /// Not an unsigned integer.
    NoWholeNumber,
    /// Not a number.
    NoNumber(Value),
    /// Not a Boolean.
    NoBoolean,
    /// Not an array.
    NoList,
    /// Not an object.
    NoObject,
    /// Not an array of two times.
    NoSpan,
    /// A number outside its range.
    OutOfRange {
        /// The number found.
        number: f64,
        /// The largest allowed.
        most: f64,
    },
    /// A duration of zero.
    Zero,
    /// None of the words allowed.
    NoneOf {
        /// The value found.
        value: Value,
        /// The words allowed.
        words: &'static [&'static str],
    },
    /// A span of time whose end is not after its start.
    EndsBeforeItBegins,
    /// An array longer than its limit.
    ListTooLong,
    /// An empty array of steps, or one longer than its limit.
    StepCount,
    /// More outages and holds than all steps together may have.
    TooManySpans,
    /// A queue's length in octets and in time.
    TwoQueues,
    /// A queue's length in time without a rate that says how many octets that is.
    QueueWithoutRate,
    /// More recorded bottlenecks than a scenario may have.
    TooManyTraces {
        /// The first beyond the limit.
        name: String,
        /// The limit.
        most: usize,
    },
    /// A recorded bottleneck cannot be read.
    Trace {
        /// Its name in the scenario.
        name: String,
        /// Why not.
        error: io::Error,
    },
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return self.fault.fmt(out);
        }
        write!(out, "{}: {}", self.field, self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Fault::NoJson(error) => return write!(out, "no JSON: {error}"),
            Fault::Unknown { known } => {
                return write!(out, "no such field; there are {}", known.join(", "));
            }
            Fault::NoNumber(value) => return write!(out, "{value} is no number"),
            Fault::OutOfRange { number, most } => {
                return write!(out, "{number} is not between 0 and {most}");
            }
            Fault::NoneOf { value, words } => {
                return write!(out, "{value} is none of {}", words.join(", "));
            }
            Fault::TooManyTraces { name, most } => {
                return write!(out, "{name}: more than {most} recordings");
            }
            Fault::Trace { name, error } => return write!(out, "{name}: {error}"),
            Fault::FileTooLong => "longer than a mebibyte",
            Fault::NoScenario => "neither an object nor a list of steps",
            Fault::Missing => "missing",
            Fault::NoDuration => "missing: another step follows",
            Fault::RepeatsForever => "needs a duration_s in each step",
            Fault::OutsideSteps => "belongs into the steps",
            Fault::NoText => "no text",
            Fault::NoFileName => "no file's name",
            Fault::NoWholeNumber => "no whole number",
            Fault::NoBoolean => "neither true nor false",
            Fault::NoList => "no list",
            Fault::NoObject => "no object",
            Fault::NoSpan => "not two times in seconds",
            Fault::Zero => "must be above zero",
            Fault::EndsBeforeItBegins => "ends before it begins",
            Fault::ListTooLong => "too long",
            Fault::StepCount => "needs 1 to 10000 of them",
            Fault::TooManySpans => "more than 100000 outages and holds in all steps together",
            Fault::TwoQueues => "beside queue_bytes",
            Fault::QueueWithoutRate => "needs rate_kbit or trace",
        })
    }
}

impl std::error::Error for ScenarioError {}
