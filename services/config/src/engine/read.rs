//! What each reading operation answers. Where a type is read whole, pages can be asked for: rows of a bounded
//! number of bytes, and where to go on.

use std::sync::Arc;

use tg_schemas::msg::ConfigRequest;
use tg_schemas::{Error, ErrorCode, limits};

use super::Rows;
use super::limits::{check_count, check_name};
use super::reply::{ConfigReply, ReplyValue};

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
    let page = ask.page.as_deref().map(Page::read).transpose()?;
    let mut reply = match (ask.operation.as_str(), scope) {
        ("get", _) => get(rows, scope.workspace()?, ask)?,
        ("list", _) => list(rows, scope.workspace()?, &ask.r#type)?,
        ("getvalues", _) => values(rows, scope.workspace()?, &ask.r#type, page)?,
        ("config", _) => config(rows, scope.workspace()?),
        ("getvalues-all-ws", Scope::System(_)) => everywhere(rows, &ask.r#type, true, page)?,
        ("getkeys-all-ws", Scope::System(_)) => everywhere(rows, &ask.r#type, false, page)?,
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

/// Where a page begins: after the row of this workspace and key.
struct Page<'a>(Option<(&'a str, &'a str)>);

impl<'a> Page<'a> {
    /// Reads what an earlier answer said. Neither workspaces nor keys hold line ends.
    fn read(text: &'a str) -> Result<Self, Error> {
        match (text, text.split_once('\n')) {
            ("", _) => Ok(Self(None)),
            (_, Some(start)) => Ok(Self(Some(start))),
            _ => Err(Error::new(
                ErrorCode::BadRequest,
                "page: is not the 'next' of an earlier answer",
            )),
        }
    }
}

fn values(
    rows: &Rows,
    workspace: &str,
    kind: &str,
    page: Option<Page<'_>>,
) -> Result<ConfigReply, Error> {
    let mut reply = read(rows, Some(workspace), kind, true, page)?;
    for value in &mut reply.values {
        value.workspace = empty();
    }
    Ok(reply)
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

fn everywhere(
    rows: &Rows,
    kind: &str,
    with_values: bool,
    page: Option<Page<'_>>,
) -> Result<ConfigReply, Error> {
    read(rows, None, kind, with_values, page)
}

/// Rows of a type, all of them or a page.
fn read(
    rows: &Rows,
    workspace: Option<&str>,
    kind: &str,
    with_values: bool,
    page: Option<Page<'_>>,
) -> Result<ConfigReply, Error> {
    check_name("type", kind)?;
    let kind: Arc<str> = kind.into();
    let paged = page.is_some();
    let start = page.and_then(|page| page.0);
    let mut reply = ConfigReply::default();
    let mut bytes = 0;
    for (workspace, key, value) in rows.after(workspace, &kind, start) {
        if paged && bytes >= limits::CONFIG_PAGE {
            let last = reply.values.last();
            reply.next = last.map(|row: &ReplyValue| format!("{}\n{}", row.workspace, row.key));
            break;
        }
        let value = if with_values { value.clone() } else { empty() };
        // Names and punctuation of a row count too: there may be many short ones.
        bytes += workspace.len() + kind.len() + key.len() + value.len() + 64;
        reply.values.push(ReplyValue {
            r#type: kind.clone(),
            key: key.clone(),
            value: Some(value),
            workspace: workspace.clone(),
        });
    }
    Ok(reply)
}

fn empty() -> Arc<str> {
    Arc::from("")
}
