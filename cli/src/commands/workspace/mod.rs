//! A workspace as a bundle (`.tgx`): a gzip tar of its configuration, the triples of its collections and its
//! library. Vectors are not in it: processing the documents makes them again.

pub(crate) mod bundle;
pub mod export;
pub mod import;
