//! What clients of model APIs ask and are answered, in their words, over those of flow services. Each API has a module; what
//! they share stands beside: what goes wrong, what a call used and cost, and what an answer is made into. Pure.

pub(crate) mod agents;
mod asking;
pub(crate) mod augment;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod cost;
pub(crate) mod dialect;
pub(crate) mod embeddings;
pub(crate) mod errors;
pub(crate) mod listing;
pub(crate) mod messages;
pub(crate) mod responses;
pub(crate) mod used;
