//! Answers from graph and documents: how one is looked for (`graph`, `documents`), written (`synthesis`), told as it
//! comes (`stream`, `frames`) and traced (`trace`).

pub mod documents;
mod frames;
pub mod graph;
pub mod stream;
mod synthesis;
mod trace;
