//! Every row, in memory: what reads are answered from.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tg_schemas::limits;

/// Names one row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    /// Workspace, reserved ones included.
    pub(crate) workspace: Arc<str>,
    /// Type.
    pub(crate) kind: Arc<str>,
    /// Key within the type.
    pub(crate) key: Arc<str>,
}

/// A row with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Which row.
    pub(crate) at: RowKey,
    /// Its value, by convention JSON text.
    pub(crate) value: Arc<str>,
}

/// Keys and values of one type.
pub(crate) type Values = BTreeMap<Arc<str>, Arc<str>>;

/// Rows of one workspace by type.
#[derive(Debug, Default)]
struct Workspace {
    types: BTreeMap<Arc<str>, Values>,
    /// Of its rows; types count beside.
    bytes: usize,
}

/// All rows and the version they stand at.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    version: i64,
    workspaces: BTreeMap<Arc<str>, Workspace>,
}

/// What a row counts: its texts, and what it needs in memory beside them.
pub(crate) fn size(kind: &str, key: &str, value: &str) -> usize {
    kind.len() + key.len() + value.len() + limits::CONFIG_ROW
}

/// What a type counts beside its rows, as long as it has any: a map of its own is no smaller than a row.
pub(crate) const TYPE: usize = limits::CONFIG_ROW;

impl Rows {
    /// Rows at a version.
    pub(crate) fn new(version: i64, rows: impl IntoIterator<Item = Row>) -> Self {
        let mut all = Self {
            version,
            ..Self::default()
        };
        for row in rows {
            all.insert(row);
        }
        all
    }

    /// The version: grows by one with each write, in all workspaces together.
    pub(crate) fn version(&self) -> i64 {
        self.version
    }

    /// Moves to a later version.
    pub(crate) fn set_version(&mut self, version: i64) {
        self.version = version;
    }

    /// One value.
    pub(crate) fn get(&self, workspace: &str, kind: &str, key: &str) -> Option<&Arc<str>> {
        self.values(workspace, kind)?.get(key)
    }

    /// Keys and values of a type, if there are any.
    pub(crate) fn values(&self, workspace: &str, kind: &str) -> Option<&Values> {
        self.workspaces.get(workspace)?.types.get(kind)
    }

    /// The types of a workspace.
    pub(crate) fn types(&self, workspace: &str) -> impl Iterator<Item = (&Arc<str>, &Values)> {
        self.workspaces
            .get(workspace)
            .into_iter()
            .flat_map(|own| own.types.iter())
    }

    /// The workspaces that have rows, reserved ones included.
    pub(crate) fn workspaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.workspaces.keys()
    }

    /// Bytes that the rows of a workspace count.
    pub(crate) fn bytes(&self, workspace: &str) -> usize {
        let own = self.workspaces.get(workspace);
        own.map_or(0, |own| own.bytes + own.types.len() * TYPE)
    }

    /// Bytes that a type counts in a workspace; 0 without a row of it.
    pub(crate) fn type_bytes(&self, workspace: &str, kind: &str) -> usize {
        let Some(values) = self.values(workspace, kind) else {
            return 0;
        };
        let rows = values.iter().map(|(key, value)| size(kind, key, value));
        rows.sum::<usize>() + TYPE
    }

    /// Rows of a type in one workspace (`Some`) or in all, by workspace and key, from just after a row on.
    pub(crate) fn after(
        &self,
        workspace: Option<&str>,
        kind: &str,
        start: Option<(&str, &str)>,
    ) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Arc<str>)> {
        let first = workspace.or(start.map(|(workspace, _)| workspace));
        let from = first.map_or(Bound::Unbounded, Bound::Included);
        let last = workspace.map_or(Bound::Unbounded, Bound::Included);
        self.workspaces
            .range::<str, _>((from, last))
            .flat_map(move |(name, own)| {
                let key = start.and_then(|(at, key)| (at == &**name).then_some(key));
                let from = key.map_or(Bound::Unbounded, Bound::Excluded);
                let values = own.types.get(kind).into_iter();
                values
                    .flat_map(move |values| values.range::<str, _>((from, Bound::Unbounded)))
                    .map(move |(key, value)| (name, key, value))
            })
    }

    /// Rows of a workspace by type and key, from just after a row on.
    pub(crate) fn all_after(
        &self,
        workspace: &str,
        start: Option<(&str, &str)>,
    ) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Arc<str>)> {
        let own = self.workspaces.get(workspace).into_iter();
        let first = start.map_or(Bound::Unbounded, |(kind, _)| Bound::Included(kind));
        own.flat_map(move |own| own.types.range::<str, _>((first, Bound::Unbounded)))
            .flat_map(move |(kind, values)| {
                let key = start.and_then(|(at, key)| (at == &**kind).then_some(key));
                let from = key.map_or(Bound::Unbounded, Bound::Excluded);
                values
                    .range::<str, _>((from, Bound::Unbounded))
                    .map(move |(key, value)| (kind, key, value))
            })
    }

    /// Puts a row, replacing what was there.
    pub(crate) fn insert(&mut self, row: Row) {
        let Row { at, value } = row;
        let own = self.workspaces.entry(at.workspace).or_default();
        own.bytes += size(&at.kind, &at.key, &value);
        let values = own.types.entry(at.kind.clone()).or_default();
        if let Some(old) = values.insert(at.key.clone(), value) {
            own.bytes -= size(&at.kind, &at.key, &old);
        }
    }

    /// Removes a row, if it is there.
    pub(crate) fn remove(&mut self, at: &RowKey) {
        let Some(own) = self.workspaces.get_mut(&at.workspace) else {
            return;
        };
        let Some(values) = own.types.get_mut(&at.kind) else {
            return;
        };
        if let Some(old) = values.remove(&at.key) {
            own.bytes -= size(&at.kind, &at.key, &old);
        }
        if values.is_empty() {
            own.types.remove(&at.kind);
        }
        if own.types.is_empty() {
            self.workspaces.remove(&at.workspace);
        }
    }
}
