//! What each reading operation answers.

use std::sync::Arc;

use tg_schemas::msg::ConfigRequest;
use tg_schemas::{Error, ErrorCode};

use super::Rows;
use super::limits::{check_count, check_name};
use crate::reply::{ConfigReply, ReplyValue};

/// What a question may see.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The system queue: the workspace it names, or all of them.
    System(&'a str),
    /// A workspace's own queue.
    Workspace(&'a str),
}

impl<'a> Scope<'a> {
    /// The one workspace that is asked about.
    pub(crate) fn workspace(self) -> Result<&'a str, Error> {
        match self {
            Self::Workspace(workspace) => Ok(workspace),
            Self::System(workspace) => {
                super::check_workspace(workspace)?;
                Ok(workspace)
            }
        }
    }
}

/// Answers a reading operation; `bad-operation` for anything else.
pub(crate) fn answer(
    rows: &Rows,
    scope: Scope<'_>,
    ask: &ConfigRequest,
) -> Result<ConfigReply, Error> {
    let mut reply = match (ask.operation.as_str(), scope) {
        ("get", _) => get(rows, scope.workspace()?, ask)?,
        ("list", _) => list(rows, scope.workspace()?, &ask.r#type)?,
        ("getvalues", _) => values(rows, scope.workspace()?, &ask.r#type)?,
        ("config", _) => config(rows, scope.workspace()?),
        ("getvalues-all-ws", Scope::System(_)) => everywhere(rows, &ask.r#type, true)?,
        ("getkeys-all-ws", Scope::System(_)) => everywhere(rows, &ask.r#type, false)?,
        _ => return Err(bad_operation()),
    };
    reply.version = rows.version();
    Ok(reply)
}

/// The contract's words for an operation that does not exist here.
pub(crate) fn bad_operation() -> Error {
    Error::new(ErrorCode::BadOperation, "Bad operation")
}

fn get(rows: &Rows, workspace: &str, ask: &ConfigRequest) -> Result<ConfigReply, Error> {
    check_count("keys", ask.keys.len())?;
    let values = ask
        .keys
        .iter()
        .map(|at| ReplyValue {
            r#type: at.r#type.as_str().into(),
            key: at.key.as_str().into(),
            value: rows.get(workspace, &at.r#type, &at.key).cloned(),
            workspace: empty(),
        })
        .collect();
    Ok(ConfigReply {
        values,
        ..ConfigReply::default()
    })
}

fn list(rows: &Rows, workspace: &str, kind: &str) -> Result<ConfigReply, Error> {
    check_name("type", kind)?;
    let directory = rows
        .values(workspace, kind)
        .into_iter()
        .flat_map(|values| values.keys().cloned())
        .collect();
    Ok(ConfigReply {
        directory,
        ..ConfigReply::default()
    })
}

fn values(rows: &Rows, workspace: &str, kind: &str) -> Result<ConfigReply, Error> {
    check_name("type", kind)?;
    let kind: Arc<str> = kind.into();
    let values = rows
        .values(workspace, &kind)
        .into_iter()
        .flatten()
        .map(|(key, value)| ReplyValue {
            r#type: kind.clone(),
            key: key.clone(),
            value: Some(value.clone()),
            workspace: empty(),
        })
        .collect();
    Ok(ConfigReply {
        values,
        ..ConfigReply::default()
    })
}

fn config(rows: &Rows, workspace: &str) -> ConfigReply {
    ConfigReply {
        config: rows
            .types(workspace)
            .map(|(kind, values)| (kind.clone(), values.clone()))
            .collect(),
        ..ConfigReply::default()
    }
}

fn everywhere(rows: &Rows, kind: &str, with_values: bool) -> Result<ConfigReply, Error> {
    check_name("type", kind)?;
    let kind: Arc<str> = kind.into();
    let mut all = Vec::new();
    for workspace in rows.workspaces() {
        for (key, value) in rows.values(workspace, &kind).into_iter().flatten() {
            all.push(ReplyValue {
                r#type: kind.clone(),
                key: key.clone(),
                value: Some(if with_values { value.clone() } else { empty() }),
                workspace: workspace.clone(),
            });
        }
    }
    Ok(ConfigReply {
        values: all,
        ..ConfigReply::default()
    })
}

fn empty() -> Arc<str> {
    Arc::from("")
}
