//! The four queues of the processor `librarian`, a file each: decode, have it done, answer.

mod collection;
mod completion_reports;
mod librarian;
mod texts;

pub(crate) use collection::Collections;
pub(crate) use completion_reports::CompletionReports;
pub(crate) use librarian::Handler;
pub(crate) use texts::Texts;
