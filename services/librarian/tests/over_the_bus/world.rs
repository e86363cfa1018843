//! A mesh with the librarian, and a config service that behaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use tempfile::TempDir;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{Ask, Cx, Deadline, Host, MeshOptions, Out, Processor, Serve};
use tg_schemas::msg::{
    CollectionManagementRequest, CollectionManagementResponse, ConfigPush, ConfigRequest,
    ConfigResponse, ConfigValue, DocumentMetadata, LibrarianRequest, LibrarianResponse,
    ProcessingMetadata,
};
use tg_schemas::{Class, Error, Topic, WorkspaceId};
use tg_storage::Durability;

pub const SOON: Duration = Duration::from_secs(20);

type Key = (String, String, String);
/// Rows of the configuration.
pub type Rows = BTreeMap<Key, String>;

/// Plays the config service.
#[derive(Default)]
pub struct Config {
    pub rows: Mutex<Rows>,
    version: AtomicI64,
}

impl Config {
    fn answer(&self, workspace: &str, ask: &ConfigRequest) -> ConfigResponse {
        let rows = self.rows.lock();
        let row = |(ws, kind, key): &Key, value: &String| ConfigValue {
            workspace: ws.clone(),
            r#type: kind.clone(),
            key: key.clone(),
            value: value.clone(),
        };
        let mut reply = ConfigResponse {
            version: self.version.load(Ordering::SeqCst),
            ..ConfigResponse::default()
        };
        match ask.operation.as_str() {
            "config" => {
                for ((ws, kind, key), value) in rows.iter().filter(|((ws, ..), _)| ws == workspace)
                {
                    let _ = ws;
                    let of = reply.config.entry(kind.clone()).or_default();
                    of.insert(key.clone(), value.clone());
                }
            }
            _ => {
                let wanted = rows.iter().filter(|((ws, kind, _), _)| {
                    *kind == ask.r#type && (ask.operation == "getvalues-all-ws" || ws == workspace)
                });
                reply.values = wanted.map(|(key, value)| row(key, value)).collect();
            }
        }
        reply
    }

    pub fn get(&self, workspace: &str, kind: &str, key: &str) -> Option<String> {
        let key = (workspace.to_owned(), kind.to_owned(), key.to_owned());
        self.rows.lock().get(&key).cloned()
    }

    /// Changes rows and tells everybody.
    pub async fn change(
        &self,
        mesh: &tg_mesh::Mesh,
        workspace: &str,
        rows: &[(&str, &str, Option<&str>)],
    ) {
        let mut changes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let version = {
            let mut all = self.rows.lock();
            for (kind, key, value) in rows {
                let at = (workspace.to_owned(), (*kind).to_owned(), (*key).to_owned());
                match value {
                    Some(value) => all.insert(at, (*value).to_owned()),
                    None => all.remove(&at),
                };
                changes.insert((*kind).to_owned(), vec![workspace.to_owned()]);
            }
            self.version.fetch_add(1, Ordering::SeqCst) + 1
        };
        let push = ConfigPush {
            version,
            changes,
            ..ConfigPush::default()
        };
        let topic = Topic::system(Class::Notify, "config");
        mesh.notify(&topic, &push).await.unwrap();
    }
}

#[async_trait]
impl Serve<ConfigRequest, ConfigResponse> for Config {
    async fn serve(
        &self,
        cx: Cx,
        ask: ConfigRequest,
        mut out: Out<ConfigResponse>,
    ) -> Result<(), Error> {
        let workspace = match cx.workspace() {
            "" => ask.workspace.clone(),
            workspace => workspace.to_owned(),
        };
        let puts = ask.values.iter().map(|row| {
            let value = Some(row.value.as_str());
            (row.r#type.as_str(), row.key.as_str(), value)
        });
        let deletes = ask
            .keys
            .iter()
            .map(|row| (row.r#type.as_str(), row.key.as_str(), None));
        let rows: Vec<_> = puts.chain(deletes).collect();
        if !rows.is_empty() {
            self.change(&cx.mesh, &workspace, &rows).await;
        }
        out.send(self.answer(&workspace, &ask)).await
    }
}

/// The mesh.
pub struct World {
    pub mesh: Host,
    pub config: Arc<Config>,
    pub dir: Arc<TempDir>,
}

impl World {
    pub async fn start() -> Self {
        Self::over(
            EmbeddedBus::in_memory(),
            tempfile::tempdir().unwrap().into(),
            Rows::new(),
        )
        .await
    }

    /// Over a bus that keeps its records in a directory, and a configuration that has these rows already.
    pub async fn start_with(dir: Arc<TempDir>, rows: Rows) -> Self {
        let bus = EmbeddedBus::open(&dir.path().join("bus"), Durability::Process).unwrap();
        Self::over(bus, dir, rows).await
    }

    async fn over(bus: EmbeddedBus, dir: Arc<TempDir>, rows: Rows) -> Self {
        let bus = Arc::new(bus);
        let config = Arc::new(Config {
            rows: Mutex::new(rows),
            ..Config::default()
        });
        for workspace in ["default", "other"] {
            let registry = ["__workspaces__", "workspace", workspace].map(str::to_owned);
            let key = registry.into();
            config.rows.lock().insert(key, "{}".to_owned());
            let some = [workspace, "note", "x"].map(str::to_owned);
            config.rows.lock().insert(some.into(), "{}".to_owned());
        }
        let mesh = tg_runs::start(bus.clone(), MeshOptions::default())
            .await
            .unwrap();
        let service = Processor::new("config-svc")
            .serves_system("config", config.clone())
            .serves_workspace("config", config.clone());
        mesh.host(service).await.unwrap();
        let world = Self { mesh, config, dir };
        let options = tg_librarian::Options {
            data_dir: world.dir.path().to_owned(),
            ..tg_librarian::Options::default()
        };
        let librarian = tg_librarian::processors(&world.mesh, options);
        for processor in librarian.unwrap() {
            world.mesh.host(processor).await.unwrap();
        }
        let served = async {
            while world
                .collections("default", "list-collections", "")
                .await
                .is_err()
            {
                tokio::task::yield_now().await;
            }
        };
        let served = tokio::time::timeout(SOON, served).await;
        served.expect("both are served");
        world
    }

    pub fn options(&self) -> Ask {
        Ask {
            deadline: Some(Deadline::after(SOON)),
            ..Ask::default()
        }
    }

    pub async fn parts(
        &self,
        workspace: &str,
        ask: &LibrarianRequest,
    ) -> Result<Vec<LibrarianResponse>, Error> {
        let workspace = WorkspaceId::new(workspace).unwrap();
        let topic = Topic::workspace(Class::Request, "librarian", &workspace);
        let mut answer = self
            .mesh
            .ask::<_, LibrarianResponse>(&topic, ask, self.options());
        let mut parts = Vec::new();
        while let Some(part) = answer.next().await {
            let part = part?;
            if let Some(error) = part.error {
                return Err(error);
            }
            parts.push(part);
        }
        Ok(parts)
    }

    /// Asks the library of workspace `default`; one part is expected.
    pub async fn library(&self, ask: LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let mut parts = self.parts("default", &ask).await?;
        assert_eq!(parts.len(), 1, "{}", ask.operation);
        Ok(parts.remove(0))
    }

    pub async fn collections(
        &self,
        workspace: &str,
        operation: &str,
        name: &str,
    ) -> Result<CollectionManagementResponse, Error> {
        let ask = CollectionManagementRequest {
            operation: operation.into(),
            collection: name.into(),
            ..CollectionManagementRequest::default()
        };
        self.collection(workspace, &ask).await
    }

    pub async fn collection(
        &self,
        workspace: &str,
        ask: &CollectionManagementRequest,
    ) -> Result<CollectionManagementResponse, Error> {
        let workspace = WorkspaceId::new(workspace).unwrap();
        let topic = Topic::workspace(Class::Request, "collection", &workspace);
        self.mesh.ask(&topic, ask, self.options()).last().await
    }

    pub async fn add(&self, id: &str, kind: &str, content: &str) {
        let add = LibrarianRequest {
            document_metadata: Some(DocumentMetadata {
                id: id.into(),
                kind: kind.into(),
                title: format!("title of {id}"),
                ..DocumentMetadata::default()
            }),
            content: STANDARD.encode(content),
            ..about("add-document", id)
        };
        self.library(add).await.unwrap();
    }

    pub async fn status(&self, id: &str) -> ProcessingMetadata {
        let ask = LibrarianRequest {
            processing_id: id.into(),
            ..about("processing-status", "")
        };
        self.library(ask)
            .await
            .unwrap()
            .processing_metadatas
            .remove(0)
    }

    /// Waits until a processing has a status.
    pub async fn until(&self, id: &str, status: &str) -> ProcessingMetadata {
        let reached = async {
            loop {
                let now = self.status(id).await;
                if now.status == status {
                    return now;
                }
                tokio::task::yield_now().await;
            }
        };
        match tokio::time::timeout(SOON, reached).await {
            Ok(reached) => reached,
            Err(_) => panic!("{id} is {status}: {:?}", self.status(id).await),
        }
    }
}

pub fn about(operation: &str, document: &str) -> LibrarianRequest {
    LibrarianRequest {
        operation: operation.into(),
        document_id: document.into(),
        ..LibrarianRequest::default()
    }
}

/// Waits until something holds.
pub async fn soon(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    let held = tokio::time::timeout(SOON, wait).await;
    held.unwrap_or_else(|_| panic!("soon: {what}"));
}
