//! Chat completions: what is asked and what is answered.

mod functions;
pub(crate) mod reply;
pub(crate) mod request;
