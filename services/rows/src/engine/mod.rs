//! The rules: what values are, and what is asked of a table. Pure.

pub mod select;
pub mod value;
