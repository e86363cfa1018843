//! How fast retrieval is without the model, in a running system at its gateway: GraphRAG and DocumentRAG up to
//! the frame that tells what was chosen, and how much of what there is GraphRAG looks at and finds; SPARQL; and how
//! long the collection's deletion takes in the end.
//!
//! `retrieval_bench <directory of a static model of 256 numbers> [triples] [entities] [chunks] [questions] [of them held
//! against an exhaustive search]`, in the target folder of the binaries it measures. Questions name their seeds, so no model is asked before the choice;
//! client and system share the machine. A missed target is printed, never a failure; an error is one.

mod recall;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_integration_tests::memory;
use tg_testkit::machine::{described, load};
use tg_testkit::process::{Launch, Server};
use tg_testkit::socket::Socket;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

const FLOW: &str = "retrieval-bench";
/// Beginnings of the IRIs of entities and of what links them.
const ENTITY: &str = "http://ex/e/";
const PREDICATE: &str = "http://ex/p/";
const WARM_UP: usize = 10;
/// Triples or texts of an import's frame.
const FRAME: usize = 500;
/// Matches of the join.
const JOINED: usize = 10_000;
/// Longest wait until everything imported is found.
const BOUND: Duration = Duration::from_secs(900);
const DOCUMENT: &str = "urn:bench:document";
const WORDS: [&str; 24] = [
    "bridge", "harbour", "castle", "river", "tower", "market", "canal", "garden", "museum",
    "island", "station", "library", "copper", "winter", "singer", "engine", "letter", "orchard",
    "pilot", "violin", "glacier", "printer", "sailor", "meadow",
];

/// A sequence that looks random and is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most.max(1) as u64) as usize
    }

    /// Small numbers much more often than large ones.
    fn skewed(&mut self, most: usize) -> usize {
        let part = self.below(1_000_000) as f64 / 1_000_000.0;
        (part.powi(4) * most as f64) as usize
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(" ")
    }

    /// Words of a text's own kind: 576 in all, as even as names are.
    fn rare_words(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count)
            .map(|_| format!("{}{}", self.words(1), self.words(1)))
            .collect();
        words.join(" ")
    }
}

fn entity(at: usize) -> Value {
    json!({"t": "i", "i": format!("{ENTITY}{at}")})
}

/// What an entity is called.
fn name(at: usize) -> String {
    format!("{} number {at}", Dice(at as u64 + 11).words(3))
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let model = PathBuf::from(args.next().context("which static model?")?);
    let model = std::fs::canonicalize(&model).with_context(|| model.display().to_string())?;
    let mut number = |usual: usize| args.next().map_or(Ok(usual), |text| text.parse());
    let (triples, entities, chunks) = (number(1_000_000)?, number(200_000)?, number(50_000)?);
    let asked = number(200)?.max(1);
    let compared = number(20)?;
    println!("workload 2; machine: {}; load {}", described(), load());
    let server = Launch::up()
        .env("THREADGRAPH_EMBEDDINGS__PROVIDER", "static")
        .env("THREADGRAPH_EMBEDDINGS__PATH", model.to_string_lossy())
        .ready()
        .await?;
    let socket = Socket::connect(&server.url(), "").await?;
    start_flow(&socket).await?;

    let begun = Instant::now();
    let mut facts = graph(triples, entities);
    import(&server, "triples", "triples", "default", &mut facts).await?;
    let mut names = contexts(entities);
    import(
        &server,
        "entity-contexts",
        "entities",
        "default",
        &mut names,
    )
    .await?;
    let pieces = write_document(&socket, chunks, Texts::Usual).await?;
    let older = write_document(&socket, chunks, Texts::Older).await?;
    settled(&socket, triples, entities).await?;
    println!(
        "{triples} triples, {entities} entity vectors, {pieces} and {older} chunks loaded in {:.0} s, {:.0} MiB resident; load {}",
        begun.elapsed().as_secs_f64(),
        memory(server.pid().context("no process")?, "VmRSS")?,
        std::fs::read_to_string("/proc/loadavg")
            .unwrap_or_default()
            .trim()
    );

    let graph = |at: usize| {
        let seeds = [name(at * 37 % entities), WORDS[at % WORDS.len()].to_owned()];
        let query = format!("What is {} linked to?", seeds[0]);
        (
            "graph-rag",
            json!({"query": query, "grounding-seeds": seeds, "streaming": true}),
        )
    };
    measure("GraphRAG retrieval", Some(80.0), asked, &socket, graph).await?;
    let known = recall::Links::new(links(triples, entities), entities);
    recall::measure(&socket, &known, compared, graph).await?;
    drop(known);
    let documents = |words: String| {
        let query = format!("Where is the {words}?");
        (
            "document-rag",
            json!({"query": query, "doc-limit": 10, "streaming": true}),
        )
    };
    let what = "DocumentRAG retrieval, hybrid, with the builtin model's concepts";
    let rare = |at: usize| documents(Dice(at as u64 + 5).rare_words(3));
    measure(what, Some(50.0), asked, &socket, rare).await?;
    // The keyword index reads half of the collection for each of these.
    let common = |at: usize| documents(Dice(at as u64 + 5).words(3));
    let what = "the same, of words that every third chunk has";
    measure(what, Some(50.0), asked, &socket, common).await?;
    // Until 22 November 2026 all chunks were so: every word of a question is in every third of them.
    let older = |at: usize| {
        let (kind, mut request) = documents(Dice(at as u64 + 5).words(3));
        request["collection"] = Texts::Older.collection().into();
        (kind, request)
    };
    let what = "the older workload: chunks and questions of 24 words in all";
    measure(what, Some(50.0), asked, &socket, older).await?;
    let joined = "?a <http://ex/left> ?b . ?b <http://ex/right> ?c";
    let count = format!("SELECT (COUNT(*) AS ?n) {{ {joined} }}");
    let rows = format!("SELECT ?a ?c {{ {joined} }}");
    sparql("SPARQL join, 10,000 matches counted", &socket, &count, 1).await?;
    sparql("SPARQL join, 10,000 rows sent", &socket, &rows, JOINED).await?;
    deletion(&server, &socket).await
}

/// Deletes the collection, until every store has confirmed; what is in another one stays.
async fn deletion(server: &Server, socket: &Socket) -> Result<()> {
    let mut kept = graph(100, 10).take(10);
    import(server, "triples", "triples", "kept", &mut kept).await?;
    let count = |collection: &str| {
        let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
        let ask = json!({"query": query, "collection": collection});
        async move {
            let reply = service(socket, "sparql", ask).await?;
            let text = reply["bindings"][0]["values"][0]["v"].as_str();
            Ok::<usize, anyhow::Error>(text.unwrap_or("0").parse()?)
        }
    };
    let end = Instant::now() + BOUND;
    while count("kept").await? != 10 {
        ensure!(Instant::now() < end, "the other collection was not written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let begun = Instant::now();
    let delete = json!({"operation": "delete-collection", "collection": "default"});
    good(socket.ask_service("collection-management", delete).await?)?;
    let took = begun.elapsed().as_secs_f64();
    let met = if took <= 2.0 { "met" } else { "missed" };
    println!("deletion of the collection: confirmed after {took:.2} s (target 2 s: {met})");
    let (gone, there) = (count("default").await?, count("kept").await?);
    ensure!((gone, there) == (0, 10), "{gone} left, {there} of 10 kept");
    Ok(())
}

/// A flow without extractors, so that loading measures nothing else.
async fn start_flow(socket: &Socket) -> Result<()> {
    let get = json!({"operation": "get-blueprint", "blueprint-name": "everything"});
    let reply = good(socket.ask_service("flow", get).await?)?;
    let text = reply["response"]["blueprint-definition"]
        .as_str()
        .context("no blueprint")?;
    let mut blueprint: Value = serde_json::from_str(text)?;
    let flow = blueprint["flow"].as_object_mut().context("no flow")?;
    flow.retain(|processor, _| !processor.starts_with("kg-extract"));
    let put = json!({
        "operation": "put-blueprint", "blueprint-name": FLOW, "blueprint-definition": blueprint.to_string(),
    });
    good(socket.ask_service("flow", put).await?)?;
    let start = json!({
        "operation": "start-flow", "flow-id": FLOW, "blueprint-name": FLOW, "description": "bench",
        "parameters": {"chunk-size": "200", "chunk-overlap": "0"},
    });
    good(socket.ask_service("flow", start).await?).map(drop)
}

/// Labels of all entities, links by a power law, and the two sides of a join.
fn graph(count: usize, entities: usize) -> impl Iterator<Item = Value> {
    let label = "http://www.w3.org/2000/01/rdf-schema#label";
    let labels = (0..entities).map(move |at| {
        json!({"s": entity(at), "p": {"t": "i", "i": label}, "o": {"t": "l", "v": name(at)}})
    });
    let join = (0..JOINED).flat_map(|at| {
        let link = |side: &str, from: String, to: String| {
            json!({
                "s": {"t": "i", "i": format!("http://ex/{from}")},
                "p": {"t": "i", "i": format!("http://ex/{side}")},
                "o": {"t": "i", "i": format!("http://ex/{to}")},
            })
        };
        [
            link("left", format!("a{at}"), format!("b{at}")),
            link("right", format!("b{at}"), format!("c{}", at % 100)),
        ]
    });
    let links = links(count, entities).map(|(s, p, o)| {
        json!({"s": entity(s), "p": {"t": "i", "i": format!("{PREDICATE}{p}")}, "o": entity(o)})
    });
    labels.chain(join).chain(links)
}

/// What links entities in a graph of so many triples, by a power law.
fn links(count: usize, entities: usize) -> impl Iterator<Item = recall::Link> {
    let mut dice = Dice(7);
    (0..count.saturating_sub(entities + 2 * JOINED)).map(move |_| {
        let (from, kind) = (dice.below(entities), dice.below(40));
        (from, kind, dice.skewed(entities))
    })
}

fn contexts(entities: usize) -> impl Iterator<Item = Value> {
    (0..entities).map(
        |at| json!({"entity": entity(at), "context": name(at), "chunk_id": format!("urn:c:{at}")}),
    )
}

async fn import(
    server: &Server,
    kind: &str,
    field: &str,
    collection: &str,
    items: &mut dyn Iterator<Item = Value>,
) -> Result<()> {
    let begun = Instant::now();
    let url = server.url().replacen("http", "ws", 1);
    let url = format!("{url}api/v1/flow/{FLOW}/import/{kind}");
    let (mut stream, _) = tokio_tungstenite::connect_async(url).await?;
    let metadata = json!({"id": "", "metadata": [], "collection": collection});
    let mut count = 0;
    loop {
        let part: Vec<Value> = items.take(FRAME).collect();
        if part.is_empty() {
            break;
        }
        count += part.len();
        let mut frame = json!({"metadata": metadata});
        frame[field] = part.into();
        stream.send(Message::text(frame.to_string())).await?;
    }
    stream.close(None).await?;
    while let Some(Ok(message)) = stream.next().await {
        if let Message::Close(Some(close)) = message {
            ensure!(close.code == CloseCode::Normal, "{close}");
        }
    }
    println!(
        "{kind}: {count} taken in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// What the chunks of DocumentRAG's figures are.
#[derive(Clone, Copy)]
enum Texts {
    /// Rare words among common ones.
    Usual,
    /// Common words alone: the workload before there were rare ones.
    Older,
}

impl Texts {
    fn collection(self) -> &'static str {
        match self {
            Self::Usual => "default",
            Self::Older => "older",
        }
    }

    fn place(self, dice: &mut Dice, at: usize) -> String {
        let (what, near) = match self {
            Self::Usual => (dice.rare_words(2), dice.rare_words(3)),
            Self::Older => (dice.words(4), dice.words(8)),
        };
        format!("The {what} of place {at} is near the {near}. ")
    }
}

/// Adds a text of so many chunks and processes it.
async fn write_document(socket: &Socket, chunks: usize, texts: Texts) -> Result<usize> {
    let document = format!("{DOCUMENT}:{}", texts.collection());
    let mut dice = Dice(3);
    let mut text = String::with_capacity(chunks * 200);
    for at in 0..chunks {
        text.push_str(&texts.place(&mut dice, at));
        text.push_str(&format!(
            "It has {} and a {}.\n\n",
            dice.words(5),
            dice.words(3)
        ));
    }
    let begin = json!({
        "operation": "begin-upload", "total-size": text.len(), "chunk-size": 1 << 20,
        "document-metadata": {
            "id": document, "kind": "text/plain", "title": "bench", "comments": "", "time": 1,
            "metadata": [], "tags": [],
        },
    });
    let reply = good(socket.ask_service("librarian", begin).await?)?;
    let upload = reply["response"]["upload-id"].clone();
    let size = reply["response"]["chunk-size"].as_u64().unwrap_or(1 << 20) as usize;
    for (at, part) in text.as_bytes().chunks(size).enumerate() {
        let put = json!({
            "operation": "upload-chunk", "upload-id": upload, "chunk-index": at,
            "content": STANDARD.encode(part),
        });
        good(socket.ask_service("librarian", put).await?)?;
    }
    let complete = json!({"operation": "complete-upload", "upload-id": upload});
    good(socket.ask_service("librarian", complete).await?)?;
    let start = json!({
        "operation": "add-processing",
        "processing-metadata": {
            "id": document, "document-id": document, "time": 1, "flow": FLOW, "collection": texts.collection(), "tags": [],
        },
    });
    good(socket.ask_service("librarian", start).await?)?;
    let end = Instant::now() + BOUND;
    loop {
        let reply = good(
            socket
                .ask_service("librarian", json!({"operation": "list-processing"}))
                .await?,
        )?;
        let records = reply["response"]["processing-metadatas"].as_array();
        let mut records = records.into_iter().flatten();
        let record = records.find(|record| record["id"] == document.as_str());
        let record = record.context("no record")?;
        match record["status"].as_str() {
            Some("complete") => {
                return Ok(record["progress"]["chunks"].as_u64().unwrap_or_default() as usize);
            }
            Some("processing") if Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            _ => bail!("{record}"),
        }
    }
}

/// Waits until the graph has all triples and the vector store the last entities.
async fn settled(socket: &Socket, triples: usize, entities: usize) -> Result<()> {
    let end = Instant::now() + BOUND;
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    for at in [entities - 1, entities / 2, entities - FRAME.min(entities)] {
        loop {
            let asked = service(socket, "embeddings", json!({"texts": [name(at)]})).await?;
            let ask = json!({"vector": asked["vectors"][0], "limit": 50});
            let found = service(socket, "graph-embeddings", ask).await?;
            if found.to_string().contains(&format!("http://ex/e/{at}\"")) {
                break;
            }
            ensure!(Instant::now() < end, "entity {at} is not found");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    loop {
        let found = service(socket, "sparql", json!({"query": count})).await?;
        let there = found["bindings"][0]["values"][0]["v"]
            .as_str()
            .unwrap_or("0")
            .parse::<usize>()?;
        // Some links are drawn twice.
        if there * 100 >= triples * 97 {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{there} triples of {triples}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn good(frame: Value) -> Result<Value> {
    let fault = [&frame["error"], &frame["response"]["error"]];
    ensure!(fault.iter().all(|fault| fault.is_null()), "{frame}");
    Ok(frame)
}

async fn service(socket: &Socket, kind: &str, request: Value) -> Result<Value> {
    let frames = socket.ask(kind, FLOW, request).await?;
    let last = frames.into_iter().next_back().context("no frame")?;
    Ok(good(last)?["response"].clone())
}

/// Asks one question after the other; the time until the frame that tells what was chosen.
async fn measure(
    what: &str,
    target: Option<f64>,
    asked: usize,
    socket: &Socket,
    question: impl Fn(usize) -> (&'static str, Value),
) -> Result<()> {
    let (mut times, mut edges) = (Vec::new(), Vec::new());
    for at in 0..asked + WARM_UP {
        let (kind, request) = question(at);
        let begun = Instant::now();
        let envelope = json!({"service": kind, "flow": FLOW, "request": request});
        let mut frames = socket.send(envelope).await?;
        let mut chosen = None;
        while let Some(frame) = frames.next().await {
            let frame = good(frame)?;
            edges.extend(looked_at(&frame["response"]["explain_triples"]));
            let told = frame["response"]["explain_triples"].to_string();
            if chosen.is_none() && told.contains("https://trustgraph.ai/ns/Focus\"") {
                chosen = Some(begun.elapsed());
            }
        }
        let chosen = chosen.context("nothing was chosen")?;
        if at >= WARM_UP {
            times.push(chosen.as_secs_f64() * 1_000.0);
        }
    }
    told(what, &mut times, target);
    if let (Some(least), Some(most)) = (edges.iter().min(), edges.iter().max()) {
        println!("  edges looked at for a question: {least} to {most}");
    }
    Ok(())
}

/// Edges that were looked at for a question, where an entry of its trace says so.
fn looked_at(triples: &Value) -> Option<u64> {
    let count = triples.as_array()?.iter().find(|triple| {
        let predicate = triple["p"]["i"].as_str().unwrap_or_default();
        predicate.ends_with("ns/edgeCount")
    })?;
    count["o"]["v"].as_str()?.parse().ok()
}

async fn sparql(what: &str, socket: &Socket, query: &str, rows: usize) -> Result<()> {
    let mut times = Vec::new();
    for at in 0..30 + 3 {
        let begun = Instant::now();
        let request = json!({"query": query, "limit": JOINED * 2});
        let reply = service(socket, "sparql", request).await?;
        let took = begun.elapsed();
        let found = reply["bindings"].as_array().map_or(0, Vec::len);
        ensure!(found == rows, "{found} rows instead of {rows}");
        if at >= 3 {
            times.push(took.as_secs_f64() * 1_000.0);
        }
    }
    told(what, &mut times, Some(100.0));
    Ok(())
}

fn told(what: &str, times: &mut [f64], target: Option<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let goal = match target {
        Some(target) if at(95) <= target => format!(" (target {target:.0} ms: met)"),
        Some(target) => format!(" (target {target:.0} ms: missed)"),
        None => String::new(),
    };
    println!(
        "{what}: p50 {:.1} ms, p95 {:.1} ms{goal}, most {:.1} ms",
        at(50),
        at(95),
        at(100)
    );
}
