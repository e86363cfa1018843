//! One target per public parser of outside bytes: no panic, no input that takes long, none that takes much memory. Beside them, what
//! holds the types of messages against their schema files.

mod bodies;
mod held;
mod keys;
mod models;
mod queries;
mod rdf;
mod releases;
mod replies;
mod rows;
mod sessions;
mod threads;
mod traces;
