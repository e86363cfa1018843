//! What answers without a provider: plain functions over plain values.

pub mod builtin;
#[cfg(test)]
mod fuzz;
