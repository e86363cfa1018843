//! The rules: what names a core, the pieces that it is made of, and how much there may be. Pure.

pub(crate) mod key;
pub(crate) mod piece;
