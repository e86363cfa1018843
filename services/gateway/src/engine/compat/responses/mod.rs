//! Responses made of items: what is asked and what is answered.

mod custom;
pub(crate) mod kept;
mod namespaces;
pub(crate) mod reply;
pub(crate) mod request;
