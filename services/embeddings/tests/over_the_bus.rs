//! The processors as others meet them: texts in, vectors out, many records to a question; a failure is
//! tried again, and what is wrong holds up nobody else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tg_clients::model_calls::{RESERVE, SETTLE};
use tg_embeddings::{Options, ProviderKind};
use tg_mesh::{Ask, Processor};
use tg_runs::JobId;
use tg_schemas::limits::EMBEDDED_TEXT;
use tg_schemas::msg::{
    Chunk, DocumentEmbeddings, EmbeddingsRequest, EmbeddingsResponse, EntityContext,
    EntityContexts, ExtractedObject, GraphEmbeddings, Metadata, RowEmbeddings, RunTallyEntry,
    UsageRequest, UsageResponse,
};
use tg_schemas::processors::{self, ProcessorSpec, agent_manager};
use tg_schemas::{Class, CountedBy, Error, ErrorCode, Term};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Embeddings, Played, RecordingConsumer};
use tg_testkit::flow::{TestFlow, Wiring, topic};
use tg_testkit::model::{Reply as Says, Rule, ScriptedModel};
use tg_testkit::place::Place;

const STAGE: &[(&str, Class, &str)] = &[
    ("input", Class::Flow, "chunk-load"),
    ("output", Class::Flow, "document-embeddings-store"),
    ("embeddings-request", Class::Request, "embeddings"),
];
const WIRING: &[Wiring] = &[
    ("embeddings", &[("request", Class::Request, "embeddings")]),
    ("document-embeddings", STAGE),
    (
        "keep-chunks",
        &[("input", Class::Flow, "document-embeddings-store")],
    ),
    (
        "graph-embeddings",
        &[
            ("input", Class::Flow, "entity-contexts-load"),
            ("output", Class::Flow, "graph-embeddings-store"),
            ("embeddings-request", Class::Request, "embeddings"),
        ],
    ),
    (
        "keep-entities",
        &[("input", Class::Flow, "graph-embeddings-store")],
    ),
    (
        "row-embeddings",
        &[
            ("input", Class::Flow, "rows-store"),
            ("output", Class::Flow, "row-embeddings-store"),
            ("embeddings-request", Class::Request, "embeddings"),
        ],
    ),
    (
        "keep-rows",
        &[("input", Class::Flow, "row-embeddings-store")],
    ),
];

/// Plays the embeddings service: the vector of a text is its length.
fn lengths() -> Arc<Embeddings> {
    Embeddings::new("lengths/1", |text| vec![text.len() as f32])
}

struct System {
    flow: TestFlow,
    chunks: Arc<RecordingConsumer<DocumentEmbeddings>>,
    entities: Arc<RecordingConsumer<GraphEmbeddings>>,
    rows: Arc<RecordingConsumer<RowEmbeddings>>,
}

impl System {
    /// With the service's own `embeddings`, or one that plays it.
    async fn start(place: &Place, played: Option<Arc<Embeddings>>, parameters: Value) -> Self {
        let config = Config::new();
        let people = r#"{"vector-indexes":["name","city"],"fields":[]}"#;
        config.put("schema", "people", people);
        let (chunks, entities, rows) = (
            RecordingConsumer::new(),
            RecordingConsumer::new(),
            RecordingConsumer::new(),
        );
        let kept = (chunks.clone(), entities.clone(), rows.clone());
        let host = |mesh: &_| {
            // The last one is `embeddings`.
            let mut own = tg_embeddings::processors(mesh, Options::default()).unwrap();
            if let Some(played) = played {
                own.pop();
                own.push(
                    Processor::new(processors::embeddings::PROCESSOR)
                        .serves(processors::embeddings::REQUEST, played),
                );
            }
            own.push(
                Processor::new(ProcessorSpec::unlisted("keep-chunks"))
                    .reads(processors::doc_embeddings_write::INPUT, kept.0),
            );
            own.push(
                Processor::new(ProcessorSpec::unlisted("keep-entities"))
                    .reads(processors::graph_embeddings_write::INPUT, kept.1),
            );
            own.push(
                Processor::new(ProcessorSpec::unlisted("keep-rows"))
                    .reads(processors::row_embeddings_write::INPUT, kept.2),
            );
            own
        };
        Self {
            flow: TestFlow::start_with(place, config, WIRING, parameters, host).await,
            chunks,
            entities,
            rows,
        }
    }

    async fn embed(&self, texts: &[&str]) -> Result<EmbeddingsResponse, Error> {
        let question = EmbeddingsRequest {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            ..EmbeddingsRequest::default()
        };
        self.flow.ask("embeddings", &question).await
    }
}

fn metadata(id: &str) -> Option<Metadata> {
    Some(Metadata {
        id: id.to_owned(),
        root: "urn:doc".to_owned(),
        collection: "c".to_owned(),
    })
}

fn chunk(id: &str, text: &str) -> Chunk {
    Chunk {
        metadata: metadata(id),
        chunk: text.to_owned(),
        document_id: id.to_owned(),
        ..Chunk::default()
    }
}

/// Chunk ids with the first number of their vectors.
fn pairs(records: &[DocumentEmbeddings]) -> BTreeMap<String, f32> {
    let chunks = records.iter().flat_map(|record| &record.chunks);
    chunks
        .map(|chunk| (chunk.chunk_id.clone(), chunk.vector[0]))
        .collect()
}

async fn questions_are_answered_with_the_model(place: Place) {
    let system = System::start(&place, None, json!({})).await;
    let answer = system.embed(&["a pump", "a boiler"]).await.unwrap();
    assert_eq!(
        (answer.model.as_str(), answer.vectors.len()),
        ("lexical/1024", 2)
    );
    let none = system.embed(&[]).await.unwrap();
    assert_eq!(
        (none.model.as_str(), none.vectors.len()),
        ("lexical/1024", 0)
    );
    let other = System::start(&place.another().await, None, json!({"model": "elsewhere"})).await;
    let refused = other.embed(&["x"]).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BadRequest);
}

async fn many_chunks_share_questions_and_records(place: Place) {
    let played = lengths();
    let system = System::start(&place, Some(played.clone()), json!({})).await;
    let to = topic(Class::Flow, "chunk-load");
    let run = JobId::new(0, "default", "p");
    let mut writes = Vec::new();
    for n in 0..200 {
        let record = chunk(&format!("k{n}"), &"x".repeat(n % 150 + 1));
        let options = system.flow.in_run(&run, &format!("r{n}"));
        let (mesh, to) = (system.flow.mesh.clone(), to.clone());
        writes.push(async move { mesh.record(&to, &record, options).await.unwrap() });
    }
    futures::future::join_all(writes).await;
    let done = |records: &[DocumentEmbeddings]| pairs(records).len() == 200;
    let records = system.chunks.until(done).await;
    let found = pairs(&records);
    assert!((0..200).all(|n| found[&format!("k{n}")] == (n % 150 + 1) as f32));
    assert!(
        records.len() < 50,
        "{} records for 200 chunks",
        records.len()
    );
    assert!(records.iter().all(|record| record.model == "lengths/1"));
    let questions = played.questions.load(Ordering::SeqCst);
    assert!(questions < 50, "{questions} questions for 200 chunks");
    // Of the run, every chunk is told of once, and every record of outcome by one of them.
    let told = system.flow.told(|told| of_stage(told).len() == 200).await;
    let entries = of_stage(&told);
    assert!(
        entries
            .iter()
            .all(|entry| entry.outcome == "ok" && entry.subject.starts_with('k'))
    );
    let written: usize = entries.iter().map(|entry| entry.written.len()).sum();
    assert_eq!(written, records.len());
}

fn of_stage(told: &[RunTallyEntry]) -> Vec<&RunTallyEntry> {
    let own = told
        .iter()
        .filter(|entry| entry.subscription.starts_with("document-embeddings--"));
    own.collect()
}

async fn a_failure_is_tried_again_and_never_an_empty_vector(place: Place) {
    let played = lengths();
    played.down.store(true, Ordering::SeqCst);
    let system = System::start(&place, Some(played.clone()), json!({})).await;
    system.flow.write("chunk-load", &chunk("k", "text")).await;
    let aside = system.flow.dead_letter().await;
    assert_eq!(
        (aside.reason.as_str(), aside.detail.as_str()),
        ("retry", "out of order")
    );
    assert!(system.chunks.count() == 0);
    played.down.store(false, Ordering::SeqCst);
    system.flow.write("chunk-load", &chunk("k", "text")).await;
    system
        .chunks
        .until(|records| pairs(records).get("k") == Some(&4.0))
        .await;
}

async fn a_bad_text_holds_up_nobody_else(place: Place) {
    let played = lengths();
    let system = System::start(&place, Some(played), json!({})).await;
    let to = topic(Class::Flow, "chunk-load");
    let records = (0..20).map(|n| match n {
        7 => chunk("bad", "poison"),
        8 => chunk("blank", " \n"),
        _ => chunk(&format!("k{n}"), "text"),
    });
    let records: Vec<Chunk> = records.collect();
    let writes = records
        .iter()
        .map(|record| system.flow.mesh.record(&to, record, system.flow.options()));
    for written in futures::future::join_all(writes).await {
        written.unwrap();
    }
    let records = system
        .chunks
        .until(|records| pairs(records).len() == 18)
        .await;
    assert!(!pairs(&records).contains_key("bad") && !pairs(&records).contains_key("blank"));
    let aside = system.flow.dead_letter().await;
    assert_eq!(
        (aside.reason.as_str(), aside.detail.as_str()),
        ("dead", "texts: too long")
    );
}

async fn entities_keep_what_is_known_of_them(place: Place) {
    let system = System::start(&place, Some(lengths()), json!({})).await;
    let context = |entity: Option<Term>, context: &str| EntityContext {
        entity,
        context: context.to_owned(),
        rdf_type: vec!["urn:T".to_owned()],
        ..EntityContext::default()
    };
    let record = EntityContexts {
        metadata: metadata("urn:chunk:1"),
        entities: vec![
            context(Some(Term::iri("urn:e")), "said"),
            context(None, "of nobody"),
            context(Some(Term::literal("e")), ""),
            context(Some(Term::literal("e")), "said"),
            context(None, "of nobody"),
            context(Some(Term::iri("urn:long")), &"x".repeat(EMBEDDED_TEXT + 1)),
        ],
    };
    system.flow.write("entity-contexts-load", &record).await;
    let records = system.entities.until(|records| !records.is_empty()).await;
    let entities = &records[0].entities;
    assert_eq!(entities.len(), 2);
    assert_eq!(entities[0].entity, Some(Term::iri("urn:e")));
    assert_eq!(entities[1].entity, Some(Term::literal("e")));
    assert!(
        entities
            .iter()
            .all(|one| one.vector == [4.0] && one.chunk_id == "urn:chunk:1")
    );
    assert_eq!(entities[0].rdf_type, ["urn:T"]);
    let aside = system.flow.dead_letter().await;
    let each = "entities[1].entity: is required; entities[4].entity: is required; entities[5].context: is longer than \
                1048576 bytes";
    assert_eq!(aside.detail, each);
}

async fn rows_are_embedded_by_the_indexes_of_their_schema(place: Place) {
    let system = System::start(&place, Some(lengths()), json!({})).await;
    let row = |name: &str, city: &str| {
        let pairs = [("name", name), ("city", city)];
        pairs
            .map(|(field, value)| (field.to_owned(), value.to_owned()))
            .into()
    };
    let record = |schema: &str| ExtractedObject {
        metadata: metadata("urn:chunk:1"),
        schema_name: schema.to_owned(),
        values: vec![
            row("Vienna", "Vienna"),
            row("Ann", "Vienna"),
            row("", "Graz"),
        ],
        ..ExtractedObject::default()
    };
    system.flow.write("rows-store", &record("people")).await;
    let records = system.rows.until(|records| !records.is_empty()).await;
    let found: Vec<_> = records[0]
        .embeddings
        .iter()
        .map(|one| (one.index_name.as_str(), one.text.as_str(), one.vector[0]))
        .collect();
    let wanted = [
        ("name", "Vienna", 6.0),
        ("name", "Ann", 3.0),
        ("city", "Vienna", 6.0),
        ("city", "Graz", 4.0),
    ];
    assert_eq!(found, wanted);
    assert_eq!(records[0].schema_name, "people");
    system.flow.write("rows-store", &record("nobody")).await;
    let aside = system.flow.dead_letter().await;
    assert_eq!(aside.reason, "retry");
    assert!(
        aside
            .detail
            .starts_with("schema_name: this workspace has no such schema")
    );
}

async fn a_chunk_is_embedded_below_where_it_stands(place: Place) {
    let played = lengths();
    let system = System::start(&place, Some(played.clone()), json!({})).await;
    let record = Chunk {
        context: "Guide > Lamps\nname;price".to_owned(),
        ..chunk("k", "text")
    };
    system.flow.write("chunk-load", &record).await;
    system
        .chunks
        .until(|records| pairs(records).len() == 1)
        .await;
    let asked = played.texts.lock().concat();
    assert_eq!(asked, ["(Guide > Lamps; columns: name;price)\ntext"]);
}

/// What a server is asked is reserved, refused and counted by the agent's ledger, as calls of other models are.
async fn what_a_server_is_asked_counts_in_the_budgets(place: Place) {
    let server = ScriptedModel::start(vec![Rule::always(Says::text("-"))]);
    let server = server.await.unwrap();
    let refuses = Arc::new(AtomicBool::new(false));
    let over = refuses.clone();
    let ledger = Played::new(move |_, ask: UsageRequest| {
        let refused = ask.operation == RESERVE && over.load(Ordering::SeqCst);
        Ok(UsageResponse {
            bound: true,
            refused: if refused { "it is used up" } else { "" }.to_owned(),
            retry_after: 60,
            ..UsageResponse::default()
        })
    });
    let options = Options {
        provider: ProviderKind::OpenAi,
        url: Some(server.url()),
        ..Options::default()
    };
    let played = ledger.clone();
    let host = |mesh: &_| {
        let mut own = tg_embeddings::processors(mesh, options).unwrap();
        let agent = Processor::new(agent_manager::PROCESSOR);
        own.push(agent.serves(agent_manager::USAGE_TOTALS, played));
        own
    };
    let parameters = json!({"model": "chosen"});
    let flow = TestFlow::start_with(&place, Config::new(), &WIRING[..1], parameters, host).await;
    let is_hosted = async || flow.mesh.presence().hosted(agent_manager::PROCESSOR.id);
    flow.until(is_hosted).await;
    let text = "x".repeat(400);
    let question = EmbeddingsRequest {
        texts: vec![text.clone(), "y".repeat(40)],
        ..EmbeddingsRequest::default()
    };
    let calls = |operation: &str| {
        let asked = ledger.asked.lock();
        let asked = asked.iter().filter(|ask| ask.operation == operation);
        asked.flat_map(|ask| ask.calls.clone()).collect::<Vec<_>>()
    };
    let made: EmbeddingsResponse = flow.ask("embeddings", &question).await.unwrap();
    assert_eq!(made.model, "openai/chosen/2");
    flow.until(async || calls(SETTLE).len() == 1).await;
    let (reserved, settled) = (calls(RESERVE).remove(0), calls(SETTLE).remove(0));
    assert_eq!((reserved.in_token, reserved.out_token), (110, 0));
    assert_eq!(
        (
            settled.model.as_str(),
            settled.in_token,
            settled.of.as_str()
        ),
        ("chosen", 110, "direct")
    );
    // What is known takes nothing.
    let again: EmbeddingsResponse = flow.ask("embeddings", &question).await.unwrap();
    assert_eq!(again.vectors, made.vectors);
    flow.until(async || calls(SETTLE).len() == 2).await;
    assert_eq!(calls(SETTLE)[1].in_token, 0);
    refuses.store(true, Ordering::SeqCst);
    let asked = server.calls().len();
    let refused: Result<EmbeddingsResponse, Error> = flow.ask("embeddings", &question).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Busy);
    // What is asked for a record is never refused.
    let to = topic(Class::Request, "embeddings");
    let ask = Ask {
        counted: Some(CountedBy::Record),
        ..flow.options()
    };
    let other = EmbeddingsRequest {
        texts: vec![text + "z"],
        ..EmbeddingsRequest::default()
    };
    let made = flow
        .mesh
        .ask::<_, EmbeddingsResponse>(&to, &other, ask)
        .last();
    made.await.unwrap();
    flow.until(async || calls(SETTLE).len() == 3).await;
    assert_eq!(calls(SETTLE)[2].of, "documents");
    assert_eq!((calls(RESERVE).len(), server.calls().len()), (3, asked + 1));
}

tg_testkit::on_both_buses!(
    what_a_server_is_asked_counts_in_the_budgets,
    a_chunk_is_embedded_below_where_it_stands,
    questions_are_answered_with_the_model,
    many_chunks_share_questions_and_records,
    a_failure_is_tried_again_and_never_an_empty_vector,
    a_bad_text_holds_up_nobody_else,
    entities_keep_what_is_known_of_them,
    rows_are_embedded_by_the_indexes_of_their_schema,
);
