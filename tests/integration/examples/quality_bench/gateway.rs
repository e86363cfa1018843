//! A running system as the bench asks it: documents in, chunks and answers out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{FLOW, words};

const TG: &str = "https://trustgraph.ai/ns/";

/// How passages are looked for.
#[derive(Clone, Copy)]
pub enum Mode {
    /// The vector store alone, without the reranker.
    Nearest,
    /// The keyword index alone, without the reranker.
    Words,
    /// `document-rag`: `retrieval-mode` and `rerank-diversity-mode`.
    Asked(&'static str, &'static str),
}

/// The gateway of one system.
pub struct Gateway {
    pub client: reqwest::Client,
    pub url: String,
}

impl Gateway {
    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        let url = format!("{}api/v1/{path}", self.url);
        let response = self.client.post(url).json(&body).send().await?;
        let status = response.status();
        let reply: Value = response.json().await?;
        ensure!(
            status.is_success() && reply["error"].is_null(),
            "{path}: {reply}"
        );
        Ok(reply)
    }

    pub async fn service(&self, service: &str, body: Value) -> Result<Value> {
        self.post(&format!("flow/{FLOW}/service/{service}"), body)
            .await
    }
}

/// Puts a document into the library and processes it to the end.
pub async fn process(gateway: &Gateway, path: &Path, bound: Duration) -> Result<()> {
    let name = path.file_name().context("no name")?.to_string_lossy();
    let id = format!("urn:quality:{name}");
    let kind = if name.ends_with(".md") {
        "text/markdown"
    } else {
        "text/plain"
    };
    let add = json!({
        "operation": "add-document",
        "document-metadata": {
            "id": id, "kind": kind, "title": name, "comments": "", "time": 1, "metadata": [], "tags": [],
            "workspace": "default", "user": "default",
        },
        "content": STANDARD.encode(std::fs::read(path)?),
    });
    gateway.post("librarian", add).await?;
    let start = json!({
        "operation": "add-processing",
        "processing-metadata": {
            "id": id, "document-id": id, "time": 1, "flow": FLOW, "collection": "default", "tags": [],
        },
    });
    gateway.post("librarian", start).await?;
    let end = Instant::now() + bound;
    loop {
        let reply = gateway
            .post("librarian", json!({"operation": "list-processing"}))
            .await?;
        let records = reply["processing-metadatas"].as_array().cloned();
        let records = records.unwrap_or_default();
        let record = records.iter().find(|record| record["id"] == id.as_str());
        let record = record.context("no record")?;
        match record["status"].as_str() {
            Some("complete") => return Ok(()),
            Some("processing") if Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            _ => bail!("{record}"),
        }
    }
}

pub struct Chunk {
    pub document: String,
    pub text: String,
}

/// Every chunk with its document's name and its words.
pub async fn chunks(gateway: &Gateway) -> Result<HashMap<String, Chunk>> {
    let list = json!({"operation": "list-documents", "include-children": true});
    let reply = gateway.post("librarian", list).await?;
    let all = reply["document-metadatas"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let parents: BTreeMap<&str, &str> = all
        .iter()
        .filter_map(|one| Some((one["id"].as_str()?, one["parent-id"].as_str()?)))
        .collect();
    let mut chunks = HashMap::new();
    for one in &all {
        if one["document-type"] != "chunk" {
            continue;
        }
        let id = one["id"].as_str().context("no id")?;
        let mut top = id;
        while let Some(parent) = parents.get(top).filter(|parent| !parent.is_empty()) {
            top = parent;
        }
        let get = json!({"operation": "get-document-content", "document-id": id});
        let reply = gateway.post("librarian", get).await?;
        let bytes = STANDARD.decode(reply["content"].as_str().unwrap_or_default())?;
        let chunk = Chunk {
            document: top.trim_start_matches("urn:quality:").to_owned(),
            text: words(&String::from_utf8_lossy(&bytes)),
        };
        chunks.insert(id.to_owned(), chunk);
    }
    Ok(chunks)
}

/// What a question brought.
#[derive(Default)]
pub struct Found {
    /// Chunks, best first.
    pub chosen: Vec<String>,
    /// Everything that was looked at.
    pub retrieved: HashSet<String>,
    /// The answer, where one was asked for.
    pub answer: Option<String>,
    /// Chunks that the answer's numbers name, the first by 1.
    pub cited: Vec<String>,
}

pub async fn ask(gateway: &Gateway, mode: Mode, question: &str, top: usize) -> Result<Found> {
    let (retrieval, diversity) = match mode {
        Mode::Nearest => {
            let embedded = gateway
                .service("embeddings", json!({"texts": [question]}))
                .await?;
            let ask = json!({"vector": embedded["vectors"][0], "limit": top});
            let reply = gateway.service("document-embeddings", ask).await?;
            return Ok(listed(&reply));
        }
        Mode::Words => {
            let ask = json!({"query": question, "limit": top});
            let reply = gateway.service("keyword-index", ask).await?;
            return Ok(listed(&reply));
        }
        Mode::Asked(retrieval, diversity) => (retrieval, diversity),
    };
    let ask = json!({
        "query": question, "doc-limit": top, "retrieval-mode": retrieval,
        "rerank-diversity-mode": diversity, "explainable": true,
    });
    traced(&gateway.service("document-rag", ask).await?)
}

pub fn listed(reply: &Value) -> Found {
    let chunks = reply["chunks"].as_array().into_iter().flatten();
    let id = |chunk: &Value| chunk["chunk_id"].as_str().map(str::to_owned);
    let chosen: Vec<String> = chunks.filter_map(id).collect();
    Found {
        retrieved: chosen.iter().cloned().collect(),
        chosen,
        ..Found::default()
    }
}

/// Reads the trace that comes with an answer.
pub fn traced(reply: &Value) -> Result<Found> {
    let triples: Vec<(&str, &str, &str)> = reply["explain_triples"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|triple| {
            let o = triple["o"]["i"].as_str()?;
            Some((triple["s"]["i"].as_str()?, triple["p"]["i"].as_str()?, o))
        })
        .collect();
    ensure!(!triples.is_empty(), "no trace in {reply}");
    let of = |name: &str| {
        let predicate = format!("{TG}{name}");
        let found: Vec<_> = triples
            .iter()
            .filter(|triple| triple.1 == predicate)
            .collect();
        found
    };
    // A selection is named by its number; the exploration links to chunks themselves.
    let mut selections: Vec<(usize, &str, &str)> = Vec::new();
    for (s, _, o) in of("document") {
        let number = s.rsplit(':').next().and_then(|end| end.parse().ok());
        if let Some(number) = number.filter(|_| s.contains(":prov:chunk:")) {
            selections.push((number, s, o));
        }
    }
    selections.sort_unstable();
    let names: HashSet<&str> = selections.iter().map(|selection| selection.1).collect();
    let retrieved = of("selectedChunk")
        .into_iter()
        .filter(|(_, _, o)| !names.contains(o))
        .map(|(_, _, o)| (*o).to_owned())
        .collect();
    let cited = reply["citations"].as_array().into_iter().flatten();
    let chunk = |citation: &Value| citation["chunk"].as_str().unwrap_or_default().to_owned();
    let cited = cited.map(chunk).collect();
    Ok(Found {
        chosen: selections
            .iter()
            .map(|selection| selection.2.to_owned())
            .collect(),
        retrieved,
        answer: Some(reply["response"].as_str().unwrap_or_default().to_owned()),
        cited,
    })
}
