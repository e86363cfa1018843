//! The loop's logic with plain values: no bus, no clock, no random ids.
//!
//! [`parser`] reads replies · [`toolset`] knows which tools may be used · [`arguments`] checks what the model
//! gives them · [`prompt`] writes what the model is asked · [`bounds`] ends what goes on too long ·
//! [`decision`] is what a step decided and saw · [`chunks`] and [`trace`] say it to the asker and to the
//! graph.

pub mod arguments;
pub mod bounds;
pub mod chunks;
pub mod citing;
pub mod decision;
pub mod parser;
pub mod prompt;
pub mod question;
pub mod toolset;
pub mod trace;
