//! The rules of configuration over plain values: no bus, no store, no clock.

mod change;
mod lifecycle;
mod limits;
mod read;
mod reply;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use change::{Change, Write, announcement, plan};
pub(crate) use lifecycle::{Given, Trash};
pub(crate) use limits::check_workspace;
pub(crate) use read::{ReadScope, answer};
pub(crate) use reply::ConfigReply;
pub(crate) use rows::{Row, RowKey, Rows};

/// Reserved: the registry of workspaces.
pub(crate) const REGISTRY: &str = tg_schemas::workspace_key::REGISTRY;
/// Reserved: what a new workspace starts with.
pub(crate) const TEMPLATE: &str = "__template__";
/// Reserved: what iam tells everybody, as rows whose changes are told like a workspace's.
pub(crate) const TOLD: &str = "__iam__";
/// The type of a row in the registry; its key is the workspace.
pub(crate) const WORKSPACE_TYPE: &str = tg_schemas::workspace_key::REGISTERED;

/// Whether a workspace is storage only: nobody outside the system works in it.
pub(crate) fn is_reserved(workspace: &str) -> bool {
    workspace.starts_with('_')
}
