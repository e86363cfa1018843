//! Threads over the bus, and the examples.

mod agent;
mod apart;
mod ended;
mod examples;
mod ids;
mod lines;
mod over_the_bus;
mod progress;
mod starts;
mod traced;
mod world;
