//! Records: handled at least once, dead-lettered when they cannot be, attached as config rows say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::FutureExt;
use serde::Deserialize;
use tg_mesh::{Ask, ConsumeError, Cx, Envelope, Host, IsDone, PartFate, Processor, RecordConsumer};
use tg_schemas::codec::{self, ContentType};
use tg_schemas::msg::{DeadLetter, Metadata, Triples};
use tg_schemas::processors::{self, ProcessorSpec};
use tg_schemas::{Class, Error, ErrorCode, Subscription, Topic, records};
use tg_testkit::bus::{BOUND, until, within};
use tg_testkit::config::Config;
use tg_testkit::fakes::RecordingConsumer;
use tg_testkit::flow::topic_of;
use tg_testkit::place::Place;
use tokio::sync::mpsc;

use crate::dialogs::mesh;

pub(crate) fn id(record: &Triples) -> &str {
    record.metadata.as_ref().map_or("", |metadata| &metadata.id)
}

/// Refuses what its name says is to be refused.
fn check(cx: &Cx, record: &Triples) -> Result<(), ConsumeError> {
    match id(record) {
        "late" => {
            cx.not_kept(Error::new(ErrorCode::Conflict, "too late"));
            Ok(())
        }
        "dead" => Err(ConsumeError::Dead(Error::new(
            ErrorCode::BadRequest,
            "no good",
        ))),
        "later" => Err(Error::new(ErrorCode::Storage, "disk full").into()),
        _ => Ok(()),
    }
}

pub(crate) fn triples(id: &str) -> Triples {
    let metadata = Metadata {
        id: id.to_owned(),
        ..Metadata::default()
    };
    Triples {
        metadata: Some(metadata),
        triples: Vec::new(),
    }
}

fn of_flow(base: &str) -> Topic {
    topic_of("default", "f", Class::Flow, base)
}

pub(crate) fn store() -> Topic {
    of_flow("triples-store")
}

pub(crate) fn row(epoch: u64) -> String {
    format!(
        r#"{{"topics": {{"input": "{}"}}, "parameters": {{}}, "epoch": {epoch}}}"#,
        store()
    )
}

struct World {
    mesh: Host,
    config: Arc<Config>,
    written: Arc<RecordingConsumer<Triples>>,
    aside: Arc<RecordingConsumer<DeadLetter>>,
}

impl World {
    /// The name of the next record that was written.
    async fn written(&self) -> String {
        id(&self.written.next().await).to_owned()
    }
}

/// A config service, hosted there.
pub(crate) async fn config_of(mesh: &Host) -> Arc<Config> {
    let config = Arc::new(Config::new());
    let served = Processor::new(processors::config_svc::PROCESSOR)
        .serves(processors::config_svc::CONFIG, config.clone());
    mesh.host(served).await.unwrap();
    config
}

async fn world(place: &Place) -> World {
    let mesh = mesh(place).await;
    let config = config_of(&mesh).await;
    let written = RecordingConsumer::checked(check);
    let writer = Processor::new(processors::triples_write::PROCESSOR)
        .reads(processors::triples_write::INPUT, written.clone());
    mesh.host(writer).await.unwrap();
    let aside = RecordingConsumer::new();
    let flow = Processor::new(processors::flow_svc::PROCESSOR)
        .reads(processors::flow_svc::DEAD_LETTERS, aside.clone());
    mesh.host(flow).await.unwrap();
    World {
        mesh,
        config,
        written,
        aside,
    }
}

/// The flow `f` of an epoch begins, and its writer of triples is attached.
pub(crate) async fn begins(mesh: &Host, config: &Config, epoch: u64) {
    let kind = "processor:triples-write";
    config
        .change(mesh, "default", &[(kind, "f", Some(&row(epoch)))])
        .await;
    let there =
        |view: &tg_mesh::PresenceView| view.attached("triples-write", "default", "f", epoch);
    assert!(mesh.presence().until(BOUND, there).await);
}

async fn attached(world: &World, epoch: u64) {
    begins(&world.mesh, &world.config, epoch).await;
}

async fn a_row_attaches_and_its_removal_detaches(place: Place) {
    let world = world(&place).await;
    attached(&world, 1).await;
    world
        .mesh
        .record(&store(), &triples("a"), Ask::default())
        .await
        .unwrap();
    assert_eq!(world.written().await, "a");
    world
        .config
        .change(
            &world.mesh,
            "default",
            &[("processor:triples-write", "f", None)],
        )
        .await;
    let gone = |view: &tg_mesh::PresenceView| view.detached("default", "f");
    assert!(world.mesh.presence().until(BOUND, gone).await);
    // What comes now waits in the queue for the next start.
    world
        .mesh
        .record(&store(), &triples("b"), Ask::default())
        .await
        .unwrap();
    attached(&world, 2).await;
    assert_eq!(world.written().await, "b");
}

async fn failures_are_dead_letter_with_their_reason(place: Place) {
    let world = world(&place).await;
    attached(&world, 1).await;
    for (id, reason) in [("dead", "dead"), ("later", "retry")] {
        world
            .mesh
            .record(&store(), &triples(id), Ask::default())
            .await
            .unwrap();
        let aside = world.aside.next().await;
        assert_eq!(aside.reason, reason);
        assert_eq!(aside.subscription, "triples-write--default--f--input");
        assert_eq!(aside.workspace, "default");
    }
    // The queue is not blocked by them.
    world
        .mesh
        .record(&store(), &triples("fine"), Ask::default())
        .await
        .unwrap();
    assert_eq!(world.written().await, "fine");
}

async fn writers_who_ask_are_told_what_became_of_their_records(place: Place) {
    let world = world(&place).await;
    attached(&world, 7).await;
    let refused = |error: Error| PartFate::Refused(error);
    let stale = "its flow was started anew before it was stored; it is kept as a dead letter";
    let wanted = [
        ("fine", PartFate::Stored),
        (
            "dead",
            refused(Error::new(ErrorCode::BadRequest, "no good")),
        ),
        ("late", refused(Error::new(ErrorCode::Conflict, "too late"))),
        ("stale", refused(Error::new(ErrorCode::Conflict, stale))),
    ];
    let written = world.mesh.awaited().open(wanted.len());
    let fails = world.mesh.awaited().open(1);
    let write = async |id: &str, epoch, slip| {
        let ask = Ask {
            epoch: Some(epoch),
            receipt: Some(slip),
            ..Ask::default()
        };
        let (to, record) = (store(), triples(id));
        world.mesh.record(&to, &record, ask).await.unwrap();
    };
    write("later", 7, fails.slip(0)).await;
    for (part, (id, _)) in wanted.iter().enumerate() {
        let epoch = if *id == "stale" { 6 } else { 7 };
        write(id, epoch, written.slip(part)).await;
    }
    within(written.settled()).await;
    assert_eq!(written.fates(), wanted.map(|(_, fate)| fate));
    // What is tried again is settled when that has come to an end, and says meanwhile why it failed.
    let failed = PartFate::Unknown(Some(Error::new(ErrorCode::Storage, "disk full")));
    let told = async {
        while fails.fates() != [failed.clone()] {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    within(told).await;
    let mut aside = Vec::new();
    while aside.len() < 3 {
        aside.push(world.aside.next().await);
    }
    let again = aside.iter().find(|one| one.reason == "retry").unwrap();
    assert!(again.headers.contains(&fails.slip(0)), "{}", again.headers);
}

async fn a_record_of_another_epoch_is_stale(place: Place) {
    let world = world(&place).await;
    attached(&world, 7).await;
    let old = Ask {
        epoch: Some(6),
        ..Ask::default()
    };
    world
        .mesh
        .record(&store(), &triples("old"), old)
        .await
        .unwrap();
    assert_eq!(world.aside.next().await.reason, "stale");
    let current = Ask {
        epoch: Some(7),
        ..Ask::default()
    };
    world
        .mesh
        .record(&store(), &triples("new"), current)
        .await
        .unwrap();
    assert_eq!(world.written().await, "new");
}

async fn noise_is_dead_not_requeued(place: Place) {
    use tg_mesh::bus::{Envelope, PublishMode, Target};
    let world = world(&place).await;
    attached(&world, 1).await;
    for body in [&b"\x00\xff\x01noise"[..], b"{\"metadata\": 3}", b""] {
        let envelope = Envelope {
            body: body.to_vec().into(),
            ..Envelope::default()
        };
        let target = Target::Topic(store());
        world
            .mesh
            .bus()
            .publish(&target, envelope, PublishMode::Confirmed)
            .await
            .unwrap();
        assert_eq!(world.aside.next().await.reason, "dead");
    }
    world
        .mesh
        .record(&store(), &triples("fine"), Ask::default())
        .await
        .unwrap();
    assert_eq!(world.written().await, "fine");
}

/// Knows by their names of which records the effect is there.
struct Knowing {
    looked: AtomicUsize,
    read: mpsc::Sender<String>,
}

/// The field by which it knows.
#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[async_trait]
impl RecordConsumer<Triples> for Knowing {
    async fn consume(&self, _: Cx, record: Triples) -> Result<(), ConsumeError> {
        self.read.send(id(&record).to_owned()).await.unwrap();
        Ok(())
    }

    fn is_done<'a>(&'a self, _: &'a Cx, record: &'a Envelope) -> Option<IsDone<'a>> {
        self.looked.fetch_add(1, Ordering::Relaxed);
        let at_hand = record.at_hand(|record: &Triples| id(record).to_owned());
        let written = || {
            let body = record.body_of::<Triples>()?;
            let named = codec::fields::<Triples, Named>(body, record.content_type)?;
            Some(named.metadata.id)
        };
        let name = at_hand.or_else(written)?;
        Some(async move { Ok::<bool, ConsumeError>(name == "done") }.boxed())
    }
}

async fn a_record_whose_effect_is_there_is_acknowledged_and_not_read(place: Place) {
    let mesh = mesh(&place).await;
    let config = config_of(&mesh).await;
    let (read, mut names) = mpsc::channel(8);
    let knowing = Arc::new(Knowing {
        looked: AtomicUsize::new(0),
        read,
    });
    let writer = Processor::new(processors::triples_write::PROCESSOR)
        .reads(processors::triples_write::INPUT, knowing.clone());
    mesh.host(writer).await.unwrap();
    begins(&mesh, &config, 1).await;
    for name in ["done", "fine", "done", "other"] {
        let record = triples(name);
        mesh.record(&store(), &record, Ask::default())
            .await
            .unwrap();
    }
    let mut read = [within(names.recv()).await, within(names.recv()).await];
    read.sort();
    let read = read.each_ref().map(|name| name.as_deref().unwrap());
    assert_eq!(read, ["fine", "other"]);
    // Nothing of it waits any more, and nothing was read again.
    let queue = Subscription {
        topic: store(),
        name: "triples-write--default--f--input".to_owned(),
    };
    until(async || {
        let state = mesh.bus().queue_state(&queue).await.unwrap();
        knowing.looked.load(Ordering::Relaxed) >= 4 && state.is_some_and(|state| state.ready == 0)
    })
    .await;
    assert!(names.try_recv().is_err());
}

/// Hands records on to a topic, and says how that went.
struct Passer(mpsc::Sender<Result<(), ErrorCode>>);

#[async_trait]
impl RecordConsumer<Triples> for Passer {
    async fn consume(&self, cx: Cx, record: Triples) -> Result<(), ConsumeError> {
        let passed = cx.record(processors::shared::TRIPLES, &record).await;
        let told = passed.map_err(|error| error.code());
        self.0.send(told).await.unwrap();
        Ok(())
    }
}

async fn what_nobody_of_a_flow_reads_is_dropped_and_nothing_else(place: Place) {
    let mesh = mesh(&place).await;
    let config = config_of(&mesh).await;
    let (tx, mut told) = mpsc::channel(64);
    let passer = Processor::new(ProcessorSpec::unlisted("passer"))
        .reads(processors::triples_write::INPUT, Arc::new(Passer(tx)));
    mesh.host(passer).await.unwrap();
    let input = of_flow("text-document-load");
    for (epoch, unread, expected) in [
        (1, "[]".to_owned(), Err(ErrorCode::NobodyServes)),
        (2, format!(r#"["{}"]"#, store()), Ok(())),
    ] {
        let row = format!(
            r#"{{"topics": {{"input": "{input}", "triples": "{}"}}, "parameters": {{}}, "epoch": {epoch},
                "unread": {unread}}}"#,
            store()
        );
        let kind = "processor:passer";
        let change = (kind, "f", Some(row.as_str()));
        config.change(&mesh, "default", &[change]).await;
        let there = |view: &tg_mesh::PresenceView| view.attached("passer", "default", "f", epoch);
        assert!(mesh.presence().until(BOUND, there).await);
        let record = triples("a");
        mesh.record(&input, &record, Ask::default()).await.unwrap();
        assert_eq!(within(told.recv()).await.unwrap(), expected, "{unread}");
    }
}

/// Triples as another release writes them: a schema with a further field, and a body in it. A schema that was read once
/// is known to the whole process: each has a name of its own.
fn of_another_release(id: &str) -> (String, String, Vec<u8>) {
    use apache_avro::Schema;
    use apache_avro::rabin::Rabin;
    static RELEASES: AtomicUsize = AtomicUsize::new(0);
    let release = RELEASES.fetch_add(1, Ordering::Relaxed);
    let further =
        format!(r#""fields": [{{"name": "region_{release}", "type": "string", "default": ""}},"#);
    let text = <Triples as tg_schemas::Message>::AVRO.replacen("\"fields\": [", &further, 1);
    let mark = Schema::parse_str(&text)
        .unwrap()
        .fingerprint::<Rabin>()
        .bytes;
    let hex = mark.iter().map(|byte| format!("{byte:02x}")).collect();
    let ours = codec::encode(&triples(id), ContentType::Avro).unwrap();
    let mut body = vec![0xC3, 0x01];
    body.extend_from_slice(&mark);
    body.extend_from_slice(b"\x04eu");
    body.extend_from_slice(&ours[10..]);
    (text, hex, body)
}

async fn a_record_of_another_release_is_read_once_its_schema_is_kept(place: Place) {
    use tg_mesh::bus::{Envelope, PublishMode, Target};
    let world = world(&place).await;
    attached(&world, 1).await;
    let (schema, fingerprint, body) = of_another_release("from elsewhere");
    let envelope = Envelope {
        content_type: ContentType::Avro,
        body: body.into(),
        ..Envelope::default()
    };
    let target = Target::Topic(store());
    let bus = world.mesh.bus().clone();
    let publish = async |envelope| {
        let sent = bus.publish(&target, envelope, PublishMode::Confirmed).await;
        sent.unwrap();
    };
    // Nobody has kept the schema: the record comes again later, as it is.
    publish(envelope.clone()).await;
    let aside = world.aside.next().await;
    assert_eq!(aside.reason, "retry", "{aside:?}");
    assert_eq!(aside.into_body().unwrap(), envelope.body);
    let (workspace, kind) = (records::WORKSPACE, records::TYPE);
    world
        .config
        .change(
            &world.mesh,
            workspace,
            &[(kind, &fingerprint, Some(&schema))],
        )
        .await;
    publish(envelope).await;
    assert_eq!(world.written().await, "from elsewhere");
}

tg_testkit::on_both_buses!(
    a_row_attaches_and_its_removal_detaches,
    failures_are_dead_letter_with_their_reason,
    writers_who_ask_are_told_what_became_of_their_records,
    a_record_of_another_epoch_is_stale,
    noise_is_dead_not_requeued,
    a_record_whose_effect_is_there_is_acknowledged_and_not_read,
    what_nobody_of_a_flow_reads_is_dropped_and_nothing_else,
    a_record_of_another_release_is_read_once_its_schema_is_kept,
);
