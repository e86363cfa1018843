//! What a write changes, and what is told about it. A plan is whole: one version, one notice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tg_schemas::msg::{ConfigKey, ConfigPush, ConfigRequest, ConfigValue, WorkspaceChanges};
use tg_schemas::{Error, ErrorCode, WorkspaceId};

use super::limits::{MAX_WORKSPACE, check_count, check_key, check_name, check_value};
use super::read::bad_operation;
use super::{REGISTRY, Row, RowKey, Rows, Scope, TEMPLATE, WORKSPACE_TYPE, is_reserved};

/// More changed keys than this are not named in a notice; readers then read whole types.
const MAX_NAMED_KEYS: usize = 512;

/// A checked write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Write {
    /// Puts values.
    Put(Arc<str>, Vec<ConfigValue>),
    /// Removes keys; absent ones are fine.
    Delete(Arc<str>, Vec<ConfigKey>),
    /// Removes every row of a workspace, and its entry in the registry.
    DeleteWorkspace(Arc<str>),
}

impl Write {
    /// Reads and checks a writing operation; `bad-operation` for anything else.
    pub(crate) fn from_request(scope: Scope<'_>, ask: ConfigRequest) -> Result<Self, Error> {
        match (ask.operation.as_str(), scope) {
            ("put", _) => {
                let workspace = scope.workspace()?;
                check_put(workspace, &ask.values)?;
                Ok(Self::Put(workspace.into(), ask.values))
            }
            ("delete", _) => {
                let workspace = scope.workspace()?;
                check_count("keys", ask.keys.len())?;
                for (at, key) in ask.keys.iter().enumerate() {
                    check_name(&format!("keys[{at}].type"), &key.r#type)?;
                    check_key(&format!("keys[{at}].key"), &key.key)?;
                }
                Ok(Self::Delete(workspace.into(), ask.keys))
            }
            ("delete-workspace", Scope::System(_)) => {
                let workspace = scope.workspace()?;
                if is_reserved(workspace) {
                    return Err(Error::new(
                        ErrorCode::BadRequest,
                        "workspace: a reserved workspace cannot be deleted",
                    ));
                }
                Ok(Self::DeleteWorkspace(workspace.into()))
            }
            _ => Err(bad_operation()),
        }
    }
}

fn check_put(workspace: &str, values: &[ConfigValue]) -> Result<(), Error> {
    check_count("values", values.len())?;
    for (at, value) in values.iter().enumerate() {
        check_name(&format!("values[{at}].type"), &value.r#type)?;
        check_key(&format!("values[{at}].key"), &value.key)?;
        check_value(&format!("values[{at}].value"), &value.value)?;
        if workspace == REGISTRY && value.r#type == WORKSPACE_TYPE {
            WorkspaceId::new(&value.key).map_err(|fault| {
                Error::new(fault.code(), format!("values[{at}].key: {}", fault.message))
            })?;
        }
    }
    Ok(())
}

/// The effect of one write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    /// The version after it.
    pub(crate) version: i64,
    /// Rows to put.
    pub(crate) puts: Vec<Row>,
    /// Rows to remove.
    pub(crate) removes: Vec<RowKey>,
    /// What to tell.
    pub(crate) push: ConfigPush,
}

impl Change {
    /// Makes the rows what the change says.
    pub(crate) fn apply(&self, rows: &mut Rows) {
        for row in &self.puts {
            rows.insert(row.clone());
        }
        for at in &self.removes {
            rows.remove(at);
        }
        rows.set_version(self.version);
    }
}

/// Works out what a write changes.
pub(crate) fn plan(rows: &Rows, write: Write) -> Result<Change, Error> {
    let mut draft = Draft::default();
    match write {
        Write::Put(workspace, values) => draft.put(rows, &workspace, values)?,
        Write::Delete(workspace, keys) => draft.delete(rows, &workspace, keys),
        Write::DeleteWorkspace(workspace) => draft.delete_workspace(rows, &workspace),
    }
    Ok(draft.finish(rows.version() + 1))
}

/// The notice at a start or reconnect: everything may have changed, every workspace may be new.
pub(crate) fn announcement(rows: &Rows) -> ConfigPush {
    let mut changes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for workspace in rows.workspaces().filter(|name| !is_reserved(name)) {
        for (kind, _) in rows.types(workspace) {
            changes
                .entry(kind.to_string())
                .or_default()
                .push(workspace.to_string());
        }
    }
    let created: Vec<String> = rows
        .values(REGISTRY, WORKSPACE_TYPE)
        .into_iter()
        .flatten()
        .map(|(id, _)| id.to_string())
        .collect();
    ConfigPush {
        version: rows.version(),
        changes,
        workspace_changes: (!created.is_empty()).then(|| WorkspaceChanges {
            created,
            deleted: Vec::new(),
        }),
        ..ConfigPush::default()
    }
}

/// A change under construction. Within one request the last put of a key wins.
#[derive(Default)]
struct Draft {
    puts: BTreeMap<RowKey, Arc<str>>,
    removes: BTreeSet<RowKey>,
    created: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

impl Draft {
    fn put(
        &mut self,
        rows: &Rows,
        workspace: &Arc<str>,
        values: Vec<ConfigValue>,
    ) -> Result<(), Error> {
        let mut added = 0;
        for value in values {
            if &**workspace == REGISTRY && value.r#type == WORKSPACE_TYPE {
                self.register(rows, &value.key);
            }
            added += value.key.len() + value.value.len();
            let at = RowKey {
                workspace: workspace.clone(),
                kind: value.r#type.into(),
                key: value.key.into(),
            };
            self.puts.insert(at, value.value.into());
        }
        if rows.bytes(workspace) + added > MAX_WORKSPACE {
            return Err(Error::new(
                ErrorCode::TooLarge,
                "values: the workspace's configuration is full",
            ));
        }
        Ok(())
    }

    /// A registry row is put: a workspace that was not there gets what the template has and it lacks.
    fn register(&mut self, rows: &Rows, id: &str) {
        self.created.insert(id.to_owned());
        if rows.get(REGISTRY, WORKSPACE_TYPE, id).is_some() {
            return;
        }
        let workspace: Arc<str> = id.into();
        for (kind, values) in rows.types(TEMPLATE) {
            for (key, value) in values {
                if rows.get(id, kind, key).is_none() {
                    let at = RowKey {
                        workspace: workspace.clone(),
                        kind: kind.clone(),
                        key: key.clone(),
                    };
                    self.puts.insert(at, value.clone());
                }
            }
        }
    }

    fn delete(&mut self, rows: &Rows, workspace: &Arc<str>, keys: Vec<ConfigKey>) {
        for key in keys {
            if &**workspace == REGISTRY && key.r#type == WORKSPACE_TYPE {
                self.deleted.insert(key.key.clone());
            }
            if rows.get(workspace, &key.r#type, &key.key).is_some() {
                self.removes.insert(RowKey {
                    workspace: workspace.clone(),
                    kind: key.r#type.into(),
                    key: key.key.into(),
                });
            }
        }
    }

    fn delete_workspace(&mut self, rows: &Rows, workspace: &Arc<str>) {
        for (kind, values) in rows.types(workspace) {
            self.removes.extend(values.keys().map(|key| RowKey {
                workspace: workspace.clone(),
                kind: kind.clone(),
                key: key.clone(),
            }));
        }
        if rows.get(REGISTRY, WORKSPACE_TYPE, workspace).is_some() {
            self.removes.insert(RowKey {
                workspace: REGISTRY.into(),
                kind: WORKSPACE_TYPE.into(),
                key: workspace.clone(),
            });
        }
        self.deleted.insert(workspace.to_string());
    }

    fn finish(self, version: i64) -> Change {
        let told: Vec<&RowKey> = self
            .puts
            .keys()
            .chain(&self.removes)
            .filter(|at| !is_reserved(&at.workspace))
            .collect();
        let mut changes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for at in &told {
            changes
                .entry(at.kind.to_string())
                .or_default()
                .insert(at.workspace.to_string());
        }
        let moved = !self.created.is_empty() || !self.deleted.is_empty();
        // Who names keys promises that nothing else changed.
        let keys = if moved || told.len() > MAX_NAMED_KEYS {
            Vec::new()
        } else {
            told.iter().map(|at| named(at)).collect()
        };
        let push = ConfigPush {
            version,
            changes: changes
                .into_iter()
                .map(|(kind, workspaces)| (kind, workspaces.into_iter().collect()))
                .collect(),
            workspace_changes: moved.then(|| WorkspaceChanges {
                created: self.created.into_iter().collect(),
                deleted: self.deleted.into_iter().collect(),
            }),
            keys,
        };
        Change {
            version,
            puts: self
                .puts
                .into_iter()
                .map(|(at, value)| Row { at, value })
                .collect(),
            removes: self.removes.into_iter().collect(),
            push,
        }
    }
}

fn named(at: &RowKey) -> ConfigValue {
    ConfigValue {
        r#type: at.kind.to_string(),
        key: at.key.to_string(),
        workspace: at.workspace.to_string(),
        ..ConfigValue::default()
    }
}
