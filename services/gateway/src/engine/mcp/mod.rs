//! The Model Context Protocol, as the gateway answers it: its messages, its revisions, the tools, what their arguments
//! ask for and what an answer becomes; documents as resources, and prompts. Types of the wire are rmcp's. Pure.

pub(crate) mod about;
pub(crate) mod called;
pub(crate) mod message;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod revision;
pub(crate) mod told;
pub(crate) mod tools;
