//! What each reading operation answers. Where a type or a workspace is read whole, pages can be asked for.

use std::sync::Arc;

use tg_schemas::msg::ConfigRequest;
use tg_schemas::paging::{Asked, Page, no_cursor};
use tg_schemas::{Error, ErrorCode};

use super::Rows;
use super::limits::{check_count, check_name};
use super::reply::{ConfigReply, ReplyValue};
use super::rows::Values;

/// Bytes of `{"type":"","key":"","value":"","workspace":""},`, without what is between the quotes.
const ROW: usize = 48;
/// Bytes of `"":"",`.
const PAIR: usize = 6;
/// Bytes of `"",`.
const NAME: usize = 3;

/// What a question may see.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReadScope<'a> {
    /// The system queue: the workspace it names, or all of them.
    System(&'a str),
    /// A workspace's own queue.
    Workspace(&'a str),
}

impl<'a> ReadScope<'a> {
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
    scope: ReadScope<'_>,
    ask: &ConfigRequest,
) -> Result<ConfigReply, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let mut reply = match (ask.operation.as_str(), scope) {
        ("get", _) => get(rows, scope.workspace()?, ask)?,
        ("list", _) => list(rows, scope.workspace()?, &ask.r#type, asked)?,
        ("getvalues", _) => values(rows, scope.workspace()?, &ask.r#type, asked)?,
        ("config", _) => config(rows, scope.workspace()?, asked)?,
        ("getvalues-all-ws", ReadScope::System(_)) => everywhere(rows, &ask.r#type, true, asked)?,
        ("getkeys-all-ws", ReadScope::System(_)) => everywhere(rows, &ask.r#type, false, asked)?,
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

fn list(rows: &Rows, workspace: &str, kind: &str, asked: Asked) -> Result<ConfigReply, Error> {
    check_name("type", kind)?;
    let after = asked.after().map(str::to_owned);
    let start = after.as_deref().map(|key| (workspace, key));
    let mut page = Page::new(asked);
    for (_, key, _) in rows.after(Some(workspace), kind, start) {
        if page.is_full() {
            break;
        }
        page.push(key, key.clone(), key.len() + NAME)?;
    }
    Ok(ConfigReply {
        directory: page.entries,
        next: page.next,
        ..ConfigReply::default()
    })
}

fn values(rows: &Rows, workspace: &str, kind: &str, asked: Asked) -> Result<ConfigReply, Error> {
    let mut reply = read(rows, Some(workspace), kind, true, asked)?;
    for value in &mut reply.values {
        value.workspace = empty();
    }
    Ok(reply)
}

/// Everything of a workspace. A page may end within a type, and the next one go on there.
fn config(rows: &Rows, workspace: &str, asked: Asked) -> Result<ConfigReply, Error> {
    let after = asked.after().map(str::to_owned);
    let start = after.as_deref().map(pair).transpose()?;
    let mut reply = ConfigReply::default();
    let mut page = Page::new(asked);
    for (kind, key, value) in rows.all_after(workspace, start) {
        if page.is_full() {
            break;
        }
        let first = !reply.config.contains_key(kind);
        let named = if first { kind.len() + PAIR } else { 0 };
        let bytes = named + key.len() + value.len() + PAIR;
        page.push(format_args!("{kind}\n{key}"), (), bytes)?;
        let of_type: &mut Values = reply.config.entry(kind.clone()).or_default();
        of_type.insert(key.clone(), value.clone());
    }
    reply.next = page.next;
    Ok(reply)
}

/// The two names of a cursor: neither holds line ends.
fn pair(key: &str) -> Result<(&str, &str), Error> {
    key.split_once('\n').ok_or_else(no_cursor)
}

fn everywhere(
    rows: &Rows,
    kind: &str,
    with_values: bool,
    asked: Asked,
) -> Result<ConfigReply, Error> {
    read(rows, None, kind, with_values, asked)
}

/// Rows of a type, all of them or a page.
fn read(
    rows: &Rows,
    workspace: Option<&str>,
    kind: &str,
    with_values: bool,
    asked: Asked,
) -> Result<ConfigReply, Error> {
    check_name("type", kind)?;
    let kind: Arc<str> = kind.into();
    let after = asked.after().map(str::to_owned);
    let start = after.as_deref().map(pair).transpose()?;
    let mut page = Page::new(asked);
    for (workspace, key, value) in rows.after(workspace, &kind, start) {
        if page.is_full() {
            break;
        }
        let value = if with_values { value.clone() } else { empty() };
        // Names and punctuation of a row count too: there may be many short ones.
        let bytes = kind.len() + key.len() + value.len() + ROW;
        let row = ReplyValue {
            r#type: kind.clone(),
            key: key.clone(),
            value: Some(value),
            workspace: workspace.clone(),
        };
        page.push(format_args!("{workspace}\n{key}"), row, bytes)?;
    }
    Ok(ConfigReply {
        values: page.entries,
        next: page.next,
        ..ConfigReply::default()
    })
}

fn empty() -> Arc<str> {
    Arc::from("")
}
