//! Two upgrades in a row: whatever kind of record a flow has, what waited, was dead-lettered or was parked under the
//! releases before is read in the end.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use apache_avro::Schema;
use apache_avro::rabin::Rabin;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tg_mesh::Processor;
use tg_mesh::bus::{Envelope, PublishMode, Target};
use tg_schemas::codec::{self, ContentType};
use tg_schemas::processors::{
    self, PROCESSORS, ProcessorSpec, Reads, Role, Spec, SpecRow, TopicScope,
};
use tg_schemas::{Class, Headers, Message, records};
use tg_testkit::fakes::RecordingConsumer;
use tg_testkit::flow::topic_of;
use tg_testkit::place::Place;
use tokio::time::Instant;

use crate::harness::{Process, WAIT, World};

/// Records of each kind and release.
const COUNT: usize = 2;
const FLOW: &str = "u";

/// A reader of records of one kind, and what it has read.
struct Reader<M> {
    processor: ProcessorSpec,
    spec: Spec<Reads<M>>,
    read: Arc<RecordingConsumer<M>>,
}

/// The same of any kind.
#[async_trait]
trait OfAnyKind: Send + Sync {
    fn processor(&self) -> &ProcessorSpec;
    fn spec(&self) -> SpecRow;
    fn host(&self) -> Processor;
    /// A record without a mark, and the schema that it is in.
    fn written(&self) -> (Value, Vec<u8>);
    /// The fields of the record as JSON.
    fn fields(&self) -> Map<String, Value>;
    /// Waits until so many were read, each as it was written.
    async fn until_read(&self, count: usize);
}

#[async_trait]
impl<M: Message + Default + Clone + PartialEq + Debug + Send + Sync + 'static> OfAnyKind
    for Reader<M>
{
    fn processor(&self) -> &ProcessorSpec {
        &self.processor
    }

    fn spec(&self) -> SpecRow {
        self.spec.row()
    }

    fn host(&self) -> Processor {
        Processor::new(self.processor).reads(self.spec, self.read.clone())
    }

    fn written(&self) -> (Value, Vec<u8>) {
        let schema = serde_json::from_str(M::AVRO).unwrap();
        let body = codec::encode(&M::default(), ContentType::Avro).unwrap();
        (schema, body[10..].to_vec())
    }

    fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(M::default()).unwrap() {
            Value::Object(fields) => fields,
            other => panic!("{other}"),
        }
    }

    async fn until_read(&self, count: usize) {
        let read = self.read.until(|all| all.len() >= count).await;
        assert_eq!(read, vec![M::default(); count], "{}", M::NAME);
    }
}

/// One reader of each kind of record.
macro_rules! readers {
    ($($processor:ident :: $spec:ident,)*) => {
        fn readers() -> Vec<Box<dyn OfAnyKind>> {
            vec![$(Box::new(Reader {
                processor: processors::$processor::PROCESSOR,
                spec: processors::$processor::$spec,
                read: RecordingConsumer::new(),
            })),*]
        }
    };
}

readers! {
    agent_manager::STEP,
    chunker::INPUT,
    document_decoder::INPUT,
    kw_index::INPUT,
    graph_embeddings::INPUT,
    row_embeddings::INPUT,
    doc_embeddings_write::INPUT,
    graph_embeddings_write::INPUT,
    row_embeddings_write::INPUT,
    rows_write::RETRACT,
    triples_write::INPUT,
}

/// Whether there is a reader for each kind of record that a flow has by the table of processors. What the system as a
/// whole reads is never parked: no flow stops it.
#[test]
fn each_kind_of_record_of_a_flow_is_upgraded() {
    let specs = PROCESSORS
        .iter()
        .filter(|one| one.hosted)
        .flat_map(|one| one.specs);
    let of_flows = specs.filter(|spec| {
        spec.role == Role::Reads && matches!(spec.place, TopicScope::Flow | TopicScope::Own)
    });
    let kinds: BTreeSet<&str> = of_flows.map(|spec| spec.message).collect();
    let here = readers();
    let here: Vec<&str> = here.iter().map(|one| one.spec().message).collect();
    assert_eq!(kinds, here.iter().copied().collect::<BTreeSet<_>>());
    assert_eq!(kinds.len(), here.len(), "one each");
}

impl dyn OfAnyKind + '_ {
    /// The queue of its reader.
    fn queue(&self) -> String {
        let (id, spec) = (self.processor().id, self.spec().name);
        format!("{id}--w--{FLOW}--{spec}")
    }

    /// What its topic begins with, between its class and its workspace.
    fn base(&self) -> String {
        match self.spec().place {
            TopicScope::Own => self.spec().name.to_owned(),
            _ => format!("of-{}", self.processor().id),
        }
    }

    /// A record of the release before this one: with a field that this one does not know.
    fn of_the_release_before(&self) -> Written {
        let (schema, body) = self.written();
        Written::with_one_more(schema, body)
    }

    /// A record of the release before that one: without the last field whose default is written as one byte too, and
    /// all that follow it.
    fn of_the_first_release(&self) -> Written {
        let (mut schema, mut body) = self.written();
        let defaults = self.fields();
        let fields = schema["fields"].as_array_mut().unwrap();
        let last = fields.pop().unwrap();
        let name = last["name"].as_str().unwrap();
        let default = defaults.get(name).unwrap_or(&Value::Null);
        let is_one_byte = match default {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(all) => all.is_empty(),
            Value::Object(all) => all.is_empty(),
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Bool(true) => false,
        };
        assert!(is_one_byte, "{}: {name} is {default}", self.spec().message);
        assert_eq!(body.pop(), Some(0), "{}: {name}", self.spec().message);
        Written::with_one_more(schema, body)
    }
}

/// A record of another release.
struct Written {
    /// JSON text of its schema.
    schema: String,
    /// What the schema is kept under.
    fingerprint: String,
    body: Vec<u8>,
}

impl Written {
    /// In a schema of its own: one that was read once is known to the whole process.
    fn with_one_more(mut schema: Value, body: Vec<u8>) -> Self {
        static RELEASES: AtomicUsize = AtomicUsize::new(0);
        let name = format!("region_{}", RELEASES.fetch_add(1, Ordering::Relaxed));
        let more = json!({"name": name, "type": "string", "default": ""});
        schema["fields"].as_array_mut().unwrap().insert(0, more);
        let schema = schema.to_string();
        let mark = Schema::parse_str(&schema).unwrap();
        let mark = mark.fingerprint::<Rabin>().bytes;
        Self {
            fingerprint: mark.iter().map(|byte| format!("{byte:02x}")).collect(),
            body: [&[0xC3, 0x01], &*mark, b"\x04eu", &*body].concat(),
            schema,
        }
    }

    fn keep(&self, world: &World) {
        let (workspace, kind) = (records::WORKSPACE, records::TYPE);
        world
            .config
            .set(workspace, kind, &self.fingerprint, &self.schema);
    }
}

/// A flow of all the readers, whatever they write or ask besides.
fn blueprint(readers: &[Box<dyn OfAnyKind>]) -> Value {
    let entry = |one: &dyn OfAnyKind| {
        let topic = format!("flow:tg:{}:{{workspace}}:{{id}}", one.base());
        let topics = match one.spec().place {
            TopicScope::Flow => json!({one.spec().name: topic}),
            // The mesh adds it.
            _ => json!({}),
        };
        let name = format!("{}:{{id}}", one.processor().id);
        (name, json!({"topics": topics}))
    };
    let entries: Map<String, Value> = readers.iter().map(|one| entry(&**one)).collect();
    json!({"flow": entries, "interfaces": {}})
}

/// How many dead letters of a reader there are for a reason.
fn of_reason(listed: &Value, queue: &str, reason: &str) -> usize {
    let all = listed.as_array().into_iter().flatten();
    all.filter(|one| one["subscription"] == queue && one["reason"] == reason)
        .count()
}

/// A process with all the readers.
async fn process(world: &World, readers: &[Box<dyn OfAnyKind>]) -> Process {
    let process = world.process(None).await;
    for one in readers {
        process.mesh.host(one.host()).await.unwrap();
    }
    process
}

async fn publish(process: &Process, to: &dyn OfAnyKind, body: &[u8], headers: Headers) {
    let envelope = Envelope {
        headers: Arc::new(headers),
        content_type: ContentType::Avro,
        body: body.to_vec().into(),
        ..Envelope::default()
    };
    let to = Target::Topic(topic_of("w", FLOW, Class::Flow, &to.base()));
    let bus = process.mesh.bus();
    let sent = bus.publish(&to, envelope, PublishMode::Confirmed).await;
    sent.unwrap();
}

/// Waits until each reader has so many dead letters, by reason. Retractions have more readers than those here, whose
/// records are not looked at.
async fn until_aside(process: &Process, readers: &[Box<dyn OfAnyKind>], wanted: [usize; 4]) {
    let reasons = ["stale", "retry", "parked", "dead"];
    let end = Instant::now() + WAIT;
    for one in readers {
        let queue = one.queue();
        loop {
            let listed = process.dead_letter("list-put-aside", FLOW, &[]).await;
            let counts = reasons.map(|reason| of_reason(&listed, &queue, reason));
            if counts == wanted {
                break;
            }
            assert!(Instant::now() < end, "{queue}: {counts:?} of {wanted:?}");
        }
    }
}

async fn no_record_of_any_kind_is_lost(place: Place) {
    let world = World::new(place);
    let readers = readers();
    let text = blueprint(&readers).to_string();
    world.config.set("w", "flow-blueprint", "all", &text);

    // The first upgrade. The first release ran here; one of the second writes already, whose schema nobody has kept.
    let at_first = process(&world, &readers).await;
    at_first.start_with(FLOW, "all", &[]).await.unwrap();
    let mut later = Vec::new();
    for one in &readers {
        let (first, second) = (one.of_the_first_release(), one.of_the_release_before());
        first.keep(&world);
        for _ in 0..COUNT {
            let before = Headers {
                epoch: Some(u64::MAX >> 12),
                ..Headers::default()
            };
            publish(&at_first, &**one, &first.body, before).await;
            publish(&at_first, &**one, &second.body, Headers::default()).await;
        }
        later.push(second);
    }
    until_aside(&at_first, &readers, [COUNT, COUNT, 0, 0]).await;
    at_first.stop_flow(FLOW, "park").await.unwrap();
    until_aside(&at_first, &readers, [COUNT, 0, COUNT, 0]).await;
    for one in &readers {
        one.until_read(0).await;
    }
    at_first.stop().await;

    // The second, of a release that keeps its schemas. Nothing happens by itself: the flow does not run.
    later.iter().for_each(|one| one.keep(&world));
    let then = process(&world, &readers).await;
    until_aside(&then, &readers, [COUNT, 0, COUNT, 0]).await;
    then.start_with(FLOW, "all", &[]).await.unwrap();
    then.dead_letter("replay-put-aside", FLOW, &[("limit", "1000")])
        .await;
    for one in &readers {
        one.until_read(2 * COUNT).await;
    }
    until_aside(&then, &readers, [0; 4]).await;
    then.stop().await;
}

tg_testkit::on_both_buses!(no_record_of_any_kind_is_lost,);
