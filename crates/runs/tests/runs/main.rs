//! Runs are counted: every record of a run that was handled is told of, before it is acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tg_runs::{JobId, RunContext};

use async_trait::async_trait;
use tg_bus::{
    Bus, BusError, Claim, Consume, Consumer, Delete, Deleted, Envelope, Link, Mode, PublishMode,
    QueueState, Routed, Sink, Target, WireRules,
};
use tg_mesh::{Ask, ConsumeError, Cx, Host, Processor, RecordConsumer};
use tg_schemas::codec::ContentType;
use tg_schemas::msg::{DeadLetter, Metadata, RunTally, RunTallyEntry, Triples};
use tg_schemas::processors::{self, ProcessorSpec, Spec};
use tg_schemas::topic::Class;
use tg_schemas::{Error, ErrorCode, Headers, Subscription, Topic};
use tokio::sync::{mpsc, watch};

use tg_testkit::bus::*;
use tg_testkit::fakes::RecordingConsumer;
use tg_testkit::machine::Machine;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded() {
    whole_story(World::embedded(Mode::Native).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq() {
    whole_story(World::rabbit(Mode::Native).await).await;
}

/// The tally has one queue in a world, so everything happens one after the other.
async fn whole_story(world: World) {
    a_run_is_followed_to_its_leaves(&world).await;
    failures_are_told_when_they_are_final(&world).await;
    a_record_stays_until_the_tally_has_it(&world).await;
    many_entries_travel_together(&world).await;
    what_writes_much_is_told_in_parts(&world).await;
}

fn triples(id: &str) -> Triples {
    let metadata = Metadata {
        id: id.to_owned(),
        ..Metadata::default()
    };
    Triples {
        metadata: Some(metadata),
        triples: Vec::new(),
    }
}

/// Does what the name of a record says.
struct Worker {
    out: Option<Topic>,
    handled: mpsc::UnboundedSender<Headers>,
}

#[async_trait]
impl RecordConsumer<Triples> for Worker {
    async fn consume(&self, cx: Cx, record: Triples) -> Result<(), ConsumeError> {
        let name = record.metadata.unwrap_or_default().id;
        self.handled.send((*cx.headers).clone()).unwrap();
        cx.subject(&format!("about {name}"));
        cx.effect("triples", 2);
        cx.effect("triples", 3);
        let attempt = cx.headers.attempt.unwrap_or(0);
        match (name.as_str(), attempt) {
            ("dead", 0) => {
                return Err(ConsumeError::Dead(Error::new(
                    ErrorCode::BadRequest,
                    "no good",
                )));
            }
            ("later", 0) => return Err(Error::new(ErrorCode::Storage, "disk full").into()),
            _ => {}
        }
        if let Some(out) = &self.out {
            let children = if name == "much" { MUCH } else { 2 };
            for _ in 0..children {
                cx.record_on(out, &triples("child")).await?;
            }
        }
        Ok(())
    }
}

/// More than the tally is told of at once.
const MUCH: usize = 5_000;

async fn next<T>(from: &mut mpsc::UnboundedReceiver<T>) -> T {
    within(from.recv()).await.unwrap()
}

/// A process of the world.
async fn start(world: &World) -> Host {
    start_on(Line::to(world, false).await).await
}

async fn start_on(line: Arc<Line>) -> Host {
    tg_testkit::place::host_of_runs(line).await
}

/// Hosts the reader of the tally; closing the mesh ends it.
async fn counting(mesh: &Host) -> Arc<RecordingConsumer<RunTally>> {
    let tallies = RecordingConsumer::new();
    let reader = Processor::new(processors::librarian::PROCESSOR)
        .reads(processors::librarian::RUN_TALLY, tallies.clone());
    mesh.host(reader).await.unwrap();
    tallies
}

async fn entries(from: &RecordingConsumer<RunTally>, count: usize) -> Vec<RunTallyEntry> {
    let mut entries = Vec::new();
    while entries.len() < count {
        entries.extend(from.next().await.entries);
    }
    entries
}

/// A worker that is in no table.
fn reading(id: &'static str, topic: &Topic, worker: Arc<Worker>) -> Processor {
    let spec = Spec::new(topic.name().to_owned().leak()).system();
    Processor::new(ProcessorSpec::unlisted(id)).reads(spec, worker)
}

/// Hosts a worker on a topic of its own.
async fn working(
    mesh: &Host,
    id: &'static str,
    out: Option<Topic>,
) -> (Topic, mpsc::UnboundedReceiver<Headers>) {
    let topic = topic(Class::Flow);
    let (handled, headers) = mpsc::unbounded_channel();
    let worker = Arc::new(Worker { out, handled });
    mesh.host(reading(id, &topic, worker)).await.unwrap();
    (topic, headers)
}

fn of(run: &JobId, id: &str) -> Ask {
    Ask {
        thread: Some(run.to_string()),
        id: Some(id.to_owned()),
        ..Ask::default()
    }
}

async fn a_run_is_followed_to_its_leaves(world: &World) {
    let mesh = start(world).await;
    let tallies = counting(&mesh).await;
    let (leaf, mut leaves) = working(&mesh, "leaf", None).await;
    let (root, mut roots) = working(&mesh, "root", Some(leaf.clone())).await;
    let run = JobId::new(2, "default", "p1");
    // What is of no run is handled, and nobody is told.
    mesh.record(&leaf, &triples("plain"), Ask::default())
        .await
        .unwrap();
    assert_eq!(next(&mut leaves).await.thread, None);
    let talk = Ask {
        thread: Some("talk".to_owned()),
        ..of(&run, "talk")
    };
    mesh.record(&leaf, &triples("talk"), talk).await.unwrap();
    assert_eq!(next(&mut leaves).await.thread.as_deref(), Some("talk"));

    mesh.record(&root, &triples("start"), of(&run, "start"))
        .await
        .unwrap();
    let told = entries(&tallies, 3).await;
    assert_eq!(told.len(), 3);
    let top = told.iter().find(|entry| entry.record == "start").unwrap();
    assert_eq!(top.run, run.to_string());
    assert_eq!(top.subscription, "root");
    assert_eq!(top.subject, "about start");
    assert_eq!((top.outcome.as_str(), top.detail.as_str()), ("ok", ""));
    assert_eq!(top.effects, BTreeMap::from([("triples".to_owned(), 5)]));
    let written: BTreeSet<_> = top
        .written
        .iter()
        .map(|child| child.record.clone())
        .collect();
    assert!(
        top.written
            .iter()
            .all(|child| child.topic == leaf.to_string())
    );
    assert_eq!(written.len(), 2);
    let below: BTreeSet<_> = told
        .iter()
        .filter(|entry| entry.subscription == "leaf")
        .map(|entry| entry.record.clone())
        .collect();
    assert_eq!(below, written);
    for _ in 0..2 {
        assert_eq!(
            next(&mut leaves).await.thread.as_deref(),
            Some(run.as_str())
        );
    }
    next(&mut roots).await;

    // The same record again has the same children.
    mesh.record(&root, &triples("start"), of(&run, "start"))
        .await
        .unwrap();
    let again = entries(&tallies, 3).await;
    let top = again.iter().find(|entry| entry.record == "start").unwrap();
    let same: BTreeSet<_> = top
        .written
        .iter()
        .map(|child| child.record.clone())
        .collect();
    assert_eq!(same, written);
    mesh.stop(Duration::from_secs(5)).await;
}

async fn failures_are_told_when_they_are_final(world: &World) {
    let mesh = start(world).await;
    let tallies = counting(&mesh).await;
    let aside = RecordingConsumer::<DeadLetter>::new();
    let flow = Processor::new(processors::flow_svc::PROCESSOR)
        .reads(processors::flow_svc::DEAD_LETTERS, aside.clone());
    mesh.host(flow).await.unwrap();
    let (topic, _headers) = working(&mesh, "worker", None).await;
    let run = JobId::new(0, "default", "p2");

    // A retry is not told; the record, brought back with the headers it was kept with, is.
    mesh.record(&topic, &triples("later"), of(&run, "later"))
        .await
        .unwrap();
    let kept = aside.next().await;
    assert_eq!(kept.reason, "retry");
    bring_back(&mesh, &kept).await;
    let told = entries(&tallies, 1).await;
    assert_eq!(
        (told[0].record.as_str(), told[0].outcome.as_str()),
        ("later", "ok")
    );

    mesh.record(&topic, &triples("dead"), of(&run, "dead"))
        .await
        .unwrap();
    let told = entries(&tallies, 1).await;
    assert_eq!(
        (told[0].record.as_str(), told[0].outcome.as_str()),
        ("dead", "failed")
    );
    assert_eq!(told[0].detail, "no good");
    let kept = aside.next().await;
    assert_eq!(kept.reason, "dead");
    bring_back(&mesh, &kept).await;
    let told = entries(&tallies, 1).await;
    assert_eq!(
        (told[0].record.as_str(), told[0].outcome.as_str()),
        ("dead", "ok")
    );
    assert_eq!(told[0].run, run.to_string());

    // Noise has headers, too.
    let envelope = Envelope {
        headers: Arc::new(Headers {
            id: Some("noise".to_owned()),
            thread: Some(run.to_string()),
            ..Headers::default()
        }),
        body: b"\x00\xff noise".to_vec().into(),
        ..Envelope::default()
    };
    let target = Target::Topic(topic);
    mesh.bus()
        .publish(&target, envelope, PublishMode::Confirmed)
        .await
        .unwrap();
    let told = entries(&tallies, 1).await;
    assert_eq!(
        (told[0].record.as_str(), told[0].outcome.as_str()),
        ("noise", "failed")
    );
    aside.next().await;
    mesh.stop(Duration::from_secs(5)).await;
}

/// As the flow service does with what is due or replayed.
async fn bring_back(mesh: &Host, kept: &DeadLetter) {
    let body = kept.clone().into_body();
    let envelope = Envelope {
        headers: Arc::new(serde_json::from_str(&kept.headers).unwrap()),
        content_type: ContentType::parse(&kept.content_type),
        body: body.unwrap(),
        ..Envelope::default()
    };
    let target = Target::Subscription(Subscription {
        topic: Topic::parse(&kept.topic).unwrap(),
        name: kept.subscription.clone(),
    });
    let routed = mesh
        .bus()
        .publish(&target, envelope, PublishMode::Confirmed)
        .await;
    assert_eq!(routed, Ok(Routed::Queued));
}

async fn a_record_stays_until_the_tally_has_it(world: &World) {
    let other = start(world).await;
    let tallies = counting(&other).await;
    let deaf = Line::to(world, true).await;
    let mesh = start_on(deaf.clone()).await;
    let (topic, mut headers) = working(&mesh, "first", None).await;
    let run = JobId::new(0, "default", "p3");
    mesh.record(&topic, &triples("a"), of(&run, "a"))
        .await
        .unwrap();
    next(&mut headers).await;
    until(async || deaf.tried.load(Ordering::Acquire)).await;
    assert_eq!(tallies.count(), 0);
    // The process goes without having told; another one of the same subscription has to.
    let (handled, mut again) = mpsc::unbounded_channel();
    let worker = Arc::new(Worker { out: None, handled });
    let second = reading("first", &topic, worker);
    let stopping = mesh.clone();
    let stopped = tokio::spawn(async move { stopping.stop(Duration::from_millis(10)).await });
    other.host(second).await.unwrap();
    assert_eq!(next(&mut again).await.id.as_deref(), Some("a"));
    assert_eq!(entries(&tallies, 1).await[0].record, "a");
    within(stopped).await.unwrap();
    other.stop(Duration::from_secs(5)).await;
}

async fn what_writes_much_is_told_in_parts(world: &World) {
    let mesh = start(world).await;
    let tallies = counting(&mesh).await;
    let nowhere = topic(Class::Flow);
    mesh.bus()
        .declare(std::slice::from_ref(&nowhere), &[])
        .await
        .unwrap();
    let (root, _handled) = working(&mesh, "much", Some(nowhere)).await;
    let run = JobId::new(0, "default", "p5");
    mesh.record(&root, &triples("much"), of(&run, "start"))
        .await
        .unwrap();
    let told = entries(&tallies, 2).await;
    // The first is large and decoded beside the runtime's threads: the small one after it may be here before it.
    let mut outcomes: Vec<_> = told.iter().map(|entry| entry.outcome.as_str()).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["ok", "part"]);
    assert!(told.iter().all(|entry| entry.record == "start"));
    let written = told.iter().flat_map(|entry| &entry.written);
    let different: BTreeSet<_> = written.map(|child| child.record.clone()).collect();
    assert_eq!(different.len(), MUCH);
    mesh.stop(Duration::from_secs(5)).await;
}

async fn many_entries_travel_together(world: &World) {
    let mesh = start(world).await;
    let tallies = counting(&mesh).await;
    let (topic, _headers) = working(&mesh, "many", None).await;
    let run = JobId::new(0, "default", "p4");
    let sent = (0..300).map(|n| {
        let (mesh, topic, run) = (&mesh, &topic, &run);
        async move {
            let id = format!("r{n}");
            mesh.record(topic, &triples("ok"), of(run, &id))
                .await
                .unwrap();
        }
    });
    futures::future::join_all(sent).await;
    let (mut records, mut messages) = (BTreeSet::new(), 0);
    while records.len() < 300 {
        let batch = tallies.next().await;
        messages += 1;
        records.extend(batch.entries.into_iter().map(|entry| entry.record));
    }
    // How many travel together depends on how many there are in two milliseconds; on a slower machine that is fewer.
    let most = (100.0 * Machine::measured().slower()) as usize;
    assert!(
        messages <= most.min(299),
        "{messages} messages for 300 records"
    );
    mesh.stop(Duration::from_secs(5)).await;
}

/// In interop mode records have no headers of ours: nothing to count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_worlds_are_not_told() {
    let world = World::embedded(Mode::Interop).await;
    let mesh = start(&world).await;
    let (topic, mut headers) = working(&mesh, "worker", None).await;
    let run = JobId::new(0, "default", "p5");
    let mut envelope = message("{}");
    Arc::make_mut(&mut envelope.headers).thread = Some(run.to_string());
    let target = Target::Topic(topic);
    mesh.bus()
        .publish(&target, envelope, PublishMode::Confirmed)
        .await
        .unwrap();
    next(&mut headers).await;
    mesh.stop(Duration::from_secs(5)).await;
    let state = mesh
        .bus()
        .queue_state(&tg_runs::report::subscription())
        .await;
    assert!(!matches!(state, Ok(Some(_))), "{state:?}");
}

/// One process's line to the bus. The embedded bus stays open when it goes.
struct Line {
    bus: Arc<dyn Bus>,
    /// Takes everything but the tally.
    deaf: bool,
    tried: AtomicBool,
}

impl Line {
    async fn to(world: &World, deaf: bool) -> Arc<Self> {
        Arc::new(Self {
            bus: world.connect().await,
            deaf,
            tried: AtomicBool::new(false),
        })
    }
}

#[async_trait]
impl Bus for Line {
    fn rules(&self) -> &'static WireRules {
        self.bus.rules()
    }
    async fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<(), BusError> {
        self.bus.declare(topics, queues).await
    }
    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError> {
        if self.deaf && matches!(target, Target::Topic(topic) if *topic == tg_runs::report::topic())
        {
            self.tried.store(true, Ordering::Release);
            return Err(BusError::Store);
        }
        self.bus.publish(target, envelope, promise).await
    }
    async fn consume(
        &self,
        subscription: &Subscription,
        how: Consume,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.bus.consume(subscription, how, sink).await
    }
    async fn open_inbox(
        &self,
        name: &str,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.bus.open_inbox(name, sink).await
    }
    async fn queue_state(&self, of: &Subscription) -> Result<Option<QueueState>, BusError> {
        self.bus.queue_state(of).await
    }
    async fn take(&self, from: &Subscription) -> Result<Option<tg_bus::Delivery>, BusError> {
        self.bus.take(from).await
    }
    async fn delete_queue(&self, of: &Subscription, when: Delete) -> Result<Deleted, BusError> {
        self.bus.delete_queue(of, when).await
    }
    async fn delete_topic(&self, topic: &Topic) -> Result<bool, BusError> {
        self.bus.delete_topic(topic).await
    }
    async fn claim(&self, name: &str) -> Result<Option<Box<dyn Claim>>, BusError> {
        self.bus.claim(name).await
    }
    fn link(&self) -> watch::Receiver<Link> {
        self.bus.link()
    }
    async fn close(&self) {
        if !self.bus.in_process() {
            self.bus.close().await;
        }
    }
}
