//! Turns a program's bytes into a screen, and two screens into the shortest bytes between them.
#![forbid(unsafe_code)]
