//! The flow service on both buses: what start-flow and stop-flow promise, also when the process dies at any point
//! between.

mod bus;
mod crash;
mod harness;
mod lifecycle;
mod records;
mod upgrades;
