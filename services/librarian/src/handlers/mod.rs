//! The four queues of the processor `librarian`, a file each: decode, have it done, answer.

mod collection;
mod librarian;
mod tally;
mod texts;

pub(crate) use collection::Collections;
pub(crate) use librarian::Handler;
pub(crate) use tally::Tally;
pub(crate) use texts::Texts;
