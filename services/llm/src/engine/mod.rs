//! What needs no provider: plain functions over plain values. `tokens` reads what providers count, `context` judges how much a
//! model can read, `router` chooses who is asked, `repair` finds calls of tools in texts.

pub mod context;
#[cfg(test)]
mod fuzz;
pub mod repair;
pub mod router;
pub mod tokens;
