//! One flow of one workspace on the embedded bus, with a config service that serves fixed rows: for tests of
//! a service over the bus, without the services around it. Knows no service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tg_runs::RunId;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{
    Ask, Cx, Deadline, Host, MeshOptions, Out, Processor, Read, ReadFault, Serve, put_aside,
};
use tg_schemas::msg::{
    ConfigRequest, ConfigResponse, ConfigValue, PutAside, RUN_TALLY, RunTally, RunTallyEntry,
};
use tg_schemas::{Class, Error, FlowId, Message, Reply, Topic, WorkspaceId};
use tokio::sync::watch;

/// Everything happens by then.
const SOON: Duration = Duration::from_secs(20);
/// The workspace and the flow.
const NAME: &str = "default";

/// Rows of the config service, by type and key.
#[derive(Default)]
pub struct Rows(Mutex<BTreeMap<(String, String), String>>);

impl Rows {
    /// Adds a row.
    pub fn put(&self, kind: &str, key: &str, value: &str) -> &Self {
        let key = (kind.to_owned(), key.to_owned());
        self.0.lock().insert(key, value.to_owned());
        self
    }

    /// Registers a collection.
    pub fn collection(&self, name: &str, generation: i64) -> &Self {
        let row = json!({"collection": name, "incarnation": generation});
        self.put("collection", name, &row.to_string())
    }
}

#[async_trait]
impl Serve<ConfigRequest, ConfigResponse> for Rows {
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
            vec![row("__workspaces__", "workspace", NAME, "{}")]
        } else {
            let rows = self.0.lock();
            let wanted = rows.iter().filter(|((kind, _), _)| *kind == ask.r#type);
            wanted
                .map(|((kind, key), value)| row(NAME, kind, key, value))
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
    let workspace = WorkspaceId::new(NAME).expect("a valid id");
    let flow = FlowId::new(NAME).expect("a valid id");
    Topic::flow(class, base, &workspace, &flow)
}

/// A processor's specs: name and, by its class, base of the topic.
pub type Wiring = (&'static str, &'static [(&'static str, Class, &'static str)]);

/// The running flow.
pub struct TestFlow {
    /// Its mesh.
    pub mesh: Host,
    tally: watch::Receiver<Vec<RunTallyEntry>>,
}

impl TestFlow {
    /// Starts a flow of these processors, which `host` makes. Panics when they do not attach.
    pub async fn start(
        rows: Rows,
        wiring: &[Wiring],
        host: impl FnOnce(&tg_mesh::Mesh) -> Vec<Processor>,
    ) -> Self {
        for (processor, specs) in wiring {
            let topics: BTreeMap<_, _> = specs
                .iter()
                .map(|(spec, class, base)| (*spec, topic(*class, base).to_string()))
                .collect();
            let row = json!({"topics": topics, "parameters": {}, "epoch": 1});
            rows.put(&format!("processor:{processor}"), NAME, &row.to_string());
        }
        let bus = Arc::new(EmbeddedBus::in_memory());
        let mesh = tg_runs::start(bus, MeshOptions::default())
            .await
            .expect("a mesh");
        let (sender, tally) = watch::channel(Vec::new());
        let mut all = vec![
            Processor::new("config-svc").serves_system("config", Arc::new(rows)),
            Processor::new("librarian").reads_system(RUN_TALLY, Arc::new(Tally(sender))),
        ];
        all.extend(host(&mesh));
        for processor in all {
            mesh.host(processor).await.expect("hosted");
        }
        let attached = mesh.presence().until(SOON, |view| {
            let mut ids = wiring.iter().map(|(id, _)| id);
            ids.all(|id| view.attached(id, NAME, NAME, 1))
        });
        assert!(attached.await, "the flow attaches");
        Self { mesh, tally }
    }

    fn options(&self) -> Ask {
        Ask {
            deadline: Some(Deadline::after(SOON)),
            epoch: Some(1),
            ..Ask::default()
        }
    }

    /// Writes a record to a topic of the flow.
    pub async fn write<M: Message>(&self, base: &str, record: &M) {
        self.write_as(base, record, self.options()).await;
    }

    /// The same as part of a run, under an id.
    pub async fn write_in<M: Message>(&self, base: &str, record: &M, run: &RunId, id: &str) {
        let options = Ask {
            id: Some(id.to_owned()),
            thread: Some(run.to_string()),
            ..self.options()
        };
        self.write_as(base, record, options).await;
    }

    async fn write_as<M: Message>(&self, base: &str, record: &M, options: Ask) {
        let to = topic(Class::Flow, base);
        let written = self.mesh.record(&to, record, options).await;
        written.expect("accepted");
    }

    /// Asks on a topic of the flow.
    pub async fn ask<Q: Message, R: Reply>(&self, base: &str, question: &Q) -> Result<R, Error> {
        let to = topic(Class::Request, base);
        self.mesh.ask(&to, question, self.options()).last().await
    }

    /// Asks on a topic of the system.
    pub async fn ask_system<Q: Message, R: Reply>(
        &self,
        base: &str,
        question: &Q,
    ) -> Result<R, Error> {
        let to = Topic::system(Class::Request, base);
        self.mesh.ask(&to, question, self.options()).last().await
    }

    /// Looks again until it is so. Panics when that takes too long.
    pub async fn until(&self, so: impl AsyncFn() -> bool) {
        let asked = async {
            while !so().await {
                tokio::task::yield_now().await;
            }
        };
        let soon = tokio::time::timeout(SOON, asked).await;
        soon.expect("it becomes so");
    }

    /// Waits for the tally of a record. Panics when it does not come.
    pub async fn tallied(&self, record: &str) -> RunTallyEntry {
        let mut tally = self.tally.clone();
        let told = tally.wait_for(|all| all.iter().any(|entry| entry.record == record));
        let told = tokio::time::timeout(SOON, told).await;
        let all = told.expect("the tally comes").expect("the mesh runs");
        let entry = all.iter().find(|entry| entry.record == record);
        entry.expect("it was there").clone()
    }

    /// Why the next record was put aside. Panics when none is.
    pub async fn put_aside(&self) -> String {
        let aside = async {
            loop {
                let taken = self.mesh.bus().take(&put_aside::subscription()).await;
                if let Some(delivery) = taken.expect("the bus runs") {
                    let envelope = &delivery.envelope;
                    let record: PutAside = envelope.read().expect("a record");
                    delivery.ack();
                    return record.detail;
                }
                tokio::task::yield_now().await;
            }
        };
        let soon = tokio::time::timeout(SOON, aside).await;
        soon.expect("a record is put aside")
    }
}
