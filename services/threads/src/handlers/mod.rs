//! What the service serves: the messages of whoever is outside.

mod conversation;
mod pumping;
mod threads;

pub(crate) use threads::Threads;
