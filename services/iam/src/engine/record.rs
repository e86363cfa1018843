//! What clients see of users, keys and workspaces.

use chrono::{DateTime, SecondsFormat, Utc};
use tg_schemas::msg::{ApiKeyRecord, UserRecord, WorkspaceRecord};

use super::{Key, User, Workspace};

/// A time as the contract writes it.
pub(crate) fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, false)
}

/// A user.
pub(crate) fn user_record(user: &User) -> UserRecord {
    UserRecord {
        id: user.id.clone(),
        default_workspace: user.home.clone(),
        username: user.username.clone(),
        name: user.name.clone(),
        email: user.email.clone(),
        roles: user.roles.iter().cloned().collect(),
        enabled: user.enabled,
        must_change_password: user.must_change_password,
        created: stamp(user.created),
    }
}

/// A workspace.
pub(crate) fn workspace_record(workspace: &Workspace) -> WorkspaceRecord {
    WorkspaceRecord {
        id: workspace.id.clone(),
        name: workspace.name.clone(),
        enabled: workspace.enabled,
        created: stamp(workspace.created),
    }
}

/// A key, without what it is.
pub(crate) fn key_record(key: &Key) -> ApiKeyRecord {
    ApiKeyRecord {
        id: key.id.clone(),
        user_id: key.user_id.clone(),
        name: key.name.clone(),
        prefix: key.prefix.clone(),
        expires: key.expires.map(stamp).unwrap_or_default(),
        created: stamp(key.created),
        last_used: String::new(),
        scopes: key.scopes.iter().cloned().collect(),
    }
}
