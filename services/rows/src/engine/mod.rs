//! The rules: what values are, and what is asked of a table, and how much there may be. Pure.

pub mod select;
pub mod value;
