//! The library's rules over plain values: no bus, no store, no clock, no random ids.

pub(crate) mod asker;
pub(crate) mod collection;
pub(crate) mod criteria;
pub(crate) mod estimate;
pub(crate) mod fingerprints;
pub(crate) mod flow;
#[cfg(test)]
mod fuzz;
pub(crate) mod ids;
pub(crate) mod progress;
pub(crate) mod quota;
pub(crate) mod readers;
pub(crate) mod retraction;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod upload;
pub(crate) mod workspace;
