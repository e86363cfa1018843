//! The configuration as this process sees it: whole rows of the watched types, at one version. It never
//! changes the configuration, and never reads it by itself: the runtime brings it up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::Value;
use tg_schemas::workspace_key::{GENERATION, IDENTITY, REGISTERED, REGISTRY, STORE, TOMBSTONE};
use tg_schemas::{WorkspaceKey, WorkspaceTombstone};
use tokio::sync::watch;

/// Rows of one type in one workspace.
pub type Rows = BTreeMap<String, Arc<str>>;

/// Config type and reserved workspace of the workspace registry.
pub(crate) const WORKSPACES: (&str, &str) = (REGISTRY, REGISTERED);

/// Config types that say which workspaces there are, were, and in which generation. Each changes only with a notice
/// that names workspaces.
pub(crate) const LIFECYCLE: [&str; 4] = [WORKSPACES.1, GENERATION, TOMBSTONE, STORE];

/// Config type of registered collections.
pub(crate) const COLLECTION: &str = "collection";

/// What the mesh reads of a collection's row.
#[derive(Deserialize)]
struct Collection {
    /// On the wire the generation keeps its older name.
    #[serde(default, rename = "incarnation")]
    generation: i64,
}

/// What the mesh reads of a workspace's row.
#[derive(Clone, Copy)]
struct Workspace {
    generation: i64,
    enabled: bool,
}

impl Workspace {
    /// One that cannot be read is enabled, and the first of its name.
    fn read(row: &str) -> Self {
        let row: Value = serde_json::from_slice(row.as_bytes()).unwrap_or_default();
        let generation = row.get("generation").and_then(Value::as_i64);
        Self {
            generation: generation.map_or(0, |generation| generation.max(0)),
            enabled: row.get("enabled") != Some(&Value::Bool(false)),
        }
    }
}

/// A cheap-to-clone view that the runtime keeps current.
#[derive(Clone)]
pub struct ConfigView(Arc<Inner>);

struct Inner {
    rows: RwLock<BTreeMap<String, BTreeMap<String, Arc<Rows>>>>,
    /// Each workspace as parsed from its row, with that row: a question needs its workspace several times.
    workspaces: RwLock<BTreeMap<String, (Arc<str>, Workspace)>>,
    version: watch::Sender<i64>,
}

impl Default for ConfigView {
    fn default() -> Self {
        Self(Arc::new(Inner {
            rows: RwLock::default(),
            workspaces: RwLock::default(),
            version: watch::channel(-1).0,
        }))
    }
}

impl ConfigView {
    /// One value.
    pub fn get(&self, workspace: &str, kind: &str, key: &str) -> Option<Arc<str>> {
        self.0
            .rows
            .read()
            .get(kind)?
            .get(workspace)?
            .get(key)
            .cloned()
    }

    /// All rows of a type in a workspace.
    pub fn values(&self, workspace: &str, kind: &str) -> Arc<Rows> {
        let rows = self.0.rows.read();
        rows.get(kind)
            .and_then(|by_workspace| by_workspace.get(workspace))
            .cloned()
            .unwrap_or_default()
    }

    /// Generation of a collection: grows each time its name is given again after a deletion; 0 if it is not
    /// registered.
    pub fn collection_generation(&self, workspace: &str, collection: &str) -> i64 {
        self.registered(workspace, collection).unwrap_or(0)
    }

    /// The generation of a collection that is registered.
    fn registered(&self, workspace: &str, collection: &str) -> Option<i64> {
        let row = self.get(workspace, COLLECTION, collection)?;
        let row = serde_json::from_slice::<Collection>(row.as_bytes());
        Some(row.map_or(0, |row| row.generation.max(0)))
    }

    /// What a record that is sent now says of its collection ([`Headers::collection_generation`]); `None` before
    /// collections were read.
    ///
    /// [`Headers::collection_generation`]: tg_schemas::Headers::collection_generation
    pub(crate) fn stamp(&self, workspace: &str, collection: &str) -> Option<i64> {
        self.has_read([&COLLECTION.to_owned()])
            .then(|| self.registered(workspace, collection).unwrap_or(-1))
    }

    /// Whether a collection is registered.
    pub fn has_collection(&self, workspace: &str, collection: &str) -> bool {
        self.get(workspace, COLLECTION, collection).is_some()
    }

    /// Generation of a workspace: the present one, or the last if it was deleted; 0 for one that is not known.
    pub fn generation(&self, workspace: &str) -> i64 {
        // One row says that it is there and in which generation: never one without the other.
        if let Some(row) = self.workspace(workspace) {
            return row.generation;
        }
        let known = self.get(REGISTRY, GENERATION, workspace);
        if let Some(known) = known.and_then(|text| text.parse::<i64>().ok()) {
            return known.max(0);
        }
        self.tombstone(workspace)
            .map_or(0, |stone| stone.generation.max(0))
    }

    /// Whether a workspace is registered and not disabled.
    pub fn is_open(&self, workspace: &str) -> bool {
        self.workspace(workspace).is_some_and(|row| row.enabled)
    }

    /// A workspace that is registered.
    fn workspace(&self, name: &str) -> Option<Workspace> {
        let row = self.get(WORKSPACES.0, WORKSPACES.1, name)?;
        let known = self.0.workspaces.read().get(name).cloned();
        if let Some((of, workspace)) = known
            && Arc::ptr_eq(&of, &row)
        {
            return Some(workspace);
        }
        let workspace = Workspace::read(&row);
        let mut all = self.0.workspaces.write();
        all.insert(name.to_owned(), (row, workspace));
        Some(workspace)
    }

    /// What stores keep a workspace's data under.
    pub fn workspace_key(&self, workspace: &str) -> WorkspaceKey {
        WorkspaceKey::new(workspace, self.generation(workspace))
    }

    /// The deletion of a workspace's name, if there was one.
    pub fn tombstone(&self, workspace: &str) -> Option<WorkspaceTombstone> {
        serde_json::from_slice(self.get(REGISTRY, TOMBSTONE, workspace)?.as_bytes()).ok()
    }

    /// Whether what is kept or sent under a key belongs to a workspace that was deleted, whatever has its name
    /// now.
    pub fn has_ended(&self, key: &WorkspaceKey) -> bool {
        self.tombstone(key.name())
            .is_some_and(|stone| key.generation() <= stone.generation)
    }

    /// Whether what was sent or kept under a key is of a generation before the present one, or of one that was deleted.
    pub fn is_over(&self, key: &WorkspaceKey) -> bool {
        key.generation() < self.generation(key.name()) || self.has_ended(key)
    }

    /// Which config store this is a view of; `None` before the first read and of a foreign one.
    pub fn store_identity(&self) -> Option<Arc<str>> {
        self.get(REGISTRY, STORE, IDENTITY)
    }

    /// Workspaces with at least one row of a type; reserved ones (`_…`) are left out.
    pub fn workspaces_with(&self, kind: &str) -> Vec<String> {
        let rows = self.0.rows.read();
        rows.get(kind).map_or_else(Vec::new, |by_workspace| {
            by_workspace
                .keys()
                .filter(|name| !name.starts_with('_'))
                .cloned()
                .collect()
        })
    }

    /// Registered workspaces.
    pub fn workspaces(&self) -> Vec<String> {
        self.values(WORKSPACES.0, WORKSPACES.1)
            .keys()
            .cloned()
            .collect()
    }

    /// Whether a workspace is registered.
    pub fn has_workspace(&self, name: &str) -> bool {
        self.get(WORKSPACES.0, WORKSPACES.1, name).is_some()
    }

    /// Whether every one of some types has been read, so that a row which is not shown is not there.
    pub(crate) fn has_read<'a>(&self, types: impl IntoIterator<Item = &'a String>) -> bool {
        let rows = self.0.rows.read();
        types.into_iter().all(|kind| rows.contains_key(kind))
    }

    /// The version this view shows; -1 before the first read.
    pub fn version(&self) -> i64 {
        *self.0.version.borrow()
    }

    /// Follows the version. A change is announced after the view shows it.
    pub fn changes(&self) -> watch::Receiver<i64> {
        self.0.version.subscribe()
    }

    /// Replaces all rows of some types at once: nobody sees those of one as they are now and those of another as they
    /// were. Returns the types and workspaces whose rows differ.
    pub(crate) fn replace(
        &self,
        new: BTreeMap<String, BTreeMap<String, Rows>>,
    ) -> BTreeSet<(String, String)> {
        let mut rows = self.0.rows.write();
        let mut changed = BTreeSet::new();
        for (kind, new) in new {
            let old = rows.entry(kind.clone()).or_default();
            old.retain(|workspace, _| {
                let keep = new.contains_key(workspace);
                if !keep {
                    changed.insert((kind.clone(), workspace.clone()));
                }
                keep
            });
            for (workspace, values) in new {
                if old.get(&workspace).is_none_or(|known| **known != values) {
                    changed.insert((kind.clone(), workspace.clone()));
                    old.insert(workspace, Arc::new(values));
                }
            }
        }
        // A deleted workspace must not stay in memory.
        if changed.iter().any(|(kind, _)| kind == WORKSPACES.1) {
            self.0.workspaces.write().clear();
        }
        changed
    }

    /// Sets or removes one row.
    pub(crate) fn set(&self, workspace: &str, kind: &str, key: &str, value: Option<&str>) {
        let mut rows = self.0.rows.write();
        let by_workspace = rows.entry(kind.to_owned()).or_default();
        let known = by_workspace.entry(workspace.to_owned()).or_default();
        let values = Arc::make_mut(known);
        match value {
            Some(value) => {
                values.insert(key.to_owned(), value.into());
            }
            None => {
                values.remove(key);
                if kind == WORKSPACES.1 {
                    self.0.workspaces.write().remove(key);
                }
            }
        }
        if values.is_empty() {
            by_workspace.remove(workspace);
        }
    }

    /// Announces that the view shows `version`.
    pub(crate) fn announce(&self, version: i64) {
        self.0.version.send_replace(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who attaches a processor because its row is there finds what else it watches.
    #[test]
    fn types_that_were_read_together_are_seen_together() {
        let view = ConfigView::default();
        let of = |value: &str| {
            let rows: Rows = [("k".to_owned(), Arc::from(value))].into();
            let all = BTreeMap::from([("w".to_owned(), rows)]);
            BTreeMap::from(["a", "b"].map(|kind| (kind.to_owned(), all.clone())))
        };
        view.replace(of("0"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 1..2_000 {
                    view.replace(of(&turn.to_string()));
                }
            });
            let at = |kind: &str| view.get("w", kind, "k").and_then(|text| text.parse().ok());
            let mut last = Some(0);
            while last < Some(1_999) {
                let first: Option<u32> = at("a");
                // What was read later is at least as new.
                assert!(at("b") >= first);
                last = first;
            }
        });
    }

    #[test]
    fn replace_tells_what_changed() {
        let view = ConfigView::default();
        let rows = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), Arc::from(*v)))
                .collect::<Rows>()
        };
        let tools = |pairs: &[(&str, &[(&str, &str)])]| {
            let of = |(name, pairs): &(&str, &[_])| ((*name).to_owned(), rows(pairs));
            BTreeMap::from([("tool".to_owned(), pairs.iter().map(of).collect())])
        };
        view.replace(tools(&[("a", &[("x", "1")]), ("b", &[("y", "2")])]));
        let changed = view.replace(tools(&[("a", &[("x", "1")]), ("c", &[])]));
        let names = ["b", "c"].map(|name| ("tool".to_owned(), name.to_owned()));
        assert_eq!(changed, names.into());
        view.set(
            "w",
            COLLECTION,
            "c",
            Some(r#"{"collection": "c", "incarnation": 4}"#),
        );
        view.set("w", COLLECTION, "plain", Some(r#"{"collection": "plain"}"#));
        view.set("w", COLLECTION, "odd", Some("["));
        let known = ["c", "plain", "odd", "none"].map(|name| view.collection_generation("w", name));
        assert_eq!(known, [4, 0, 0, 0]);
        let sent = ["c", "odd", "none"].map(|name| view.stamp("w", name));
        assert_eq!(sent, [Some(4), Some(0), Some(-1)]);
        assert_eq!(ConfigView::default().stamp("w", "c"), None);
        view.set(
            REGISTRY,
            "workspace",
            "w",
            Some(r#"{"enabled":true,"generation":7}"#),
        );
        view.set(REGISTRY, "workspace", "first", Some(r#"{"enabled":true}"#));
        view.set(REGISTRY, GENERATION, "disabled", Some("5"));
        let stone = r#"{"generation":6,"deleted-at":1,"purge-after":2}"#;
        view.set(REGISTRY, TOMBSTONE, "w", Some(stone));
        view.set(REGISTRY, TOMBSTONE, "gone", Some(stone));
        let names = ["w", "first", "disabled", "gone", "unknown"];
        let generations = names.map(|name| view.generation(name));
        assert_eq!(generations, [7, 0, 5, 6, 0]);
        let open = names.map(|name| view.is_open(name));
        assert_eq!(open, [true, true, false, false, false]);
        assert!(!view.has_ended(&view.workspace_key("w")));
        assert!(view.has_ended(&WorkspaceKey::new("w", 6)));
        assert!(view.has_ended(&view.workspace_key("gone")));
        assert!(!view.has_ended(&WorkspaceKey::new("unknown", 0)));
        view.set("a", "tool", "x", None);
        assert!(view.get("a", "tool", "x").is_none());
    }

    #[test]
    fn a_workspace_is_as_its_row_says_now() {
        let view = ConfigView::default();
        let says = |row: Option<&str>| {
            view.set(REGISTRY, "workspace", "w", row);
            // Looked at twice: what is read of a row is remembered.
            let looks = [(); 2].map(|()| (view.is_open("w"), view.generation("w")));
            assert_eq!(looks[0], looks[1], "{row:?}");
            looks[0]
        };
        assert_eq!(says(Some(r#"{"generation":7}"#)), (true, 7));
        assert_eq!(says(Some(r#"{"generation":8}"#)), (true, 8));
        let disabled = r#"{"generation":8,"enabled":false}"#;
        assert_eq!(says(Some(disabled)), (false, 8));
        assert_eq!(says(Some(r#"{"generation":-1,"enabled":0}"#)), (true, 0));
        assert_eq!(says(Some("[")), (true, 0));
        assert_eq!(says(None), (false, 0));
        let kind = BTreeMap::from([("workspace".to_owned(), BTreeMap::new())]);
        says(Some(disabled));
        view.replace(kind);
        assert!(!view.is_open("w") && view.0.workspaces.read().is_empty());
    }
}
