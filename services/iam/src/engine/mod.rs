//! The rules of identity over plain values: no bus, no store, no clock, no randomness.

mod anonymous;
pub(crate) mod audit;
mod authorise;
mod authority;
mod call;
mod change;
mod check;
mod directory;
mod entities;
mod external;
#[cfg(test)]
mod fuzz;
mod groups;
mod keys;
mod operation;
mod passwords;
mod record;
mod roles;
#[cfg(test)]
mod tests;
mod tokens;
mod users;
mod workspaces;

pub(crate) use anonymous::run as run_anonymous;
pub(crate) use authorise::{DECISION_TTL, checks, decisions};
pub(crate) use call::{Call, Effect, Fresh};
pub(crate) use change::Change;
pub(crate) use check::{auth_failed, invalid, moment, not_found, workspace_id};
pub(crate) use directory::Directory;
pub(crate) use entities::{Grant, Grantee, Group, Key, Signing, User, Workspace};
pub(crate) use operation::{is_check, revokes, run};
pub(crate) use passwords::{own, to_hash};
pub(crate) use record::{key_record, stamp, user_record, workspace_record};
pub use roles::{ROLES, Role, RoleScope};
pub(crate) use workspaces::{end, existing, not_restored, remove, restored, settle};

/// The workspace that a fresh system has, and the home of its first administrator.
pub(crate) const DEFAULT_WORKSPACE: &str = "default";
/// The role that reaches everything.
pub(crate) const ADMIN: &str = "admin";
