//! Documents to pages and chunks.
//!
//! * `document-decoder`: PDF to pages; HTML, Word, Markdown, CSV, JSON and plain text to sections.
//! * `chunker`: text to chunks.
//!
//! Both keep what they make in the library, describe it in the graph and hand it on, a batch at a time. Ids
//! follow from content, so doing it again makes the same things again. Formats that need a parser are taken
//! apart in a child process ([`decode::run`]). Nothing is kept here.

mod child;
mod cut;
pub mod decode;
mod engine;
mod error;
mod handlers;
mod measure;
mod options;
mod parts;
mod processors;
mod source;
mod take_apart;
mod texts;

pub use options::{Options, Settings};
pub use processors::processors;
