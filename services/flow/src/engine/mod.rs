//! The logic of flows: blueprints in, plans out. No bus, no store, no clock, no random numbers.

pub mod address;
pub mod blueprint;
pub mod catalog;
pub mod check;
pub mod closure;
pub mod parameters;
pub mod plan;
pub mod receipt;
pub mod template;
pub mod validation;

#[cfg(test)]
mod tests;
