//! Threads: listeners that send each other messages along private call chains.
//!
//! * [`Registry`]: which **thread**, an opaque id, is which chain of names. It is bounded, and a respond ends what is below it.
//! * [`Directory`]: the **listeners** of a flow, what they take, whom an agent may write to (its **peers**), and what it
//!   is told of them.
//! * [`Pump`]: writes every envelope. A handler gets a [`Delivery`] and returns a [`Turn`]: it **forwards**, it **responds**,
//!   or neither. What cannot be processed is answered by **huh**, what cannot be delivered by **SystemError**, each the same
//!   whatever the cause.
//! * [`console`]: how a line of a person becomes a message, and an answer a prompt.
//! * [`xml`]: the other form of a message, for bridges.
//!
//! Nothing here waits, sends or looks at a clock: time and ids come from a [`World`], and effects go to whoever runs the pump.

pub mod console;
mod directory;
mod envelope;
mod id;
mod listener;
mod name;
mod payload;
mod pump;
mod registry;
mod taken;
mod tree;
mod turn;
pub mod xml;

pub use directory::{Admitted, Directory};
pub use envelope::{Caller, Delivery, Envelope, Meta, Metadata, Place};
pub use id::{NotAThread, ThreadId, World};
pub use listener::{BadListener, Kind, Listener, Reach, Schema};
pub use name::{BadName, Name, SYSTEM};
pub use payload::{ATTEMPT, BadType, HUH, Payload, PayloadType, SystemError};
pub use pump::{External, Pump};
pub use registry::{Limits, Refused, Registry, Room};
pub use turn::{Checked, Effect, FORWARDS, Forward, Note, Outcome, Turn, Wish};
