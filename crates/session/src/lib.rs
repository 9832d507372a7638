//! The two ends of a mobile shell, as machines without clocks or sockets.
#![forbid(unsafe_code)]
