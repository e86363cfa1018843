//! The rules: what a vector is and stands for, how near two of them are, what a question's words are, and how much there may
//! be. Pure.

pub mod fixed;
#[cfg(test)]
mod fuzz;
pub mod index;
pub mod kind;
pub mod matrix;
pub mod point;
pub mod scan;
pub mod top;
pub mod words;
