//! The rules: what names a core, and the pieces that it is made of. Pure.

pub(crate) mod key;
pub(crate) mod piece;
