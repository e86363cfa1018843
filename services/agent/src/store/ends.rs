//! The ends of traces, and the signed heads over them, as the ledger keeps them.

use tg_provenance::Ended;

/// How the trace of a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// The day in UTC, `YYYY-MM-DD`.
    pub day: String,
    /// Its question, its collection, and the hash of its end; that is empty for a trace without hashes.
    pub ended: Ended,
    /// Everything that follows from its earlier steps was done, too.
    pub earlier_done: bool,
}

/// A head that was signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedHead {
    /// Counts the heads of a workspace from 1.
    pub number: i64,
    /// The day that it is of.
    pub day: String,
    /// What was signed.
    pub text: String,
    /// The signature in base64.
    pub signature: String,
}

/// What verifies heads that a key before signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadKey {
    /// Its public half, as PEM.
    pub pem: String,
    /// What it signed from then on does not count, RFC 3339 in UTC; empty: all of it does.
    pub revoked_from: String,
}

/// What was signed before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastHeads {
    /// The last head of the workspace.
    pub last: Option<SignedHead>,
    /// The last head of the day.
    pub of_day: Option<SignedHead>,
}
