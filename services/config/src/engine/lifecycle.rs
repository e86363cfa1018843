//! The life of a workspace: it gets a generation when it is created, keeps it while it is disabled, and ends by a
//! tombstone, which is the only proof of a deletion. Until its data is purged it can be restored.

use std::sync::Arc;

use tg_schemas::workspace_key::{GENERATION, STORE, TOMBSTONE};
use tg_schemas::{Error, ErrorCode, WorkspaceTombstone};

use super::{REGISTRY, Row, RowKey, Rows, WORKSPACE_TYPE};

/// The workspace of a fresh system, which begins in generation 0.
const FIRST: &str = "default";
/// Tombstones kept at most; the oldest whose data was purged go first.
const MAX_TOMBSTONES: usize = tg_schemas::limits::WORKSPACES;
/// Config type of flows: they were stopped, and are not restored.
const FLOW: &str = "flow";
/// Config types of a flow's processors begin with this.
const PROCESSOR: &str = "processor:";

/// What a plan does not know by itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// Milliseconds since the Unix epoch.
    pub(crate) now: i64,
    /// How long a deleted workspace can be restored, in milliseconds.
    pub(crate) grace: i64,
    /// What the trash holds of the workspace that a write restores; `None`: nothing.
    pub(crate) trash: Option<Vec<Row>>,
    /// Bytes of keys and values that a workspace may hold.
    pub(crate) most: usize,
}

/// What a change does to the trash.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Trash {
    /// Nothing.
    #[default]
    Stays,
    /// The rows of a workspace are kept there until a time, instead of what was kept of that name.
    Keeps(Arc<str>, i64, Vec<Row>),
    /// What was kept of a workspace goes.
    Forgets(Arc<str>),
}

/// Whether rows of a type are written by this service alone.
pub(crate) fn is_own(workspace: &str, kind: &str) -> bool {
    workspace == REGISTRY && matches!(kind, GENERATION | TOMBSTONE | STORE)
}

/// Names a row of the registry.
pub(crate) fn at(kind: &str, workspace: &str) -> RowKey {
    RowKey {
        workspace: REGISTRY.into(),
        kind: kind.into(),
        key: workspace.into(),
    }
}

/// The deletion of a name, if there was one.
pub(crate) fn tombstone(rows: &Rows, workspace: &str) -> Option<WorkspaceTombstone> {
    serde_json::from_slice(rows.get(REGISTRY, TOMBSTONE, workspace)?.as_bytes()).ok()
}

/// The generation of a workspace that is there, enabled or not.
pub(crate) fn generation(rows: &Rows, workspace: &str) -> Option<i64> {
    if let Some(known) = rows.get(REGISTRY, GENERATION, workspace) {
        return Some(known.parse().unwrap_or(0));
    }
    // One from before there were generations: registered, or disabled with its configuration.
    let registered = rows.get(REGISTRY, WORKSPACE_TYPE, workspace).is_some();
    let left = tombstone(rows, workspace).is_none() && rows.types(workspace).next().is_some();
    (registered || left).then_some(0)
}

/// The generation that a workspace gets which is created now.
pub(crate) fn next(rows: &Rows, workspace: &str, now: i64) -> i64 {
    match tombstone(rows, workspace) {
        Some(last) => now.max(last.generation + 1),
        None if workspace == FIRST => 0,
        None => now.max(1),
    }
}

/// A registry row's value with the generation, which every process reads here. Generation 0 is not written.
pub(crate) fn registered(value: &str, generation: i64) -> String {
    let object =
        serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(value.as_bytes());
    let mut row = match (object, generation) {
        (Ok(row), _) => row,
        (Err(_), 0) => return value.to_owned(),
        (Err(_), _) => serde_json::Map::new(),
    };
    let said = row.remove(GENERATION).is_some();
    if generation > 0 {
        row.insert(GENERATION.to_owned(), generation.into());
    } else if !said {
        return value.to_owned();
    }
    serde_json::Value::Object(row).to_string()
}

/// The tombstone of a workspace that is deleted now; `None` when that was done already.
pub(crate) fn bury(rows: &Rows, workspace: &str, given: &Given) -> Option<WorkspaceTombstone> {
    let generation = match (generation(rows, workspace), tombstone(rows, workspace)) {
        (Some(living), _) => living,
        (None, Some(_)) => return None,
        // Nothing is known of it here: it ends in whatever generation it was.
        (None, None) => given.now,
    };
    Some(WorkspaceTombstone {
        generation,
        deleted_at: given.now,
        purge_after: given.now.saturating_add(given.grace),
    })
}

/// Tombstones that are too many: the oldest of those whose data was to be purged before now.
pub(crate) fn superfluous(rows: &Rows, now: i64) -> Vec<RowKey> {
    let Some(all) = rows.values(REGISTRY, TOMBSTONE) else {
        return Vec::new();
    };
    let over = (all.len() + 1).saturating_sub(MAX_TOMBSTONES);
    if over == 0 {
        return Vec::new();
    }
    let mut due: Vec<(i64, &str)> = all
        .iter()
        .filter_map(|(workspace, value)| {
            let stone: WorkspaceTombstone = serde_json::from_slice(value.as_bytes()).ok()?;
            (stone.purge_after < now).then_some((stone.deleted_at, &**workspace))
        })
        .collect();
    due.sort_unstable();
    due.truncate(over);
    due.into_iter()
        .map(|(_, name)| at(TOMBSTONE, name))
        .collect()
}

/// What stays of a tombstone when its workspace is restored: the proof that the generations before the restored one
/// ended. The first generation has none before it.
pub(crate) fn earlier(rows: &Rows, workspace: &str) -> Option<WorkspaceTombstone> {
    let stone = tombstone(rows, workspace)?;
    (stone.generation > 0).then(|| WorkspaceTombstone {
        generation: stone.generation - 1,
        ..stone
    })
}

/// The rows with which a deleted workspace comes back, and its generation.
pub(crate) fn restored(
    rows: &Rows,
    workspace: &str,
    given: &Given,
) -> Result<(i64, Vec<Row>), Error> {
    let refused = |why: &str| {
        Err(Error::new(
            ErrorCode::BadRequest,
            format!("workspace: {why}"),
        ))
    };
    if generation(rows, workspace).is_some() {
        return refused("the name is in use");
    }
    let Some(stone) = tombstone(rows, workspace) else {
        return refused("was not deleted");
    };
    let Some(kept) = given
        .trash
        .as_ref()
        .filter(|_| given.now < stone.purge_after)
    else {
        return refused("was deleted too long ago to be restored");
    };
    let stays = |row: &&Row| &*row.at.kind != FLOW && !row.at.kind.starts_with(PROCESSOR);
    Ok((
        stone.generation,
        kept.iter().filter(stays).cloned().collect(),
    ))
}
