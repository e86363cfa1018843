//! The words of the OpenAI API over those of `chat-completion`: what is asked, what is answered, what went wrong, and
//! what a call costs. Pure.

pub(crate) mod augment;
pub(crate) mod cost;
pub(crate) mod errors;
pub(crate) mod reply;
pub(crate) mod request;
