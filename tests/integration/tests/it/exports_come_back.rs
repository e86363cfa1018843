//! Every kind that can be imported can be exported as it is stored, and what was exported is imported again, into another
//! collection, which then has the same.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::client;

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

const SOON: Duration = Duration::from_secs(60);
const LINES: &str = "application/x-ndjson";
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps", "fields": [
    {"name": "id", "type": "string", "primary_key": true}, {"name": "watts", "type": "integer"}]}"#;

/// A kind, what its frames have their items under, and items of it.
type Kind = (&'static str, &'static str, Value);

/// With what is easily lost: types, languages, graphs, quoted triples, attributes, texts.
fn kinds() -> [Kind; 5] {
    let iri = |name: &str| json!({"t": "i", "i": name});
    let plain = |at: usize| json!({"s": iri(&format!("urn:x:{at}")), "p": iri("urn:x:p"), "o": {"t": "l", "v": "o", "l": "de"}});
    let triples = json!([
        plain(0),
        {"s": iri("urn:x:1"), "p": iri("urn:x:p"), "o": {"t": "l", "v": "1", "d": "http://www.w3.org/2001/XMLSchema#integer"}},
        {"s": iri("urn:x:2"), "p": iri("urn:x:says"), "o": {"t": "t", "tr": plain(0)}, "g": "urn:x:graph"},
    ]);
    let entities = json!([
        {"entity": iri("urn:x:a"), "vector": [0.5, 1.0], "chunk_id": "urn:x:chunk", "rdf_type": ["urn:x:T"],
         "attributes": {"year": 1999}, "text": "words"},
        {"entity": iri("urn:x:b"), "vector": [1.0, -0.25], "chunk_id": "urn:x:chunk"},
    ]);
    let chunks = json!([
        {"chunk_id": "urn:x:chunk:1", "vector": [0.5, 1.0], "text": "words"},
        {"chunk_id": "urn:x:chunk:2", "vector": [1.0, 0.25]},
    ]);
    let contexts = json!([
        {"entity": iri("urn:x:a"), "context": "keeps the lamps", "chunk_id": "urn:x:chunk", "rdf_type": ["urn:x:T"]},
        {"entity": iri("urn:x:b"), "context": "is a lamp", "chunk_id": "urn:x:chunk", "attributes": {"year": 1999}},
    ]);
    let rows = json!([{"id": "1", "watts": "40"}, {"id": "2", "watts": "60"}]);
    [
        ("triples", "triples", triples),
        ("graph-embeddings", "entities", entities),
        ("document-embeddings", "chunks", chunks),
        ("entity-contexts", "entities", contexts),
        ("rows", "values", rows),
    ]
}

struct System(Workspace);

impl System {
    fn path(&self, path: &str) -> String {
        self.0.path(&format!("api/v1/{path}"))
    }

    async fn import(&self, kind: &str, lines: String) -> Result<()> {
        let url = self.path(&format!("flow/default/import/{kind}?settled=true"));
        let sent = client()?.post(url).header("content-type", LINES);
        let told: Value = sent.body(lines).send().await?.json().await?;
        // Contexts become vectors in another process: the store tells of those.
        ensure!(told["stored"] == told["received"], "{kind}: {told}");
        Ok(())
    }

    /// The frames of all that is stored.
    async fn export(&self, kind: &str, collection: &str) -> Result<Vec<Value>> {
        let url = format!("flow/default/export/{kind}?stored=1&collection={collection}");
        let text = client()?.get(self.path(&url)).send().await?.text().await?;
        let lines = text.lines().map(serde_json::from_str);
        let mut frames = lines.collect::<serde_json::Result<Vec<Value>>>()?;
        let end = frames.pop().context("no end")?;
        ensure!(end["complete"] == true, "{kind}: {end}");
        Ok(frames)
    }

    /// Items of a collection, each as a text.
    async fn items(&self, kind: &str, list: &str, collection: &str) -> Result<BTreeSet<String>> {
        let frames = self.export(kind, collection).await?;
        let mut items = BTreeSet::new();
        for frame in &frames {
            ensure!(frame["metadata"]["collection"] == collection, "{frame}");
            let all = frame[list].as_array().context("no items")?;
            // What says where in the collection it is found is not the item.
            items.extend(
                all.iter()
                    .map(|item| format!("{} {item}", frame["schema_name"])),
            );
        }
        Ok(items)
    }
}

async fn of_each_kind(bus: Bus) -> Result<()> {
    let system = System(Workspace::shared(bus).await?);
    let row = json!([{"type": "schema", "key": "lamps", "value": SCHEMA}]);
    let put = json!({"operation": "put", "values": row});
    let (status, told) = system.0.post("api/v1/config", put).await?;
    ensure!(status == 200, "{told}");
    let end = Instant::now() + SOON;
    let asked = json!({"query": "{ lamps { id } }"});
    let rows = "api/v1/flow/default/service/rows";
    loop {
        let (_, told) = system.0.post(rows, asked.clone()).await?;
        if told["data"]["lamps"] == json!([]) {
            break;
        }
        ensure!(Instant::now() < end, "the schema is known: {told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for (kind, list, items) in kinds() {
        let [first, second] = ["first", "second"].map(|name| format!("{name}-{kind}"));
        let mut frame = json!({"metadata": {"id": "urn:x:doc", "root": "", "collection": first}, "model": "m",
                               "schema_name": "lamps", "confidence": 1.0});
        frame[list] = items.clone();
        system.import(kind, frame.to_string()).await?;
        let count = items.as_array().context("items")?.len();
        let end = Instant::now() + SOON;
        let mut there = system.items(kind, list, &first).await?;
        while there.len() < count && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(50)).await;
            there = system.items(kind, list, &first).await?;
        }
        ensure!(there.len() == count, "{kind}: {there:?}");

        let mut frames = system.export(kind, &first).await?;
        for frame in &mut frames {
            frame["metadata"]["collection"] = json!(second);
        }
        let lines: Vec<String> = frames.iter().map(Value::to_string).collect();
        system.import(kind, lines.join("\n")).await?;
        let again = system.items(kind, list, &second).await?;
        ensure!(again == there, "{kind}: {again:?} and {there:?}");
    }
    Ok(())
}

on_both_buses!(of_each_kind);
