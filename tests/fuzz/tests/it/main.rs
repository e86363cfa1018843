//! One target per public parser of outside bytes: no panic, no input that takes long, none that takes much memory.

mod bodies;
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
