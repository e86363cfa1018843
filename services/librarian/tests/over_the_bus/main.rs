//! The librarian and the collection service as others meet them, with a small flow around them.

mod collections;
mod documents;
mod flow;
mod processing;
mod reindex;
mod world;
