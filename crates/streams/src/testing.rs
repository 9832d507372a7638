//! The names that fuzz targets use, by module. No program uses this file.

pub mod keys {
    pub use crate::keys::{InitialFilter, Keys};
}
pub mod mux {
    pub use crate::mux::{Broken, Mux, Pulse, Role, Which};
}
pub mod proof {
    pub use crate::proof::{HELLO, Proofs};
}
