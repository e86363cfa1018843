//! Tools over the bus.

mod over_the_bus;
mod programs;
