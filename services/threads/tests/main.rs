//! Threads over the bus, and the examples.

mod agent;
mod ended;
mod examples;
mod ids;
mod over_the_bus;
mod progress;
mod starts;
mod world;
