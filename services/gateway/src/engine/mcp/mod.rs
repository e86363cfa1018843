//! The Model Context Protocol, as the gateway answers it: its messages, its revisions, the tools, what their arguments
//! ask for and what an answer becomes; documents as resources, prompts and what is proposed for their arguments; what a
//! client can be asked and hears of. Types of the wire are rmcp's. Pure.

pub(crate) mod about;
pub(crate) mod called;
pub(crate) mod completion;
pub(crate) mod confirm;
pub(crate) mod connector;
pub(crate) mod level;
pub(crate) mod message;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod revision;
pub(crate) mod session;
pub(crate) mod told;
pub(crate) mod tools;
