//! Somebody for whom an external issuer answers, as whoever looks at tokens says it and whoever keeps users takes it.

use std::collections::BTreeSet;

/// What names of such users begin with, and no other's.
pub(crate) const PREFIX: &str = "oidc:";

/// Somebody for whom an issuer answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct External {
    /// Id of the user, which follows from issuer and subject.
    pub(crate) id: String,
    /// Their unique name, which follows from them, too.
    pub(crate) username: String,
    /// Name for people.
    pub(crate) name: String,
    /// Roles of ours.
    pub(crate) roles: BTreeSet<String>,
    /// Home workspace.
    pub(crate) home: String,
    /// When the token ends, in seconds of Unix.
    pub(crate) until: i64,
}
