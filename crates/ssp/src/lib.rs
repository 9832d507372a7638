//! State synchronization over sealed datagrams: keeps an object on one host in step with its copy on
//! another, over datagrams that may be lost, reordered, replayed, or come from a new address.
#![forbid(unsafe_code)]
