//! Rows of tables that are declared in the configuration, read from a model's reply. Pure.

mod read;
mod schema;
mod value;

pub use read::{Rows, read};
pub use schema::term;
