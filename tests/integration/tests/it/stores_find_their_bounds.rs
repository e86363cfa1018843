//! Stores of rows, vectors and knowledge cores are given more at once than a process may have of memory, and has no setting: the
//! process goes on, what it keeps no room for is refused in words, another workspace still finds room, and what was kept
//! is there when it starts again.
//!
//! The records wait on the bus when the process starts, as they do after a while without it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_schemas::msg::{
    ChunkEmbeddings, DocumentEmbeddings, EntityEmbeddings, ExtractedObject, GraphEmbeddings,
    Metadata,
};
use tg_schemas::{Headers, Message, Term};
use tg_testkit::outside::{publish, record};
use tg_testkit::process::{Launch, Server, tg};
use tg_testkit::shared_node::VirtualHost;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::a_flood_finds_its_bounds::ADDRESS_SPACE;
use crate::a_graph_over_quota_is_refused::dead_letter;
use crate::a_late_retraction_changes_nothing::{Seen, WorkspaceCollection};
use crate::poison_is_dead_lettered_once::{counted, listed};
use crate::workspaces::{make, patiently};
use crate::world::{Bus, on_both_buses, post};

const BOUND: Duration = Duration::from_secs(300);
/// Each of about eight megabytes.
const RECORDS: usize = 40;
/// Cores that are sent at once: the share for bodies has room for two.
const AT_ONCE: usize = 2;
/// Rows of a record.
const ROWS: usize = 27;
/// Records of vectors, and those that the share of the process has room for: each takes six megabytes.
const RECORDS_OF_VECTORS: usize = 20;
const SEARCHED: usize = 10;
/// Vectors of a record, and numbers of a vector.
const VECTORS: (usize, usize) = (500, 4_096);
/// What a dead letter says of vectors beyond.
const REFUSED: &str = "of memory for the vectors of one collection";

/// So many of these tests run at once: each keeps two processors busy, and writes hundreds of megabytes.
static AT_A_TIME: Semaphore = Semaphore::const_new(2);

/// A system that comes and goes, with all of its services in a process that may take little.
struct System {
    _turn: SemaphorePermit<'static>,
    dir: TempDir,
    node: Option<VirtualHost>,
}

impl System {
    async fn new(bus: Bus) -> Result<(Self, Server)> {
        let system = Self {
            _turn: AT_A_TIME.acquire().await?,
            dir: tempfile::tempdir()?,
            node: bus.broker().await?,
        };
        let server = system.start().await?;
        Ok((system, server))
    }

    async fn start(&self) -> Result<Server> {
        let launch = Launch::up()
            .address_space(ADDRESS_SPACE)
            .data(self.dir.path());
        launch.over(self.node.as_ref()).ready().await
    }

    /// Starts it again with records that wait for it.
    async fn with<M: Message>(
        &self,
        server: Server,
        topic: &str,
        count: usize,
        one: impl Fn(usize) -> M,
    ) -> Result<Server> {
        server.terminate().await?;
        let broker = self.node.as_ref().map(VirtualHost::url);
        let to = format!("flow:tg:{topic}:default:default");
        let made = (0..count).map(|n| record(&to, Headers::default(), &one(n)));
        let made = made.collect::<Result<_>>()?;
        publish(broker.as_deref(), self.dir.path(), made).await?;
        self.start().await
    }
}

fn metadata(record: usize, collection: &str) -> Option<Metadata> {
    Some(Metadata {
        id: format!("r{record}"),
        collection: collection.to_owned(),
        ..Metadata::default()
    })
}

/// How many there are, as soon as that is answered.
async fn count(url: &str, service: &str, mut ask: Value, at: &str) -> Result<usize> {
    ask["workspace"] = json!("default");
    let path = format!("api/v1/flow/default/service/{service}");
    let end = Instant::now() + BOUND;
    loop {
        let (_, told) = post(url, &path, ask.clone()).await?;
        match told.pointer(at).and_then(Value::as_array) {
            Some(all) => return Ok(all.len()),
            None => ensure!(Instant::now() < end, "{told}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn rows(url: &str) -> Result<usize> {
    let ask = json!({"query": "{ lamps(limit: 10000) { id } }"});
    count(url, "rows", ask, "/data/lamps").await
}

/// Another workspace still finds room in every store.
async fn others_find_room(server: &Server) -> Result<()> {
    let (url, other) = (server.url(), WorkspaceCollection("late", "default"));
    make(&url, other.0).await?;
    other.prepare(&url).await?;
    other.fill(&url, 1).await?;
    other.until(server, &Seen::of(&[1], &[1])).await
}

async fn rows_wait(bus: Bus) -> Result<()> {
    let (system, server) = System::new(bus).await?;
    WorkspaceCollection("default", "default")
        .prepare(&server.url())
        .await?;
    let maker = "frask ".repeat(50_000);
    let one = |record: usize| ExtractedObject {
        metadata: metadata(record, "default"),
        schema_name: "lamps".into(),
        values: (0..ROWS)
            .map(|n| {
                let id = (record * ROWS + n).to_string();
                [("id".into(), id), ("maker".into(), maker.clone())].into()
            })
            .collect(),
        confidence: 1.0,
        ..ExtractedObject::default()
    };
    let mut server = system.with(server, "rows-store", RECORDS, one).await?;
    let end = Instant::now() + BOUND;
    while rows(&server.url()).await.with_context(|| server.log())? < RECORDS * ROWS {
        ensure!(server.alive() && Instant::now() < end, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    others_find_room(&server).await?;
    ensure!(server.alive());
    server.terminate().await?;
    let mut server = system.start().await?;
    let kept = rows(&server.url()).await?;
    ensure!(kept == RECORDS * ROWS && server.alive(), "{kept}");
    Ok(())
}

/// How many are found next to a vector.
async fn nearest(url: &str, service: &str, at: &str) -> Result<usize> {
    let mut vector = vec![0.0; VECTORS.1];
    vector[0] = 1.0;
    count(url, service, json!({"vector": vector, "limit": 10}), at).await
}

/// Vectors that differ, of which those of a record are copies in turn: ten thousand made number by number take this test, which is
/// not optimised, seconds.
fn vectors() -> [Vec<f32>; 7] {
    std::array::from_fn(|n| (0..VECTORS.1).map(|at| (at * n % 7 + 1) as f32).collect())
}

/// Vectors are kept until the share of memory for one collection is full; the others wait as dead letters.
async fn until_searched<M: Message>(
    bus: Bus,
    (service, topic, at): (&str, &str, &str),
    one: impl Fn(usize) -> M,
) -> Result<()> {
    let (system, server) = System::new(bus).await?;
    let mut server = system.with(server, topic, RECORDS_OF_VECTORS, one).await?;
    let refused = RECORDS_OF_VECTORS - SEARCHED;
    let dead = until_dead(&mut server, &BTreeSet::new(), refused).await?;
    ensure!(dead.len() == refused);
    let told = dead_letter(&server.url()).await?.to_string();
    ensure!(told.contains(REFUSED), "{told}");
    ensure!(nearest(&server.url(), service, at).await? == 10);
    others_find_room(&server).await?;
    ensure!(server.alive());
    server.terminate().await?;
    let mut server = system.start().await?;
    ensure!(nearest(&server.url(), service, at).await? == 10);
    // As many as before, and not one more.
    ensure!(until_dead(&mut server, &BTreeSet::new(), refused).await? == dead);
    Ok(())
}

async fn vectors_wait(bus: Bus) -> Result<()> {
    let of = (
        "document-embeddings",
        "document-embeddings-store",
        "/chunks",
    );
    let vectors = vectors();
    until_searched(bus, of, |record| DocumentEmbeddings {
        metadata: metadata(record, "default"),
        chunks: (0..VECTORS.0)
            .map(|n| ChunkEmbeddings {
                chunk_id: format!("urn:chunk:{record}:{n}"),
                vector: vectors[n % 7].clone(),
                ..ChunkEmbeddings::default()
            })
            .collect(),
        ..DocumentEmbeddings::default()
    })
    .await
}

async fn entities_wait(bus: Bus) -> Result<()> {
    let of = ("graph-embeddings", "graph-embeddings-store", "/entities");
    let vectors = vectors();
    until_searched(bus, of, |record| GraphEmbeddings {
        metadata: metadata(record, "default"),
        entities: (0..VECTORS.0)
            .map(|n| EntityEmbeddings {
                entity: Some(Term::iri(format!("urn:entity:{record}:{n}"))),
                vector: vectors[n % 7].clone(),
                ..EntityEmbeddings::default()
            })
            .collect(),
        ..GraphEmbeddings::default()
    })
    .await
}

/// Asks for many things at once, each again while there is no room for it.
async fn insist(server: &mut Server, one: impl AsyncFn(usize) -> Result<Value>) -> Result<()> {
    let end = Instant::now() + BOUND;
    let one = &one;
    let work = (0..RECORDS).map(async |n| {
        loop {
            // One that is refused before all of it was read may only see that the connection is closed.
            let told = match one(n).await {
                Ok(told) => told,
                Err(fault) if fault.is::<reqwest::Error>() => json!({"error": {"type": "busy"}}),
                Err(fault) => return Err(fault),
            };
            if told.get("error").is_none_or(Value::is_null) {
                return Ok(());
            }
            ensure!(
                told["error"]["type"] == "busy" && Instant::now() < end,
                "{told}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let all = futures::stream::iter(work).buffer_unordered(AT_ONCE);
    let done = all.try_collect::<Vec<()>>().await;
    ensure!(server.alive(), "{}", server.log());
    done.with_context(|| server.log()).map(|_| ())
}

async fn cores_come(bus: Bus) -> Result<()> {
    let (system, mut server) = System::new(bus).await?;
    let url = server.url();
    let lamps = "lamp ".repeat(40_000);
    insist(&mut server, async |n| {
        let iri = |text: &str| json!({"t": "i", "i": text});
        let triple = |at: usize| json!({"s": iri(&format!("urn:s:{n}:{at}")), "p": iri("urn:p"), "o": {"t": "l", "v": lamps}});
        let triples: Vec<Value> = (0..40).map(triple).collect();
        let core = format!("urn:core:{n}");
        let triples = json!({"metadata": {"id": core, "collection": "default"}, "triples": triples});
        let put = json!({"operation": "put-kg-core", "id": core, "triples": triples});
        Ok(post(&url, "api/v1/knowledge", put).await?.1)
    })
    .await?;
    others_find_room(&server).await?;
    server.terminate().await?;
    let mut server = system.start().await?;
    let list = json!({"operation": "list-kg-cores", "workspace": "default"});
    let told = patiently(&server.url(), "api/v1/knowledge", list).await?;
    let kept = told["ids"].as_array().map_or(0, Vec::len);
    ensure!(kept == RECORDS && server.alive(), "{kept}");
    Ok(())
}

/// Documents of nearly eight megabytes, sent whole, two at once.
async fn documents_come(bus: Bus) -> Result<()> {
    let (system, mut server) = System::new(bus).await?;
    let url = server.url();
    let text = "lamp ".repeat(1_600_000);
    insist(&mut server, async |n| {
        let content = STANDARD.encode(format!("{n} {text}"));
        let id = format!("urn:doc:{n}");
        let add = json!({"operation": "add-document", "content": content,
            "document-metadata": {"id": id, "kind": "text/plain", "title": id}});
        Ok(post(&url, "api/v1/librarian", add).await?.1)
    })
    .await?;
    others_find_room(&server).await?;
    server.terminate().await?;
    let mut server = system.start().await?;
    let list = json!({"operation": "list-documents", "workspace": "default", "limit": 1000});
    let told = patiently(&server.url(), "api/v1/librarian", list).await?;
    let kept = told["document-metadatas"].as_array().map_or(0, Vec::len);
    ensure!(kept == RECORDS && server.alive(), "{kept}");
    Ok(())
}

/// Records of eleven megabytes that nobody can handle: held at once in three copies they would be as much as a process has.
const DEAD: usize = 60;

/// Waits until there are so many dead letters and none of those that were there before; returns their ids.
async fn until_dead(
    server: &mut Server,
    before: &BTreeSet<String>,
    count: usize,
) -> Result<BTreeSet<String>> {
    let end = Instant::now() + BOUND;
    loop {
        let all = listed(server, "default").await;
        let all = all.with_context(|| server.log())?;
        let id = |one: &Value| Some(one["id"].as_str()?.to_owned());
        let ids: BTreeSet<String> = all.iter().filter_map(id).collect();
        let dead = all.iter().all(|one| one["reason"] == "dead");
        if ids.len() == count && ids.is_disjoint(before) {
            ensure!(dead && all.len() == count, "{all:?}");
            return Ok(ids);
        }
        ensure!(
            server.alive() && Instant::now() < end,
            "{ids:?} {}",
            server.log()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn dead_letters_come_back(bus: Bus) -> Result<()> {
    let dead = DEAD;
    let (system, server) = System::new(bus).await?;
    WorkspaceCollection("default", "default")
        .prepare(&server.url())
        .await?;
    let maker = "frask ".repeat(11_000_000 / 6);
    let one = |record: usize| ExtractedObject {
        metadata: metadata(record, "default"),
        schema_name: "lamps".into(),
        values: vec![
            [
                ("id".into(), "no number".into()),
                ("maker".into(), maker.clone()),
            ]
            .into(),
        ],
        confidence: 1.0,
        ..ExtractedObject::default()
    };
    let mut server = system.with(server, "rows-store", dead, one).await?;
    let first = until_dead(&mut server, &BTreeSet::new(), dead).await?;
    let replay = ["dead-letters", "-i", "default", "--replay-all"];
    let told = tg(&server.url(), &replay).await?;
    told.expect(&format!("Replayed {dead}"))?;
    let second = until_dead(&mut server, &first, dead).await?;
    // Each died once more, and nothing comes again by itself.
    tokio::time::sleep(Duration::from_secs(1)).await;
    ensure!(until_dead(&mut server, &first, dead).await? == second);
    let total = counted(&server, "tg_records_dead_lettered_total{reason=\"dead\"}").await?;
    ensure!(total == 2.0 * dead as f64, "{total}");
    others_find_room(&server).await?;
    server.terminate().await?;
    let mut server = system.start().await?;
    ensure!(until_dead(&mut server, &first, dead).await? == second && server.alive());
    Ok(())
}

on_both_buses!(
    rows_wait,
    vectors_wait,
    entities_wait,
    cores_come,
    documents_come,
    dead_letters_come_back
);
