//! One flow of one workspace on either bus, with a config service that serves the test's rows: for tests of
//! a service over the bus, without the services around it. Knows no service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tg_runs::JobId;

use serde_json::{Value, json};
use tg_bus::Bus;
use tg_mesh::{Ask, Deadline, Host, Processor, dead_letter};
use tg_schemas::msg::{DeadLetter, RunTally, RunTallyEntry};
use tg_schemas::processors::{config_svc, librarian};
use tg_schemas::{Class, Error, FlowId, Message, Reply, Topic, WorkspaceId};

use crate::config::Config;
use crate::fakes::RecordingConsumer;
use crate::place::Place;

/// Everything happens by then.
pub const SOON: Duration = Duration::from_secs(60);
/// Between two looks at something that tells nobody of itself.
const PAUSE: Duration = Duration::from_millis(2);
/// The workspace and the flow.
const NAME: &str = "default";

/// A topic of the flow, or of its workspace's library.
pub fn topic(class: Class, base: &str) -> Topic {
    match base {
        "librarian" => Topic::workspace(class, base, &id(NAME)),
        _ => topic_of(NAME, NAME, class, base),
    }
}

/// A topic of any flow.
pub fn topic_of(workspace: &str, flow: &str, class: Class, base: &str) -> Topic {
    let flow = FlowId::new(flow).expect("a valid id");
    Topic::flow(class, base, &id(workspace), &flow)
}

fn id(workspace: &str) -> WorkspaceId {
    WorkspaceId::new(workspace).expect("a valid id")
}

/// A processor's specs: name and, by its class, base of the topic.
pub type Wiring = (&'static str, &'static [(&'static str, Class, &'static str)]);

/// The running flow.
pub struct TestFlow {
    /// Its mesh.
    pub mesh: Host,
    /// Its configuration.
    pub config: Arc<Config>,
    reports: Arc<RecordingConsumer<RunTally>>,
}

impl TestFlow {
    /// Starts a flow of these processors, which `host` makes. Panics when they do not attach.
    pub async fn start(
        place: &Place,
        config: Config,
        wiring: &[Wiring],
        host: impl FnOnce(&tg_mesh::Mesh) -> Vec<Processor>,
    ) -> Self {
        Self::start_with(place, config, wiring, json!({}), host).await
    }

    /// The same with parameters of the flow.
    pub async fn start_with(
        place: &Place,
        config: Config,
        wiring: &[Wiring],
        parameters: Value,
        host: impl FnOnce(&tg_mesh::Mesh) -> Vec<Processor>,
    ) -> Self {
        Self::start_on(place.connect().await, config, wiring, parameters, host).await
    }

    /// As [`TestFlow::start`], in a process that expects foreign ones around it.
    pub async fn start_among_foreign(
        place: &Place,
        config: Config,
        wiring: &[Wiring],
        host: impl FnOnce(&tg_mesh::Mesh) -> Vec<Processor>,
    ) -> Self {
        let bus = place.connect_among_foreign().await;
        Self::start_on(bus, config, wiring, json!({}), host).await
    }

    /// As [`TestFlow::start_with`], over a bus.
    pub async fn start_on(
        bus: Arc<dyn Bus>,
        config: Config,
        wiring: &[Wiring],
        parameters: Value,
        host: impl FnOnce(&tg_mesh::Mesh) -> Vec<Processor>,
    ) -> Self {
        for (processor, specs) in wiring {
            let topics: BTreeMap<_, _> = specs
                .iter()
                .map(|(spec, class, base)| (*spec, topic(*class, base).to_string()))
                .collect();
            let row = json!({"topics": topics, "parameters": parameters, "epoch": 1});
            config.put(&format!("processor:{processor}"), NAME, &row.to_string());
        }
        let config = Arc::new(config);
        let mesh = crate::place::host_of_runs(bus).await;
        let reports = RecordingConsumer::new();
        let served =
            Processor::new(config_svc::PROCESSOR).serves(config_svc::CONFIG, config.clone());
        let mut all = vec![served];
        all.extend(host(&mesh));
        let librarian = Processor::new(librarian::PROCESSOR);
        all.push(librarian.reads(librarian::RUN_TALLY, reports.clone()));
        for processor in all {
            mesh.host(processor).await.expect("hosted");
        }
        let flow = Self {
            mesh,
            config,
            reports,
        };
        let ids: Vec<&str> = wiring.iter().map(|(id, _)| *id).collect();
        flow.attached(&ids, 1).await;
        flow
    }

    /// Waits until these processors are attached to a start of the flow. Panics when they are not.
    pub async fn attached(&self, ids: &[&str], epoch: u64) {
        let attached = self.mesh.presence().until(SOON, |view| {
            let mut ids = ids.iter();
            ids.all(|id| view.attached(id, NAME, NAME, epoch))
        });
        assert!(attached.await, "the flow attaches");
    }

    /// Options of a question or record of the flow.
    pub fn options(&self) -> Ask {
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
    pub async fn write_in<M: Message>(&self, base: &str, record: &M, run: &JobId, id: &str) {
        self.write_as(base, record, self.in_run(run, id)).await;
    }

    /// The same with these options.
    pub async fn write_as<M: Message>(&self, base: &str, record: &M, options: Ask) {
        let to = topic(Class::Flow, base);
        let written = self.mesh.record(&to, record, options).await;
        written.expect("accepted");
    }

    /// Options of a record of a run, under an id.
    pub fn in_run(&self, run: &JobId, id: &str) -> Ask {
        Ask {
            id: Some(id.to_owned()),
            thread: Some(run.to_string()),
            ..self.options()
        }
    }

    /// Asks on a topic of the flow; all parts of the answer.
    ///
    /// # Errors
    /// How the question ended, if not with an answer.
    pub async fn parts<Q: Message, R: Reply>(
        &self,
        base: &str,
        question: &Q,
    ) -> Result<Vec<R>, Error> {
        let to = topic(Class::Request, base);
        let mut answer = self.mesh.ask::<_, R>(&to, question, self.options());
        let mut parts = Vec::new();
        while let Some(part) = answer.next().await {
            parts.push(part?);
        }
        Ok(parts)
    }

    /// Asks on a topic of the flow.
    ///
    /// # Errors
    /// How the question ended, if not with an answer.
    pub async fn ask<Q: Message, R: Reply>(&self, base: &str, question: &Q) -> Result<R, Error> {
        let to = topic(Class::Request, base);
        self.mesh.ask(&to, question, self.options()).last().await
    }

    /// Asks on a topic of the system.
    ///
    /// # Errors
    /// How the question ended, if not with an answer.
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
                tokio::time::sleep(PAUSE).await;
            }
        };
        let soon = tokio::time::timeout(SOON, asked).await;
        soon.expect("it becomes so");
    }

    /// Waits until the completion reports of all records are as wanted. Panics when they do not become so.
    pub async fn told(&self, wanted: impl Fn(&[RunTallyEntry]) -> bool) -> Vec<RunTallyEntry> {
        let entries = |records: &[RunTally]| -> Vec<RunTallyEntry> {
            let entries = records.iter().flat_map(|record| record.entries.clone());
            entries.collect()
        };
        let told = self.reports.until(|records| wanted(&entries(records)));
        entries(&told.await)
    }

    /// Waits for the completion report of a record. Panics when it does not come.
    pub async fn tallied(&self, record: &str) -> RunTallyEntry {
        let of = |entry: &RunTallyEntry| entry.record == record;
        let all = self.told(|all| all.iter().any(of)).await;
        let entry = all.into_iter().find(of);
        entry.expect("it was there")
    }

    /// Why the next record was dead-lettered. Panics when none is.
    pub async fn dead_letter_reason(&self) -> String {
        self.dead_letter().await.detail
    }

    /// The next record that becomes a dead letter. Panics when none is.
    pub async fn dead_letter(&self) -> DeadLetter {
        let aside = async {
            loop {
                let taken = self.mesh.bus().take(&dead_letter::subscription()).await;
                if let Some(delivery) = taken.expect("the bus runs") {
                    let record = delivery.envelope.read().expect("a record");
                    delivery.ack();
                    return record;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let soon = tokio::time::timeout(SOON, aside).await;
        soon.expect("a record is dead-lettered")
    }
}
