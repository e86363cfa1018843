//! Messages made of content blocks: what is asked and what is answered.

pub(crate) mod reply;
pub(crate) mod request;
