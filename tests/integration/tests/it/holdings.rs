//! Everything that a workspace can hold, put in and looked at as clients do: what stays when it is disabled, and what
//! another one of its name must not see.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::client;

use crate::world::post;

/// A document is processed by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps", "fields": [
    {"name": "id", "type": "string", "primary_key": true},
    {"name": "maker", "type": "string", "indexed": true}]}"#;
/// Config type that no template has.
const NOTES: &str = "notes";
/// An agent that each system has, and those that each new workspace has.
const AGENT: &str = "concise-de";
const SEEDED: [&str; 2] = ["Bobby", "Maven"];
const SESSIONS: &str = "api/v1/sessions";

/// What there is of each kind, in order.
pub type Held = BTreeMap<&'static str, Vec<String>>;

/// A workspace with a flow, behind a gateway.
pub struct Tenant<'a> {
    pub url: &'a str,
    pub workspace: &'a str,
}

impl Tenant<'_> {
    /// Asks until the reply has a list at a place: its entries.
    async fn list(&self, path: &str, mut ask: Value, at: &str) -> Result<Vec<Value>> {
        ask["workspace"] = json!(self.workspace);
        let end = Instant::now() + BOUND;
        loop {
            let (_, told) = post(self.url, path, ask.clone()).await?;
            if let Some(all) = told.pointer(at).and_then(Value::as_array) {
                return Ok(all.clone());
            }
            ensure!(Instant::now() < end, "{path} {ask}: {told}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn flow(&self, service: &str, mut ask: Value, at: &str) -> Result<Vec<Value>> {
        ask["collection"] = json!("default");
        let path = format!("api/v1/flow/default/service/{service}");
        self.list(&path, ask, at).await
    }

    /// Sends what must be taken.
    async fn done(&self, service: &str, mut ask: Value) -> Result<()> {
        ask["workspace"] = json!(self.workspace);
        let path = format!("api/v1/{service}");
        let (status, told) = post(self.url, &path, ask.clone()).await?;
        let refused = told.get("error").is_some_and(|error| !error.is_null());
        ensure!(status == 200 && !refused, "{ask}: {status} {told}");
        Ok(())
    }

    async fn import(&self, kind: &str, frame: Value) -> Result<()> {
        let (url, workspace) = (self.url, self.workspace);
        let url = format!("{url}api/v1/flow/default/import/{kind}?workspace={workspace}");
        let sent = client()?.post(url).body(format!("{frame}\n")).send();
        let told: Value = sent.await?.json().await?;
        ensure!(told["sent"] == 1, "{kind}: {told}");
        Ok(())
    }

    /// The schema of the rows is known.
    pub async fn prepare(&self) -> Result<()> {
        let row = json!([{"type": "schema", "key": "lamps", "value": SCHEMA}]);
        self.done("config", json!({"operation": "put", "values": row}))
            .await?;
        self.rows().await.map(|_| ())
    }

    async fn rows(&self) -> Result<Vec<Value>> {
        let query = json!({"query": "{ lamps { id maker } }"});
        self.flow("rows", query, "/data/lamps").await
    }

    /// Puts something of a word into every store, and waits until all of it is there.
    pub async fn fill(&self, word: &str) -> Result<Held> {
        let note = json!([{"type": NOTES, "key": word, "value": "\"mine\""}]);
        self.done("config", json!({"operation": "put", "values": note}))
            .await?;
        let collection = json!({"operation": "update-collection", "collection": word});
        self.done("collection-management", collection).await?;
        let row = json!({"metadata": {"id": format!("urn:rows:{word}"), "collection": "default"},
            "schema_name": "lamps", "values": [{"id": "1", "maker": word}]});
        self.import("rows", row).await?;
        let core = json!({"id": format!("urn:core:{word}"), "collection": "default"});
        let iri = |text: &str| json!({"t": "i", "i": text});
        let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": {"t": "l", "v": word}});
        let graph = json!({"operation": "put-kg-core",
            "triples": {"metadata": core, "triples": [triple]}});
        self.done("knowledge", graph).await?;
        let chunk = json!({"chunk_id": format!("urn:c:{word}"), "vector": [0.5, 2.0]});
        let vectors = json!({"operation": "put-de-core",
            "document-embeddings": {"metadata": core, "chunks": [chunk]}});
        self.done("knowledge", vectors).await?;
        self.processed(word).await?;
        self.talks(word).await?;
        // Vectors of rows come by themselves.
        let end = Instant::now() + BOUND;
        loop {
            let held = self.held().await?;
            if held.values().all(|of| !of.is_empty()) {
                return Ok(held);
            }
            ensure!(Instant::now() < end, "{held:#?}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The agents that it made itself.
    async fn agents(&self) -> Result<Vec<Value>> {
        let ask = json!({"operation": "list-agents"});
        let all = self.list(SESSIONS, ask, "/result/items").await?;
        let is_own = |one: &Value| SEEDED.iter().all(|name| one["name"] != *name);
        Ok(all.into_iter().filter(is_own).collect())
    }

    /// An agent of its own, a conversation with it, and a session with another one.
    async fn talks(&self, word: &str) -> Result<()> {
        // The service may just have started.
        self.agents().await?;
        let agent = json!({"operation": "create-agent", "name": word});
        self.done("sessions", agent).await?;
        let agents = self.agents().await?;
        let own = agents.first().context("no agent")?;
        let conversation =
            json!({"operation": "create-conversation", "agent_id": own["agentId"], "title": word});
        self.done("sessions", conversation).await?;
        let session =
            json!({"operation": "create-session", "name": AGENT, "user_id": "ann", "title": word});
        self.done("sessions", session).await
    }

    /// What there is of these.
    async fn talked(&self) -> Result<[(&'static str, Vec<Value>); 3]> {
        let agents = self.agents().await?;
        let mut conversations = Vec::new();
        for agent in &agents {
            let ask = json!({"operation": "list-conversations", "agent_id": agent["agentId"]});
            conversations.extend(self.list(SESSIONS, ask, "/result/items").await?);
        }
        let ask = json!({"operation": "list-sessions", "name": AGENT, "user_id": "ann"});
        let sessions = self.list(SESSIONS, ask, "/result/sessions").await?;
        Ok([
            ("agents", agents),
            ("conversations", conversations),
            ("sessions", sessions),
        ])
    }

    /// A document that becomes triples, vectors, words and a core.
    async fn processed(&self, word: &str) -> Result<()> {
        self.add(word).await?;
        self.process("p", word, "default").await
    }

    /// The document of a word, in the library.
    pub async fn add(&self, word: &str) -> Result<()> {
        let text = format!(
            "{word} is a lamp of blue glass. {word} was built by Ottoline Frask. {word} hangs in the hall."
        );
        let document = document_of(word);
        let add = json!({"operation": "add-document", "content": STANDARD.encode(text),
            "document-metadata": {"id": document, "kind": "text/plain", "title": "A lamp"}});
        self.done("librarian", add).await
    }

    /// The document goes into a collection.
    pub async fn process(&self, id: &str, word: &str, collection: &str) -> Result<()> {
        let process = json!({"operation": "add-processing", "processing-metadata":
            {"id": id, "document-id": document_of(word), "flow": "default", "collection": collection}});
        self.done("librarian", process).await?;
        let end = Instant::now() + BOUND;
        loop {
            let ask = json!({"operation": "list-processing"});
            let found = self.list("api/v1/librarian", ask, "/processing-metadatas");
            let found = found.await?;
            let own = found.iter().find(|one| one["id"] == id);
            match own.and_then(|one| one["status"].as_str()) {
                Some("complete") => return Ok(()),
                Some("processing") if Instant::now() < end => tokio::time::sleep(PAUSE).await,
                _ => bail!("{found:?}"),
            }
        }
    }

    /// The flows that it has, by configuration and as they run.
    pub async fn flows(&self) -> Result<Vec<Value>> {
        let ask = json!({"operation": "list-flows"});
        let mut all = self.list("api/v1/flow", ask, "/flow-ids").await?;
        let rows = json!({"operation": "getvalues", "type": "flow"});
        all.extend(self.list("api/v1/config", rows, "/values").await?);
        Ok(all)
    }

    /// The texts of its documents.
    async fn contents(&self, documents: &[Value]) -> Result<Vec<Value>> {
        let mut contents = Vec::new();
        for document in documents {
            let ask = json!({"operation": "get-document-content", "workspace": self.workspace,
                "document-id": document["id"]});
            let (_, told) = post(self.url, "api/v1/librarian", ask).await?;
            let content = told.get("content");
            contents.push(content.with_context(|| told.to_string())?.clone());
        }
        Ok(contents)
    }

    /// What each store has.
    pub async fn held(&self) -> Result<Held> {
        let texts = json!({"texts": ["a lamp of blue glass"]});
        let vectors = self.flow("embeddings", texts, "/vectors").await?;
        let vector = vectors.first().context("no vector")?;
        let near = json!({"vector": vector, "limit": 100});
        let of_rows = json!({"vector": vector, "limit": 100, "schema_name": "lamps"});
        let words = json!({"query": "lamp glass built hall", "limit": 100});
        let all = json!({"g": "*", "limit": 10_000});
        let ask = |operation: &str| json!({"operation": operation});
        let notes = json!({"operation": "list", "type": NOTES});
        let (library, cores) = ("api/v1/librarian", "api/v1/knowledge");
        let collections = ("api/v1/collection-management", ask("list-collections"));
        let collections = self
            .list(collections.0, collections.1, "/collections")
            .await?;
        let documents = self
            .list(library, ask("list-documents"), "/document-metadatas")
            .await?;
        let contents = self.contents(&documents).await?;
        let own = |one: &Value| one["collection"] != "default";
        let collections = collections.into_iter().filter(own).collect();
        let kinds = [
            ("triples", self.flow("triples", all, "/response").await?),
            (
                "vectors of entities",
                self.flow("graph-embeddings", near.clone(), "/entities")
                    .await?,
            ),
            (
                "vectors of chunks",
                self.flow("document-embeddings", near, "/chunks").await?,
            ),
            (
                "vectors of rows",
                self.flow("row-embeddings", of_rows, "/matches").await?,
            ),
            ("words", self.flow("keyword-index", words, "/chunks").await?),
            ("rows", self.rows().await?),
            (
                "graph cores",
                self.list(cores, ask("list-kg-cores"), "/ids").await?,
            ),
            (
                "document cores",
                self.list(cores, ask("list-de-cores"), "/ids").await?,
            ),
            ("documents", documents),
            ("contents", contents),
            (
                "processings",
                self.list(library, ask("list-processing"), "/processing-metadatas")
                    .await?,
            ),
            (
                "notes",
                self.list("api/v1/config", notes, "/directory").await?,
            ),
            ("collections", collections),
        ];
        let in_order = |all: Vec<Value>| {
            let mut all: Vec<_> = all.iter().map(named).collect();
            all.sort();
            all
        };
        let kinds = kinds.into_iter().chain(self.talked().await?);
        Ok(kinds.map(|(kind, all)| (kind, in_order(all))).collect())
    }

    /// Nothing is there.
    pub async fn is_empty(&self) -> Result<()> {
        let held = self.held().await?;
        ensure!(held.values().all(Vec::is_empty), "left over: {held:#?}");
        Ok(())
    }

    /// Waits until exactly that is there.
    pub async fn holds(&self, wanted: &Held) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let held = self.held().await?;
            if held == *wanted {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{held:#?} instead of {wanted:#?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn document_of(word: &str) -> String {
    format!("urn:doc:{word}")
}

/// What an entry is known by; scores and dates are left out.
fn named(entry: &Value) -> String {
    let names = ["entity", "chunk_id", "text", "id", "collection"];
    let name = names.iter().find_map(|name| entry.get(*name));
    match entry.get("maker") {
        Some(_) => entry.to_string(),
        None => name.unwrap_or(entry).to_string(),
    }
}

/// As much as the one before it had, and not a word of that.
pub fn is_like(new: &Held, old: &Held, old_word: &str) -> Result<()> {
    for (kind, all) in new {
        let of_old = all.iter().find(|one| one.contains(old_word));
        ensure!(of_old.is_none(), "{kind}: {of_old:?} is the old one's");
        ensure!(all.len() == old[kind].len(), "{kind}: {all:?}, {old:?}");
    }
    Ok(())
}
