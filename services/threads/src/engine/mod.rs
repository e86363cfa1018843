//! Rules without a bus: what rows say of listeners, and messages in the words of the bus.

pub mod rows;
pub mod words;
