//! Two hundred documents go in while one process after the other is killed, the broker restarts and a disk is
//! full for a while: at the end every chunk is there once in every store, and no model call was paid twice.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server, free_port};
use tg_testkit::rabbitmq::RabbitNode;
use tokio::time::Instant;

use crate::cores_by_content::{self, Core};
use crate::small_disk::SmallDisk;
use crate::world::{Bus, on_both_buses, post, wired};

const DOCUMENTS: usize = 200;
/// Chunks of them all: every other document has two.
const CHUNKS: usize = DOCUMENTS * 3 / 2;
/// Everything is processed by then, on a busy machine and with every pause that the faults cause.
const BOUND: Duration = Duration::from_secs(600);
/// Each is a process of its own over a broker, and each is killed.
const SERVICES: [&str; 19] = [
    "threads",
    "graph",
    "extract",
    "ingest",
    "vectors",
    "librarian",
    "llm",
    "embeddings",
    "prompt",
    "rows",
    "knowledge",
    "config",
    "flow",
    "iam",
    "gateway",
    "rag",
    "agent",
    "tool",
    "sessions",
];
/// All of them in one process, on the embedded bus.
const EVERYTHING: &str = "everything";
/// How often that one is killed.
const KILLS: usize = 8;
/// How often documents are asked for before a kill, should all of them be done when it is due.
const TRIES: usize = 5;
/// Of vectors, how near they are to those of these texts.
const NEAR: [&str; 2] = ["a lantern of glass", "a blue light in the hall"];
/// How long the model takes for an answer: so long that there is work under way at each fault.
const PAUSE: Duration = Duration::from_millis(300);
/// Each fifth document is read for rows too, by a flow of its own; that makes so many more processings, and rows.
const ROWS_OF: usize = 5;
const PROCESSINGS: usize = DOCUMENTS + DOCUMENTS / ROWS_OF;
const ROWS: usize = CHUNKS / ROWS_OF;
/// Processings that are asked for at once.
const AT_ONCE: usize = 32;
const STARTED: &str = "http://www.w3.org/ns/prov#startedAtTime";
/// What the disk has room for while it is not full.
const ROOM: &str = "800m";
/// A call may be under way, or its answer not stored yet, when a process dies or a connection breaks; only those may be
/// made again, and of all faults together no more.
const PAID_AGAIN: usize = 144;

/// The words of a document are its own. Every other document has a second chunk.
fn text(document: usize) -> String {
    let part = |part: usize| {
        let lamp = format!("lamp{document:03}x{part}");
        let filler =
            format!("The {lamp} hangs in hall {document} and gives a blue light. ").repeat(24);
        format!(
            "The {lamp} is a lantern of glass {document}. It was built by maker{document:03}. {filler}"
        )
    };
    if document.is_multiple_of(2) {
        part(0)
    } else {
        format!("{}\n\n{}", part(0), part(1))
    }
}

/// Answers extraction prompts from the words of their chunk, after a pause that keeps calls under way.
fn model() -> Vec<Rule> {
    let lamps = |prompt: &str| -> BTreeSet<String> {
        let words = prompt.split(|c: char| !c.is_ascii_alphanumeric());
        let lamps = words.filter(|word| word.len() == 9 && word.starts_with("lamp"));
        lamps.map(str::to_owned).collect()
    };
    let lines = move |prompt: &str, line: &dyn Fn(&str) -> Value| {
        let lines: Vec<_> = lamps(prompt)
            .iter()
            .map(|lamp| line(lamp).to_string())
            .collect();
        Reply::text(lines.join("\n")).delayed(PAUSE)
    };
    vec![
        Rule::computed(
            |prompt| prompt.contains("## Definitions wanted"),
            move |prompt| {
                lines(
                    prompt,
                    &|lamp| json!({"entity": lamp, "definition": format!("{lamp} is a lantern")}),
                )
            },
        ),
        Rule::computed(
            |prompt| prompt.contains("## Relationships wanted"),
            move |prompt| {
                lines(
                    prompt,
                    &|lamp| json!({"subject": lamp, "predicate": "gives", "object": "blue light", "object-entity": true}),
                )
            },
        ),
        Rule::computed(
            |prompt| prompt.contains("## Rows wanted"),
            move |prompt| lines(prompt, &|lamp| json!({"id": lamp, "light": "blue"})),
        ),
    ]
}

struct System {
    // Processes end before the disk below them goes.
    processes: BTreeMap<&'static str, (Launch, Server)>,
    model: ScriptedModel,
    node: Option<RabbitNode>,
    disk: SmallDisk,
    _dir: tempfile::TempDir,
}

impl System {
    async fn start(bus: Bus) -> Result<Self> {
        let model = ScriptedModel::start(model()).await?;
        let dir = tempfile::tempdir()?;
        // The disk of the graph alone, or of all that there is.
        let (node, parts, on_disk): (_, &[&'static str], _) = match bus {
            Bus::Rabbit => (Some(RabbitNode::start().await?), &SERVICES, "graph"),
            Bus::Embedded => (None, &[EVERYTHING], EVERYTHING),
        };
        let disk = SmallDisk::mount(&dir.path().join(on_disk), ROOM).await?;
        let mut processes = BTreeMap::new();
        for part in parts {
            let launch = match &node {
                Some(node) => Launch::serve(&[part], &node.url()),
                None => Launch::up(),
            };
            let launch = wired(launch, &model)
                .data(&dir.path().join(part))
                // Clients find the gateway there after a kill.
                .port(free_port()?);
            processes.insert(*part, (launch.clone(), launch.spawn().await?));
        }
        let mut system = Self {
            processes,
            model,
            node,
            disk,
            _dir: dir,
        };
        let gateway = system
            .processes
            .iter_mut()
            .find(|(name, _)| is_gateway(name));
        let (_, (_, gateway)) = gateway.context("no gateway")?;
        gateway.wait_ready().await?;
        Ok(system)
    }

    /// What is killed, in turn.
    fn victims(&self) -> Vec<&'static str> {
        match self.node {
            Some(_) => SERVICES.to_vec(),
            None => vec![EVERYTHING; KILLS],
        }
    }

    fn url(&self) -> String {
        let mut all = self.processes.iter();
        let gateway = all.find(|(name, _)| is_gateway(name));
        gateway.map_or_else(String::new, |(_, (_, process))| process.url())
    }

    /// Waits until a process says that its disk is full.
    async fn full(&self) -> Result<()> {
        let end = Instant::now() + BOUND;
        let on_disk = |name: &&str| ["graph", EVERYTHING].contains(name);
        let mut all = self.processes.iter();
        let one = all.find(|(name, _)| on_disk(name));
        let (_, (_, process)) = one.context("nothing is on the disk")?;
        while !process.log().contains("disk is full") {
            ensure!(
                Instant::now() < end,
                "the disk was never full\n{}",
                tail(process)
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    async fn ask(&self, path: &str, body: Value) -> Result<Value> {
        let (status, reply) = post(&self.url(), path, body).await?;
        ensure!(status == 200, "{path}: {status} {reply}");
        ensure!(
            reply.get("error").is_none_or(Value::is_null),
            "{path}: {reply}"
        );
        Ok(reply)
    }

    /// Asks again until it is answered: a service may just be gone.
    async fn insist(&self, path: &str, body: Value) -> Result<Value> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            match self.ask(path, body.clone()).await {
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                answered => return answered,
            }
        }
    }

    async fn add(&self) -> Result<()> {
        for document in 0..DOCUMENTS {
            let add = json!({"operation": "add-document",
                "document-metadata": {"id": id(document), "kind": "text/plain",
                    "title": format!("Lamp {document}"), "comments": "", "metadata": [], "tags": []},
                "content": STANDARD.encode(text(document))});
            self.insist("api/v1/librarian", add).await?;
        }
        Ok(())
    }

    /// Asks for the processing of some of the documents, at once.
    async fn process(&self, collection: &str, documents: Range<usize>) -> Result<()> {
        let of_rows = documents.clone().filter(|at| at.is_multiple_of(ROWS_OF));
        let of_rows = of_rows.map(|at| (at, "tables"));
        let all = documents.map(|at| (at, "default")).chain(of_rows);
        let asked = all.map(async |(document, flow)| {
            let process = json!({"operation": "add-processing", "processing-metadata":
                {"id": format!("{collection}-{flow}-{document}"), "document-id": id(document),
                 "flow": flow, "collection": collection, "tags": []}});
            self.insist("api/v1/librarian", process).await.map(drop)
        });
        let asked = futures::stream::iter(asked).buffer_unordered(AT_ONCE);
        asked.try_collect::<Vec<()>>().await.map(drop)
    }

    /// The processings of a collection.
    async fn records(&self, collection: &str) -> Result<Vec<Value>> {
        let listed = json!({"operation": "list-processing"});
        let mut reply = self.insist("api/v1/librarian", listed).await?;
        let Value::Array(mut records) = reply["processing-metadatas"].take() else {
            bail!("no list: {reply}");
        };
        records.retain(|record| record["collection"] == collection);
        Ok(records)
    }

    /// How many processings of a collection are complete, and one that is over otherwise.
    async fn complete(&self, collection: &str) -> Result<(usize, Option<Value>)> {
        let (mut complete, mut odd) = (0, None);
        for record in self.records(collection).await? {
            match record["status"].as_str() {
                // With warnings something was left out.
                Some("complete") if record["warnings"].is_null() => complete += 1,
                Some("processing") => {}
                _ => odd = Some(record),
            }
        }
        Ok((complete, odd))
    }

    /// What failed while a fault lasted is tried again, as people would.
    async fn finish(&self, collection: &str) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let (complete, odd) = self.complete(collection).await?;
            if complete == PROCESSINGS {
                return Ok(());
            }
            if let Some(record) = odd {
                let failed = record["status"] == "failed" || !record["warnings"].is_null();
                ensure!(failed && record["retry"] == "retry-processing", "{record}");
                let retry = json!({"operation": "retry-processing", "processing-id": record["id"]});
                self.insist("api/v1/librarian", retry).await?;
            }
            if Instant::now() > end {
                let mut text = format!("{complete} of {PROCESSINGS} are complete");
                for (name, (_, process)) in &self.processes {
                    text.push_str(&format!("\n--- {name}\n{}", tail(process)));
                }
                bail!(text);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Whether something of a collection is under way after so long.
    async fn under_way(&self, collection: &str, after: Duration) -> Result<bool> {
        tokio::time::sleep(after).await;
        let all = self.records(collection).await?;
        Ok(all.iter().any(|record| record["status"] == "processing"))
    }

    async fn kill(&mut self, victim: &'static str) -> Result<()> {
        let (launch, process) = self.processes.remove(victim).context("no such process")?;
        process.kill9().await?;
        let process = launch.clone().spawn().await?;
        self.processes.insert(victim, (launch, process));
        Ok(())
    }

    /// Kills one while documents are under way, at another stage of the work each time. Should all have been done by then,
    /// they are asked for again, into a collection that nobody looks at.
    async fn kill_at_work(
        &mut self,
        victim: &'static str,
        at: usize,
        documents: Range<usize>,
    ) -> Result<()> {
        let (mut collection, mut pause) = ("lamps".to_owned(), PAUSE * (at as u32 % 5) / 3);
        for again in 0..TRIES {
            self.process(&collection, documents.clone()).await?;
            if self.under_way(&collection, pause).await? {
                return self.kill(victim).await;
            }
            (collection, pause) = (format!("again-{at}-{again}"), Duration::ZERO);
        }
        bail!("nothing was under way when {victim} was to be killed")
    }

    /// What a vector index has, as often as it has it, by the name of the list and what stands for one: the names, and each
    /// with how near its numbers are to some others.
    async fn nearest(
        &self,
        collection: &str,
        (service, list, name): (&str, &str, &str),
    ) -> Result<(Vec<String>, Vec<String>)> {
        let flow = "api/v1/flow/default/service";
        let ask = json!({"texts": NEAR});
        let embedded = self.insist(&format!("{flow}/embeddings"), ask).await?;
        let (mut names, mut near) = (Vec::new(), Vec::new());
        for text in 0..NEAR.len() {
            let vector = &embedded["vectors"][text];
            let ask = json!({"vector": vector, "limit": 10_000, "collection": collection});
            let found = self.insist(&format!("{flow}/{service}"), ask).await?;
            names = named(&found, list, name)?;
            for one in found[list].as_array().into_iter().flatten() {
                let score = one["score"].as_f64().context("no score")?;
                near.push(format!("{} {text} {score:.4}", one[name]));
            }
        }
        Ok((names, sorted(near.into_iter())))
    }

    async fn vectors(&self, collection: &str) -> Result<(Vec<String>, Vec<String>)> {
        let of = ("document-embeddings", "chunks", "chunk_id");
        self.nearest(collection, of).await
    }

    async fn entities(&self, collection: &str) -> Result<(Vec<String>, Vec<String>)> {
        let of = ("graph-embeddings", "entities", "entity");
        self.nearest(collection, of).await
    }

    async fn rows(&self, collection: &str) -> Result<Vec<String>> {
        let ask =
            json!({"query": "{ lamps(limit: 10000) { id light } }", "collection": collection});
        let path = "api/v1/flow/default/service/rows";
        let found = self.insist(path, ask).await?;
        let all = found.pointer("/data/lamps").and_then(Value::as_array);
        let all = all.with_context(|| found.to_string())?;
        Ok(sorted(all.iter().map(Value::to_string)))
    }

    /// What was kept of each document: all that was found in it.
    async fn cores(&self) -> Result<BTreeMap<String, Core>> {
        let ask = json!({"operation": "list-kg-cores"});
        let told = self.insist("api/v1/knowledge", ask).await?;
        let listed = told["ids"].as_array().context("no cores")?.iter();
        let listed = sorted(listed.filter_map(Value::as_str).map(str::to_owned));
        let documents: Vec<String> = (0..DOCUMENTS).map(id).collect();
        ensure!(listed == documents, "{listed:?}");
        let mut cores = BTreeMap::new();
        for (document, id) in documents.into_iter().enumerate() {
            let core = cores_by_content::read(&self.url(), &id).await?;
            for part in 0..=document % 2 {
                let said = format!("lamp{document:03}x{part} is a lantern");
                let found = core.triples.iter().any(|triple| triple.contains(&said));
                ensure!(found && !core.vectors.is_empty(), "{id}: {said}: {core:?}");
            }
            cores.insert(id, core);
        }
        Ok(cores)
    }

    async fn declare_rows(&self) -> Result<()> {
        let schema = json!({"name": "lamps", "description": "Lamps", "fields": [
            {"name": "id", "type": "string", "primary_key": true},
            {"name": "light", "type": "string"}]});
        let put = json!({"operation": "put",
            "values": [{"type": "schema", "key": "lamps", "value": schema.to_string()}]});
        self.insist("api/v1/config", put).await?;
        let start = json!({"operation": "start-flow", "flow-id": "tables",
            "blueprint-name": "structured", "description": "rows"});
        self.insist("api/v1/flow", start).await.map(drop)
    }

    /// Every store holds the same of what was disturbed and what was not, each thing once. Returns the number of quads.
    async fn same_everywhere(&self) -> Result<usize> {
        let (vectors, near) = self.vectors("quiet").await?;
        ensure!(vectors.len() == CHUNKS, "{} chunks", vectors.len());
        once(&vectors)?;
        same("vectors", &self.vectors("lamps").await?.1, &near)?;
        ensure!(self.keywords("lamps").await? == vectors, "keywords differ");
        let (entities, near) = self.entities("quiet").await?;
        ensure!(entities.len() > CHUNKS, "{} entities", entities.len());
        once(&entities)?;
        same("entities", &self.entities("lamps").await?.1, &near)?;
        let rows = self.rows("quiet").await?;
        ensure!(rows.len() == ROWS, "{} rows", rows.len());
        once(&rows)?;
        ensure!(self.rows("lamps").await? == rows, "rows differ");
        let (disturbed, lamps) = self.quads("lamps").await?;
        let (quiet, _) = self.quads("quiet").await?;
        ensure!(lamps == CHUNKS, "{lamps} lamps");
        let differ: Vec<_> = disturbed.symmetric_difference(&quiet).take(10).collect();
        ensure!(
            differ.is_empty(),
            "{} and {}: {differ:#?}",
            disturbed.len(),
            quiet.len()
        );
        Ok(quiet.len())
    }

    async fn keywords(&self, collection: &str) -> Result<Vec<String>> {
        let ask = json!({"query": "lantern", "limit": 10_000, "collection": collection});
        let found = self
            .insist("api/v1/flow/default/service/keyword-index", ask)
            .await?;
        named(&found, "chunks", "chunk_id")
    }

    /// Every quad, and how many say what a lamp gives.
    async fn quads(&self, collection: &str) -> Result<(BTreeSet<String>, usize)> {
        let url = format!(
            "{}api/v1/flow/default/export/triples?stored=1&collection={collection}",
            self.url()
        );
        let text = tg_testkit::process::client()?
            .get(url)
            .send()
            .await?
            .text()
            .await?;
        let (mut all, mut lamps) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            let frame: Value = serde_json::from_str(line)?;
            for triple in frame["triples"].as_array().into_iter().flatten() {
                let mut quad = triple.clone();
                // When something was done differs, and nothing else; it is said once of each activity.
                if quad["p"]["i"] == STARTED {
                    quad["o"]["v"] = json!("");
                }
                let quad = quad.to_string();
                ensure!(all.insert(quad.clone()), "twice: {quad}");
                if triple["o"]["v"]
                    .as_str()
                    .is_some_and(|text| text.ends_with("is a lantern"))
                {
                    lamps.insert(triple["s"].to_string());
                }
            }
        }
        Ok((all, lamps.len()))
    }
}

fn id(document: usize) -> String {
    format!("urn:doc:lamp-{document:03}")
}

/// The names of what a list has, in order.
fn named(found: &Value, list: &str, name: &str) -> Result<Vec<String>> {
    let all = found[list].as_array();
    let all = all.with_context(|| format!("no {list}: {found}"))?;
    Ok(sorted(all.iter().map(|one| one[name].to_string())))
}

fn sorted(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

/// None of what is sorted is there twice.
fn once(all: &[String]) -> Result<()> {
    match all.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => bail!("twice: {}", pair[0]),
        None => Ok(()),
    }
}

/// Two lists that are in order hold the same.
fn same(what: &str, one: &[String], other: &[String]) -> Result<()> {
    let differ = one.iter().zip(other).find(|(one, other)| one != other);
    ensure!(
        one == other,
        "{what}: {} and {}: {differ:?}",
        one.len(),
        other.len()
    );
    Ok(())
}

/// Calls that got their whole answer, by what they asked.
fn paid(model: &ScriptedModel) -> BTreeMap<String, usize> {
    let mut paid = BTreeMap::new();
    for call in model.calls().iter().filter(|call| call.finished) {
        *paid.entry(call.body["messages"].to_string()).or_default() += 1;
    }
    paid
}

/// The end of what a process logged.
fn tail(process: &Server) -> String {
    let log = process.log();
    let from = log.char_indices().rev().nth(2000).map_or(0, |(at, _)| at);
    log[from..].to_owned()
}

/// The process that answers.
fn is_gateway(name: &str) -> bool {
    ["gateway", EVERYTHING].contains(&name)
}

async fn whatever_dies_meanwhile(bus: Bus) -> Result<()> {
    let mut system = System::start(bus).await?;
    system.declare_rows().await?;
    system.add().await?;
    let victims = system.victims();
    // One wave of documents for each fault: the disk, each victim, the broker.
    let waves = victims.len() + 2;
    let wave = |at: usize| DOCUMENTS * at / waves..DOCUMENTS * (at + 1) / waves;
    system.disk.fill().await?;
    let (full, asked) = tokio::join!(
        async {
            system.full().await?;
            system.disk.resize(ROOM).await
        },
        system.process("lamps", wave(0)),
    );
    full.and(asked)?;
    for (at, victim) in victims.iter().copied().enumerate() {
        system.kill_at_work(victim, at, wave(at + 1)).await?;
    }
    system.process("lamps", wave(waves - 1)).await?;
    if let Some(node) = &mut system.node {
        node.kill9().await?;
        node.restart().await?;
    }
    system.finish("lamps").await?;
    let again: usize = paid(&system.model).values().map(|times| times - 1).sum();
    ensure!(again <= PAID_AGAIN, "{again} calls were paid again");

    // The same once more, undisturbed: the model is not asked, and every store holds the same.
    // What the cores hold is read before it is written anew.
    let cores = system.cores().await?;
    let calls = system.model.count();
    system.process("quiet", 0..DOCUMENTS).await?;
    system.finish("quiet").await?;
    ensure!(system.model.count() == calls, "copies were paid");
    let quads = system.same_everywhere().await?;
    for (id, core) in system.cores().await? {
        let before = cores.get(&id);
        ensure!(
            before == Some(&core),
            "{id}: {before:#?} before, {core:#?} now"
        );
    }
    println!("{quads} quads, {calls} calls, {again} paid again");
    Ok(())
}

on_both_buses!(whatever_dies_meanwhile);
