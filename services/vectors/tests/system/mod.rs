//! A mesh on the embedded bus with the processors of this service in one flow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tempfile::TempDir;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{
    Ask, Cx, Deadline, Host, MeshOptions, Out, Processor, Read, ReadFault, Serve, put_aside,
};
use tg_runs::RunId;
use tg_schemas::msg::{
    ConfigRequest, ConfigResponse, ConfigValue, Metadata, PutAside, RUN_TALLY, RunTally,
    RunTallyEntry,
};
use tg_schemas::{Class, Error, FlowId, Message, Reply, Topic, WorkspaceId};
use tg_storage::Durability;
use tg_vectors::Limits;
use tokio::sync::watch;

const SOON: Duration = Duration::from_secs(20);

/// Plays the config service for workspace and flow `default`.
#[derive(Default)]
pub struct Config {
    rows: Mutex<BTreeMap<(String, String), String>>,
}

impl Config {
    /// Registers a collection.
    pub fn collection(&self, name: &str, incarnation: i64) {
        let row = format!(r#"{{"collection":"{name}","incarnation":{incarnation}}}"#);
        let key = ("collection".to_owned(), name.to_owned());
        self.rows.lock().insert(key, row);
    }
}

#[async_trait]
impl Serve<ConfigRequest, ConfigResponse> for Config {
    async fn serve(
        &self,
        _: Cx,
        ask: ConfigRequest,
        mut out: Out<ConfigResponse>,
    ) -> Result<(), Error> {
        let row = |workspace: &str, kind: &str, key: &str, value: &str| ConfigValue {
            workspace: workspace.into(),
            r#type: kind.into(),
            key: key.into(),
            value: value.into(),
        };
        let values = if ask.r#type == "workspace" {
            vec![row("__workspaces__", "workspace", "default", "{}")]
        } else {
            let rows = self.rows.lock();
            let wanted = rows.iter().filter(|((kind, _), _)| *kind == ask.r#type);
            wanted
                .map(|((kind, key), value)| row("default", kind, key, value))
                .collect()
        };
        out.send(ConfigResponse {
            values,
            ..ConfigResponse::default()
        })
        .await
    }
}

struct Tally(watch::Sender<Vec<RunTallyEntry>>);

#[async_trait]
impl Read<RunTally> for Tally {
    async fn read(&self, _: Cx, record: RunTally) -> Result<(), ReadFault> {
        self.0.send_modify(|all| all.extend(record.entries));
        Ok(())
    }
}

/// A topic of the flow.
pub fn topic(class: Class, base: &str) -> Topic {
    let workspace = WorkspaceId::new("default").unwrap();
    let flow = FlowId::new("default").unwrap();
    Topic::flow(class, base, &workspace, &flow)
}

/// Metadata of a record.
pub fn metadata(id: &str, collection: &str) -> Option<Metadata> {
    Some(Metadata {
        id: id.to_owned(),
        root: "urn:doc".to_owned(),
        collection: collection.to_owned(),
    })
}

/// The mesh with the service's processors attached.
pub struct System {
    pub mesh: Host,
    tally: watch::Receiver<Vec<RunTallyEntry>>,
    _dir: TempDir,
}

impl System {
    pub async fn start(config: Config) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bus = Arc::new(EmbeddedBus::in_memory());
        let mesh = tg_runs::start(bus, MeshOptions::default()).await.unwrap();
        let request = |base| ("request", topic(Class::Request, base));
        let input = |base| ("input", topic(Class::Flow, base));
        let all = [
            (
                "graph-embeddings-write",
                vec![input("graph-embeddings-store")],
            ),
            (
                "doc-embeddings-write",
                vec![input("document-embeddings-store")],
            ),
            ("row-embeddings-write", vec![input("row-embeddings-store")]),
            ("graph-embeddings-query", vec![request("graph-embeddings")]),
            ("doc-embeddings-query", vec![request("document-embeddings")]),
            ("row-embeddings-query", vec![request("row-embeddings")]),
            (
                "kw-index",
                vec![input("chunk-load"), request("keyword-index")],
            ),
        ];
        for (processor, topics) in &all {
            let topics: BTreeMap<_, _> = topics
                .iter()
                .map(|(spec, at)| (*spec, at.to_string()))
                .collect();
            let row = serde_json::json!({"topics": topics, "parameters": {}, "epoch": 1});
            let key = (format!("processor:{processor}"), "default".to_owned());
            config.rows.lock().insert(key, row.to_string());
        }
        let service = Processor::new("config-svc").serves_system("config", Arc::new(config));
        mesh.host(service).await.unwrap();
        let (sender, tally) = watch::channel(Vec::new());
        let reader = Processor::new("librarian").reads_system(RUN_TALLY, Arc::new(Tally(sender)));
        mesh.host(reader).await.unwrap();
        let limits = Limits::default();
        for one in tg_vectors::processors(&mesh, dir.path(), Durability::Process, limits) {
            mesh.host(one).await.unwrap();
        }
        let attached = mesh.presence().until(SOON, |view| {
            all.iter()
                .all(|(id, _)| view.attached(id, "default", "default", 1))
        });
        assert!(attached.await, "the flow attaches");
        Self {
            mesh,
            tally,
            _dir: dir,
        }
    }

    fn options(&self) -> Ask {
        Ask {
            deadline: Some(Deadline::after(SOON)),
            epoch: Some(1),
            ..Ask::default()
        }
    }

    /// Options of a record of a run.
    pub fn in_run(&self, run: &RunId, id: &str) -> Ask {
        Ask {
            id: Some(id.to_owned()),
            thread: Some(run.to_string()),
            ..self.options()
        }
    }

    pub async fn write<M: Message>(&self, base: &str, record: &M) {
        self.write_as(base, record, self.options()).await;
    }

    pub async fn write_as<M: Message>(&self, base: &str, record: &M, options: Ask) {
        let to = topic(Class::Flow, base);
        self.mesh.record(&to, record, options).await.unwrap();
    }

    pub async fn ask<Q: Message, R: Reply>(&self, base: &str, question: &Q) -> Result<R, Error> {
        let to = topic(Class::Request, base);
        self.mesh.ask(&to, question, self.options()).last().await
    }

    /// Asks again until it is so.
    pub async fn until(&self, so: impl AsyncFn() -> bool) {
        let asked = async {
            while !so().await {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, asked)
            .await
            .expect("it becomes so");
    }

    /// Why the next record was put aside.
    pub async fn put_aside(&self) -> String {
        let aside = async {
            loop {
                let taken = self.mesh.bus().take(&put_aside::subscription()).await;
                if let Some(delivery) = taken.unwrap() {
                    let envelope = &delivery.envelope;
                    let record: PutAside = envelope.read().unwrap();
                    delivery.ack();
                    return record.detail;
                }
                tokio::task::yield_now().await;
            }
        };
        let aside = tokio::time::timeout(SOON, aside).await;
        aside.expect("the record is put aside")
    }

    /// What the tally was told, once it is so much.
    pub async fn tallied(&self, count: usize) -> Vec<RunTallyEntry> {
        let mut tally = self.tally.clone();
        let told = tally.wait_for(|all| all.len() >= count);
        let told = tokio::time::timeout(SOON, told).await;
        told.expect("the tally is told").unwrap().clone()
    }
}
