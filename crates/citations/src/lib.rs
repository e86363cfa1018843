//! Citations of an answer: numbers in brackets that name passages. Pure, no I/O.
//!
//! [`Citer`] reads an answer while it is written and puts its numbers right; [`sentences`] reads one that is there, and
//! [`Judged`] says what each of them rests on. All know a sentence that only says that there is no answer ([`is_refusal`]): it rests on nothing, so it bears no
//! number, whatever words it shares with a passage.

mod citer;
mod excerpt;
pub mod forms;
mod judged;
mod refusal;
mod sentences;
pub mod words;

pub use citer::{Cited, Citer, leans_on, renumbered};
pub use excerpt::excerpt;
pub use judged::{Judged, JudgedSentence, Rests};
pub use refusal::is_refusal;
pub use sentences::{Sentence, quotations, sentences, stands_in};
