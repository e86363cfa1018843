//! What cores hold, read as files: triples and vectors, and no more of a document.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value, json};
use tg_core_file::msgpack::{self, Scanner};
use tg_testkit::process::client;

const STARTED: &str = "http://www.w3.org/ns/prov#startedAtTime";
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
/// Vocabularies whose labels a collection has once: in the core of whichever document came first.
const VOCABULARIES: [&str; 4] = [
    "http://purl.org/dc/elements/",
    "http://www.w3.org/",
    "https://schema.org/",
    "https://trustgraph.ai/ns/",
];

/// What there is in a core.
#[derive(Debug, Default, PartialEq)]
pub struct Core {
    /// But for the times when something was begun, and the labels of vocabularies.
    pub triples: BTreeSet<String>,
    /// Each with its numbers, and the model that they are of.
    pub vectors: BTreeSet<String>,
}

/// Reads one.
pub async fn read(url: &str, id: &str) -> Result<Core> {
    let id = percent_encode(id.as_bytes(), NON_ALPHANUMERIC);
    let asked = client()?.get(format!("{url}api/v1/export-core?id={id}"));
    let response = asked.send().await?;
    ensure!(response.status() == 200, "{id}: {}", response.status());
    let mut bytes = response.bytes().await?.to_vec();
    let mut core = Core::default();
    while !bytes.is_empty() {
        let end = Scanner::default().end(&bytes)?.context("a cut record")?;
        note(&msgpack::decode(&bytes[..end])?, &mut core);
        bytes.drain(..end);
    }
    Ok(core)
}

fn note(record: &Value, core: &mut Core) {
    let all = |key: &str| record[1][key].as_array().into_iter().flatten();
    match record[0].as_str() {
        Some("t") => {
            for triple in all("t") {
                let subject = triple["s"]["i"].as_str().unwrap_or_default();
                let is_shared = VOCABULARIES.iter().any(|one| subject.starts_with(one));
                if is_shared && triple["p"]["i"] == LABEL {
                    continue;
                }
                let mut triple = triple.clone();
                if triple["p"]["i"] == STARTED {
                    triple["o"]["v"] = json!("");
                }
                core.triples.insert(triple.to_string());
            }
        }
        Some("ge") => {
            let model = &record[1]["x"];
            let all = all("e").map(|one| format!("{model} {one}"));
            core.vectors.extend(all);
        }
        _ => {}
    }
}
