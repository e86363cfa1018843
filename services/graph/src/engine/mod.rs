//! The rules: RDF as the contract says it and as files have it, patterns, what has one value only, how much there may
//! be, and when a query may go on. Pure.

pub mod convert;
pub mod formats;
pub mod pattern;
pub(crate) mod policy;
pub mod quota;
pub(crate) mod single;
pub(crate) mod steps;
