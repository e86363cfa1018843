//! Collections and documents with hostile and equal names, in workspaces with names as hostile: what is in one is seen
//! through no endpoint of another, by REST and by sockets, and deleting one leaves every other whole.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_testkit::process::Server;
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use crate::world::{Bus, post, up};

const BOUND: Duration = Duration::from_secs(60);
/// Workspaces whose names differ by case, or match one another as patterns.
const WORKSPACES: [&str; 3] = ["default", "Default", "d_fault"];
/// Collections of the last of them.
const FEW: usize = 2;

/// Names that meet where somebody concatenates, cuts, folds case, matches by pattern or normalises.
fn names() -> Vec<String> {
    let mut names: Vec<String> = ["a", "a_b", "a:b", "a%", "A", "größe/日本--x"]
        .map(str::to_owned)
        .into();
    let long = "n".repeat(299);
    names.extend([format!("{long}1"), format!("{long}2")]);
    names
}

/// By which way something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Rest,
    Socket,
}

/// A collection of a workspace and the word that only it holds.
#[derive(Clone)]
struct Cell {
    workspace: &'static str,
    collection: String,
    word: String,
}

struct System {
    server: Server,
    _node: Option<VirtualHost>,
    cells: Vec<Cell>,
    socket: Socket,
}

impl System {
    async fn start(bus: Bus) -> Result<Self> {
        let (server, node) = up(bus).await?;
        let mut cells = Vec::new();
        for workspace in WORKSPACES {
            let most = match workspace {
                "d_fault" => FEW,
                _ => usize::MAX,
            };
            for collection in names().into_iter().take(most) {
                // Of letters only and of one length, so that no word is within another.
                let number = cells.len() as u8;
                let word = format!(
                    "Quill{}{}",
                    (b'a' + number / 8) as char,
                    (b'p' + number % 8) as char
                );
                cells.push(Cell {
                    workspace,
                    collection,
                    word,
                });
            }
        }
        let socket = Socket::connect(&server.url(), "").await?;
        Ok(Self {
            server,
            _node: node,
            cells,
            socket,
        })
    }

    async fn ask(&self, path: &str, workspace: &str, mut body: Value) -> Result<Value> {
        body["workspace"] = json!(workspace);
        let (status, reply) = post(&self.server.url(), path, body).await?;
        ensure!(status == 200, "{path}: {status} {reply}");
        ensure!(
            reply.get("error").is_none_or(Value::is_null),
            "{path}: {reply}"
        );
        Ok(reply)
    }

    async fn flow(&self, door: Door, kind: &str, cell: &Cell, mut body: Value) -> Result<Value> {
        body["collection"] = json!(cell.collection);
        let asked = match door {
            Door::Rest => {
                let path = format!("api/v1/flow/default/service/{kind}");
                self.ask(&path, cell.workspace, body).await
            }
            Door::Socket => self.said(kind, cell, body).await,
        };
        asked.with_context(|| format!("{} of {}", cell.collection, cell.workspace))
    }

    /// The one answer over the socket.
    async fn said(&self, kind: &str, cell: &Cell, body: Value) -> Result<Value> {
        let envelope = json!({"service": kind, "flow": "default", "workspace": cell.workspace, "request": body});
        let frames = self.socket.send(envelope).await?.all(BOUND).await?;
        let last = frames.last().context("no frame")?;
        let failed = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
        ensure!(
            !failed(last) && !failed(&last["response"]),
            "{kind}: {last}"
        );
        Ok(last["response"].clone())
    }

    /// What is stored of a kind, through an endpoint of exports.
    async fn exported(&self, door: Door, kind: &str, cell: &Cell) -> Result<String> {
        let path = format!(
            "{}api/v1/flow/default/export/{kind}?stored=1&workspace={}&collection={}",
            self.server.url(),
            cell.workspace,
            percent(&cell.collection)
        );
        if door == Door::Rest {
            let exported = tg_testkit::process::client()?.get(path).send().await?;
            return Ok(exported.text().await?);
        }
        let path = path.replacen("http", "ws", 1);
        let (mut stream, _) = tokio_tungstenite::connect_async(path).await?;
        let mut all = String::new();
        while let Some(frame) = tokio::time::timeout(BOUND, stream.next()).await? {
            match frame? {
                Message::Text(text) => all.push_str(&text),
                Message::Close(_) => break,
                _ => {}
            }
        }
        Ok(all)
    }

    /// Where a collection is named in the path.
    fn path_door(&self, kind: &str, cell: &Cell) -> String {
        format!(
            "{}api/v1/flow/default/{kind}/{}?workspace={}",
            self.server.url(),
            percent(&cell.collection),
            cell.workspace
        )
    }

    /// What the doors of the standards show.
    async fn by_path(&self, query: &str, cell: &Cell) -> Result<[String; 2]> {
        let client = tg_testkit::process::client()?;
        let sparql = format!(
            "{}&query={}",
            self.path_door("sparql", cell),
            percent(query)
        );
        let sparql = client.get(sparql).send().await?;
        let graph = client.get(self.path_door("graph", cell) + "&default=");
        let graph = graph.header("Accept", "application/n-triples");
        Ok([sparql.text().await?, graph.send().await?.text().await?])
    }

    /// Writes a triple by the door of graphs.
    async fn write_by_path(&self, cell: &Cell) -> Result<()> {
        let url = self.path_door("graph", cell) + "&default=&settled=true";
        let triple = format!(
            "<urn:lamp:written> <urn:p:word> \"{} by path\" .",
            cell.word
        );
        let post = tg_testkit::process::client()?.post(url).body(triple);
        let reply = post.header("Content-Type", "text/turtle").send().await?;
        let (status, text) = (reply.status(), reply.text().await?);
        ensure!(status == 200, "{}: {status} {text}", cell.collection);
        Ok(())
    }

    /// Imports one frame.
    async fn import(&self, door: Door, kind: &str, workspace: &str, frame: Value) -> Result<()> {
        let path = format!(
            "{}api/v1/flow/default/import/{kind}?workspace={workspace}",
            self.server.url()
        );
        if door == Door::Rest {
            let client = tg_testkit::process::client()?;
            let reply = client.post(path).body(frame.to_string()).send().await?;
            let reply: Value = serde_json::from_str(&reply.text().await?)?;
            ensure!(reply["sent"] == 1, "{reply}");
            return Ok(());
        }
        let path = path.replacen("http", "ws", 1);
        let (mut stream, _) = tokio_tungstenite::connect_async(path).await?;
        for text in [frame.to_string(), json!({"type": "end"}).to_string()] {
            stream.send(Message::text(text)).await?;
        }
        while let Some(frame) = tokio::time::timeout(BOUND, stream.next()).await? {
            if let Message::Close(Some(close)) = frame? {
                ensure!(close.reason.as_str().contains("sent 1"), "{close}");
                return Ok(());
            }
        }
        bail!("the import ended without a word")
    }

    async fn library(&self, workspace: &str, body: Value) -> Result<Value> {
        self.ask("api/v1/librarian", workspace, body).await
    }

    /// The second workspace, with a flow of the same name.
    async fn prepare(&self) -> Result<()> {
        for workspace in &WORKSPACES[1..] {
            let record = json!({"id": workspace, "enabled": true});
            let create = json!({"operation": "create-workspace", "workspace_record": record});
            self.ask("api/v1/iam", "default", create).await?;
        }
        let schema = json!({"name": "lamps", "description": "Lamps", "fields": [
            {"name": "id", "type": "string", "primary_key": true},
            {"name": "maker", "type": "string", "indexed": true},
        ]});
        for workspace in WORKSPACES {
            let row = json!({"operation": "put", "values":
                [{"type": "schema", "key": "lamps", "value": schema.to_string()}]});
            self.ask("api/v1/config", workspace, row).await?;
        }
        let start = json!({"operation": "start-flow", "flow-id": "default", "blueprint-name": "everything",
            "description": "", "parameters": {}});
        for workspace in &WORKSPACES[1..] {
            self.ask("api/v1/flow", workspace, start.clone()).await?;
        }
        Ok(())
    }

    /// The same document names everywhere; only the words differ.
    async fn fill(&self) -> Result<()> {
        for (at, cell) in self.cells.iter().enumerate() {
            let word = &cell.word;
            // A document belongs to a workspace: one for each collection, named as hostile as that.
            let id = document(&cell.collection);
            let text = format!(
                "{word} is a lamp of blue glass. {word} was built by Ottoline Frask. {word} hangs in the hall."
            );
            let add = json!({"operation": "add-document",
                "document-metadata": {"id": id, "kind": "text/plain", "title": "A lamp", "comments": "",
                    "metadata": [], "tags": []},
                "content": STANDARD.encode(&text)});
            self.library(cell.workspace, add).await?;
            let process = json!({"operation": "add-processing", "processing-metadata":
                {"id": format!("p-{}", cell.collection), "document-id": id, "flow": "default",
                 "collection": cell.collection, "tags": []}});
            self.library(cell.workspace, process).await?;
            let row = json!({"metadata": {"id": id, "root": id, "collection": cell.collection},
                "schema_name": "lamps", "values": [{"id": "1", "maker": word}]});
            let door = [Door::Rest, Door::Socket][at % 2];
            self.import(door, "rows", cell.workspace, row).await?;
            self.write_by_path(cell).await?;
        }
        for cell in &self.cells {
            self.processed(cell).await?;
        }
        Ok(())
    }

    async fn processed(&self, cell: &Cell) -> Result<()> {
        let id = format!("p-{}", cell.collection);
        let end = Instant::now() + BOUND;
        loop {
            let ask = json!({"operation": "list-processing"});
            let reply = self.library(cell.workspace, ask).await?;
            let records = reply["processing-metadatas"].as_array();
            let record = records.into_iter().flatten().find(|one| one["id"] == *id);
            match record.and_then(|one| one["status"].as_str()) {
                Some("complete") => return Ok(()),
                Some("processing") if Instant::now() < end => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                _ => bail!("{id}: {reply}\n{}", self.server.log()),
            }
        }
    }

    /// The vector of a text.
    async fn vector(&self, door: Door, cell: &Cell) -> Result<Value> {
        let ask = json!({"texts": ["a lamp of blue glass"]});
        let mut embedded = self.flow(door, "embeddings", cell, ask).await?;
        Ok(embedded["vectors"][0].take())
    }

    /// Imports something of each kind but rows, which `fill` imports, under names that tell which cell it is for.
    async fn import_others(&self, door: Door, cell: &Cell) -> Result<()> {
        let (word, vector) = (&cell.word, self.vector(door, cell).await?);
        let iri = |kind: &str| json!({"t": "i", "i": format!("urn:{kind}:{word}")});
        let literal = json!({"t": "l", "v": format!("{word} was imported")});
        let triple = json!({"s": iri("triple"), "p": {"t": "i", "i": "urn:p:said"}, "o": literal});
        let metadata = json!({"id": "", "root": "", "collection": cell.collection});
        let of = |list: &str, one: Value| json!({"metadata": metadata, list: [one]});
        let context = json!({"entity": iri("context"), "context": "a lamp of blue glass"});
        let entity = json!({"entity": iri("vector"), "vector": vector, "chunk_id": format!("urn:of:{word}")});
        let chunk = json!({"chunk_id": format!("urn:chunk:{word}"), "vector": vector});
        for (kind, frame) in [
            ("triples", of("triples", triple)),
            ("entity-contexts", of("entities", context)),
            ("graph-embeddings", of("entities", entity)),
            ("document-embeddings", of("chunks", chunk)),
        ] {
            let imported = self.import(door, kind, cell.workspace, frame).await;
            imported.with_context(|| format!("{kind} of {}", cell.collection))?;
        }
        Ok(())
    }

    /// What was imported is seen in its collection, as soon as the stores have it, and nothing of any other.
    async fn imported(&self, door: Door, cell: &Cell, is_there: bool) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let near = json!({"vector": self.vector(door, cell).await?, "limit": 1000});
            let said = json!({"p": {"t": "i", "i": "urn:p:said"}, "limit": 1000});
            let mut shown = String::new();
            for (kind, ask) in [
                ("triples", said),
                ("graph-embeddings", near.clone()),
                ("document-embeddings", near),
            ] {
                shown += &self.flow(door, kind, cell, ask).await?.to_string();
            }
            let all = ["triple", "context", "vector", "chunk"];
            let mark = |kind: &str, word: &str| format!("urn:{kind}:{word}\"");
            for other in self.cells.iter().filter(|one| one.word != cell.word) {
                let seen = all
                    .iter()
                    .find(|kind| shown.contains(&mark(kind, &other.word)));
                ensure!(
                    seen.is_none(),
                    "{seen:?} of {} in {}",
                    other.collection,
                    cell.collection
                );
            }
            let lacks = all
                .iter()
                .find(|kind| !shown.contains(&mark(kind, &cell.word)));
            match lacks {
                None => return Ok(()),
                Some(_) if !is_there => return Ok(()),
                Some(kind) => {
                    ensure!(
                        Instant::now() < end,
                        "{}: no {kind}: {shown}",
                        cell.collection
                    );
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Everything that each endpoint shows of a collection.
    async fn seen(&self, door: Door, cell: &Cell) -> Result<Vec<(&'static str, String)>> {
        let mut seen = Vec::new();
        let mut add =
            |endpoint: &'static str, reply: Value| seen.push((endpoint, reply.to_string()));
        let all = json!({"s": null, "p": null, "o": null, "g": "*", "limit": 10000});
        add("triples", self.flow(door, "triples", cell, all).await?);
        let query = "SELECT ?s ?p ?o WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
        add(
            "sparql",
            self.flow(door, "sparql", cell, json!({"query": query}))
                .await?,
        );
        let [sparql, graph] = self.by_path(query, cell).await?;
        add("the door of SPARQL", json!(sparql));
        add("the door of graphs", json!(graph));
        let lamps = json!({"query": "{ lamps { id maker } }"});
        add("rows", self.flow(door, "rows", cell, lamps).await?);
        let words = json!({"query": "lamp glass built hall", "limit": 100});
        add(
            "keyword-index",
            self.flow(door, "keyword-index", cell, words).await?,
        );
        let vector = self.vector(door, cell).await?;
        let near = json!({"vector": vector, "limit": 100});
        let chunks = self
            .flow(door, "document-embeddings", cell, near.clone())
            .await?;
        // The vectors' endpoints show ids; the library has the text of a chunk.
        for chunk in chunks["chunks"].as_array().into_iter().flatten() {
            let id = chunk["chunk_id"].as_str().unwrap_or_default();
            let ask = json!({"operation": "get-document-content", "document-id": id});
            let content = self.library(cell.workspace, ask).await?;
            let text = STANDARD.decode(content["content"].as_str().unwrap_or_default())?;
            add("document-embeddings", json!(String::from_utf8(text)?));
        }
        add(
            "graph-embeddings",
            self.flow(door, "graph-embeddings", cell, near).await?,
        );
        let who = json!({"query": "Who built the lamp of blue glass?", "streaming": false});
        add(
            "document-rag",
            self.flow(door, "document-rag", cell, who.clone()).await?,
        );
        add("graph-rag", self.flow(door, "graph-rag", cell, who).await?);
        for kind in ["triples", "rows"] {
            add("export", json!(self.exported(door, kind, cell).await?));
        }
        Ok(seen)
    }

    /// Each endpoint shows a cell's own word, where it shows anything of the text, and nobody else's.
    async fn check(&self, door: Door, cell: &Cell, alive: bool) -> Result<()> {
        for (endpoint, shown) in self.seen(door, cell).await? {
            for other in &self.cells {
                let known = shown.to_lowercase().contains(&other.word.to_lowercase());
                let own = other.workspace == cell.workspace && other.collection == cell.collection;
                ensure!(
                    !known || (own && alive),
                    "{door:?} {endpoint}: {} of {} shows {} of {}\n{shown}",
                    cell.collection,
                    cell.workspace,
                    other.collection,
                    other.workspace,
                );
                let tells = !matches!(endpoint, "keyword-index");
                ensure!(
                    !(own && alive && tells) || known,
                    "{door:?} {endpoint}: {} of {} does not show its own\n{shown}",
                    cell.collection,
                    cell.workspace,
                );
            }
        }
        Ok(())
    }
}

/// Documents that are processed are named by IRIs.
fn document(collection: &str) -> String {
    format!("urn:doc:{}", collection.replace('%', "%25"))
}

fn percent(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

async fn story(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    system.prepare().await?;
    system.fill().await?;
    for (at, cell) in system.cells.iter().enumerate() {
        // Each endpoint by each door, for half of the cells before and half of them after.
        let door = [Door::Socket, Door::Rest][at % 2];
        system.check(door, cell, true).await?;
    }

    let (deleted, removed) = (&system.cells[0], &system.cells[1]);
    let delete = json!({"operation": "delete-collection", "collection": deleted.collection});
    let path = "api/v1/collection-management";
    system.ask(path, deleted.workspace, delete).await?;
    let id = document(&removed.collection);
    let remove = json!({"operation": "remove-document", "document-id": id});
    system.library(removed.workspace, remove).await?;
    let left = system.cells.iter().enumerate();
    for (at, cell) in left.filter(|(_, cell)| cell.word != removed.word) {
        let door = [Door::Rest, Door::Socket][at % 2];
        system.check(door, cell, cell.word != deleted.word).await?;
    }
    // Each kind by each door, too; last, as there is no text of such a chunk.
    let is_there = |cell: &Cell| cell.word != deleted.word;
    for (at, cell) in system.cells.iter().enumerate() {
        if is_there(cell) {
            let door = [Door::Rest, Door::Socket][at % 2];
            system.import_others(door, cell).await?;
        }
    }
    for (at, cell) in system.cells.iter().enumerate() {
        let door = [Door::Socket, Door::Rest][at % 2];
        system.imported(door, cell, is_there(cell)).await?;
    }
    let listed = json!({"operation": "list-documents"});
    let left = system.library(removed.workspace, listed.clone()).await?;
    let there = system.library("Default", listed).await?;
    let has = |reply: &Value| reply.to_string().contains(&format!("\"{id}\""));
    ensure!(!has(&left) && has(&there), "{left}\n{there}");
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
