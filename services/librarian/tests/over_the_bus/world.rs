//! A mesh with the librarian.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{Ask, Bus, Deadline, Host, Processor};
use tg_schemas::msg::{
    CollectionManagementRequest, CollectionManagementResponse, DocumentMetadata, LibrarianRequest,
    LibrarianResponse, ProcessingMetadata,
};
use tg_schemas::processors;
use tg_schemas::{Class, Error, Topic, WorkspaceId};
use tg_storage::Durability;
use tg_testkit::config::Config;
use tg_testkit::place::Place;

pub const SOON: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// The mesh.
pub struct World {
    pub mesh: Host,
    pub config: Arc<Config>,
    pub dir: Arc<TempDir>,
}

impl World {
    pub async fn start(place: &Place) -> Self {
        let dir = tempfile::tempdir().unwrap().into();
        Self::over(place.connect().await, dir, Arc::default()).await
    }

    /// Over a bus that keeps its records beyond this process, and a configuration that was there before.
    pub async fn start_with(place: &Place, dir: Arc<TempDir>, config: Arc<Config>) -> Self {
        let bus: Arc<dyn Bus> = match place {
            Place::Embedded(_) => {
                let log = dir.path().join("bus");
                Arc::new(EmbeddedBus::open(&log, Durability::Process).unwrap())
            }
            Place::RabbitMq(_) => place.connect().await,
        };
        Self::over(bus, dir, config).await
    }

    async fn over(bus: Arc<dyn Bus>, dir: Arc<TempDir>, config: Arc<Config>) -> Self {
        for workspace in ["default", "other"] {
            config.register(workspace);
            config.set(workspace, "note", "x", "{}");
        }
        let mesh = tg_testkit::place::host_of_runs(bus).await;
        let service = Processor::new(processors::config_svc::PROCESSOR)
            .serves(processors::config_svc::CONFIG, config.clone())
            .serves(processors::config_svc::CONFIG_OF_WORKSPACE, config.clone());
        mesh.host(service).await.unwrap();
        let world = Self { mesh, config, dir };
        let options = tg_librarian::Options {
            data_dir: world.dir.path().to_owned(),
            ..tg_librarian::Options::default()
        };
        let librarian = tg_librarian::processors(&world.mesh, options);
        for processor in librarian {
            world.mesh.host(processor).await.unwrap();
        }
        let served = async {
            while world
                .collections("default", "list-collections", "")
                .await
                .is_err()
            {
                tokio::time::sleep(PAUSE).await;
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
                tokio::time::sleep(PAUSE).await;
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
            tokio::time::sleep(PAUSE).await;
        }
    };
    let held = tokio::time::timeout(SOON, wait).await;
    held.unwrap_or_else(|_| panic!("soon: {what}"));
}
