//! A workspace that has used up what it may keep of triples, of rows, of vectors, of words, of knowledge cores or of
//! configuration is told so, by the quota's name, and keeps nothing more; another workspace goes on.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Launch, client};

use crate::workspaces::{make, patiently};
use crate::world::{Bus, post};

const BOUND: Duration = Duration::from_secs(60);
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps", "fields": [
    {"name": "id", "type": "integer", "primary_key": true}, {"name": "maker", "type": "string"}]}"#;

/// One workspace of a system.
struct Tenant<'a>(&'a str, &'static str);

impl Tenant<'_> {
    async fn ask(&self, service: &str, mut ask: Value) -> Result<Value> {
        ask["workspace"] = json!(self.1);
        patiently(
            self.0,
            &format!("api/v1/flow/default/service/{service}"),
            ask,
        )
        .await
    }

    async fn import(&self, kind: &str, frame: Value) -> Result<()> {
        let (url, workspace) = (self.0, self.1);
        let url = format!("{url}api/v1/flow/default/import/{kind}?workspace={workspace}");
        let sent = client()?
            .post(url)
            .body(format!("{frame}\n"))
            .send()
            .await?;
        ensure!(sent.status().is_success(), "{}", sent.text().await?);
        Ok(())
    }

    /// Rows of 300,000 bytes, each a record.
    async fn rows(&self, ids: std::ops::Range<usize>) -> Result<()> {
        for id in ids {
            let row = json!({"id": id.to_string(), "maker": "x".repeat(300_000)});
            let metadata = json!({"id": "load", "collection": "default"});
            let frame = json!({"metadata": metadata, "schema_name": "lamps", "values": [row]});
            self.import("rows", frame).await?;
        }
        Ok(())
    }

    async fn kept_rows(&self) -> Result<usize> {
        let told = self
            .ask("rows", json!({"query": "{ lamps { id } }"}))
            .await?;
        Ok(told["data"]["lamps"].as_array().map_or(0, Vec::len))
    }

    /// A record of so many vectors.
    async fn vectors(&self, name: &str, count: usize) -> Result<()> {
        let chunk = |n| json!({"chunk_id": format!("urn:chunk:{name}:{n}"), "vector": [1.0, 0.5]});
        let chunks: Vec<Value> = (0..count).map(chunk).collect();
        let metadata = json!({"id": name, "collection": "default"});
        let frame = json!({"metadata": metadata, "chunks": chunks});
        self.import("document-embeddings", frame).await
    }

    /// A record of vectors of entities, which are 64 KiB each.
    async fn wide_vectors(&self, count: usize) -> Result<()> {
        let vector = vec![1; 16_384];
        let entity = |n| json!({"entity": {"t": "i", "i": format!("urn:e:{n}")}, "vector": vector});
        let entities: Vec<Value> = (0..count).map(entity).collect();
        let metadata = json!({"id": "wide", "collection": "default"});
        let frame = json!({"metadata": metadata, "entities": entities});
        self.import("graph-embeddings", frame).await
    }

    /// A row of the configuration of so many bytes.
    async fn configure(&self, key: &str, bytes: usize) -> Result<Value> {
        let row = json!({"type": "note", "key": key, "value": "x".repeat(bytes)});
        let put = json!({"operation": "put", "workspace": self.1, "values": [row]});
        Ok(post(self.0, "api/v1/config", put).await?.1)
    }

    async fn kept_vectors(&self) -> Result<usize> {
        let ask = json!({"vector": [1.0, 0.5], "limit": 1000});
        let told = self.ask("document-embeddings", ask).await?;
        Ok(told["chunks"].as_array().map_or(0, Vec::len))
    }

    /// Triples of 300,000 bytes, each a record.
    async fn triples(&self, things: std::ops::Range<usize>) -> Result<()> {
        let iri = |text: &str| json!({"t": "i", "i": text});
        for thing in things {
            let text = json!({"t": "l", "v": "x".repeat(300_000)});
            let triple = json!({"s": iri(&format!("urn:s{thing}")), "p": iri("urn:p"), "o": text});
            let metadata = json!({"id": "load", "collection": "texts"});
            let frame = json!({"metadata": metadata, "triples": [triple]});
            self.import("triples", frame).await?;
        }
        Ok(())
    }

    /// Chunks of the keyword index, each a document.
    async fn words(&self, documents: std::ops::Range<usize>) -> Result<()> {
        for document in documents {
            let ask = json!({"id": format!("urn:words:{document}"), "collection": "words",
                "text": format!("lamp number {document} hangs in the hall")});
            self.ask("text-load", ask).await?;
        }
        Ok(())
    }

    /// Waits until so many triples and chunks of words are kept.
    async fn finds(&self, triples: usize, words: usize) -> Result<()> {
        let end = Instant::now() + BOUND;
        let of_texts = json!({"collection": "texts", "limit": 100});
        let of_words = json!({"collection": "words", "query": "lamp", "limit": 100});
        let count = |told: &Value, at: &str| told[at].as_array().map_or(0, Vec::len);
        loop {
            let kept = (
                count(&self.ask("triples", of_texts.clone()).await?, "response"),
                count(
                    &self.ask("keyword-index", of_words.clone()).await?,
                    "chunks",
                ),
            );
            if kept == (triples, words) {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "{kept:?} instead of {triples}, {words}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn core(&self, id: &str) -> Result<Value> {
        let iri = |text: &str| json!({"t": "i", "i": text});
        let triple = json!({"s": iri(id), "p": iri("urn:p"), "o": {"t": "l", "v": "v"}});
        let triples = json!({"metadata": {"id": id, "collection": "default"}, "triples": [triple]});
        let ask = json!({"operation": "put-kg-core", "workspace": self.1, "triples": triples});
        Ok(post(self.0, "api/v1/knowledge", ask).await?.1)
    }

    async fn dead_letters(&self) -> Result<String> {
        let ask = json!({"operation": "list-put-aside", "workspace": self.1, "reason": "dead"});
        Ok(patiently(self.0, "api/v1/flow", ask).await?.to_string())
    }

    /// Waits until a dead letter says this.
    async fn dead_letter_says(&self, text: &str) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let told = self.dead_letters().await?;
            if told.contains(text) {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{text}: {told}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until so many rows and vectors are kept.
    async fn keeps(&self, rows: usize, vectors: usize) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let kept = (self.kept_rows().await?, self.kept_vectors().await?);
            if kept == (rows, vectors) {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "{kept:?} instead of {rows}, {vectors}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The schema of the rows is known.
    async fn prepare(&self) -> Result<()> {
        let schema = json!({"operation": "put", "workspace": self.1,
            "values": [{"type": "schema", "key": "lamps", "value": SCHEMA}]});
        patiently(self.0, "api/v1/config", schema).await?;
        let end = Instant::now() + BOUND;
        loop {
            let told = self
                .ask("rows", json!({"query": "{ lamps { id } }"}))
                .await?;
            if told["data"]["lamps"].is_array() {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{told}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn quotas(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let launch = Launch::up().over(broker.as_ref());
    let server = launch
        .env("THREADGRAPH_ROWS__WORKSPACE_MB", "1")
        .env("THREADGRAPH_GRAPH__WORKSPACE_MB", "1")
        .env("THREADGRAPH_VECTORS__WORKSPACE_KEYWORDS", "4")
        .env("THREADGRAPH_VECTORS__WORKSPACE_POINTS", "100")
        .env("THREADGRAPH_VECTORS__WORKSPACE_MB", "1")
        .env("THREADGRAPH_CONFIG__WORKSPACE_MB", "1")
        .env("THREADGRAPH_KNOWLEDGE__WORKSPACE_CORES", "2")
        .ready()
        .await?;
    let url = server.url();
    make(&url, "acme").await?;
    let (first, other) = (Tenant(&url, "default"), Tenant(&url, "acme"));
    for tenant in [&first, &other] {
        tenant.prepare().await?;
    }
    // A MiB has room for three of these rows.
    first.rows(0..5).await?;
    first
        .dead_letter_says("the tables of this workspace may hold at most 1 MiB of text")
        .await?;
    for (name, count) in [("a", 60), ("b", 40)] {
        first.vectors(name, count).await?;
    }
    first.keeps(3, 100).await?;
    first.vectors("c", 1).await?;
    first
        .dead_letter_says("the collections of this workspace may hold at most 100 vectors")
        .await?;
    for id in ["urn:a", "urn:b", "urn:a"] {
        let told = first.core(id).await?;
        ensure!(told.get("error").is_none(), "{id}: {told}");
    }
    let told = first.core("urn:c").await?;
    ensure!(told["error"]["type"] == "too-large", "{told}");
    let message = told["error"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("at most 2 cores"), "{told}");
    first.keeps(3, 100).await?;
    let told = first.configure("a", 500_000).await?;
    ensure!(told.get("error").is_none(), "{told}");
    let told = first.configure("b", 500_000).await?.to_string();
    ensure!(told.contains("must not exceed 1 MiB"), "{told}");
    // Last, as records of triples are kept as cores as well.
    first.triples(0..5).await?;
    first
        .dead_letter_says("the graphs of this workspace may hold at most 1 MiB of text")
        .await?;
    first.words(0..6).await?;
    first
        .dead_letter_says("the keyword index of this workspace may hold at most 4 chunks")
        .await?;
    first.finds(3, 4).await?;

    // Nobody else's room is used up by that.
    other.rows(0..3).await?;
    other.vectors("c", 30).await?;
    other.keeps(3, 30).await?;
    let told = other.core("urn:c").await?;
    ensure!(told.get("error").is_none(), "{told}");
    let dead = other.dead_letters().await?;
    ensure!(!dead.contains("at most"), "{dead}");
    let told = other.configure("b", 500_000).await?;
    ensure!(told.get("error").is_none(), "{told}");
    // Of vectors there is a quota of bytes besides.
    other.wide_vectors(20).await?;
    other
        .dead_letter_says("the collections of this workspace may hold at most 1 MiB of vectors")
        .await?;
    other.keeps(3, 30).await?;
    other.triples(0..3).await?;
    other.words(0..3).await?;
    other.finds(3, 3).await?;
    Ok(())
}

#[tokio::test]
async fn embedded() -> Result<()> {
    quotas(Bus::Embedded).await
}

#[tokio::test]
async fn over_rabbitmq() -> Result<()> {
    quotas(Bus::Rabbit).await
}
