//! What the stages work out: plain functions over plain values.

pub(crate) mod portion;
pub(crate) mod schema;
