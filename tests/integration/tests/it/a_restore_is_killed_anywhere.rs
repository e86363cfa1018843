//! A restore that processes is killed at ten places, counted in bytes that it had sent: into the system it came from, into
//! an empty workspace and into one that holds half of it. Nothing that was there is gone, each document is the old or the
//! new one in whole, the same command goes on to the end, and then questions have the answers and citations of the source.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::{Output, bin_dir, tg};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::Notify;

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses, post, up};

/// Places where it is killed.
const PLACES: u64 = 10;
/// A restore of a small bundle has ended by then.
const BOUND: Duration = Duration::from_secs(60);
/// Goes up in parts; what is read of it is short.
const LARGE: &str = "All of it is one and the same. ";
const TOWER: &str =
    "<!doctype html><title>Tower</title><p>The tower was built by Ilse Korvin in 1850.</p>";
const SMALL: [(&str, &str); 3] = [
    ("urn:doc:lamp", "The lamp was built by Ada Brisk in 1891."),
    ("urn:doc:bridge", "The bridge was built by Tobias Kell."),
    (
        "urn:doc:ferry",
        "The ferry was built by Jonas Quist in 1903.",
    ),
];
const STARTED: &str = "http://www.w3.org/ns/prov#startedAtTime";
/// Each is answered from one of them.
const QUESTIONS: [(&str, &str); 3] = [
    ("Who built the ferry?", "urn:doc:ferry"),
    ("Who built the bridge?", "urn:doc:bridge"),
    ("Who built the tower?", "urn:doc:large"),
];
/// What one that holds half of it has: another ferry, another tower, and one of its own.
const OTHER: [(&str, &str); 4] = [
    ("urn:doc:own", "Mine."),
    ("urn:doc:ferry", "The ferry was built by Nora Vane in 1911."),
    (
        "urn:doc:large",
        "<!doctype html><p>The tower was built by Edda Marl in 1860.</p>",
    ),
    SMALL[0],
];
const FACTS: &str = "<urn:e:tower> <urn:p:name> \"Turm\"@de .\n<urn:e:tower> <urn:p:high> \"12\" .\n\
    <urn:sub> <urn:contains> <<( <urn:e:a> <urn:p:b> \"c\" )>> .\n";

/// Passes connections on to a server until so many bytes went there.
struct Relay {
    url: String,
    passed: Arc<AtomicU64>,
    /// How many had gone there when the first processing was asked for; 0: none was.
    processing: Arc<AtomicU64>,
    full: Arc<Notify>,
}

impl Relay {
    async fn to(port: u16, most: u64) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let relay = Self {
            url: format!("http://{}/", listener.local_addr()?),
            passed: Arc::default(),
            processing: Arc::default(),
            full: Arc::default(),
        };
        let (passed, full) = (relay.passed.clone(), relay.full.clone());
        let processing = relay.processing.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (passed, full) = (passed.clone(), full.clone());
                let processing = processing.clone();
                tokio::spawn(async move {
                    let server = TcpStream::connect(("127.0.0.1", port)).await?;
                    let (mut from, mut back) = client.into_split();
                    let (mut answers, mut to) = server.into_split();
                    tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
                    let mut bytes = vec![0; 4096];
                    loop {
                        let read = from.read(&mut bytes).await?;
                        let before = passed.fetch_add(read as u64, Ordering::SeqCst);
                        if String::from_utf8_lossy(&bytes[..read]).contains("add-processing") {
                            let order = Ordering::SeqCst;
                            let _ = processing.compare_exchange(0, before, order, order);
                        }
                        let room = most.saturating_sub(before).min(read as u64) as usize;
                        to.write_all(&bytes[..room]).await?;
                        if room < read {
                            full.notify_one();
                            return std::future::pending::<std::io::Result<()>>().await;
                        }
                        if read == 0 {
                            return to.shutdown().await;
                        }
                    }
                });
            }
        });
        Ok(relay)
    }
}

/// What a workspace holds: documents with the hash of their content (but for the answers that questions leave), triples by
/// collection, configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    documents: BTreeMap<String, String>,
    triples: BTreeMap<String, BTreeSet<String>>,
    prompts: BTreeMap<String, String>,
}

async fn held(url: &str, workspace: &str) -> Result<Held> {
    let ask = |service: &'static str, mut request: Value| async move {
        request["workspace"] = json!(workspace);
        let (status, reply) = post(url, &format!("api/v1/{service}"), request).await?;
        ensure!(status == 200, "{service}: {reply}");
        anyhow::Ok(reply)
    };
    let mut documents = BTreeMap::new();
    let listed = json!({"operation": "list-documents", "include-children": true});
    let listed = ask("librarian", listed).await?;
    let listed = listed["document-metadatas"].as_array();
    let listed = listed.context("documents")?.iter();
    for document in listed.filter(|document| document["document-type"] != "answer") {
        let id = document["id"].as_str().context("an id")?.to_owned();
        let content = document["content-hash"].as_str().context("a hash")?;
        documents.insert(id, content.to_owned());
    }
    let mut triples = BTreeMap::new();
    for collection in ["default", "facts"] {
        let request =
            json!({"workspace": workspace, "collection": collection, "limit": 10_000, "g": "*"});
        let (_, reply) = post(url, "api/v1/flow/default/service/triples", request).await?;
        let all = reply["response"].as_array().into_iter().flatten();
        // When something was made is another time whenever it is processed.
        let all = all.filter(|one| one["p"]["i"] != STARTED);
        triples.insert(collection.to_owned(), all.map(Value::to_string).collect());
    }
    let request = json!({"operation": "getvalues", "type": "prompt"});
    let values = ask("config", request).await?;
    let values = values["values"].as_array().into_iter().flatten();
    let prompts = values
        .filter_map(|one| Some((one["key"].as_str()?.to_owned(), one["value"].to_string())))
        .collect();
    Ok(Held {
        documents,
        triples,
        prompts,
    })
}

impl Held {
    /// Documents that are nobody's part.
    fn whole(&self) -> usize {
        let whole = self.documents.keys();
        whole.filter(|id| id.starts_with("urn:doc:")).count()
    }

    /// Everything of `other` is here as it is there.
    fn covers(&self, other: &Self) -> Result<()> {
        for (id, content) in &other.documents {
            ensure!(self.documents.get(id) == Some(content), "document {id}");
        }
        for (key, prompt) in &other.prompts {
            ensure!(self.prompts.get(key) == Some(prompt), "prompt {key}");
        }
        for (collection, triples) in &other.triples {
            let missing: Vec<_> = triples.difference(&self.triples[collection]).collect();
            ensure!(missing.is_empty(), "{collection} lacks {missing:?}");
        }
        Ok(())
    }
}

fn ended(output: &Output, code: i32) -> Result<()> {
    ensure!(output.code == Some(code), "{output:?}");
    Ok(())
}

async fn library(url: &str, workspace: &str, mut ask: Value) -> Result<Value> {
    ask["workspace"] = json!(workspace);
    let (status, reply) = post(url, "api/v1/librarian", ask).await?;
    ensure!(status == 200 && reply.get("error").is_none(), "{reply}");
    Ok(reply)
}

async fn fill(url: &str, workspace: &str, documents: &[(&str, &str)]) -> Result<()> {
    for (id, text) in documents {
        let kind = match text.starts_with("<!doctype html>") {
            true => "text/html",
            false => "text/plain",
        };
        let add = json!({"operation": "add-document", "content": STANDARD.encode(text),
            "document-metadata": {"id": id, "kind": kind, "title": id}});
        library(url, workspace, add).await?;
    }
    Ok(())
}

/// Processes documents and waits for the end of it.
async fn process(url: &str, workspace: &str, documents: &[&str]) -> Result<()> {
    for id in documents {
        let add = json!({"operation": "add-processing", "processing-metadata":
            {"id": format!("by hand {id}"), "document-id": id, "flow": "default", "collection": "default"}});
        library(url, workspace, add).await?;
    }
    settled(url, workspace).await
}

/// Waits until everything that is processed has come to its end, and that is a good one.
async fn settled(url: &str, workspace: &str) -> Result<()> {
    let end = tokio::time::Instant::now() + BOUND;
    loop {
        let reply = library(url, workspace, json!({"operation": "list-processing"})).await?;
        let all = reply["processing-metadatas"].as_array();
        let all = all.context("processings")?;
        if all.iter().all(|one| one["status"] != "processing") {
            ensure!(all.iter().all(|one| one["status"] == "complete"), "{all:?}");
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < end, "{all:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What so many of the questions are answered, with the passage that each answer cites.
async fn answers(url: &str, workspace: &str, many: usize) -> Result<Vec<(String, Value)>> {
    let mut answers = Vec::new();
    for (question, _) in QUESTIONS.iter().take(many) {
        let ask = json!({"query": question, "workspace": workspace, "collection": "default"});
        let (status, reply) = post(url, "api/v1/flow/default/service/document-rag", ask).await?;
        ensure!(status == 200, "{question}: {reply}");
        let said = reply["response"].as_str().unwrap_or_default().to_owned();
        answers.push((said, reply["citations"][0].clone()));
    }
    Ok(answers)
}

/// A workspace with a running flow.
async fn workspace(url: &str, name: &str) -> Result<()> {
    ended(&tg(url, &["create-workspace", name]).await?, 0)?;
    let start = [
        "start-flow",
        "-w",
        name,
        "-i",
        "default",
        "-n",
        "everything",
        "-d",
        "restored",
    ];
    ended(&tg(url, &start).await?, 0)
}

/// One restore that is killed when it has sent so many bytes.
async fn killed_after(port: u16, restore: &[&str], bytes: u64) -> Result<()> {
    let relay = Relay::to(port, bytes).await?;
    let mut command = Command::new(bin_dir()?.join("tg"))
        .args(restore)
        .env("TRUSTGRAPH_URL", &relay.url)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    tokio::time::timeout(BOUND, relay.full.notified())
        .await
        .context("it did not send so much")?;
    command.start_kill()?;
    let status = command.wait().await?;
    ensure!(status.code().is_none(), "it had ended before: {status}");
    Ok(())
}

/// A system whose workspace `default` is restored from a bundle.
struct Scene<'a> {
    url: &'a str,
    port: u16,
    bundle: &'a str,
    large: &'a str,
    source: &'a Held,
    answers: &'a [(String, Value)],
}

/// A workspace that is restored into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Same,
    Empty,
    Half,
}

/// How much a restore sends, and how much of it before it asks for the first processing.
#[derive(Debug, Clone, Copy)]
struct Size {
    whole: u64,
    documents: u64,
}

impl Size {
    /// After how many bytes it is killed: mostly on the way, three times while processing begins, where it does.
    fn place(self, place: u64) -> u64 {
        let early = PLACES - 3;
        let part = |size: u64, at: u64, of: u64| size * (2 * at + 1) / (2 * of);
        match (self.documents, place.checked_sub(early)) {
            (0, _) => part(self.whole, place, PLACES),
            (documents, None) => part(documents, place, early),
            (documents, Some(late)) => documents + part(self.whole - documents, late, 3),
        }
    }
}

impl Scene<'_> {
    fn restore<'a>(&'a self, workspace: &'a str) -> [&'a str; 7] {
        [
            "import-workspace",
            "-w",
            workspace,
            "-i",
            self.bundle,
            "--overwrite",
            "--process",
        ]
    }

    /// Makes a workspace ready to be restored into.
    async fn prepare(&self, target: Target, name: &str) -> Result<()> {
        if target != Target::Same {
            workspace(self.url, name).await?;
        }
        if target == Target::Half {
            fill(self.url, name, &OTHER).await?;
            process(self.url, name, &["urn:doc:ferry", "urn:doc:large"]).await?;
        }
        Ok(())
    }

    /// How much a restore into such a workspace sends.
    async fn measured(&self, target: Target, name: &str) -> Result<Size> {
        self.prepare(target, name).await?;
        let relay = Relay::to(self.port, u64::MAX).await?;
        ended(&tg(&relay.url, &self.restore(name)).await?, 0)?;
        settled(self.url, name).await?;
        let size = Size {
            whole: relay.passed.load(Ordering::SeqCst),
            documents: relay.processing.load(Ordering::SeqCst),
        };
        // Where all was processed before nothing is asked for.
        ensure!((size.documents > 0) == (target != Target::Same), "{size:?}");
        Ok(size)
    }

    /// Restores into a workspace, killed at a place, and again.
    async fn killed_at(&self, target: Target, name: &str, bytes: u64) -> Result<()> {
        self.prepare(target, name).await?;
        let before = held(self.url, name).await?;
        let asked = answers(self.url, name, 1).await?;
        match target {
            Target::Same => ensure!(asked == self.answers[..1], "{asked:?}"),
            Target::Empty => ensure!(asked[0].1.is_null(), "{asked:?}"),
            Target::Half => ensure!(asked[0].0.contains("Nora Vane"), "{asked:?}"),
        }
        let restore = self.restore(name);
        killed_after(self.port, &restore, bytes).await?;
        settled(self.url, name).await?;
        self.lost_nothing(target, name, &before).await?;
        let asked = answers(self.url, name, 1).await?;
        match target {
            Target::Same => ensure!(asked == self.answers[..1], "{asked:?}"),
            Target::Empty => {}
            // Of the old or of the new one, but of one of them.
            Target::Half => ensure!(asked[0].1["document"] == "urn:doc:ferry", "{asked:?}"),
        }
        ended(&tg(self.url, &restore).await?, 0)?;
        settled(self.url, name).await?;
        let asked = answers(self.url, name, QUESTIONS.len()).await?;
        ensure!(asked == self.answers, "{asked:?}, not {:?}", self.answers);
        let now = held(self.url, name).await?;
        now.covers(self.source)?;
        let own = before.documents.get("urn:doc:own");
        ensure!(now.documents.get("urn:doc:own") == own, "{now:?}");
        let extra = usize::from(own.is_some());
        ensure!(now.whole() == self.source.whole() + extra, "{now:?}");
        ensure!(now.triples["facts"] == self.source.triples["facts"]);
        Ok(())
    }

    /// What differs is as the bundle has it; nothing else is gone.
    async fn lost_nothing(&self, target: Target, name: &str, before: &Held) -> Result<()> {
        let now = held(self.url, name).await?;
        // The one that goes up in parts can be read, as it was or as it is to be.
        let ask = json!({"operation": "get-document-content", "document-id": "urn:doc:large"});
        if now.documents.contains_key("urn:doc:large") {
            let reply = library(self.url, name, ask).await?;
            let content = reply["content"].as_str().unwrap_or_default();
            let whole = [self.large, OTHER[2].1].map(|text| STANDARD.encode(text));
            ensure!(whole.iter().any(|whole| whole == content), "{name}");
        }
        let mut least = before.clone();
        if target == Target::Half {
            // What was made of the other ferry goes with it.
            least.documents.retain(|id, _| id.starts_with("urn:doc:"));
            least.triples.remove("default");
        }
        for (id, content) in &mut least.documents {
            if now.documents.get(id) == self.source.documents.get(id) {
                content.clone_from(&now.documents[id]);
            }
        }
        now.covers(&least)
    }
}

async fn at_ten_places(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let (url, port) = (server.url(), server.port());
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (bundle, facts) = (path("w.tgx"), path("facts.nt"));
    std::fs::write(&facts, FACTS)?;
    fill(&url, "default", &SMALL).await?;
    let large = format!("{TOWER}<!-- {} -->", LARGE.repeat(68_000));
    fill(&url, "default", &[("urn:doc:large", &large)]).await?;
    let ids: Vec<&str> = SMALL.iter().map(|(id, _)| *id).collect();
    process(&url, "default", &[&ids[..], &["urn:doc:large"]].concat()).await?;
    ended(
        &tg(&url, &["set-collection", "facts", "-n", "Facts"]).await?,
        0,
    )?;
    ended(
        &tg(
            &url,
            &["load-turtle", "-C", "facts", "--source", "never", &facts],
        )
        .await?,
        0,
    )?;
    ended(
        &tg(
            &url,
            &["set-prompt", "--id", "mine", "--prompt", "Say {{x}}."],
        )
        .await?,
        0,
    )?;
    ended(&tg(&url, &["export-workspace", "-o", &bundle]).await?, 0)?;
    let source = held(&url, "default").await?;
    ensure!(
        source.whole() == 4 && source.triples["facts"].len() == 3,
        "{source:?}"
    );
    let answered = answers(&url, "default", QUESTIONS.len()).await?;
    for ((said, cited), (question, document)) in answered.iter().zip(QUESTIONS) {
        ensure!(cited["document"] == document, "{question}: {said} {cited}");
    }
    ensure!(answered[0].0.contains("Jonas Quist"), "{answered:?}");
    let scene = Scene {
        url: &url,
        port,
        bundle: &bundle,
        large: &large,
        source: &source,
        answers: &answered,
    };
    // The first one processes what was not processed by a restore before.
    ended(&tg(&url, &scene.restore("default")).await?, 0)?;
    settled(&url, "default").await?;
    let same = scene.measured(Target::Same, "default").await?;
    let empty = scene.measured(Target::Empty, "emptym").await?;
    let half = scene.measured(Target::Half, "halfm").await?;
    for place in 0..PLACES {
        let (one, other) = (format!("empty{place}"), format!("half{place}"));
        let at = [same, empty, half].map(|size| size.place(place));
        tokio::try_join!(
            scene.killed_at(Target::Same, "default", at[0]),
            scene.killed_at(Target::Empty, &one, at[1]),
            scene.killed_at(Target::Half, &other, at[2]),
        )
        .with_context(|| format!("place {place}: {at:?} of {same:?}, {empty:?}, {half:?}"))?;
    }
    Ok(())
}

/// What is bad in a bundle is told and holds up nothing else; what is cut off or has no flow changes nothing.
async fn what_is_bad_is_passed_over(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let (url, id) = (place.url.as_str(), place.id.as_str());
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("w.tgx");
    let bundle = path.to_string_lossy().into_owned();
    let members = [
        ("manifest.json", r#"{"format":"tgx","format_version":1}"#),
        ("config/prompt/torn.json", "{"),
        (
            "config/prompt/mine.json",
            r#"{"type":"prompt","key":"mine","value":{"prompt":"Say."}}"#,
        ),
        (
            "knowledge/default/triples.nq",
            "<urn:a> <urn:p> \"1\" .\n<urn:a> nonsense\n<urn:a> <urn:p> \"2\" .\n",
        ),
        (
            "knowledge/library/urn%3Ad.meta.json",
            r#"{"id":"urn:d","kind":"text/plain","title":"D"}"#,
        ),
        ("knowledge/library/urn%3Ad.content", "Content."),
        (
            "knowledge/library/urn%3Ae.meta.json",
            r#"{"id":"urn:e","kind":"text/plain","title":"E"}"#,
        ),
    ];
    let file = std::fs::File::create(&path)?;
    let packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let mut tar = tar::Builder::new(packed);
    for (name, body) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(body.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name, body.as_bytes())?;
    }
    tar.into_inner()?.finish()?;
    let before = held(url, id).await?;

    let nowhere = place
        .tg(&["import-workspace", "-i", &bundle, "-f", "nosuch"])
        .await?;
    ended(&nowhere, 3)?;
    ensure!(
        nowhere.stderr.contains("nothing was imported"),
        "{nowhere:?}"
    );
    let whole = std::fs::read(&path)?;
    let cut = folder.path().join("cut.tgx").to_string_lossy().into_owned();
    std::fs::write(&cut, &whole[..whole.len() - 9])?;
    let refused = place.tg(&["import-workspace", "-i", &cut]).await?;
    ensure!(refused.code != Some(0), "{refused:?}");
    ensure!(
        refused.stderr.contains("nothing was imported"),
        "{refused:?}"
    );
    ensure!(held(url, id).await? == before);

    let imported = place.tg(&["import-workspace", "-i", &bundle]).await?;
    ended(&imported, 1)?;
    imported.expect("Imported 1 config item (0 skipped), 2 triples, 1 document (0 skipped).")?;
    for told in [
        "config/prompt/torn.json was not imported: ",
        "triples of collection default was not imported: 1 lines cannot be read",
        "urn:e was not imported: the bundle does not hold its content",
    ] {
        ensure!(imported.stderr.contains(told), "{told}: {imported:?}");
    }
    let now = held(url, id).await?;
    ensure!(now.triples["default"].len() == 2, "{now:?}");
    let ask = json!({"operation": "get-document-content", "document-id": "urn:d"});
    let reply = library(url, id, ask).await?;
    ensure!(reply["content"] == STANDARD.encode("Content."), "{reply}");
    ensure!(now.prompts.contains_key("mine"), "{now:?}");
    Ok(())
}

on_both_buses!(at_ten_places, what_is_bad_is_passed_over);
