//! What the extractors keep.

mod ledger;

pub use ledger::{Kept, Ledger};
