//! What a caller needs to be let in.

/// What a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Nothing.
    Public,
    /// To be known.
    Authenticated,
    /// A capability.
    Needs(&'static str),
}
