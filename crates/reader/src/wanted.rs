//! What kind of answer a question asks for, in any language.

/// The kind of value that answers a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A date or year.
    When,
    /// A place.
    Where,
    /// Somebody.
    Who,
    /// A number.
    Number,
    /// Anything.
    Open,
}
