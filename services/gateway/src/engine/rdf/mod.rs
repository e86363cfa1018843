//! RDF and query results in the syntaxes of their standards: which one a client wants, and writing it piece by piece.
//! Pure.

pub(crate) mod description;
pub(crate) mod media;
mod nesting;
pub(crate) mod syntax;
pub(crate) mod terms;
pub(crate) mod writer;
mod xml;
