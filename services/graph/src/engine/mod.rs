//! The rules: RDF as the contract says it and as files have it, patterns, what has one value only, and how much there may
//! be. Pure.

pub mod convert;
pub mod formats;
pub mod pattern;
pub(crate) mod policy;
pub mod quota;
pub(crate) mod single;
