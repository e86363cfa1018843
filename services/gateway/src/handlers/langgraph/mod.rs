//! `/langgraph/…`: the core calls of LangGraph clients, over agents and sessions. Each call is one or a few operations, which are
//! let in, bounded and written down as at their own endpoints.

mod about;
mod assistants;
mod runs;
mod stream;
mod threads;
mod told;

pub(crate) use about::{info, ok};
pub(crate) use assistants::{assistant, search};
pub(crate) use runs::{
    cancel, create, join, list, one, stateless, stateless_stream, stream, stream_joined, wait,
};
pub(crate) use threads::{begin, copy, delete, find, history, state, thread};
pub(crate) use told::{not_allowed, nothing, turned_away};
