//! Files of knowledge cores, as commands and endpoints read and write them: a concatenation of MessagePack
//! values, each a tag with a map. Pure.
//!
//! * [`msgpack`] reads and writes the values, from a stream that is cut anywhere.
//! * [`record`] is what a value says to the knowledge service and what it says in a file.

pub mod msgpack;
pub mod record;
