//! `rove cp` on a system whose files it does not reach yet: the words are read, and refused before ssh asks for anything.

#[path = "../copy/location.rs"]
pub(crate) mod location;
#[path = "../copy/message.rs"]
pub(crate) mod message;
#[path = "../copy/order.rs"]
pub(crate) mod order;

pub(crate) mod client {
    //! The client's end.

    use std::process::ExitCode;
    use std::time::Duration;

    use rove_streams::Streams;

    use crate::copy::order::Receive;
    use crate::failure::Failure;
    use crate::os::clock::Clock;

    /// The paths to copy, and how.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct Plan {
        pub(crate) sources: Vec<Vec<u8>>,
        pub(crate) target: Vec<u8>,
        pub(crate) receive: Receive,
        pub(crate) limit: u64,
        pub(crate) style: Style,
        pub(crate) give_up: Duration,
    }

    /// How to show progress.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Style {
        Usual,
        Quiet,
        Json,
    }

    /// A host that files go to or come from.
    #[derive(Clone, Copy)]
    pub struct Host<'a> {
        pub(crate) name: &'a str,
        pub(crate) streams: &'a Streams,
    }

    /// The direction of the files.
    #[derive(Clone, Copy)]
    pub enum Direction<'a> {
        There(Host<'a>),
        Here(Host<'a>),
        Between { from: Host<'a>, to: Host<'a> },
    }

    /// The result of a copy.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum Status {
        Copied,
    }

    impl From<Status> for ExitCode {
        fn from(_: Status) -> ExitCode {
            ExitCode::SUCCESS
        }
    }

    fn refused() -> Failure {
        Failure::new(
            "rove cp does not copy files on Windows yet",
            "scp copies them over ssh; between two hosts, run rove cp on one of them.",
        )
    }

    impl Plan {
        /// Refuses.
        pub(crate) fn check_sources(&self) -> Result<(), Failure> {
            Err(refused())
        }

        /// Refuses.
        pub(crate) fn check_target(&self) -> Result<(), Failure> {
            Err(refused())
        }
    }

    /// Refuses.
    pub(crate) async fn run(_: Clock, _: Direction<'_>, _: &Plan) -> Result<Status, Failure> {
        Err(refused())
    }
}
