//! Answers from graph and documents: how one is looked for (`graph`, `documents`), written (`synthesis`), what its
//! numbers name (`citations`), told as it comes (`stream`, `frames`) and traced (`trace`).

mod citations;
pub mod documents;
mod frames;
pub mod graph;
pub mod stream;
mod synthesis;
mod trace;
