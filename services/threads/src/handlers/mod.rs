//! What the service serves: the messages of whoever is outside.

mod conversation;
mod pumping;
mod running;
mod threads;
mod workspaces;

pub(crate) use threads::Threads;
