//! How the system is: processors, health, what was dead-lettered, why something does not move.

pub mod dead_letter;
pub mod doctor;
pub mod processors;
pub mod requests;
pub(crate) mod samples;
pub mod token_rate;
pub mod verify;
pub mod violations;
pub mod why;
