//! What the service serves: the messages of whoever is outside.

mod bodies;
mod checks;
mod conversation;
mod pumping;
mod running;
mod threads;
mod workspaces;

pub(crate) use threads::Threads;
