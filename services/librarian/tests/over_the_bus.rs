//! The librarian and the collection service as others meet them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tempfile::TempDir;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{Ask, Cx, Deadline, Mesh, MeshOptions, Out, Processor, Serve};
use tg_schemas::msg::{
    CollectionManagementRequest, CollectionManagementResponse, ConfigRequest, ConfigResponse,
    ConfigValue, DocumentMetadata, LibrarianRequest, LibrarianResponse,
};
use tg_schemas::{Class, Error, ErrorCode, Topic, WorkspaceId};
use tg_storage::Durability;

const SOON: Duration = Duration::from_secs(20);

/// Plays the config service for workspace `default`.
#[derive(Default)]
struct Config {
    collections: Mutex<BTreeMap<String, String>>,
}

#[async_trait]
impl Serve<ConfigRequest, ConfigResponse> for Config {
    async fn serve(
        &self,
        _: Cx,
        ask: ConfigRequest,
        mut out: Out<ConfigResponse>,
    ) -> Result<(), Error> {
        let mut reply = ConfigResponse::default();
        let row = |key: &str, value: &str| ConfigValue {
            r#type: ask.r#type.clone(),
            key: key.into(),
            value: value.into(),
            ..ConfigValue::default()
        };
        {
            let mut rows = self.collections.lock();
            for value in &ask.values {
                rows.insert(value.key.clone(), value.value.clone());
            }
            for key in &ask.keys {
                rows.remove(&key.key);
            }
            reply.values = match ask.r#type.as_str() {
                "workspace" => vec![ConfigValue {
                    workspace: "__workspaces__".into(),
                    ..row("default", "{}")
                }],
                "collection" => rows.iter().map(|(key, value)| row(key, value)).collect(),
                _ => Vec::new(),
            };
        }
        out.send(reply).await
    }
}

struct System {
    mesh: Mesh,
    _dir: TempDir,
}

impl System {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bus = Arc::new(EmbeddedBus::in_memory());
        let mesh = Mesh::start(bus, MeshOptions::default()).await.unwrap();
        let config = Arc::new(Config::default());
        let service = Processor::new("config-svc")
            .serves_system("config", config.clone())
            .serves_workspace("config", config);
        mesh.host(service).await.unwrap();
        for processor in tg_librarian::processors(dir.path(), Durability::Process).unwrap() {
            mesh.host(processor).await.unwrap();
        }
        let system = Self { mesh, _dir: dir };
        let served = async {
            while system.collections("list-collections", "").await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, served)
            .await
            .expect("both are served");
        system
    }

    fn options(&self) -> Ask {
        Ask {
            deadline: Some(Deadline::after(SOON)),
            ..Ask::default()
        }
    }

    async fn library(&self, ask: LibrarianRequest) -> Result<Vec<LibrarianResponse>, Error> {
        let workspace = WorkspaceId::new("default").unwrap();
        let topic = Topic::workspace(Class::Request, "librarian", &workspace);
        let mut answer = self
            .mesh
            .ask::<_, LibrarianResponse>(&topic, &ask, self.options());
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

    async fn collections(
        &self,
        operation: &str,
        name: &str,
    ) -> Result<CollectionManagementResponse, Error> {
        let workspace = WorkspaceId::new("default").unwrap();
        let topic = Topic::workspace(Class::Request, "collection", &workspace);
        let ask = CollectionManagementRequest {
            operation: operation.into(),
            collection: name.into(),
            ..CollectionManagementRequest::default()
        };
        self.mesh.ask(&topic, &ask, self.options()).last().await
    }
}

fn about(operation: &str) -> LibrarianRequest {
    LibrarianRequest {
        operation: operation.into(),
        document_id: "urn:doc".into(),
        ..LibrarianRequest::default()
    }
}

#[tokio::test]
async fn a_document_is_added_streamed_and_removed() {
    let system = System::start().await;
    let add = LibrarianRequest {
        document_metadata: Some(DocumentMetadata {
            id: "urn:doc".into(),
            kind: "text/plain".into(),
            ..DocumentMetadata::default()
        }),
        content: "aGVsbG8gd29ybGQ=".into(),
        ..about("add-document")
    };
    system.library(add).await.unwrap();
    let whole = system.library(about("get-document-content")).await.unwrap();
    assert_eq!(whole[0].content, "aGVsbG8gd29ybGQ=");
    let stream = LibrarianRequest {
        chunk_size: 6,
        ..about("stream-document")
    };
    let parts = system.library(stream).await.unwrap();
    let shape: Vec<_> = parts
        .iter()
        .map(|part| (part.content.as_str(), part.bytes_received, part.is_final))
        .collect();
    assert_eq!(shape, [("aGVsbG8g", 6, false), ("d29ybGQ=", 11, true)]);
    let listed = system.library(about("list-documents")).await.unwrap();
    assert_eq!(listed[0].document_metadatas[0].document_type, "source");
    system.library(about("remove-document")).await.unwrap();
    let gone = system.library(about("stream-document")).await.unwrap_err();
    assert_eq!(gone.code(), ErrorCode::NotFound);
    let later = system.library(about("begin-upload")).await.unwrap_err();
    assert_eq!(later.code(), ErrorCode::NotImplemented);
}

#[tokio::test]
async fn collections_are_set_listed_and_deleted() {
    let system = System::start().await;
    let set = system.collections("update-collection", "c").await.unwrap();
    assert_eq!(set.collections[0].name, "c");
    let listed = system.collections("list-collections", "").await.unwrap();
    assert_eq!(listed.collections, set.collections);
    assert!(!listed.timestamp.is_empty());
    system.collections("delete-collection", "c").await.unwrap();
    let listed = system.collections("list-collections", "").await.unwrap();
    assert!(listed.collections.is_empty());
    let unnamed = system
        .collections("delete-collection", "")
        .await
        .unwrap_err();
    assert_eq!(unnamed.message, "collection: is required");
}
