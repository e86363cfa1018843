//! What LangGraph clients ask and are answered, over agents and sessions: an assistant is an agent, a thread a session, a run a
//! turn. Pure.

pub(crate) mod asked;
pub(crate) mod events;
pub(crate) mod searched;
pub(crate) mod shown;
