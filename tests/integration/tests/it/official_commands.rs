//! Each official command of PyPI's package, unmodified, against a system with users: what it prints and how it ends.
//! Most of them end with 0 when they fail, so what they print counts. The three chapters run side by side.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_core_file::msgpack;
use tg_testkit::json_server::Server as Mcp;
use tg_testkit::official::official;
use tg_testkit::process::{Server, root};

use crate::edge::with_keys;
use crate::world::{Bus, on_both_buses};

mod configuration;
mod documents;
mod graph;
mod step;
mod table;

use step::{Step, Values};

const CHAPTERS: [&[Step]; 3] = [configuration::STEPS, graph::STEPS, documents::STEPS];

/// Steps of each chapter: one that is lost is seen.
const COUNTED: [usize; 3] = [74, 48, 79];
const _: () = {
    assert!(configuration::STEPS.len() == COUNTED[0]);
    assert!(graph::STEPS.len() == COUNTED[1]);
    assert!(documents::STEPS.len() == COUNTED[2]);
};

const TURTLE: &str = "<urn:e:a> <urn:p:name> \"café\"@fr ; <urn:p:height> 324 ; <urn:p:part> [ <urn:p:name> \"inner\" ] .\n\
    <urn:e:b> <http://www.w3.org/2000/01/rdf-schema#label> \"Bee\" .\n";
const TRIG: &str = "<urn:e:c> <urn:p:name> \"see\" .\n\
    <urn:g:one> { <urn:e:c> <urn:p:in> <urn:e:d> . <urn:e:c> a <urn:t:T> . _:x <urn:p:name> \"blank\" . }\n";
const LANTERN: &str = "The Harrowgate lantern is a lamp made of blue glass. The Harrowgate lantern was built by \
    Ottoline Frask in 1887. Ottoline Frask was a glassblower from Pellworth. The lantern hangs in the hall of the \
    Pellworth museum. Visitors may light it on the first Sunday of May.\n";
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps with maker and height", "fields": [
    {"name": "id", "type": "integer", "primary_key": true},
    {"name": "maker", "type": "string", "indexed": true},
    {"name": "height", "type": "float"}]}"#;

/// What the commands read.
fn files(folder: &Path) -> Result<()> {
    let field = |name: &str| json!({"source_field": name, "target_field": name, "transforms": []});
    let descriptor = json!({
        "format": {"type": "csv", "options": {"delimiter": ",", "has_header": true}},
        "mappings": [field("id"), field("maker"), field("height")],
        "output": {"format": "trustgraph-objects", "schema_name": "lamps",
                   "options": {"confidence": 0.9, "batch_size": 10}},
    });
    let chunk = json!({"i": "urn:chunk:1", "v": [0.5, 2.0], "a": {}});
    let core = json!(["de", {"m": {"i": "urn:core:3", "m": "", "c": "default"}, "c": [chunk]}]);
    let mut packed = Vec::new();
    msgpack::encode(&core, &mut packed);
    let descriptor = descriptor.to_string();
    let large = "A line of a large text, no. 1.\n".repeat(80_646);
    let files: [(&str, &[u8]); 8] = [
        ("g.ttl", TURTLE.as_bytes()),
        ("g.trig", TRIG.as_bytes()),
        ("lantern.txt", LANTERN.as_bytes()),
        ("large.txt", &large.as_bytes()[..2_500_000]),
        ("rows.csv", b"id,maker,height\n1,Frask,12.5\n2,Bell,3\n"),
        ("rows.json", descriptor.as_bytes()),
        ("p.png", b"\x89PNG\r\n\x1a\n"),
        ("de", &packed),
    ];
    for (name, content) in files {
        std::fs::write(folder.join(name), content)?;
    }
    Ok(())
}

/// An MCP server with one tool, which repeats what it is told.
pub async fn mcp() -> Mcp {
    Mcp::start(|_, ask| {
        let result = match ask["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": "2025-03-26", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"}})
            }
            Some("tools/call") => {
                let said = ask["params"]["arguments"]["say"]
                    .as_str()
                    .unwrap_or_default();
                json!({"content": [{"type": "text", "text": format!("heard {said}")}]})
            }
            _ => return Some((202, String::new(), Value::Null)),
        };
        let kind = "content-type: application/json\r\n".to_owned();
        let reply = json!({"jsonrpc": "2.0", "id": ask["id"], "result": result});
        Some((200, kind, reply))
    })
    .await
}

pub async fn first_key(server: &Server) -> Result<String> {
    let made = official(&server.url(), "tg-bootstrap-iam", &[]).await?;
    let mut words = made.stdout.split_whitespace();
    let key = words.find(|word| word.starts_with("tg_"));
    Ok(key.with_context(|| format!("{made:?}"))?.to_owned())
}

async fn chapter(steps: &[Step], url: &str, key: &str, mut values: Values) -> Result<()> {
    let mut wrong = Vec::new();
    for step in steps {
        if let Err(why) = step.take(url, key, &mut values).await {
            wrong.push(why.to_string());
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

on_both_buses!(each_does_what_it_says);

async fn each_does_what_it_says(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let server = with_keys().over(node.as_ref()).ready().await?;
    let (url, key) = (server.url(), first_key(&server).await?);
    let (folder, mcp) = (tempfile::tempdir()?, mcp().await);
    files(folder.path())?;
    let mut values = Values::default();
    values.set("url", url.as_str());
    values.set("mcp", format!("{}/mcp", mcp.url));
    values.set("dir", format!("{}/", folder.path().display()));
    values.set("schema", SCHEMA);
    let pdf = root().join("demo/documents/uncommon-clocks.pdf");
    values.set("pdf", pdf.to_string_lossy());
    let run = |steps| chapter(steps, &url, &key, values.clone());
    let [first, second, third] = CHAPTERS;
    let told = tokio::join!(run(first), run(second), run(third));
    let wrong = [told.0, told.1, told.2].into_iter().filter_map(Result::err);
    let wrong: Vec<String> = wrong.map(|why| why.to_string()).collect();
    ensure!(wrong.is_empty(), "{}\n{}", wrong.join("\n\n"), server.log());
    Ok(())
}

#[test]
fn every_command_has_a_row_and_its_steps() -> Result<()> {
    let steps = CHAPTERS.iter().copied().flatten();
    let run: BTreeSet<&str> = steps
        .filter_map(|step| step.line.first().copied())
        .collect();
    table::is_whole(&run)?;
    let told = std::fs::read_to_string(root().join("docs/limits.md"))?;
    let counted = format!("{} steps", COUNTED.iter().sum::<usize>());
    ensure!(
        told.contains(&counted),
        "docs/limits.md does not say {counted}"
    );
    Ok(())
}
