//! What the agent keeps: the ledger of its runs. The only place with SQL.

mod ledger;

pub use ledger::{Began, Ledger, Piece, PieceKind, StepRow};
