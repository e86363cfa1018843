//! What was on the way for a workspace or a collection when it was deleted, and comes after another of its name was
//! made, changes nothing in any store: neither a retraction, nor a write, nor a text for the library; and no model is asked
//! for it. The same records of the workspace that is there do what they say.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_schemas::Headers;
use tg_schemas::msg::{
    Chunk, DocumentEmbeddings, ExtractedObject, GraphEmbeddings, LibraryTexts, Retract,
    RowEmbeddings, Triples,
};
use tg_testkit::outside::{Sent, config_row, publish, record};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::shared_node::VirtualHost;

use crate::disabling_keeps_everything::replies;
use crate::poison_is_dead_lettered_once::counted;
use crate::workspaces::{iam, make, patiently};
use crate::world::{Bus, post};

const BOUND: Duration = Duration::from_secs(60);
const TEXT: &str = "urn:text:late";
/// A word of the chunk that came late.
const WORD: &str = "quillfern";
const VECTOR: [f64; 3] = [0.5, -0.25, 1.0];
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps", "fields": [
    {"name": "id", "type": "integer", "primary_key": true}, {"name": "maker", "type": "string"}]}"#;

/// How much each store has.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    literals: Vec<String>,
    entities: usize,
    chunks: usize,
    rows: usize,
    row_vectors: usize,
    words: usize,
    /// Ids of the graph cores of the workspace. A core keeps what it was given: no retraction takes from it.
    cores: Vec<String>,
}

impl Seen {
    /// As much of each chunk in the stores that are filled, and the cores of those that came.
    pub fn of(chunks: &[usize], cores: &[usize]) -> Self {
        Self {
            literals: chunks.iter().map(|n| format!("mine {n}")).collect(),
            entities: chunks.len(),
            chunks: chunks.len(),
            rows: chunks.len(),
            cores: cores.iter().map(|n| format!("urn:chunk:{n}")).collect(),
            ..Self::default()
        }
    }

    /// Whether there is something in every store.
    fn is_everywhere(&self) -> bool {
        let vectors = [self.entities, self.chunks, self.row_vectors];
        let all = [self.literals.len(), self.rows, self.words];
        vectors.iter().chain(&all).all(|count| *count > 0)
    }
}

/// A collection of a workspace.
pub struct WorkspaceCollection(pub &'static str, pub &'static str);

impl WorkspaceCollection {
    async fn ask(&self, url: &str, service: &str, mut ask: Value, at: &str) -> Result<Vec<Value>> {
        ask["workspace"] = json!(self.0);
        ask["collection"] = json!(self.1);
        let path = format!("api/v1/flow/default/service/{service}");
        let told = patiently(url, &path, ask).await?;
        let all = told.pointer(at).and_then(Value::as_array);
        Ok(all.with_context(|| format!("{service}: {told}"))?.clone())
    }

    pub async fn seen(&self, url: &str) -> Result<Seen> {
        let near = json!({"vector": VECTOR, "limit": 5});
        let some = json!({"limit": 10});
        let query = json!({"query": "{ lamps { id } }"});
        let triples = self.ask(url, "triples", some, "/response").await?;
        let literals = triples
            .iter()
            .filter_map(|triple| triple["o"]["v"].as_str());
        let mut literals: Vec<_> = literals.map(str::to_owned).collect();
        literals.sort();
        let entities = self.ask(url, "graph-embeddings", near.clone(), "/entities");
        let chunks = self.ask(url, "document-embeddings", near, "/chunks");
        let of_rows = json!({"vector": VECTOR, "limit": 5, "schema_name": "lamps"});
        let row_vectors = self.ask(url, "row-embeddings", of_rows, "/matches");
        let words = json!({"query": WORD, "limit": 5});
        let words = self.ask(url, "keyword-index", words, "/chunks");
        Ok(Seen {
            cores: self.cores(url).await?,
            literals,
            entities: entities.await?.len(),
            chunks: chunks.await?.len(),
            rows: self.ask(url, "rows", query, "/data/lamps").await?.len(),
            row_vectors: row_vectors.await?.len(),
            words: words.await?.len(),
        })
    }

    /// Ids of the graph cores of the workspace, in order.
    async fn cores(&self, url: &str) -> Result<Vec<String>> {
        let ask = json!({"operation": "list-kg-cores", "workspace": self.0});
        let told = patiently(url, "api/v1/knowledge", ask).await?;
        let ids = told["ids"].as_array();
        let ids = ids.with_context(|| format!("knowledge: {told}"))?.iter();
        let mut ids: Vec<_> = ids.filter_map(Value::as_str).map(str::to_owned).collect();
        ids.sort();
        Ok(ids)
    }

    pub async fn until(&self, server: &Server, wanted: &Seen) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let seen = self.seen(&server.url()).await?;
            if seen == *wanted {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "{seen:?} instead of {wanted:?}\n{}",
                server.log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// That is seen a while later, and nobody asked a model.
    async fn is_unchanged(&self, server: &Server, wanted: &Seen) -> Result<()> {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = self.seen(&server.url()).await?;
        ensure!(now == *wanted, "{now:?} instead of {wanted:?}");
        let (paid, free) = replies(&server.url()).await?;
        ensure!(paid + free == 0.0, "{paid} replies, {free} kept ones");
        Ok(())
    }

    /// Waits until every store has what was written, and extractors have worked with its text.
    async fn until_late(&self, server: &Server) -> Result<()> {
        let end = Instant::now() + BOUND;
        let has = |all: &[String], one: &str| all.iter().any(|had| had == one);
        loop {
            let seen = self.seen(&server.url()).await?;
            let (paid, free) = replies(&server.url()).await?;
            let late = has(&seen.literals, "late") && has(&seen.cores, "urn:late");
            if seen.is_everywhere() && late && paid + free > 0.0 {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "{seen:?}, {paid} replies\n{}",
                server.log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The schema of the rows is known.
    pub async fn prepare(&self, url: &str) -> Result<()> {
        let schema = json!({"operation": "put", "workspace": self.0,
            "values": [{"type": "schema", "key": "lamps", "value": SCHEMA}]});
        let (status, told) = post(url, "api/v1/config", schema).await?;
        ensure!(status == 200, "{told}");
        let end = Instant::now() + BOUND;
        let query = json!({"query": "{ lamps { id } }"});
        while let Err(told) = self.ask(url, "rows", query.clone(), "/data/lamps").await {
            ensure!(Instant::now() < end, "{told}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Something of a chunk in every store.
    pub async fn fill(&self, url: &str, number: usize) -> Result<()> {
        let chunk = format!("urn:chunk:{number}");
        let metadata = json!({"id": chunk, "collection": self.1});
        let iri = |text: &str| json!({"t": "i", "i": text});
        let value = json!({"t": "l", "v": format!("mine {number}")});
        let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": value});
        let entity = iri(&format!("urn:e:{number}"));
        let entity = json!({"entity": entity, "vector": VECTOR, "chunk_id": chunk});
        let vector = json!({"chunk_id": chunk, "vector": VECTOR});
        let rows = json!({"id": format!("{chunk}:lamps"), "collection": self.1});
        let row = json!({"id": number.to_string(), "maker": "frask"});
        for (kind, frame) in [
            (
                "triples",
                json!({"metadata": metadata, "triples": [triple]}),
            ),
            (
                "graph-embeddings",
                json!({"metadata": metadata, "entities": [entity]}),
            ),
            (
                "document-embeddings",
                json!({"metadata": metadata, "chunks": [vector]}),
            ),
            (
                "rows",
                json!({"metadata": rows, "schema_name": "lamps", "values": [row]}),
            ),
        ] {
            let workspace = self.0;
            let url = format!("{url}api/v1/flow/default/import/{kind}?workspace={workspace}");
            let sent = client()?.post(url).body(format!("{frame}\n")).send();
            let told: Value = sent.await?.json().await?;
            ensure!(told["sent"] == 1, "{kind}: {told}");
        }
        Ok(())
    }

    /// A retraction of all that came from a chunk.
    fn retraction(&self, number: usize, headers: Headers) -> Result<Sent> {
        let chunk = format!("urn:chunk:{number}");
        let iri = |text: &str| json!({"type": "i", "iri": text});
        let value = json!({"type": "l", "value": format!("mine {number}")});
        let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": value});
        let what: Retract = serde_json::from_value(json!({
            "metadata": {"id": chunk, "root": "", "collection": self.1},
            "chunks": [chunk], "triples": [triple],
        }))?;
        record(
            &format!("flow:tg:retract:{}:default", self.0),
            headers,
            &what,
        )
    }
}

/// Whether the library has the text that came late.
async fn has_text(url: &str) -> Result<bool> {
    let ask =
        json!({"operation": "get-document-metadata", "workspace": "acme", "document-id": TEXT});
    let (_, told) = post(url, "api/v1/librarian", ask).await?;
    let text = told["document-metadata"]["id"] == TEXT;
    ensure!(text || told["error"]["type"] == "not-found", "{told}");
    Ok(text)
}

/// A text for the library, in a generation of the workspace.
fn text(generation: i64) -> Result<Sent> {
    let texts: LibraryTexts = serde_json::from_value(json!({
        "workspace": "acme", "texts": [{"id": TEXT, "title": "t", "time": 1, "text": "x"}],
    }))?;
    record("flow:tg:library-texts", of(generation), &texts)
}

/// Something for every store that reads records.
fn writes(place: &WorkspaceCollection, headers: &Headers) -> Result<Vec<Sent>> {
    let iri = |text: &str| json!({"type": "i", "iri": text});
    let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": {"type": "l", "value": "late"}});
    let metadata = json!({"id": "urn:late", "root": "", "collection": place.1});
    let triples: Triples =
        serde_json::from_value(json!({"metadata": metadata, "triples": [triple]}))?;
    let entity = json!({"entity": iri("urn:e:late"), "vector": VECTOR, "chunk_id": "urn:late"});
    let entities: GraphEmbeddings =
        serde_json::from_value(json!({"metadata": metadata, "entities": [entity]}))?;
    let vector = json!({"chunk_id": "urn:late", "vector": VECTOR});
    let chunks: DocumentEmbeddings =
        serde_json::from_value(json!({"metadata": metadata, "chunks": [vector]}))?;
    let row = json!({"id": "9", "maker": "late"});
    let rows: ExtractedObject = serde_json::from_value(
        json!({"metadata": metadata, "schema_name": "lamps", "values": [row], "confidence": 1.0}),
    )?;
    let vector = json!({"index_name": "maker", "index_value": ["late"], "text": "late",
        "vector": VECTOR});
    let row_vectors: RowEmbeddings = serde_json::from_value(
        json!({"metadata": metadata, "schema_name": "lamps", "embeddings": [vector]}),
    )?;
    let chunk: Chunk = serde_json::from_value(
        json!({"metadata": metadata, "chunk": WORD, "document_id": "urn:late"}),
    )?;
    let (to, by) = (
        |topic| format!("flow:tg:{topic}:{}:default", place.0),
        || headers.clone(),
    );
    Ok(vec![
        record(&to("triples-store"), by(), &triples)?,
        record(&to("graph-embeddings-store"), by(), &entities)?,
        record(&to("document-embeddings-store"), by(), &chunks)?,
        record(&to("rows-store"), by(), &rows)?,
        record(&to("row-embeddings-store"), by(), &row_vectors)?,
        record(&to("chunk-load"), by(), &chunk)?,
    ])
}

fn of(generation: i64) -> Headers {
    Headers {
        workspace: Some("acme".to_owned()),
        generation: Some(generation),
        ..Headers::default()
    }
}

/// The generation of the workspace of a stopped system.
fn generation(data: &Path) -> Result<i64> {
    let row = config_row(data, "__workspaces__", "workspace", "acme")?;
    let row: Value = serde_json::from_str(&row.context("no such workspace")?)?;
    row["generation"].as_i64().with_context(|| row.to_string())
}

/// Retractions for the graph, three kinds of vectors, words and rows; what is written to each of those; triples and vectors
/// of entities for cores, rows for whoever makes their vectors; the chunk for two extractors and whoever makes its vectors.
const DROPPED: f64 = 6.0 + 6.0 + 3.0 + 3.0;

/// The same of a collection: vectors of rows are made, and dropped in their turn. For the chunk nobody asks a model.
const DROPPED_BY_STORES: f64 = 6.0 + 6.0 + 3.0;

/// Waits until as many records were dropped because what they were for has ended.
async fn dropped(server: &Server, what: &str, count: f64) -> Result<()> {
    let name = format!("tg_records_of_ended_{what}_total");
    let end = Instant::now() + BOUND;
    loop {
        let seen = counted(server, &name).await?;
        if seen >= count {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{seen} instead of {count}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A system that can be stopped and started.
struct System {
    node: Option<VirtualHost>,
    folder: tempfile::TempDir,
}

impl System {
    async fn new(bus: Bus) -> Result<Self> {
        Ok(Self {
            node: bus.broker().await?,
            folder: tempfile::tempdir()?,
        })
    }

    async fn start(&self) -> Result<Server> {
        let launch = Launch::up().data(self.folder.path());
        launch.over(self.node.as_ref()).ready().await
    }

    async fn publish(&self, all: Vec<Sent>) -> Result<()> {
        let broker = self.node.as_ref().map(VirtualHost::url);
        publish(broker.as_deref(), self.folder.path(), all).await
    }
}

async fn of_a_workspace(bus: Bus) -> Result<()> {
    let system = System::new(bus).await?;
    let place = WorkspaceCollection("acme", "default");
    let server = system.start().await?;
    make(&server.url(), "acme").await?;
    server.terminate().await?;
    let old = generation(system.folder.path())?;

    let server = system.start().await?;
    iam(&server.url(), "delete-workspace", "acme").await?;
    make(&server.url(), "acme").await?;
    place.prepare(&server.url()).await?;
    place.fill(&server.url(), 1).await?;
    let all = Seen::of(&[1], &[1]);
    place.until(&server, &all).await?;
    server.terminate().await?;
    let new = generation(system.folder.path())?;
    ensure!(old < new, "{old}, {new}");

    let mut records = writes(&place, &of(old))?;
    records.extend([text(old)?, place.retraction(1, of(old))?]);
    system.publish(records).await?;
    let server = system.start().await?;
    dropped(&server, "workspaces", DROPPED).await?;
    place.is_unchanged(&server, &all).await?;
    ensure!(
        !has_text(&server.url()).await?,
        "the text is in the library"
    );
    server.terminate().await?;

    // The same in the present generation is done.
    system.publish(vec![place.retraction(1, of(new))?]).await?;
    let server = system.start().await?;
    place.until(&server, &Seen::of(&[], &[1])).await?;
    server.terminate().await?;
    let mut records = writes(&place, &of(new))?;
    records.push(text(new)?);
    system.publish(records).await?;
    let server = system.start().await?;
    place.until_late(&server).await?;
    let end = Instant::now() + BOUND;
    while !has_text(&server.url()).await? {
        ensure!(Instant::now() < end, "no text");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The generation of the collection of a stopped system.
fn generation_in(system: &System, place: &WorkspaceCollection) -> Result<i64> {
    let row = config_row(system.folder.path(), place.0, "collection", place.1)?;
    let row: Value = serde_json::from_str(&row.context("no such collection")?)?;
    Ok(row["incarnation"].as_i64().unwrap_or_default())
}

async fn collections(server: &Server, operation: &str, place: &WorkspaceCollection) -> Result<()> {
    let ask = json!({"operation": operation, "workspace": place.0, "collection": place.1});
    patiently(&server.url(), "api/v1/collection-management", ask).await?;
    Ok(())
}

/// Of a run that began when the collection had another life, or sent then: a retraction and writes come late. Those of a
/// present run, and what was sent for the collection that is there, are done, as is what does not say for which.
async fn of_a_collection(bus: Bus) -> Result<()> {
    let system = System::new(bus).await?;
    let place = WorkspaceCollection("default", "docs");
    let server = system.start().await?;
    collections(&server, "update-collection", &place).await?;
    server.terminate().await?;
    let old = generation_in(&system, &place)?;

    let server = system.start().await?;
    collections(&server, "delete-collection", &place).await?;
    collections(&server, "update-collection", &place).await?;
    place.prepare(&server.url()).await?;
    place.fill(&server.url(), 1).await?;
    place.fill(&server.url(), 2).await?;
    let all = Seen::of(&[1, 2], &[1, 2]);
    place.until(&server, &all).await?;
    server.terminate().await?;
    let new = generation_in(&system, &place)?;
    ensure!(old < new, "{old}, {new}");

    let of_run = |generation: i64, id: &str| Headers {
        id: Some(id.to_owned()),
        thread: Some(format!("run.{generation}.{}", "ab".repeat(16))),
        workspace: Some(place.0.to_owned()),
        ..Headers::default()
    };
    let late = place.retraction(1, of_run(old, "late"))?;
    let present = place.retraction(2, of_run(new, "present"))?;
    system.publish(vec![late, present]).await?;
    let server = system.start().await?;
    let left = Seen::of(&[1], &[1, 2]);
    place.until(&server, &left).await?;
    place.is_unchanged(&server, &left).await?;
    server.terminate().await?;

    // The same outside of runs.
    let sent_for = |generation: i64| Headers {
        workspace: Some(place.0.to_owned()),
        collection: Some(place.1.to_owned()),
        collection_generation: Some(generation),
        ..Headers::default()
    };
    let mut late = writes(&place, &sent_for(old))?;
    late.push(place.retraction(1, sent_for(old))?);
    system.publish(late).await?;
    let server = system.start().await?;
    dropped(&server, "collections", DROPPED_BY_STORES).await?;
    place.is_unchanged(&server, &left).await?;
    server.terminate().await?;

    // Who says nothing of it, as foreign senders, means the one that is there.
    let foreign = Headers {
        workspace: Some(place.0.to_owned()),
        ..Headers::default()
    };
    let present = place.retraction(1, foreign)?;
    system.publish(vec![present]).await?;
    let server = system.start().await?;
    place.until(&server, &Seen::of(&[], &[1, 2])).await?;
    server.terminate().await?;
    system.publish(writes(&place, &sent_for(new))?).await?;
    let server = system.start().await?;
    place.until_late(&server).await
}

/// What clients import while the stores are away waits for them; the collection is deleted and made again meanwhile.
#[tokio::test]
async fn of_a_collection_while_its_stores_were_away_over_rabbitmq() -> Result<()> {
    let node = VirtualHost::new().await?;
    let folder = tempfile::tempdir()?;
    let stores = || {
        let launch = Launch::serve(&["graph", "rows", "vectors"], &node.url());
        launch.data(folder.path()).spawn()
    };
    let others = [
        "config",
        "gateway",
        "iam",
        "flow",
        "librarian",
        "knowledge",
        "ingest",
        "embeddings",
        "llm",
        "prompt",
        "agent",
        "extract",
        "rag",
        "tool",
    ];
    let first = stores().await?;
    let server = Launch::serve(&others, &node.url()).ready().await?;
    let place = WorkspaceCollection("default", "docs");
    collections(&server, "update-collection", &place).await?;
    place.prepare(&server.url()).await?;
    place.fill(&server.url(), 1).await?;
    place.until(&server, &Seen::of(&[1], &[1])).await?;
    first.kill9().await?;

    place.fill(&server.url(), 2).await?;
    // Cores are kept all the while.
    let end = Instant::now() + BOUND;
    while place.cores(&server.url()).await?.len() < 2 {
        ensure!(Instant::now() < end, "no core of the second chunk");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    collections(&server, "delete-collection", &place).await?;
    collections(&server, "update-collection", &place).await?;
    place.fill(&server.url(), 3).await?;
    let _second = stores().await?;
    let third = Seen::of(&[3], &[1, 2, 3]);
    place.until(&server, &third).await?;
    place.is_unchanged(&server, &third).await
}

#[tokio::test]
async fn of_a_workspace_embedded() -> Result<()> {
    of_a_workspace(Bus::Embedded).await
}

#[tokio::test]
async fn of_a_workspace_over_rabbitmq() -> Result<()> {
    of_a_workspace(Bus::Rabbit).await
}

#[tokio::test]
async fn of_a_collection_embedded() -> Result<()> {
    of_a_collection(Bus::Embedded).await
}

#[tokio::test]
async fn of_a_collection_over_rabbitmq() -> Result<()> {
    of_a_collection(Bus::Rabbit).await
}
