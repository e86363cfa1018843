//! What whoever evaluates a query asks at each step of it: a query of a user and one of a policy are bounded in the same places.

/// Whether an evaluation may go on.
pub(crate) trait Steps: Send + Sync + 'static {
    /// Goes on, or unwinds the query's thread.
    fn step(&self);

    /// Unwinds the query's thread: a text would be longer than any message may hold.
    fn too_long(&self) -> !;
}
