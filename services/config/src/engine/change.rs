//! What a write changes, and what is announced about it. A plan is whole: one version, one notice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tg_schemas::msg::{ConfigKey, ConfigPush, ConfigRequest, ConfigValue, WorkspaceChanges};
use tg_schemas::workspace_key::{GENERATION, TOMBSTONE};
use tg_schemas::{Error, ErrorCode, WorkspaceId, limits};

use super::lifecycle::{self, Given, Trash};
use super::limits::{check_count, check_key, check_name, check_room, check_value};
use super::read::bad_operation;
use super::rows::{TYPE, size};
use super::{REGISTRY, ReadScope, Row, RowKey, Rows, TEMPLATE, TOLD, WORKSPACE_TYPE, is_reserved};

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
    /// Brings a deleted workspace back, as long as its data was not purged.
    RestoreWorkspace(Arc<str>),
}

impl Write {
    /// Reads and checks a writing operation; `bad-operation` for anything else.
    pub(crate) fn from_request(scope: ReadScope<'_>, ask: ConfigRequest) -> Result<Self, Error> {
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
                    check_own(&format!("keys[{at}].type"), workspace, &key.r#type)?;
                }
                Ok(Self::Delete(workspace.into(), ask.keys))
            }
            ("delete-workspace", ReadScope::System(_)) => {
                let workspace = scope.workspace()?;
                if is_reserved(workspace) {
                    return Err(Error::new(
                        ErrorCode::BadRequest,
                        "workspace: a reserved workspace cannot be deleted",
                    ));
                }
                Ok(Self::DeleteWorkspace(workspace.into()))
            }
            ("restore-workspace", ReadScope::System(_)) => {
                let workspace = WorkspaceId::new(scope.workspace()?)?;
                Ok(Self::RestoreWorkspace(workspace.as_str().into()))
            }
            _ => Err(bad_operation()),
        }
    }
}

/// What this service says of workspaces is not written by others.
fn check_own(field: &str, workspace: &str, kind: &str) -> Result<(), Error> {
    match lifecycle::is_own(workspace, kind) {
        true => Err(Error::new(
            ErrorCode::BadRequest,
            format!("{field}: is reserved"),
        )),
        false => Ok(()),
    }
}

fn check_put(workspace: &str, values: &[ConfigValue]) -> Result<(), Error> {
    check_count("values", values.len())?;
    for (at, value) in values.iter().enumerate() {
        check_name(&format!("values[{at}].type"), &value.r#type)?;
        check_key(&format!("values[{at}].key"), &value.key)?;
        check_value(&format!("values[{at}].value"), &value.value)?;
        check_own(&format!("values[{at}].type"), workspace, &value.r#type)?;
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
    /// What becomes of the trash.
    pub(crate) trash: Trash,
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
pub(crate) fn plan(rows: &Rows, write: Write, given: &Given) -> Result<Change, Error> {
    let mut draft = Draft::default();
    match write {
        Write::Put(workspace, values) => draft.put(rows, &workspace, values, given)?,
        Write::Delete(workspace, keys) => draft.delete(rows, &workspace, keys),
        Write::DeleteWorkspace(workspace) => draft.delete_workspace(rows, &workspace, given),
        Write::RestoreWorkspace(workspace) => draft.restore_workspace(rows, &workspace, given)?,
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
    trash: Trash,
}

impl Draft {
    fn put(
        &mut self,
        rows: &Rows,
        workspace: &Arc<str>,
        values: Vec<ConfigValue>,
        given: &Given,
    ) -> Result<(), Error> {
        let mut added: BTreeMap<String, usize> = BTreeMap::new();
        for mut value in values {
            if &**workspace == REGISTRY && value.r#type == WORKSPACE_TYPE {
                value.value = self.register(rows, &value.key, &value.value, given);
            }
            let (kind, key) = (value.r#type.as_str(), value.key.as_str());
            let old = rows.get(workspace, kind, key);
            let old = old.map_or(0, |old| size(kind, key, old));
            let more = size(kind, key, &value.value).saturating_sub(old);
            let new_type = rows.values(workspace, kind).map_or(TYPE, |_| 0);
            *added.entry(kind.to_owned()).or_insert(new_type) += more;
            let at = RowKey {
                workspace: workspace.clone(),
                kind: value.r#type.into(),
                key: value.key.into(),
            };
            self.puts.insert(at, value.value.into());
        }
        let added = added
            .iter()
            .map(|(kind, more)| (kind.as_str(), rows.type_bytes(workspace, kind), *more));
        // What is of the system holds the registry: it is nobody's to use up.
        let most = match is_reserved(workspace) {
            true => given.most.max(limits::CONFIG_WORKSPACE),
            false => given.most,
        };
        check_room(most, rows.bytes(workspace), added)
    }

    /// A registry row is put: a workspace that was not there gets what the template has and it lacks.
    fn register(&mut self, rows: &Rows, id: &str, value: &str, given: &Given) -> String {
        self.created.insert(id.to_owned());
        let known = lifecycle::generation(rows, id);
        let generation = known.unwrap_or_else(|| lifecycle::next(rows, id, given.now));
        let value = lifecycle::registered(value, generation);
        if rows.get(REGISTRY, WORKSPACE_TYPE, id).is_some() {
            return value;
        }
        if rows.get(REGISTRY, GENERATION, id).is_none() {
            let at = lifecycle::at(GENERATION, id);
            self.puts.insert(at, generation.to_string().into());
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
        value
    }

    fn delete(&mut self, rows: &Rows, workspace: &Arc<str>, keys: Vec<ConfigKey>) {
        for key in keys {
            if &**workspace == REGISTRY && key.r#type == WORKSPACE_TYPE {
                self.deleted.insert(key.key.clone());
                // It comes back in the generation that it had.
                if rows.get(REGISTRY, WORKSPACE_TYPE, &key.key).is_some()
                    && rows.get(REGISTRY, GENERATION, &key.key).is_none()
                {
                    let at = lifecycle::at(GENERATION, &key.key);
                    self.puts.insert(at, "0".into());
                }
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

    fn delete_workspace(&mut self, rows: &Rows, workspace: &Arc<str>, given: &Given) {
        let mut kept = Vec::new();
        for (kind, values) in rows.types(workspace) {
            kept.extend(values.iter().map(|(key, value)| Row {
                at: RowKey {
                    workspace: workspace.clone(),
                    kind: kind.clone(),
                    key: key.clone(),
                },
                value: value.clone(),
            }));
            self.removes.extend(values.keys().map(|key| RowKey {
                workspace: workspace.clone(),
                kind: kind.clone(),
                key: key.clone(),
            }));
        }
        for kind in [WORKSPACE_TYPE, GENERATION] {
            if rows.get(REGISTRY, kind, workspace).is_some() {
                self.removes.insert(lifecycle::at(kind, workspace));
            }
        }
        if let Some(stone) = lifecycle::bury(rows, workspace, given) {
            self.removes.extend(lifecycle::superfluous(rows, given.now));
            let value = serde_json::to_string(&stone).unwrap_or_default();
            self.puts
                .insert(lifecycle::at(TOMBSTONE, workspace), value.into());
            self.trash = match given.grace > 0 {
                true => Trash::Keeps(workspace.clone(), stone.purge_after, kept),
                false => Trash::Forgets(workspace.clone()),
            };
        }
        self.deleted.insert(workspace.to_string());
    }

    fn restore_workspace(
        &mut self,
        rows: &Rows,
        workspace: &Arc<str>,
        given: &Given,
    ) -> Result<(), Error> {
        let (generation, kept) = lifecycle::restored(rows, workspace, given)?;
        self.puts
            .extend(kept.into_iter().map(|row| (row.at, row.value)));
        let value = lifecycle::registered(r#"{"enabled": true}"#, generation);
        self.puts
            .insert(lifecycle::at(WORKSPACE_TYPE, workspace), value.into());
        self.puts.insert(
            lifecycle::at(GENERATION, workspace),
            generation.to_string().into(),
        );
        let tombstone = lifecycle::at(TOMBSTONE, workspace);
        match lifecycle::earlier(rows, workspace) {
            Some(stone) => {
                let value = serde_json::to_string(&stone).unwrap_or_default();
                self.puts.insert(tombstone, value.into());
            }
            None => {
                self.removes.insert(tombstone);
            }
        }
        self.trash = Trash::Forgets(workspace.clone());
        self.created.insert(workspace.to_string());
        Ok(())
    }

    fn finish(self, version: i64) -> Change {
        let told: Vec<&RowKey> = self
            .puts
            .keys()
            .chain(&self.removes)
            // What iam tells in its own is for everybody.
            .filter(|at| !is_reserved(&at.workspace) || &*at.workspace == TOLD)
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
            trash: self.trash,
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
