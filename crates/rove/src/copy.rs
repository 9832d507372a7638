//! `rove cp`: files between two machines over one byte stream in each direction.

pub mod location;
pub mod message;
pub mod name;
pub mod order;
