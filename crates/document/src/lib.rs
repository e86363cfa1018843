//! What a document is, by its bytes: for those who read documents and for those who add them, so that both say the
//! same. Pure.
//!
//! * [`kind`]: what it is, or why it is not read.
//! * [`charset`]: which characters its bytes are.
//! * [`text`]: its text, if it is text, or why it is not.
//! * [`pages`]: how many pages a PDF has.
//! * [`repair`]: a PDF whose table of objects is damaged, made whole.
//! * [`syntax`]: how PDFs write strings.
//! * [`title`]: what it calls itself.
//! * [`whole`]: whether a PDF has its end, and opens without a password.
//!
//! Nothing here reads more than it is given, and nothing is extracted: a document may be hostile.

pub mod charset;
#[cfg(test)]
mod fuzz;
pub mod kind;
mod packed;
pub mod pages;
pub mod repair;
pub mod syntax;
pub mod text;
pub mod title;
pub mod whole;
