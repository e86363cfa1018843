//! One process with the flow service and a processor that reads triples, over a data directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_flow::{Options, Waits};
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{Ask, Bus, ConsumeError, Cx, Deadline, Host, Processor, RecordConsumer};
use tg_schemas::msg::{FlowRequest, FlowResponse, Metadata, Triples};
use tg_schemas::processors;
use tg_schemas::{Class, Error, ErrorCode, Subscription, Topic, WorkspaceId};
use tg_storage::Durability;
use tg_testkit::config::Config;
use tg_testkit::flow::topic_of;
use tg_testkit::place::Place;
use tokio::sync::{Notify, Semaphore};

use crate::bus::{Fuse, FusedBus};

pub const WAIT: Duration = Duration::from_secs(60);

/// Records whose names begin so are never handled, and tried again much later.
pub const NEVER: &str = "never";

/// What the reader of triples does with each record, and what it has seen.
pub struct Reader {
    pub seen: Mutex<Vec<String>>,
    pub gate: Semaphore,
    /// Records it refuses, and how.
    pub fault: Mutex<Option<ConsumeError>>,
    pub moved: Notify,
}

impl Reader {
    pub fn open() -> Arc<Self> {
        Self::with(Semaphore::MAX_PERMITS)
    }

    pub fn with(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            seen: Mutex::default(),
            gate: Semaphore::new(permits),
            fault: Mutex::default(),
            moved: Notify::new(),
        })
    }

    /// Waits until it has seen so many records.
    pub async fn until(&self, count: usize) {
        let wait = async {
            while self.seen.lock().len() < count {
                self.moved.notified().await;
            }
        };
        tokio::time::timeout(WAIT, wait)
            .await
            .expect("records arrive");
    }
}

struct Handler(Arc<Reader>);

#[async_trait]
impl RecordConsumer<Triples> for Handler {
    async fn consume(&self, _cx: Cx, record: Triples) -> Result<(), ConsumeError> {
        if let Ok(permit) = self.0.gate.acquire().await {
            permit.forget();
        }
        let name = record.metadata.as_ref().map(|metadata| &metadata.id);
        if name.is_some_and(|name| name.starts_with(NEVER)) {
            let error = Error::new(ErrorCode::Storage, "not today");
            let after = Some(Duration::from_secs(3600));
            return Err(ConsumeError::Retry { error, after });
        }
        let fault = self.0.fault.lock().take();
        let outcome = fault.map_or(Ok(()), Err);
        if outcome.is_ok() {
            self.0
                .seen
                .lock()
                .push(record.metadata.unwrap_or_default().id);
        }
        self.0.moved.notify_one();
        outcome
    }
}

pub fn later(text: &str) -> ConsumeError {
    ConsumeError::Retry {
        error: Error::new(ErrorCode::Storage, text),
        after: Some(Duration::ZERO),
    }
}

/// A process.
pub struct Process {
    pub mesh: Host,
}

/// What outlives processes.
pub struct World {
    pub place: Place,
    pub dir: PathBuf,
    pub config: Arc<Config>,
    /// Room for dead letters.
    pub options: Options,
    /// Burns with each write of the configuration, and on a fused bus.
    pub fuse: Fuse,
    /// Removes the directory in the end, unless this is a child.
    owned: Option<tempfile::TempDir>,
}

impl World {
    pub fn new(place: Place) -> Self {
        let owned = tempfile::tempdir().expect("a directory");
        let mut world = Self::at(place, owned.path().to_owned());
        world.owned = Some(owned);
        let config = &world.config;
        config.register("w");
        config.set("w", "flow-blueprint", "b", &blueprint().to_string());
        world
    }

    /// As another process left it.
    pub fn at(place: Place, dir: PathBuf) -> Self {
        let fuse = Fuse::unlimited();
        let burns = fuse.clone();
        let config = Config::kept_in(dir.join("config.json")).watched(move |_, _| {
            burns.burn();
            Ok(())
        });
        Self {
            place,
            dir,
            config: Arc::new(config),
            options: Options::default(),
            fuse,
            owned: None,
        }
    }

    /// The same as another process left it.
    pub fn again(mut self) -> Self {
        let mut again = Self::at(self.place.clone(), self.dir.clone());
        again.owned = self.owned.take();
        again
    }

    /// A bus that keeps its records.
    async fn bus(&self) -> Arc<dyn Bus> {
        match &self.place {
            Place::Embedded(_) => {
                let bus = EmbeddedBus::open(&self.dir.join("bus"), Durability::Process);
                Arc::new(bus.expect("a bus"))
            }
            Place::RabbitMq(_) => self.place.connect().await,
        }
    }

    /// A process; `reader` is absent where nobody reads triples.
    pub async fn process(&self, reader: Option<Arc<Reader>>) -> Process {
        self.start(self.bus().await, reader).await
    }

    /// A process that dies when the fuse has burnt down.
    pub async fn fused(&self, reader: Option<Arc<Reader>>) -> Process {
        let bus = Arc::new(FusedBus {
            inner: self.bus().await,
            fuse: self.fuse.clone(),
        });
        self.start(bus, reader).await
    }

    async fn start(&self, bus: Arc<dyn Bus>, reader: Option<Arc<Reader>>) -> Process {
        let mesh = tg_testkit::place::host(bus).await;
        let config = Processor::new(processors::config_svc::PROCESSOR)
            .serves(processors::config_svc::CONFIG, self.config.clone())
            .exclusive();
        mesh.host(config).await.expect("config");
        let options = Options {
            data_dir: self.dir.clone(),
            waits: Waits {
                attach: Duration::from_millis(50),
                ..Waits::default()
            },
            ..self.options.clone()
        };
        let hosted = tg_flow::processors(&mesh, options);
        for processor in hosted {
            mesh.host(processor).await.expect("flow");
        }
        if let Some(reader) = reader {
            let processor = Processor::new(processors::triples_write::PROCESSOR)
                .reads(processors::triples_write::INPUT, Arc::new(Handler(reader)));
            mesh.host(processor).await.expect("a reader");
        }
        let process = Process { mesh };
        process
            .until(|mesh| mesh.config().workspaces().contains(&"w".to_owned()))
            .await;
        process
    }
}

/// A reader of triples, and a server that nobody hosts here.
pub fn blueprint() -> Value {
    json!({
        "flow": {
            "triples-write:{id}": {"topics": {"input": "flow:tg:triples-store:{workspace}:{id}"}},
            "prompt:{id}": {"topics": {
                "request": "request:tg:prompt:{workspace}:{id}",
                "response": "response:tg:prompt:{workspace}:{id}",
            }, "parameters": {"style": "{style}"}},
        },
        "interfaces": {
            "triples-store": {"flow": "flow:tg:triples-store:{workspace}:{id}"},
            "prompt": {
                "request": "request:tg:prompt:{workspace}:{id}",
                "response": "response:tg:prompt:{workspace}:{id}",
            },
        },
        "parameters": {"style": {"type": "style"}},
    })
}

impl Process {
    /// Waits until something holds in the watched configuration.
    pub async fn until(&self, holds: impl Fn(&tg_mesh::Mesh) -> bool) {
        let mut changes = self.mesh.config().changes();
        let wait = changes.wait_for(|_| holds(&self.mesh));
        let outcome = tokio::time::timeout(WAIT, wait).await;
        outcome.expect("it comes to hold").expect("the mesh runs");
    }

    pub async fn ask(&self, request: FlowRequest) -> Result<FlowResponse, Error> {
        let workspace = WorkspaceId::new("w").expect("an id");
        let topic = Topic::workspace(Class::Request, "flow", &workspace);
        let options = Ask {
            deadline: Some(Deadline::after(WAIT)),
            ..Ask::default()
        };
        self.mesh.ask(&topic, &request, options).last().await
    }

    pub async fn start_flow(&self, flow: &str) -> Result<Value, Error> {
        self.start_with(flow, "b", &[]).await
    }

    pub async fn start_with(
        &self,
        flow: &str,
        blueprint: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Value, Error> {
        let mut request = request("start-flow", flow, parameters);
        request.blueprint_name = blueprint.to_owned();
        request.description = "a test".to_owned();
        self.ask(request).await.map(|reply| json(&reply))
    }

    pub async fn stop_flow(&self, flow: &str, drain: &str) -> Result<Value, Error> {
        let request = request("stop-flow", flow, &[("drain", drain)]);
        self.ask(request)
            .await
            .map(|reply| json(&reply)["receipt"].take())
    }

    pub async fn dead_letter(&self, operation: &str, flow: &str, more: &[(&str, &str)]) -> Value {
        let reply = self
            .ask(request(operation, flow, more))
            .await
            .expect(operation);
        json(&reply)["put-aside"].take()
    }

    /// Asks until so many records become dead letters.
    pub async fn until_aside(&self, flow: &str, count: usize) -> Value {
        let asks = async {
            loop {
                let listed = self.dead_letter("list-put-aside", flow, &[]).await;
                if listed.as_array().map(Vec::len) == Some(count) {
                    return listed;
                }
            }
        };
        tokio::time::timeout(WAIT, asks)
            .await
            .expect("records are put aside")
    }

    /// Sends a record of triples that carries a name; durable when it returns.
    pub async fn send(&self, flow: &str, name: &str, epoch: u64) {
        let metadata = Metadata {
            id: name.to_owned(),
            ..Metadata::default()
        };
        let record = Triples {
            metadata: Some(metadata),
            ..Triples::default()
        };
        let options = Ask {
            epoch: (epoch > 0).then_some(epoch),
            ..Ask::default()
        };
        self.mesh
            .record(&store(flow), &record, options)
            .await
            .expect("a record");
    }

    pub async fn waiting(&self, flow: &str) -> Option<u64> {
        let state = self
            .mesh
            .bus()
            .queue_state(&queue(flow))
            .await
            .expect("a bus");
        state.map(|state| state.ready)
    }

    /// An orderly end.
    pub async fn stop(self) {
        self.mesh.stop(WAIT).await;
    }
}

pub fn request(operation: &str, flow: &str, parameters: &[(&str, &str)]) -> FlowRequest {
    FlowRequest {
        operation: operation.to_owned(),
        flow_id: flow.to_owned(),
        parameters: parameters
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        ..FlowRequest::default()
    }
}

pub fn json(reply: &FlowResponse) -> Value {
    serde_json::from_str(&reply.flow).unwrap_or_default()
}

/// Where the triples of a flow go.
pub fn store(flow: &str) -> Topic {
    topic_of("w", flow, Class::Flow, "triples-store")
}

pub fn queue(flow: &str) -> Subscription {
    Subscription::flow(store(flow), "triples-write", "w", flow, "input")
}
