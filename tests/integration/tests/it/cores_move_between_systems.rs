//! Knowledge cores go from file to system, into a collection, and on to another system, through the official
//! commands: nothing is lost on the way, least of all types, languages and quoted triples.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tg_core_file::msgpack::{self, Scanner};
use tg_testkit::official::official;
use tg_testkit::process::tg;
use tokio::time::Instant;

use crate::world::{Bus, post, up};

/// A small document is processed by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
const CORE: &str = "urn:core:tower";
const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";

/// A core with everything that is easily lost.
fn core() -> Vec<Value> {
    let meta = json!({"i": CORE, "m": "", "c": "default"});
    let iri = |text: &str| json!({"t": "i", "i": text});
    let height = json!({"t": "l", "v": "324", "dt": INTEGER});
    let name = json!({"t": "l", "v": "Turm", "ln": "de"});
    let quoted =
        json!({"t": "t", "tr": {"s": iri("urn:e:tower"), "p": iri("urn:p:height"), "o": height}});
    let triples = json!([
        {"s": iri("urn:e:tower"), "p": iri("urn:p:height"), "o": height},
        {"s": iri("urn:e:tower"), "p": iri("urn:p:name"), "o": name},
        {"s": iri("urn:subgraph:1"), "p": iri("https://trustgraph.ai/ns/contains"), "o": quoted,
         "g": "urn:graph:source"},
    ]);
    vec![
        json!(["t", {"m": meta, "t": triples}]),
        json!(["ge", {"m": meta, "e": [{"e": iri("urn:e:tower"), "v": [0.5, -0.25, 1.0]}]}]),
        json!(["lm", {"i": CORE, "k": "text/plain", "t": "The tower", "p": "", "d": "source",
                      "c": "about a tower", "g": ["towers"]}]),
        json!(["lb", {"i": CORE, "d": "VGhlIHRvd2VyIGlzIDMyNCBtIGhpZ2guCg=="}]),
        json!(["lm", {"i": "urn:core:tower/1", "k": "text/plain", "t": "Page 1", "p": CORE, "d": "page",
                      "c": "", "g": []}]),
        json!(["lb", {"i": "urn:core:tower/1", "d": "VGhlIHRvd2Vy"}]),
    ]
}

fn write(path: &Path, records: &[Value]) -> Result<()> {
    let mut bytes = Vec::new();
    for record in records {
        msgpack::encode(record, &mut bytes);
    }
    Ok(std::fs::write(path, bytes)?)
}

fn read(path: &Path) -> Result<Vec<Value>> {
    let mut bytes = std::fs::read(path)?;
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let end = Scanner::default().end(&bytes)?.context("a cut record")?;
        records.push(msgpack::decode(&bytes[..end])?);
        bytes.drain(..end);
    }
    Ok(records)
}

/// Triples of a collection.
async fn triples(url: &str, collection: &str) -> Result<Vec<Value>> {
    let ask = json!({"collection": collection, "limit": 1000});
    let (_, reply) = post(url, "api/v1/flow/default/service/triples", ask).await?;
    let all = reply["response"].as_array();
    Ok(all.with_context(|| format!("{reply}"))?.clone())
}

fn has_all(found: &[Value], wanted: &Value) -> bool {
    let wanted = wanted.as_array().into_iter().flatten();
    wanted.into_iter().all(|triple| found.contains(triple))
}

/// From file to system to file; into a collection and out again.
async fn moved(url: &str, folder: &Path) -> Result<()> {
    let (file, back) = (folder.join("in.core"), folder.join("out.core"));
    write(&file, &core())?;
    let (file, out) = (file.to_string_lossy(), back.to_string_lossy());
    let run = |command: &'static str, args: Vec<String>| async move {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        official(url, command, &args).await
    };
    let args = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();

    // Twice is as good as once.
    for _ in 0..2 {
        run("tg-put-kg-core", args(&["--id", CORE, "-i", &file]))
            .await?
            .expect("Put: 1 triple, 1 GE, 2 library metadata, 2 library blob messages.")?;
    }
    run("tg-show-kg-cores", vec![]).await?.expect(CORE)?;
    run("tg-show-library-documents", vec![])
        .await?
        .expect("The tower")?;
    run("tg-get-kg-core", args(&["--id", CORE, "-o", &out]))
        .await?
        .expect("Got: 1 triple, 1 GE, 2 library metadata, 2 library blob messages.")?;
    ensure!(read(&back)? == core(), "{:?}", read(&back)?);

    run(
        "tg-load-kg-core",
        args(&["--id", CORE, "-f", "default", "-C", "moved"]),
    )
    .await?
    .refuse("xception")?;
    // The command ends when the stores have it: nothing is waited for.
    let found = triples(url, "moved").await?;
    ensure!(has_all(&found, &core()[0][1]["t"]), "{found:?}");
    let query = args(&["-s", "urn:e:tower", "-C", "moved"]);
    run("tg-query-graph", query).await?.expect("324")?;
    let vector = json!({"vector": [0.5, -0.25, 1.0], "collection": "moved", "limit": 5});
    let (_, reply) = post(url, "api/v1/flow/default/service/graph-embeddings", vector).await?;
    ensure!(
        reply["entities"][0]["entity"]["i"] == "urn:e:tower",
        "{reply}"
    );
    let listed = run("tg-list-collections", vec![]).await?;
    listed.expect("moved")?;

    run(
        "tg-load-kg-core",
        args(&["--id", "urn:no:core", "-C", "moved"]),
    )
    .await?
    .expect("there is no such core")?;
    run("tg-load-kg-core", args(&["--id", CORE, "-f", "nowhere"]))
        .await?
        .expect("there is no flow")?;

    run("tg-unload-kg-core", args(&["--id", CORE, "-f", "default"]))
        .await?
        .refuse("xception")?;
    let left = triples(url, "moved").await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

/// Our own command and our own key words keep more than the official ones.
async fn chunks_too(url: &str, folder: &Path) -> Result<()> {
    let (file, back) = (folder.join("in.de"), folder.join("out.de"));
    let meta = json!({"i": CORE, "m": "", "c": "default"});
    let chunk = json!({"i": "urn:core:tower/1", "v": [0.5, 2.0], "a": {"page": "1"}});
    let records = vec![json!(["de", {"m": meta, "c": [chunk], "x": "a-model"}])];
    write(&file, &records)?;
    let (file, out) = (file.to_string_lossy(), back.to_string_lossy());
    tg(url, &["put-de-core", "--id", CORE, "-i", &file])
        .await?
        .expect("1 document-embeddings")?;
    tg(url, &["get-de-core", "--id", CORE, "-o", &out]).await?;
    ensure!(read(&back)? == records, "{:?}", read(&back)?);
    official(url, "tg-get-de-core", &["--id", CORE, "-o", &out])
        .await?
        .expect("Got: 1 document embeddings messages.")?;
    official(url, "tg-put-de-core", &["--id", "other", "-i", &out])
        .await?
        .refuse("xception")?;
    tg(url, &["show-de-cores"]).await?.expect("other")?;
    let loaded = tg(
        url,
        &["load-de-core", "--id", CORE, "-C", "moved", "--json"],
    )
    .await?;
    loaded.expect("\"chunks\": 1")?;
    Ok(())
}

/// What a document became is its core, which answers in another system.
async fn learned(from: &str, to: &str, folder: &Path) -> Result<()> {
    let document = "urn:doc:lantern";
    let text = folder.join("lantern.txt");
    std::fs::write(
        &text,
        "The Harrowgate lantern was built by Ottoline Frask in 1887. Ottoline Frask was a glassblower.\n",
    )?;
    let (text, file) = (text.to_string_lossy(), folder.join("lantern.core"));
    let out = file.to_string_lossy();
    let add = [
        "--id",
        document,
        "--name",
        "lantern",
        "-k",
        "text/plain",
        &text,
    ];
    official(from, "tg-add-library-document", &add).await?;
    let process = [
        "-d",
        document,
        "--id",
        "p",
        "-i",
        "default",
        "--collection",
        "docs",
    ];
    official(from, "tg-start-library-processing", &process).await?;
    let end = Instant::now() + BOUND;
    loop {
        let ask = json!({"operation": "list-processing", "workspace": "default"});
        let (_, reply) = post(from, "api/v1/librarian", ask).await?;
        match reply["processing-metadatas"][0]["status"].as_str() {
            Some("complete") => break,
            Some("processing") if Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            _ => bail!("{reply}"),
        }
    }
    // Complete means that the core is, too.
    official(from, "tg-get-kg-core", &["--id", document, "-o", &out])
        .await?
        .refuse("rror")?;
    let records = read(&file)?;
    for tag in ["t", "ge", "lm", "lb"] {
        ensure!(records.iter().any(|one| one[0] == tag), "no {tag}");
    }
    official(to, "tg-put-kg-core", &["--id", document, "-i", &out])
        .await?
        .refuse("xception")?;
    official(to, "tg-load-kg-core", &["--id", document, "-C", "docs"])
        .await?
        .refuse("xception")?;
    official(
        to,
        "tg-invoke-graph-rag",
        &["-q", "Who is Ottoline Frask?", "-C", "docs"],
    )
    .await?
    .expect("glassblower")?;
    let provenance = [document, "-C", "docs", "--show-content"];
    let ours = [
        "show-extraction-provenance",
        document,
        "-C",
        "docs",
        "--show-content",
    ];
    official(to, "tg-show-extraction-provenance", &provenance)
        .await?
        .expect("chunk")?;
    tg(to, &ours)
        .await?
        .expect("glassblower")?
        .expect("edge:")?;

    official(to, "tg-delete-kg-core", &["--id", document])
        .await?
        .refuse("xception")?;
    official(to, "tg-show-kg-cores", &[])
        .await?
        .refuse(document)?;
    Ok(())
}

async fn story(bus: Bus) -> Result<()> {
    let (one, _node) = up(bus).await?;
    let (other, _) = up(Bus::Embedded).await?;
    let (from, to) = (one.url(), other.url());
    let folder = tempfile::tempdir()?;
    let all = async {
        moved(&from, folder.path()).await?;
        chunks_too(&from, folder.path()).await?;
        learned(&from, &to, folder.path()).await
    };
    all.await
        .with_context(|| format!("{}\n{}", one.log(), other.log()))
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
