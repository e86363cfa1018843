//! Chat completions: what is asked and what is answered.

pub(crate) mod reply;
pub(crate) mod request;
