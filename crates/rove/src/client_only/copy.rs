//! `rove cp` on a system whose files it does not reach yet: the words are read, and refused before ssh asks for anything.

#[path = "../copy/location.rs"]
pub(crate) mod location;
#[path = "../copy/message.rs"]
pub(crate) mod message;
#[path = "../copy/order.rs"]
pub(crate) mod order;
#[path = "../copy/plan.rs"]
pub(crate) mod plan;

pub(crate) mod client {
    //! The client's end.

    pub use crate::copy::plan::{Direction, Host, Plan, Status, Style};
    use crate::failure::Failure;
    use crate::os::clock::Clock;

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
