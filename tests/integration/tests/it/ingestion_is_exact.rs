//! Two hundred documents go in while one process after the other is killed, the broker restarts and a disk is
//! full for a while: at the end every chunk is there once in every store, and no model call was paid twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server};
use tg_testkit::rabbitmq::RabbitNode;
use tokio::process::Command;
use tokio::time::Instant;

use crate::world::post;

const DOCUMENTS: usize = 200;
/// Everything is processed by then, on a busy machine and with every pause that the faults cause.
const BOUND: Duration = Duration::from_secs(600);
/// What is killed, each in a process of its own.
const VICTIMS: [&str; 8] = [
    "graph",
    "extract",
    "ingest",
    "vectors",
    "librarian",
    "llm",
    "embeddings",
    "prompt",
];
const REST: [&str; 9] = [
    "config",
    "iam",
    "flow",
    "rag",
    "rows",
    "tool",
    "knowledge",
    "agent",
    "gateway",
];
/// A call may be under way, or its answer not stored yet, in so many handlers when a process dies or a
/// connection breaks; only those may ask again.
const UNDER_WAY: usize = 16;

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
        Reply::text(lines.join("\n")).delayed(Duration::from_millis(15))
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
    ]
}

/// A file system of its own for one data directory, so that it can be full.
struct SmallDisk(PathBuf);

impl SmallDisk {
    async fn mount(at: &Path, size: &str) -> Result<Self> {
        std::fs::create_dir_all(at)?;
        as_root(
            &[
                "mount",
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=0777"),
                "tmpfs",
            ],
            at,
        )
        .await?;
        Ok(Self(at.to_path_buf()))
    }

    async fn resize(&self, size: &str) -> Result<()> {
        as_root(&["mount", "-o", &format!("remount,size={size}")], &self.0).await
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let (program, args) = rooted(&["umount", "-l"]);
        let _ = std::process::Command::new(program)
            .args(args)
            .arg(&self.0)
            .status();
    }
}

/// Mounting needs root, as the set-up does.
fn rooted<'a>(words: &[&'a str]) -> (&'a str, Vec<&'a str>) {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    if is_root {
        (words[0], words[1..].to_vec())
    } else {
        ("sudo", [&["-n"], words].concat())
    }
}

async fn as_root(words: &[&str], path: &Path) -> Result<()> {
    let (program, args) = rooted(words);
    let status = Command::new(program).args(args).arg(path).status().await?;
    ensure!(status.success(), "{words:?}: {status}");
    Ok(())
}

struct System {
    // Processes end before the disk below them goes.
    processes: BTreeMap<&'static str, (Launch, Server)>,
    rest: Server,
    model: ScriptedModel,
    node: RabbitNode,
    /// None where no file system can be mounted: then the full disk is left out, and that is said.
    disk: Option<SmallDisk>,
    _dir: tempfile::TempDir,
}

impl System {
    async fn start() -> Result<Self> {
        let node = RabbitNode::start().await?;
        let model = ScriptedModel::start(model()).await?;
        let dir = tempfile::tempdir()?;
        let disk = SmallDisk::mount(&dir.path().join("graph"), "3m").await.ok();
        let serve = |services: &[&str]| {
            Launch::serve(services, &node.url())
                .env("OPENAI_BASE_URL", model.url())
                .env("OPENAI_API_KEY", "sk-test-secret-4711")
                .env("OPENAI_MODEL", "scripted")
        };
        let mut rest = serve(&REST).spawn().await?;
        let mut processes = BTreeMap::new();
        for victim in VICTIMS {
            let launch = serve(&[victim]).data(&dir.path().join(victim));
            let process = launch.clone().spawn().await?;
            processes.insert(victim, (launch, process));
        }
        rest.wait_ready().await?;
        Ok(Self {
            processes,
            rest,
            model,
            node,
            disk,
            _dir: dir,
        })
    }

    async fn ask(&self, path: &str, body: Value) -> Result<Value> {
        let (status, reply) = post(&self.rest.url(), path, body).await?;
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

    async fn process(&self, collection: &str) -> Result<()> {
        for document in 0..DOCUMENTS {
            let process = json!({"operation": "add-processing", "processing-metadata":
                {"id": format!("{collection}-{document}"), "document-id": id(document),
                 "flow": "default", "collection": collection, "tags": []}});
            self.insist("api/v1/librarian", process).await?;
        }
        Ok(())
    }

    /// How many processings of a collection are complete, and one that is over otherwise.
    async fn complete(&self, collection: &str) -> Result<(usize, Option<Value>)> {
        let listed = json!({"operation": "list-processing"});
        let reply = self.insist("api/v1/librarian", listed).await?;
        let records = reply["processing-metadatas"].as_array().cloned();
        let (mut complete, mut odd) = (0, None);
        for record in records.unwrap_or_default() {
            if record["collection"] != collection {
                continue;
            }
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
            if complete == DOCUMENTS {
                return Ok(());
            }
            if let Some(record) = odd {
                let failed = record["status"] == "failed" || !record["warnings"].is_null();
                ensure!(failed && record["retry"] == "retry-processing", "{record}");
                let retry = json!({"operation": "retry-processing", "processing-id": record["id"]});
                self.insist("api/v1/librarian", retry).await?;
            }
            if Instant::now() > end {
                let mut text = format!("{complete} of {DOCUMENTS} are complete");
                for (name, (_, process)) in &self.processes {
                    let log = process.log();
                    let from = log.char_indices().rev().nth(2000).map_or(0, |(at, _)| at);
                    text.push_str(&format!("\n--- {name}\n{}", &log[from..]));
                }
                bail!(text);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Waits until some more are complete, so that each fault meets work under way.
    async fn progress(&self, collection: &str, more: usize) -> Result<()> {
        let (before, _) = self.complete(collection).await?;
        let end = Instant::now() + Duration::from_secs(8);
        while self.complete(collection).await?.0 < (before + more).min(DOCUMENTS)
            && Instant::now() < end
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn kill(&mut self, victim: &'static str) -> Result<()> {
        let (launch, process) = self.processes.remove(victim).context("no such process")?;
        process.kill9().await?;
        let process = launch.clone().spawn().await?;
        self.processes.insert(victim, (launch, process));
        Ok(())
    }

    /// Chunks that the vector index has, as often as it has them.
    async fn vectors(&self, collection: &str) -> Result<Vec<String>> {
        let flow = "api/v1/flow/default/service";
        let ask = json!({"texts": ["a lantern of glass"]});
        let embedded = self.insist(&format!("{flow}/embeddings"), ask).await?;
        let ask =
            json!({"vector": embedded["vectors"][0], "limit": 10_000, "collection": collection});
        let found = self
            .insist(&format!("{flow}/document-embeddings"), ask)
            .await?;
        chunks(&found)
    }

    async fn keywords(&self, collection: &str) -> Result<Vec<String>> {
        let ask = json!({"query": "lantern", "limit": 10_000, "collection": collection});
        let found = self
            .insist("api/v1/flow/default/service/keyword-index", ask)
            .await?;
        chunks(&found)
    }

    /// Every quad, and how many say what a lamp gives.
    async fn quads(&self, collection: &str) -> Result<(BTreeSet<String>, usize)> {
        let url = format!(
            "{}api/v1/flow/default/export/triples?stored=1&collection={collection}",
            self.rest.url()
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
                let quad = triple.to_string();
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

fn chunks(found: &Value) -> Result<Vec<String>> {
    let chunks = found["chunks"].as_array().context("no chunks")?;
    let mut ids: Vec<_> = chunks
        .iter()
        .map(|chunk| chunk["chunk_id"].as_str().unwrap_or_default().to_owned())
        .collect();
    ids.sort();
    Ok(ids)
}

/// Calls that got their whole answer, by what they asked.
fn paid(model: &ScriptedModel) -> BTreeMap<String, usize> {
    let mut paid = BTreeMap::new();
    for call in model.calls().iter().filter(|call| call.finished) {
        *paid.entry(call.body["messages"].to_string()).or_default() += 1;
    }
    paid
}

#[tokio::test]
async fn whatever_dies_meanwhile() -> Result<()> {
    let mut system = System::start().await?;
    system.add().await?;
    system.process("lamps").await?;
    for victim in VICTIMS {
        system.progress("lamps", 10).await?;
        system.kill(victim).await?;
    }
    system.node.kill9().await?;
    system.node.restart().await?;
    system.progress("lamps", 10).await?;
    if let Some(disk) = &system.disk {
        let end = Instant::now() + Duration::from_secs(60);
        while !system.processes["graph"].1.log().contains("disk is full") {
            ensure!(Instant::now() < end, "the disk was never full");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        disk.resize("400m").await?;
    } else {
        println!("the full disk is not tested here: no file system can be mounted");
    }
    system.finish("lamps").await?;
    let again: usize = paid(&system.model).values().map(|times| times - 1).sum();
    let faults = VICTIMS.len() + 1;
    ensure!(again <= faults * UNDER_WAY, "{again} calls were paid again");

    // The same once more, undisturbed: the model is not asked, and every store holds the same.
    let calls = system.model.count();
    system.process("quiet").await?;
    system.finish("quiet").await?;
    ensure!(system.model.count() == calls, "copies were paid");
    let vectors = system.vectors("quiet").await?;
    let several: BTreeSet<_> = vectors.iter().collect();
    ensure!(several.len() == vectors.len(), "a chunk is there twice");
    ensure!(
        vectors.len() >= DOCUMENTS * 3 / 2,
        "{} chunks",
        vectors.len()
    );
    ensure!(system.vectors("lamps").await? == vectors, "vectors differ");
    ensure!(
        system.keywords("lamps").await? == vectors,
        "keywords differ"
    );
    let (disturbed, lamps) = system.quads("lamps").await?;
    let (quiet, _) = system.quads("quiet").await?;
    ensure!(lamps == DOCUMENTS * 3 / 2, "{lamps} lamps");
    let differ: Vec<_> = disturbed.symmetric_difference(&quiet).take(10).collect();
    ensure!(
        disturbed.len() == quiet.len(),
        "{} and {}: {differ:#?}",
        disturbed.len(),
        quiet.len()
    );
    println!(
        "{} chunks, {} quads, {calls} calls, {again} paid again",
        vectors.len(),
        quiet.len()
    );
    Ok(())
}
