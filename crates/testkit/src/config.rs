//! The config service of the test world: rows in memory, with versions and notices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_mesh::{Cx, Mesh, RequestHandler, Responder};
use tg_schemas::msg::{ConfigPush, ConfigRequest, ConfigResponse, ConfigValue, WorkspaceChanges};
use tg_schemas::workspace_key::{REGISTERED, REGISTRY};
use tg_schemas::{Error, ErrorCode};

/// The workspace that rows go to unless another is named.
pub const WORKSPACE: &str = "default";

/// Workspace, type and key.
type At = (String, String, String);

/// A row to write, or to remove.
pub type Change<'a> = (&'a str, &'a str, Option<&'a str>);

#[derive(Default)]
struct Rows {
    version: i64,
    all: BTreeMap<At, String>,
}

/// Whoever is told of writes: of each before it is done, when it may refuse it, and after.
type Watch = Box<dyn Fn(&ConfigRequest, bool) -> Result<(), Error> + Send + Sync>;

/// Rows of the configuration.
#[derive(Default)]
pub struct Config {
    rows: Mutex<Rows>,
    /// Where rows outlive the process.
    file: Option<PathBuf>,
    watch: Option<Watch>,
}

impl Config {
    /// With the workspace `default`.
    pub fn new() -> Self {
        let config = Self::default();
        config.register(WORKSPACE);
        config
    }

    /// With the rows that another process left in a file, and left there again.
    pub fn kept_in(file: PathBuf) -> Self {
        let text = std::fs::read(&file).unwrap_or_default();
        let kept: (i64, Vec<(At, String)>) = serde_json::from_slice(&text).unwrap_or_default();
        let rows = Rows {
            version: kept.0,
            all: kept.1.into_iter().collect(),
        };
        Self {
            rows: Mutex::new(rows),
            file: Some(file),
            watch: None,
        }
    }

    /// Tells of writes that others ask for, which may be refused.
    pub fn watched(
        mut self,
        watch: impl Fn(&ConfigRequest, bool) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Registers a workspace.
    pub fn register(&self, workspace: &str) -> &Self {
        self.set(REGISTRY, REGISTERED, workspace, r#"{"enabled": true}"#)
    }

    /// Adds a row of the workspace `default`; nobody is told.
    pub fn put(&self, kind: &str, key: &str, value: &str) -> &Self {
        self.set(WORKSPACE, kind, key, value)
    }

    /// Adds a row; nobody is told.
    pub fn set(&self, workspace: &str, kind: &str, key: &str, value: &str) -> &Self {
        self.write(workspace, &[(kind, key, Some(value))]);
        self
    }

    /// Registers a collection.
    pub fn collection(&self, name: &str, generation: i64) -> &Self {
        let row = json!({"collection": name, "incarnation": generation});
        self.put("collection", name, &row.to_string())
    }

    /// A row.
    pub fn get(&self, workspace: &str, kind: &str, key: &str) -> Option<String> {
        let at = (workspace.to_owned(), kind.to_owned(), key.to_owned());
        self.rows.lock().all.get(&at).cloned()
    }

    /// Keys of a type in a workspace.
    pub fn keys(&self, workspace: &str, kind: &str) -> Vec<String> {
        let rows = self.rows.lock();
        let here = rows
            .all
            .keys()
            .filter(|at| at.0 == workspace && at.1 == kind);
        here.map(|at| at.2.clone()).collect()
    }

    /// Rows whose type begins so.
    pub fn count(&self, prefix: &str) -> usize {
        let rows = self.rows.lock();
        let these = rows.all.keys().filter(|at| at.1.starts_with(prefix));
        these.count()
    }

    /// Changes rows and tells everybody; the new version.
    pub async fn change(&self, mesh: &Mesh, workspace: &str, rows: &[Change<'_>]) -> i64 {
        let push = self.write(workspace, rows);
        let topic = tg_clients::config::notices();
        mesh.notify(&topic, &push).await.expect("the notice goes");
        push.version
    }

    /// Changes a row of the workspace `default`, and waits until this process knows it.
    pub async fn apply(&self, mesh: &Mesh, kind: &str, key: &str, value: Option<&Value>) {
        let text = value.map(Value::to_string);
        self.apply_all(mesh, WORKSPACE, &[(kind, key, text.as_deref())])
            .await;
    }

    /// Changes rows, and waits until this process knows them.
    pub async fn apply_all(&self, mesh: &Mesh, workspace: &str, rows: &[Change<'_>]) {
        let mut changes = mesh.config().changes();
        let version = self.change(mesh, workspace, rows).await;
        let known = changes.wait_for(|at| *at >= version);
        let known = tokio::time::timeout(crate::bus::BOUND, known).await;
        known.expect("the change is read").expect("the mesh runs");
    }

    fn write(&self, workspace: &str, changes: &[Change<'_>]) -> ConfigPush {
        let mut rows = self.rows.lock();
        rows.version += 1;
        let mut push = ConfigPush {
            version: rows.version,
            ..ConfigPush::default()
        };
        let mut lifecycle = WorkspaceChanges::default();
        let mut kinds = BTreeSet::new();
        for (kind, key, value) in changes {
            let at = (workspace.to_owned(), (*kind).to_owned(), (*key).to_owned());
            match value {
                Some(value) => rows.all.insert(at, (*value).to_owned()),
                None => rows.all.remove(&at),
            };
            kinds.insert(*kind);
            push.keys.push(row(workspace, kind, key, ""));
            if workspace == REGISTRY && *kind == REGISTERED {
                match value {
                    Some(_) => lifecycle.created.push((*key).to_owned()),
                    None => lifecycle.deleted.push((*key).to_owned()),
                }
            }
        }
        let kinds = kinds.into_iter();
        push.changes = kinds
            .map(|kind| (kind.to_owned(), vec![workspace.to_owned()]))
            .collect();
        push.workspace_changes = (lifecycle != WorkspaceChanges::default()).then_some(lifecycle);
        if let Some(file) = &self.file {
            let all: Vec<_> = rows.all.iter().collect();
            let text = serde_json::to_vec(&(rows.version, all)).expect("JSON");
            let new = file.with_extension("new");
            std::fs::write(&new, text).expect("a file");
            std::fs::rename(&new, file).expect("a file");
        }
        push
    }

    fn read(&self, workspace: &str, ask: &ConfigRequest) -> Result<ConfigResponse, Error> {
        let rows = self.rows.lock();
        let mut reply = ConfigResponse {
            version: rows.version,
            ..ConfigResponse::default()
        };
        let everywhere = ask.operation.ends_with("-all-ws");
        let of_type = rows
            .all
            .iter()
            .filter(|((ws, kind, _), _)| *kind == ask.r#type && (everywhere || ws == workspace));
        let whole = of_type.map(|((ws, kind, key), value)| row(ws, kind, key, value));
        match ask.operation.as_str() {
            "get" => {
                let wanted = ask.keys.iter().map(|key| {
                    let at = (workspace.to_owned(), key.r#type.clone(), key.key.clone());
                    let value = rows.all.get(&at).map_or("", String::as_str);
                    row(workspace, &key.r#type, &key.key, value)
                });
                reply.values = wanted.collect();
            }
            "list" => reply.directory = whole.map(|row| row.key).collect(),
            "getvalues" | "getvalues-all-ws" | "getkeys-all-ws" => reply.values = whole.collect(),
            "config" => {
                for ((_, kind, key), value) in rows.all.iter().filter(|(at, _)| at.0 == workspace) {
                    let of = reply.config.entry(kind.clone()).or_default();
                    of.insert(key.clone(), value.clone());
                }
            }
            _ => return Err(Error::new(ErrorCode::BadOperation, "Bad operation")),
        }
        Ok(reply)
    }

    /// The rows that a request writes; none for one that reads.
    fn writes(&self, workspace: &str, ask: &ConfigRequest) -> Vec<(String, Vec<Written>)> {
        let rows = match ask.operation.as_str() {
            "put" => {
                let rows = ask.values.iter();
                rows.map(|row| (row.r#type.clone(), row.key.clone(), Some(row.value.clone())))
                    .collect()
            }
            "delete" => {
                let rows = ask.keys.iter();
                rows.map(|row| (row.r#type.clone(), row.key.clone(), None))
                    .collect()
            }
            "delete-workspace" => {
                let rows = self.rows.lock();
                let here = rows.all.keys().filter(|at| at.0 == workspace);
                let here = here.map(|at| (at.1.clone(), at.2.clone(), None)).collect();
                let registered = (REGISTERED.to_owned(), workspace.to_owned(), None);
                return vec![
                    (workspace.to_owned(), here),
                    (REGISTRY.to_owned(), vec![registered]),
                ];
            }
            _ => return Vec::new(),
        };
        vec![(workspace.to_owned(), rows)]
    }
}

/// Type, key and value.
type Written = (String, String, Option<String>);

fn row(workspace: &str, kind: &str, key: &str, value: &str) -> ConfigValue {
    ConfigValue {
        workspace: workspace.to_owned(),
        r#type: kind.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

#[async_trait]
impl RequestHandler<ConfigRequest, ConfigResponse> for Config {
    async fn serve(
        &self,
        cx: Cx,
        ask: ConfigRequest,
        mut out: Responder<ConfigResponse>,
    ) -> Result<(), Error> {
        let workspace = match cx.workspace() {
            "" => ask.workspace.clone(),
            own => own.to_owned(),
        };
        let writes = self.writes(&workspace, &ask);
        if writes.is_empty() {
            return out.send(self.read(&workspace, &ask)?).await;
        }
        let tell = |done| self.watch.iter().try_for_each(|watch| watch(&ask, done));
        tell(false)?;
        let mut version = 0;
        for (workspace, rows) in &writes {
            let rows: Vec<Change> = rows
                .iter()
                .map(|(kind, key, value)| (kind.as_str(), key.as_str(), value.as_deref()))
                .collect();
            version = self.change(&cx.mesh, workspace, &rows).await;
        }
        tell(true)?;
        out.send(ConfigResponse {
            version,
            ..ConfigResponse::default()
        })
        .await
    }
}
