//! Reads the replies of language models. Every service that expects JSON, or calls of tools, in a reply reads it here.
//!
//! * [`Thinking`] separates what a reasoning model thinks from its answer, piece by piece; [`apart`] and [`answer`] do so for a
//!   whole reply.
//! * [`candidates`] finds the JSON values of a reply among fences and prose; [`lines()`] reads one value a line.
//! * [`object`] and [`array()`] read JSON that is almost right: trailing commas, other quotes, raw line breaks in strings.
//! * [`Scanner`] finds the end of such a value while it is still being written.
//! * [`calls()`] reads calls of tools that a model wrote as text.
//!
//! Valid JSON always reads as what it is: the tolerant reader is asked only where the strict one fails. A value that was cut off
//! is never completed. Does no I/O, and no reply makes it panic.

mod calls;
mod json;
mod lines;
mod scanner;
mod thinking;
mod values;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod noise;

pub use calls::{Call, calls, may_be_calls};
pub use json::{NotJson, array, object};
pub use lines::{Lines, lines};
pub use scanner::{Scan, Scanner};
pub use thinking::{CLOSES, Part, Thinking, answer, apart};
pub use values::candidates;
