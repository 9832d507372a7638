//! Re-exports what the tests of this crate and the fuzz targets call, each name under its module.
//!
//! The modules themselves are private, so that the compiler reports dead code.

pub mod random_output {
    pub use crate::random_output::RandomOutput;
}
pub mod capture {
    pub use crate::capture::{Packet, header, read, record_head};
    pub mod decode {
        pub use crate::capture::decode::segment;
    }
    pub mod summary {
        pub use crate::capture::summary::Summary;
    }
}
pub mod clock {
    pub use crate::clock::Clock;
}
pub mod experiments {
    pub use crate::experiments::{Scale, quantile};
    pub mod collection {
        pub use crate::experiments::collection::{DEPENDS, report};
    }
    pub mod flood {
        pub use crate::experiments::flood::{DEPENDS, report};
    }
    pub mod loss {
        pub use crate::experiments::loss::{DEPENDS, report};
    }
    pub mod pace {
        pub use crate::experiments::pace::{DEPENDS, Long, beside, cases};
    }
    pub mod probe {
        pub use crate::experiments::probe::{Plan, sessions};
    }
    pub mod reference {
        pub use crate::experiments::reference::{DEPENDS, report};
    }
    pub mod report {
        pub use crate::experiments::report::{Report, Table, VIRTUAL};
    }
    pub mod roam {
        pub use crate::experiments::roam::{DEPENDS, report};
    }
    pub mod scrollback {
        pub use crate::scrollback::{DEPENDS, report};
    }
    pub mod sender {
        pub use crate::experiments::sender::Sender;
    }
}
pub mod flood {
    pub use crate::flood::Kind;
}
pub mod host {
    pub use crate::host::{Kind, Load};
}
pub mod link {
    pub use crate::link::{Counters, Jitter, Link, Loss, Order, Profile};
}
pub mod net {
    pub use crate::net::{End, FAR, NEAR, Net, OUTSIDE};
    pub mod check {
        pub use crate::net::check::{Found, check};
    }
    pub mod scenario {
        pub use crate::net::scenario::{Happening, Middle, Scenario};
    }
}
pub mod opportunities {
    pub use crate::opportunities::{Cursor, Opportunities};
}
pub mod pair {
    pub use crate::pair::{Make, Pair, Setup, Watch};
}
pub mod plot {
    pub use crate::plot::Figure;
}
pub mod predict {
    pub use crate::predict::PathWord;
    pub mod calibrate {
        pub use crate::predict::calibrate::both;
    }
    pub mod judge {
        pub use crate::predict::judge::{Judge, Tally, deeds};
    }
    pub mod live {
        pub use crate::predict::live::{Report, Scene, hidden, play};
    }
    pub mod replay {
        pub use crate::predict::replay::{Replayed, Scenario, Typist, replay};
    }
    pub mod script {
        pub use crate::predict::script::Script;
    }
    pub mod trace {
        pub use crate::predict::trace::{Event, Kind, Trace};
    }
    pub mod typist {
        pub use crate::predict::typist::{Secrecy, Typist};
    }
}
pub mod provenance {
    pub use crate::provenance::Provenance;
}
pub mod quic {
    pub use crate::quic::{Control, Course, Flow, Hosts, Plan};
}
pub mod real {
    pub mod contender {
        pub use crate::real::contender::{Contender, Kind, missing};
    }
    pub mod stage {
        pub use crate::real::stage::Networks;
    }
}
pub mod relay {
    pub use crate::relay::Direction;
}
pub mod rng {
    pub use crate::rng::{Chance, Rng};
}
pub mod run {
    pub use crate::run::{PUMP, Program, Stranger, limited, look_again_later};
}
pub mod crowd {
    pub use crate::crowd::{Outcome, run};
}

pub mod scenario {
    pub use crate::scenario::{BUSY, Scenario};
}
pub mod scratch {
    pub use crate::scratch::Scratch;
}
pub mod session {
    pub use crate::session::{Plan, Session, Typing, Usage};
}
pub mod sshd {
    pub use crate::sshd::Sshd;
}
pub mod stock {
    pub use crate::stock::{Frame, Stock, differences};
}
pub mod counters {
    pub use crate::counters::{Counters, Rare};
}
pub mod trial {
    pub use crate::obscured::Obscured;
    pub use crate::trial::Outcome;
}
pub mod xterm {
    pub use crate::xterm::{BLINK, BOLD, INVERSE, INVISIBLE, PRINT, UNDERLINE, Window, Xterm};
}
