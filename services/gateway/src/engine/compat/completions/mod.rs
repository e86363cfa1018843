//! Completions of a text, the older API beside chats: what is asked and what is answered.

pub(crate) mod reply;
pub(crate) mod request;
