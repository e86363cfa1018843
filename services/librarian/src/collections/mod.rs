//! Collections of a workspace: rows of config type `collection`, as other processes read them, and their
//! deletion, which every store confirms.

mod drop;
mod reembed;
mod service;
