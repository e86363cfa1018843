//! `/langgraph/…`: the core calls of LangGraph clients, over agents and sessions. Each call is one or a few operations, which are
//! let in, bounded and written down as at their own endpoints.

mod assistants;
mod runs;
mod stream;
mod threads;
mod told;

pub(crate) use assistants::{assistant, search};
pub(crate) use runs::{
    create, join, list, one, stateless, stateless_stream, stream, stream_joined, wait,
};
pub(crate) use threads::{begin, delete, history, state, thread};
pub(crate) use told::nothing;
