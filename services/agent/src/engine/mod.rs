//! The loop's logic with plain values: no bus, no clock, no random ids.

pub mod parser;
