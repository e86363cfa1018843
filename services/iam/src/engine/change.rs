//! One step of what an operation changes. The steps of an operation are stored together.

use super::{Grant, Grantee, Group, Key, Signing, User, Workspace};

/// A row that is put or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// New, or replaces the one with its id.
    PutWorkspace(Workspace),
    /// By id, with the grants for it: who makes one of its name later does not find them.
    RemoveWorkspace(String),
    /// New, or replaces the one with its id; the username never changes.
    PutUser(User),
    /// By id, with the user's grants and memberships. The user's keys are removed by changes of their own.
    RemoveUser(String),
    /// New.
    PutKey(Key),
    /// By id.
    RemoveKey(String),
    /// New, or replaces the one with its id, of which only that it is retired can change.
    PutSigning(Signing),
    /// By id.
    RemoveSigning(String),
    /// New, or replaces the one with its id.
    PutGroup(Group),
    /// By id, with its grants and memberships.
    RemoveGroup(String),
    /// A user is in a group: ids of the group and of the user.
    PutMember(String, String),
    /// It is not any more.
    RemoveMember(String, String),
    /// Somebody has a grant.
    PutGrant(Grantee, Grant),
    /// They have it no more.
    RemoveGrant(Grantee, Grant),
}
