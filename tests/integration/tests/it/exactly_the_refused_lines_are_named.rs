//! Of 10,000 lines a store refuses 7. The importer gets exactly these 7, with the reason of each: rows and triples over HTTP and at
//! the socket, and every kind by `tg`.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_schemas::limits;
use tg_testkit::process::client;
use tokio_tungstenite::tungstenite::Message;

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

const LINES: u64 = 10_000;
/// The first, the last, two beside each other, and others.
const BAD: [u64; 7] = [1, 77, 1_024, 4_999, 5_000, 7_777, LINES];
/// Items of a frame of a command.
const TOGETHER: usize = 40;
/// Triples within a triple: one more than a store takes.
const DEEP: usize = 17;
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps", "fields": [
    {"name": "id", "type": "integer", "primary_key": true}, {"name": "maker", "type": "string"}]}"#;
/// The stores have said what became of all by then.
const BOUND: Duration = Duration::from_secs(300);

fn row(line: u64) -> Value {
    let id = match BAD.contains(&line) {
        true => "many".to_owned(),
        false => line.to_string(),
    };
    json!({"id": id, "maker": "x"})
}

fn rows(values: &[Value]) -> String {
    json!({"metadata": {"id": "r", "collection": "default"}, "schema_name": "lamps", "values": values})
        .to_string()
}

fn triple(line: u64) -> String {
    let iri = |text: &str| json!({"t": "i", "i": text});
    let says = |object: Value| json!({"s": iri("urn:s"), "p": iri("urn:p"), "o": object});
    let depth = if BAD.contains(&line) { DEEP } else { 0 };
    let object = (0..depth).fold(
        iri("urn:o"),
        |object, _| json!({"t": "t", "tr": says(object)}),
    );
    let subject = iri(&format!("urn:s:{line}"));
    let triple = json!({"s": subject, "p": iri("urn:p"), "o": object});
    json!({"metadata": {"id": "t", "collection": "default"}, "triples": [triple]}).to_string()
}

fn lines(of: impl Fn(u64) -> String) -> Vec<String> {
    (1..=LINES).map(of).collect()
}

/// That what an import is told names the seven lines, each with a reason, and no other.
fn names_them(told: &Value) -> Result<()> {
    let count = |name: &str| told[name].as_u64().unwrap_or(0);
    let shown = told.to_string();
    let shown: String = shown.chars().take(4_000).collect();
    ensure!(count("received") == LINES, "{shown}");
    ensure!(count("stored") == LINES - BAD.len() as u64, "{shown}");
    // The store refuses them, and not the gateway that reads the lines.
    ensure!(count("refused") == BAD.len() as u64, "{shown}");
    let errors = told["errors"].as_array().context(shown.clone())?;
    let why = |one: &Value| {
        one["error"]["message"]
            .as_str()
            .is_some_and(|why| !why.is_empty())
    };
    ensure!(errors.iter().all(why), "{shown}");
    let named: BTreeSet<u64> = errors
        .iter()
        .filter_map(|one| one["frame"].as_u64())
        .collect();
    ensure!(named == BTreeSet::from(BAD), "{shown}");
    Ok(())
}

async fn over_http(place: &Workspace, kind: &str, lines: &[String]) -> Result<()> {
    let path = place.path(&format!("api/v1/flow/default/import/{kind}?settled=true"));
    let sent = client()?.post(path).body(lines.join("\n")).timeout(BOUND);
    names_them(&sent.send().await?.json().await?).with_context(|| kind.to_owned())
}

async fn at_the_socket(place: &Workspace, kind: &str, lines: &[String]) -> Result<()> {
    let url = place.path(&format!("api/v1/flow/default/import/{kind}?settled=1"));
    let url = url.replacen("http", "ws", 1);
    let (socket, _) = tokio_tungstenite::connect_async(url).await?;
    let (mut to, mut from) = socket.split();
    let send = async {
        for line in lines {
            to.send(Message::text(line.as_str())).await?;
        }
        to.send(Message::text(r#"{"type": "end"}"#)).await?;
        anyhow::Ok(())
    };
    let hear = async {
        while let Some(message) = from.next().await {
            if let Message::Text(text) = message? {
                let said: Value = serde_json::from_str(&text)?;
                if said["status"].is_object() {
                    return Ok(said["status"].clone());
                }
            }
        }
        anyhow::bail!("it ended without a word")
    };
    let (sent, heard) = tokio::time::timeout(BOUND, async { tokio::join!(send, hear) }).await?;
    sent?;
    names_them(&heard?).with_context(|| format!("the socket of {kind}"))
}

/// Triples of a file, one a line. The parser of the command takes those that the store finds nested too deeply.
fn facts() -> String {
    let deep = format!(
        "{}<urn:o>{}",
        "<<( <urn:s> <urn:p> ".repeat(DEEP),
        " )>>".repeat(DEEP)
    );
    let line = |line: u64| match BAD.contains(&line) {
        true => format!("<urn:f:{line}> <urn:p> {deep} .\n"),
        false => format!("<urn:f:{line}> <urn:p> <urn:o> .\n"),
    };
    (1..=LINES).map(line).collect()
}

/// Words of entities, one a line. No vector is made of the longest.
fn words() -> String {
    let line = |line: u64| match BAD.contains(&line) {
        true => {
            let long = "x".repeat(limits::EMBEDDED_TEXT + 1);
            format!("<urn:w:{line}> <urn:p> \"{long}\" .\n")
        }
        false => format!("<urn:w:{line}> <urn:p> \"words\" .\n"),
    };
    (1..=LINES).map(line).collect()
}

/// Vectors of entities, many in a frame; entities without a name are refused.
fn vectors_of_entities() -> String {
    let vector = |line: &u64| {
        let name = match BAD.contains(line) {
            true => String::new(),
            false => format!("urn:e:{line}"),
        };
        json!({"entity": {"t": "i", "i": name}, "vector": [1.0, 0.5]})
    };
    let metadata = json!({"id": "v", "collection": "default"});
    let frame = |lines: &[u64]| {
        let entities: Vec<Value> = lines.iter().map(vector).collect();
        json!({"metadata": metadata, "model": "m", "entities": entities}).to_string()
    };
    let all: Vec<u64> = (1..=LINES).collect();
    all.chunks(TOGETHER)
        .map(frame)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Vectors of chunks, many in a record; longer ones than a store takes are refused.
fn vectors_of_chunks() -> String {
    let vector = |line: &u64| {
        let length = match BAD.contains(line) {
            true => limits::DIMENSIONS + 1,
            false => 2,
        };
        json!({"c": format!("urn:c:{line}"), "v": vec![0.5; length]})
    };
    let metadata = json!({"i": "v", "m": "", "c": "default"});
    let record = |lines: &[u64]| {
        let chunks: Vec<Value> = lines.iter().map(vector).collect();
        json!(["de", {"m": metadata, "c": chunks, "x": "m"}]).to_string()
    };
    let all: Vec<u64> = (1..=LINES).collect();
    all.chunks(TOGETHER)
        .map(record)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A command sends a file, many lines of it in a frame. `shown_in` names each that was refused by its number in `by`.
async fn by_a_command(
    place: &Workspace,
    command: &[&str],
    (file, text): (&str, String),
    (shown_in, by): (&str, &str),
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(file);
    std::fs::write(&path, text)?;
    let path = path.to_str().context("a path")?;
    let ran = place.tg(&[command, &["--json", path]].concat()).await?;
    let shown = || format!("{command:?}: {} {}", ran.stdout, ran.stderr);
    ensure!(ran.code != Some(0), "{}", shown());
    let told: Value = serde_json::from_str(&ran.stdout).with_context(shown)?;
    // A command that takes several files has a list of them.
    let told = told.get(0).unwrap_or(&told);
    let refused = told[shown_in]["refused"].as_array().with_context(shown)?;
    let items = refused
        .iter()
        .flat_map(|one| one["items"].as_array().into_iter().flatten());
    let named: BTreeSet<u64> = items.filter_map(|item| item[by].as_u64()).collect();
    ensure!(named == BTreeSet::from(BAD), "{}", shown());
    Ok(())
}

/// The command that makes rows of records reads the schema. It refuses by itself what the store would, and names record and line.
async fn by_structured_data(place: &Workspace) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (csv, descriptor, errors) = (at("lamps.csv"), at("lamps.json"), at("errors.jsonl"));
    let record = |line: u64| match BAD.contains(&line) {
        true => "many,x\n".to_owned(),
        false => format!("{line},x\n"),
    };
    let records: String = (1..=LINES).map(record).collect();
    std::fs::write(&csv, format!("id,maker\n{records}"))?;
    let mappings = json!([{"source_field": "id"}, {"source_field": "maker"}]);
    let format = json!({"type": "csv"});
    let whole = json!({"format": format, "mappings": mappings, "output": {"schema_name": "lamps"}});
    std::fs::write(&descriptor, whole.to_string())?;
    let load = ["load-structured-data", "--load", "--json"];
    let files = ["-i", &csv, "-d", &descriptor, "--error-file", &errors];
    let ran = place.tg(&[&load[..], &files[..]].concat()).await?;
    let shown = || format!("{} {}", ran.stdout, ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).with_context(shown)?;
    let good = LINES - BAD.len() as u64;
    ensure!(told["rows"] == good && told["confirmed"] == good, "{told}");
    let mut named = BTreeSet::new();
    for line in std::fs::read_to_string(&errors)?.lines() {
        let refused: Value = serde_json::from_str(line)?;
        let number = refused["record"].as_u64().context("a number")?;
        // The first line has the names of the columns.
        ensure!(refused["line"] == number + 1, "{refused}");
        named.insert(number);
    }
    ensure!(named == BTreeSet::from(BAD), "{named:?}");
    Ok(())
}

async fn by_the_commands(place: &Workspace) -> Result<()> {
    let all: Vec<Value> = (1..=LINES).map(row).collect();
    let frames: Vec<String> = all.chunks(TOGETHER).map(rows).collect();
    let file = ("rows.jsonl", frames.join("\n"));
    by_a_command(place, &["load-rows"], file, ("settled", "item")).await?;
    let command = ["load-turtle", "--source", "never"];
    by_a_command(place, &command, ("facts.nt", facts()), ("settled", "line")).await?;
    // Of a collection whose vectors have the length that the flow's model makes.
    let command = ["load-knowledge", "-i", "urn:d", "-C", "words"];
    let file = ("words.nt", words());
    by_a_command(place, &command, file, ("settled-contexts", "line")).await?;
    let file = ("entities.jsonl", vectors_of_entities());
    by_a_command(place, &["load-vectors"], file, ("settled", "item")).await?;
    let command = ["load-doc-embeds", "--format", "json"];
    let file = ("chunks.json", vectors_of_chunks());
    by_a_command(place, &command, file, ("settled", "item")).await
}

async fn of_ten_thousand_lines_seven(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let row_of = json!([{"type": "schema", "key": "lamps", "value": SCHEMA}]);
    let put = json!({"operation": "put", "values": row_of});
    place.post("api/v1/config", put).await?;
    let of_rows = lines(|line| rows(&[row(line)]));
    over_http(&place, "rows", &of_rows).await?;
    at_the_socket(&place, "rows", &of_rows).await?;
    let of_triples = lines(triple);
    over_http(&place, "triples", &of_triples).await?;
    at_the_socket(&place, "triples", &of_triples).await?;
    by_structured_data(&place).await?;
    by_the_commands(&place).await
}

on_both_buses!(of_ten_thousand_lines_seven);
