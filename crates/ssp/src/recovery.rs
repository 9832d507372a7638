//! What becomes of the datagrams we sent: which are lost, why, and how much may be on its way. It must not know what
//! they carry, nor who sends them.

pub(crate) mod attribution;
pub(crate) mod congestion;
pub(crate) mod detect;
pub(crate) mod queue_delay;
pub(crate) mod rtt;
pub(crate) mod sent_log;
