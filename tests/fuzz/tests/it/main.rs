//! One target per public parser of outside bytes: no panic, no input that takes long, none that takes much memory.

mod bodies;
mod models;
mod rdf;
mod rows;
