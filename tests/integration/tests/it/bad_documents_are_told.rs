//! What cannot be read is told on the record concerned, in words that say what to do about it, and the rest goes
//! on: bad documents beside good ones, bad ontologies and schemas beside good ones, bad queries before good ones.
//! Everything goes through the endpoints that clients use; the bad files are made here.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::{Server, tg};
use tg_testkit::shared_node::VirtualHost;
use tokio::time::Instant;

use crate::bad_files as files;
use crate::world::{Bus, post, up};

/// All documents of a batch are processed by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
const LIBRARIAN: &str = "api/v1/librarian";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// What nobody may be told.
const TOPOLOGY: &[&str] = &[
    "flow:tg:",
    "request:tg:",
    "tg.flow",
    "tg.request",
    "amqp",
    "sqlite",
    "127.0.0.1",
    "/tmp",
    "/proc",
    "panicked",
];

/// The words of the good documents are found nowhere else.
const GOOD: &str = "Ottoline Frask is a glassblower. Ottoline Frask was born in Pellworth.";
const GOOD_PAGE: &str = "The Corvane gauge was calibrated by Ambrose Tull in 1903.";

struct System {
    server: Server,
    _node: Option<VirtualHost>,
}

impl System {
    async fn start(bus: Bus) -> Result<Self> {
        let (server, node) = up(bus).await?;
        Ok(Self {
            server,
            _node: node,
        })
    }

    fn url(&self) -> String {
        self.server.url()
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value> {
        let (_, reply) = post(&self.url(), path, body).await?;
        Ok(reply)
    }

    /// Asks and expects no error.
    async fn ask(&self, path: &str, body: Value) -> Result<Value> {
        let reply = self.post(path, body).await?;
        ensure!(
            reply.get("error").is_none_or(Value::is_null),
            "{path}: {reply}"
        );
        Ok(reply)
    }

    /// Asks a service of the default flow, or of another.
    async fn ask_flow(&self, flow: &str, service: &str, body: Value) -> Result<Value> {
        self.post(&format!("api/v1/flow/{flow}/service/{service}"), body)
            .await
    }

    async fn add(&self, id: &str, kind: &str, content: &[u8]) -> Result<()> {
        let add = json!({"operation": "add-document",
            "document-metadata": {"id": id, "kind": kind, "title": id, "comments": "", "metadata": [], "tags": []},
            "content": STANDARD.encode(content)});
        self.ask(LIBRARIAN, add).await.map(drop)
    }

    async fn process(&self, flow: &str, document: &str) -> Result<()> {
        let process = json!({"operation": "add-processing", "processing-metadata": {
            "id": processing(flow, document), "document-id": document, "flow": flow,
            "collection": "default", "tags": []}});
        self.ask(LIBRARIAN, process).await.map(drop)
    }

    /// The record of a processing that has come to its end.
    async fn ended(&self, flow: &str, document: &str) -> Result<Value> {
        let end = Instant::now() + BOUND;
        let id = processing(flow, document);
        loop {
            let listed = json!({"operation": "list-processing"});
            let reply = self.ask(LIBRARIAN, listed).await?;
            let records = reply["processing-metadatas"].as_array();
            let record = records
                .into_iter()
                .flatten()
                .find(|record| record["id"] == id.as_str())
                .with_context(|| format!("{id} in {reply}"))?;
            if record["status"] != "processing" {
                return Ok(record.clone());
            }
            ensure!(Instant::now() < end, "{record}\n{}", self.server.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn complete(&self, flow: &str, document: &str) -> Result<Value> {
        let record = self.ended(flow, document).await?;
        ensure!(record["status"] == "complete", "{record}");
        ensure!(record["error"].is_null(), "{record}");
        Ok(record)
    }

    /// What the doctor says of the dead letters, and whether that is well.
    async fn dead_letters(&self) -> Result<(bool, String)> {
        let told = tg(&self.url(), &["doctor", "--json"]).await?;
        let told: Value = serde_json::from_str(&told.stdout).context(told.stdout)?;
        let mut checks = told["checks"].as_array().into_iter().flatten();
        let check = checks.find(|check| check["name"] == "dead letters");
        let check = check.with_context(|| told.to_string())?;
        let detail = check["detail"].as_str().unwrap_or_default().to_owned();
        Ok((check["ok"] == json!(true), detail))
    }

    /// Waits until it says so: a record says that it failed a bit before its dead letter is there.
    async fn tells_dead_letters(&self, well: bool, wanted: &str) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let (so, told) = self.dead_letters().await?;
            if so == well && told == wanted {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{so} {told} and not {wanted}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// A processing has failed and its record says why: the whole of what it says.
    async fn failed(&self, flow: &str, document: &str, why: &str) -> Result<()> {
        let record = self.ended(flow, document).await?;
        ensure!(record["status"] == "failed", "{why}: {record}");
        let told = record["error"].as_str().unwrap_or_default();
        ensure!(!told.is_empty(), "{record}");
        let mut messages = record["errors"].as_array().into_iter().flatten();
        let named = messages.any(|error| {
            let message = error["message"].as_str().unwrap_or_default();
            message.contains(why)
        });
        ensure!(named, "{why}: {record}");
        quiet(&record)
    }

    async fn configure(&self, kind: &str, key: &str, value: &str) -> Result<()> {
        let put =
            json!({"operation": "put", "values": [{"type": kind, "key": key, "value": value}]});
        self.ask("api/v1/config", put).await.map(drop)
    }

    async fn start_flow(&self, flow: &str, blueprint: &str) -> Result<()> {
        let start = json!({"operation": "start-flow", "flow-id": flow, "blueprint-name": blueprint,
            "description": flow});
        self.ask("api/v1/flow", start).await.map(drop)
    }
}

fn processing(flow: &str, document: &str) -> String {
    format!("{flow}/{document}")
}

/// Nothing of the topology is told.
fn quiet(told: &Value) -> Result<()> {
    let text = told.to_string();
    for word in TOPOLOGY {
        ensure!(!text.contains(word), "{word:?} in {text}");
    }
    Ok(())
}

/// A bad document: id, declared kind, content, and what its record says.
type Bad = (&'static str, &'static str, Vec<u8>, &'static str);

/// All of them.
fn bad() -> Vec<Bad> {
    let pdf = "application/pdf";
    let whole = files::pdf(&["A page."], "");
    vec![
        ("urn:bad:encrypted", pdf, files::encrypted(), "is encrypted"),
        (
            "urn:bad:truncated",
            pdf,
            whole[..whole.len() / 2].to_vec(),
            "is damaged or incomplete",
        ),
        (
            "urn:bad:pages",
            pdf,
            files::many_pages(10_000),
            "has too many pages (10000)",
        ),
        (
            "urn:bad:bomb",
            DOCX,
            files::bomb(160 << 20, 160 << 20),
            "unpacks to too much",
        ),
        (
            "urn:bad:liar",
            DOCX,
            files::bomb(160 << 20, 1 << 10),
            "is damaged or incomplete",
        ),
        (
            "urn:bad:zip",
            DOCX,
            b"PK\x03\x04 and no more".to_vec(),
            "is damaged or incomplete",
        ),
        (
            "urn:bad:no-pdf",
            pdf,
            b"Only words.".to_vec(),
            "is declared as a PDF but is not a PDF",
        ),
        (
            "urn:bad:no-docx",
            DOCX,
            b"Only words.".to_vec(),
            "is declared as a Word document but is not a Word document",
        ),
        (
            "urn:bad:image",
            "image/png",
            b"\x89PNG\r\n\x1a\n....".to_vec(),
            "is an image, which is not read",
        ),
        (
            "urn:bad:scan",
            pdf,
            files::pdf(&["", ""], ""),
            "has no text",
        ),
        ("urn:bad:empty", "text/plain", Vec::new(), "is empty"),
        (
            "urn:bad:blank",
            "text/plain",
            b" \n \n".to_vec(),
            "has no text",
        ),
        (
            "urn:bad:binary",
            "text/plain",
            (0..=255).cycle().take(4096).collect(),
            "is binary, not text",
        ),
        (
            "urn:bad:late",
            "text/plain",
            files::binary_later(),
            "is binary, not text",
        ),
        (
            "urn:bad:fault",
            "text/plain",
            ["é".repeat(20).as_bytes(), b"caf\xe9 au lait"].concat(),
            "is not UTF-8",
        ),
    ]
}

async fn documents(system: &System) -> Result<()> {
    let bad = bad();
    let good_pdf = files::pdf(&[GOOD_PAGE], "");
    added_and_processed(system, &bad, &good_pdf).await?;
    each_is_told(system, &bad).await?;
    at_the_command_line(system, &good_pdf).await?;

    // What files lack is told, and is no fault of the system.
    let lacking = format!(
        "{} dead of default, for what documents or rows lack",
        bad.len() + 2
    );
    system.tells_dead_letters(true, &lacking).await?;
    let discarded = format!("Discarded {}.", bad.len() + 2);
    let url = system.url();
    tg(&url, &["dead-letters", "--discard-all"])
        .await?
        .expect(&discarded)?;
    tg(&url, &["dead-letters"]).await?.expect("None.")?;
    ensure!(system.dead_letters().await? == (true, "none".to_owned()));
    Ok(())
}

async fn added_and_processed(system: &System, bad: &[Bad], good_pdf: &[u8]) -> Result<()> {
    // Good ones go in first, in the middle and last.
    system
        .add("urn:good:text", "text/plain", GOOD.as_bytes())
        .await?;
    for (id, kind, content, _) in bad {
        system.add(id, kind, content).await.context(*id)?;
    }
    system
        .add("urn:good:pdf", "application/pdf", good_pdf)
        .await?;
    system.process("default", "urn:good:text").await?;
    for (id, ..) in bad {
        system.process("default", id).await?;
    }
    system.process("default", "urn:good:pdf").await?;
    // A font that is not there costs what is written in it.
    let partly = files::pdf(&["All of it.", "Seen.) Tj /F9 12 Tf (Not seen."], "");
    system
        .add("urn:warned:pdf", "application/pdf", &partly)
        .await?;
    system.process("default", "urn:warned:pdf").await
}

async fn each_is_told(system: &System, bad: &[Bad]) -> Result<()> {
    for (id, _, _, why) in bad {
        system.failed("default", id, why).await?;
        system.failed("default", id, id).await?;
    }
    for good in ["urn:good:text", "urn:good:pdf"] {
        let record = system.complete("default", good).await?;
        ensure!(record["progress"]["chunks"] == 1, "{record}");
        ensure!(record["warnings"].is_null(), "{record}");
    }
    // What a document lacks another try does not mend.
    for (id, ..) in bad {
        let record = system.ended("default", id).await?;
        ensure!(record["errors"][0]["type"] == "bad-content", "{record}");
        ensure!(record["retry"].is_null(), "{record}");
    }
    let record = system.complete("default", "urn:warned:pdf").await?;
    ensure!(
        record["warnings"] == 1 && record["errors-total"] == 1,
        "{record}"
    );
    ensure!(record["retry"].is_null(), "{record}");
    let told = record["errors"][0]["message"].as_str().unwrap_or_default();
    ensure!(
        told.contains("text that cannot be read on these pages: 2"),
        "{record}"
    );
    quiet(&record)?;
    for (question, answer) in [
        ("Where was Ottoline Frask born?", "Pellworth"),
        ("Who calibrated the Corvane gauge?", "Ambrose Tull"),
    ] {
        let asked = system
            .ask_flow("default", "document-rag", json!({"query": question}))
            .await?;
        let told = asked["response"].as_str().unwrap_or_default();
        ensure!(told.contains(answer), "{question}: {asked}");
    }
    Ok(())
}

/// The same words, and an exit code that scripts see.
async fn at_the_command_line(system: &System, good_pdf: &[u8]) -> Result<()> {
    let url = system.url();
    let args = [
        "start-library-processing",
        "-d",
        "urn:bad:encrypted",
        "--id",
        "again",
        "--wait",
    ];
    let told = tg(&url, &args).await?;
    ensure!(told.code == Some(1), "{told:?}");
    told.expect("is encrypted")?;
    let file = tempfile::NamedTempFile::with_suffix(".pdf")?;
    std::fs::write(file.path(), good_pdf)?;
    let path = file.path().to_string_lossy();
    let args = [
        "add-library-document",
        "-k",
        "application/pdf",
        "--id",
        "urn:good:cli",
        "--name",
        "Gauges",
        &path,
    ];
    tg(&url, &args).await?.expect("Loaded successfully")?;
    let args = [
        "start-library-processing",
        "-d",
        "urn:good:cli",
        "--id",
        "cli",
        "--wait",
    ];
    let told = tg(&url, &args).await?;
    ensure!(told.code == Some(0), "{told:?}");
    let id = processing("default", "urn:warned:pdf");
    let told = tg(&url, &["process-status", &id, "--wait"]).await?;
    told.expect("complete with 1 warning")?.refuse("--retry")?;
    ensure!(told.code == Some(0), "{told:?}");
    Ok(())
}

async fn ontologies(system: &System) -> Result<()> {
    system.start_flow("terms", "ontology").await?;
    let text = "Ottoline Frask is a glassblower.";
    let broken = "@prefix ex: <urn:x:> . ex:Glassblower a";
    system.configure("ontology", "broken", broken).await?;
    system
        .add("urn:good:terms", "text/plain", text.as_bytes())
        .await?;
    system.process("terms", "urn:good:terms").await?;
    system
        .failed("terms", "urn:good:terms", "ontology 'broken': line 1")
        .await?;
    // This is for people to mend.
    let record = system.ended("terms", "urn:good:terms").await?;
    ensure!(record["retry"] == "retry-processing", "{record}");
    system.tells_dead_letters(false, "1 dead of terms").await?;

    // A good one beside it is used all the same, and the record still names the bad one.
    let good = "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix ex: <urn:x:> .\n\
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
        ex:Glassblower a owl:Class ; rdfs:label \"glassblower\"@en .";
    system.configure("ontology", "crafts", good).await?;
    let retry = json!({"operation": "retry-processing", "processing-id": processing("terms", "urn:good:terms")});
    system.ask(LIBRARIAN, retry).await?;
    let record = system.complete("terms", "urn:good:terms").await?;
    ensure!(
        record["errors"].to_string().contains("ontology 'broken'"),
        "{record}"
    );
    quiet(&record)?;
    let query = "SELECT ?who WHERE { ?who a <urn:x:Glassblower> }";
    let found = system
        .ask_flow("terms", "sparql", json!({"query": query}))
        .await?;
    ensure!(
        found["bindings"]
            .as_array()
            .is_some_and(|rows| rows.len() == 1),
        "{found}"
    );
    Ok(())
}

/// Also: a flow without a graph store processes documents.
async fn schemas_and_graphql(system: &System) -> Result<()> {
    system.start_flow("tables", "structured").await?;
    let good = json!({"name": "glassblower", "description": "Glassblowers", "fields": [
        {"name": "name", "type": "string", "primary_key": true},
        {"name": "birthplace", "type": "string"}]});
    system
        .configure("schema", "glassblowers", &good.to_string())
        .await?;
    let broken = "{\"name\": \"broken\", \"fields\": 7}";
    system.configure("schema", "broken", broken).await?;
    system
        .add("urn:good:rows", "text/plain", GOOD.as_bytes())
        .await?;
    system.process("tables", "urn:good:rows").await?;
    system
        .failed("tables", "urn:good:rows", "schema 'broken': ")
        .await?;

    let ask = async |query: &str| {
        let asked = system.ask_flow("tables", "rows", json!({"query": query}));
        let reply = asked.await?;
        quiet(&reply)?;
        anyhow::Ok(reply)
    };
    for (query, why) in [
        ("{ glassblowers { name", "expected"),
        (
            "{ glassblowers { colour } }",
            "Unknown field \\\"colour\\\"",
        ),
        ("{ nothing { x } }", "Unknown field \\\"nothing\\\""),
        ("{ broken { x } }", "schema 'broken' is left out"),
        (
            "{ glassblowers(limit: \"many\") { name } }",
            "argument \\\"limit\\\"",
        ),
        ("mutation { drop }", "not configured for mutations"),
        ("", "query: is required"),
    ] {
        let reply = ask(query).await?;
        ensure!(reply["data"].is_null(), "{query}: {reply}");
        let told = format!("{}{}", reply["errors"], reply["error"]);
        ensure!(told.contains(why), "{query}: {reply}");
    }
    let reply = ask("{ glassblowers { name birthplace } }").await?;
    let row = json!([{"name": "Ottoline Frask", "birthplace": "Pellworth"}]);
    ensure!(reply["data"]["glassblowers"] == row, "{reply}");

    // With the bad schema mended, trying again completes the record.
    let delete = json!({"operation": "delete", "keys": [{"type": "schema", "key": "broken"}]});
    system.ask("api/v1/config", delete).await?;
    let retry = json!({"operation": "retry-processing", "processing-id": processing("tables", "urn:good:rows")});
    system.ask(LIBRARIAN, retry).await?;
    system.complete("tables", "urn:good:rows").await?;
    Ok(())
}

async fn sparql(system: &System) -> Result<()> {
    let deep = format!(
        "SELECT * WHERE {} ?s ?p ?o {}",
        "{".repeat(5000),
        "}".repeat(5000)
    );
    let parse = "sparql-parse-error";
    for (query, kind, why) in [
        (
            "SELECT ?s WHERE { ?s",
            parse,
            "error at 1:21: expected one of ",
        ),
        ("Who is it?", parse, "error at 1:"),
        ("DROP ALL", parse, "is an update; only queries are answered"),
        (
            "SELECT ?s WHERE { ?s ?p ?o } LIMIT -1",
            parse,
            "error at 1:36",
        ),
        (&deep, parse, "query: is nested more than 48 deep"),
        (
            "SELECT * WHERE { SERVICE <http://service.example/> { ?s ?p ?o } }",
            parse,
            "query: SERVICE asks another endpoint",
        ),
        (
            "SELECT (<http://service.example/none>(1) AS ?x) WHERE {}",
            "sparql-evaluation-error",
            "is not supported",
        ),
        ("", parse, "query: is required"),
    ] {
        let asked = json!({"query": query});
        let reply = system.ask_flow("default", "sparql", asked).await?;
        ensure!(reply["error"]["type"] == kind, "{query}: {reply}");
        let told = reply["error"]["message"].as_str().unwrap_or_default();
        ensure!(told.contains(why), "{query}: {told}");
        quiet(&reply)?;
    }
    let good = "SELECT ?s WHERE { ?s ?p ?o } LIMIT 1";
    let found = system
        .ask_flow("default", "sparql", json!({"query": good}))
        .await?;
    ensure!(
        found["bindings"]
            .as_array()
            .is_some_and(|rows| rows.len() == 1),
        "{found}"
    );
    let url = system.url();
    let told = tg(&url, &["invoke-sparql-query", "-q", "SELECT ?s WHERE { ?s"]).await?;
    ensure!(
        told.code != Some(0) && told.stderr.contains("error at 1:21"),
        "{told:?}"
    );
    Ok(())
}

async fn story(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    documents(&system).await?;
    ontologies(&system).await?;
    schemas_and_graphql(&system).await?;
    sparql(&system).await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
