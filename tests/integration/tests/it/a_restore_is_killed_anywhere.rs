//! A restore is killed at ten places, counted in bytes that it had sent: into the system it came from, into an empty
//! workspace and into one that holds half of it. Nothing that was there is gone, and the same command goes on to the end.

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

use crate::world::{Bus, busy, post, up};

/// Places where it is killed.
const PLACES: u64 = 10;
/// A restore of a small bundle has ended by then.
const BOUND: Duration = Duration::from_secs(60);
/// Goes up in parts.
const LARGE: &str = "All of it is one and the same. ";
const SMALL: [(&str, &str); 3] = [
    ("urn:doc:lamp", "The lamp was built by Ada Brisk in 1891."),
    ("urn:doc:bridge", "The bridge was built by Tobias Kell."),
    ("urn:doc:ferry", "The ferry leaves at nine."),
];
const FACTS: &str = "<urn:e:tower> <urn:p:name> \"Turm\"@de .\n<urn:e:tower> <urn:p:high> \"12\" .\n\
    <urn:sub> <urn:contains> <<( <urn:e:a> <urn:p:b> \"c\" )>> .\n";

/// Passes connections on to a server until so many bytes went there.
struct Relay {
    url: String,
    passed: Arc<AtomicU64>,
    full: Arc<Notify>,
}

impl Relay {
    async fn to(port: u16, most: u64) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let relay = Self {
            url: format!("http://{}/", listener.local_addr()?),
            passed: Arc::default(),
            full: Arc::default(),
        };
        let (passed, full) = (relay.passed.clone(), relay.full.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (passed, full) = (passed.clone(), full.clone());
                tokio::spawn(async move {
                    let server = TcpStream::connect(("127.0.0.1", port)).await?;
                    let (mut from, mut back) = client.into_split();
                    let (mut answers, mut to) = server.into_split();
                    tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
                    let mut bytes = vec![0; 4096];
                    loop {
                        let read = from.read(&mut bytes).await?;
                        let before = passed.fetch_add(read as u64, Ordering::SeqCst);
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

/// What a workspace holds: documents with their content, triples by collection, configuration.
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
    for document in listed["document-metadatas"]
        .as_array()
        .context("documents")?
    {
        let id = document["id"].as_str().context("an id")?.to_owned();
        let content = json!({"operation": "get-document-content", "document-id": id});
        let content = ask("librarian", content).await?;
        let content = content["content"].as_str().context("a content")?.to_owned();
        documents.insert(id, content);
    }
    let mut triples = BTreeMap::new();
    for collection in ["default", "facts"] {
        let request =
            json!({"workspace": workspace, "collection": collection, "limit": 10_000, "g": "*"});
        let (_, reply) = post(url, "api/v1/flow/default/service/triples", request).await?;
        let all = reply["response"].as_array().into_iter().flatten();
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

async fn fill(url: &str, workspace: &str, documents: &[(&str, &str)]) -> Result<()> {
    for (id, text) in documents {
        let add = json!({"operation": "add-document", "workspace": workspace, "content": STANDARD.encode(text),
            "document-metadata": {"id": id, "kind": "text/plain", "title": id}});
        let (status, reply) = post(url, "api/v1/librarian", add).await?;
        ensure!(status == 200 && reply.get("error").is_none(), "{reply}");
    }
    Ok(())
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

async fn at_ten_places(bus: Bus) -> Result<()> {
    let _busy = busy().await;
    let (server, _node) = up(bus).await?;
    let (url, port) = (server.url(), server.port());
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (bundle, facts) = (path("w.tgx"), path("facts.nt"));
    std::fs::write(&facts, FACTS)?;
    fill(&url, "default", &SMALL).await?;
    let large = LARGE.repeat(72_000);
    fill(&url, "default", &[("urn:doc:large", &large)]).await?;
    ended(
        &tg(&url, &["set-collection", "facts", "-n", "Facts"]).await?,
        0,
    )?;
    ended(
        &tg(
            &url,
            &["load-turtle", "-i", "urn:doc", "-C", "facts", &facts],
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
        source.documents.len() == 4 && source.triples["facts"].len() == 3,
        "{source:?}"
    );

    // How much a whole one sends.
    workspace(&url, "measured").await?;
    let relay = Relay::to(port, u64::MAX).await?;
    let restore = [
        "import-workspace",
        "-w",
        "measured",
        "-i",
        &bundle,
        "--overwrite",
    ];
    ended(&tg(&relay.url, &restore).await?, 0)?;
    held(&url, "measured").await?.covers(&source)?;
    let whole = relay.passed.load(Ordering::SeqCst);

    for place in 0..PLACES {
        let bytes = whole * (2 * place + 1) / (2 * PLACES);
        let names = [format!("empty{place}"), format!("half{place}")];
        let own = [
            ("urn:doc:own", "Mine."),
            ("urn:doc:ferry", "The ferry leaves at ten."),
        ];
        for name in &names {
            workspace(&url, name).await?;
        }
        fill(&url, &names[1], &[&own[..], &SMALL[..1]].concat()).await?;
        for name in ["default", &names[0], &names[1]] {
            let told = |error: anyhow::Error| error.context(format!("{name}, {bytes} of {whole}"));
            let before = held(&url, name).await?;
            let restore = ["import-workspace", "-w", name, "-i", &bundle, "--overwrite"];
            killed_after(port, &restore, bytes).await.map_err(told)?;
            let now = held(&url, name).await?;
            // What differs is as the bundle has it; nothing else is gone.
            let mut least = before.clone();
            for (id, content) in &mut least.documents {
                if now.documents.get(id) == source.documents.get(id) {
                    content.clone_from(&now.documents[id]);
                }
            }
            now.covers(&least).map_err(told)?;
            ended(&tg(&url, &restore).await?, 0).map_err(told)?;
            let now = held(&url, name).await?;
            now.covers(&source).map_err(told)?;
            let own = before.documents.get("urn:doc:own");
            ensure!(now.documents.get("urn:doc:own") == own, "{name}: {now:?}");
            let extra = usize::from(own.is_some());
            ensure!(
                now.documents.len() == source.documents.len() + extra,
                "{name}"
            );
            ensure!(now.triples["facts"] == source.triples["facts"], "{name}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn embedded() -> Result<()> {
    at_ten_places(Bus::Embedded).await
}

#[tokio::test]
async fn over_rabbitmq() -> Result<()> {
    at_ten_places(Bus::Rabbit).await
}

/// What is bad in a bundle is told and holds up nothing else; what is cut off or has no flow changes nothing.
#[tokio::test]
async fn what_is_bad_is_passed_over() -> Result<()> {
    let (server, _) = up(Bus::Embedded).await?;
    let url = server.url();
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
    let before = held(&url, "default").await?;

    let nowhere = tg(&url, &["import-workspace", "-i", &bundle, "-f", "nosuch"]).await?;
    ended(&nowhere, 3)?;
    ensure!(
        nowhere.stderr.contains("nothing was imported"),
        "{nowhere:?}"
    );
    let whole = std::fs::read(&path)?;
    let cut = folder.path().join("cut.tgx").to_string_lossy().into_owned();
    std::fs::write(&cut, &whole[..whole.len() - 9])?;
    let refused = tg(&url, &["import-workspace", "-i", &cut]).await?;
    ensure!(refused.code != Some(0), "{refused:?}");
    ensure!(
        refused.stderr.contains("nothing was imported"),
        "{refused:?}"
    );
    ensure!(held(&url, "default").await? == before);

    let imported = tg(&url, &["import-workspace", "-i", &bundle]).await?;
    ended(&imported, 1)?;
    imported.expect("Imported 1 config items (0 skipped), 2 triples, 1 documents (0 skipped).")?;
    for told in [
        "config/prompt/torn.json was not imported: ",
        "triples of collection default was not imported: 1 lines cannot be read",
        "urn:e was not imported: the bundle does not hold its content",
    ] {
        ensure!(imported.stderr.contains(told), "{told}: {imported:?}");
    }
    let now = held(&url, "default").await?;
    ensure!(now.triples["default"].len() == 2, "{now:?}");
    ensure!(
        now.documents["urn:d"] == STANDARD.encode("Content."),
        "{now:?}"
    );
    ensure!(now.prompts.contains_key("mine"), "{now:?}");
    Ok(())
}
