//! Rules without a bus: what rows say of listeners, messages in the words of the bus, and their ids.

pub mod ids;
pub mod rows;
pub mod words;
