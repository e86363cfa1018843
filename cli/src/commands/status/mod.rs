//! How the system is: processors, health, what was put aside, why something does not move.

pub mod doctor;
pub mod processors;
pub mod put_aside;
pub mod requests;
pub(crate) mod samples;
pub mod token_rate;
pub mod verify;
pub mod why;
