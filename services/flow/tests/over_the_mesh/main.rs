//! The flow service on the embedded bus: what start-flow and stop-flow promise, also when the process dies
//! at any point between.

mod bus;
mod config;
mod crash;
mod harness;
mod lifecycle;
mod records;
