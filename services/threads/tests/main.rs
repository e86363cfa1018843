//! Threads over the bus, and the examples.

mod examples;
mod over_the_bus;
