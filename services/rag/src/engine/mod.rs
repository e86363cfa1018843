//! What retrieval works out: plain functions over plain values. No bus, no clock, nothing random.

pub mod budget;
pub mod concepts;
pub mod detect;
pub mod documents;
pub mod facts;
pub mod fusion;
pub mod graphql;
pub mod lexical;
pub mod mmr;
pub mod mode;
pub mod plan;
pub mod rank;
pub mod schemas;
pub mod seeds;
pub mod traversal;
