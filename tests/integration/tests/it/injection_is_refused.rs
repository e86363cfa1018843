//! A hundred poisoned results of an MCP server and fifty poisoned documents, read by a model that obeys whatever it reads:
//! nothing comes of it. No tool outside the run's set is called, no other collection or workspace is read, nothing is sent
//! anywhere, nothing is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_integration_tests::poison::{DOCUMENTS, Style, Targets, document, style};
use tg_testkit::mcp::McpServer;
use tg_testkit::model::{Directive, ScriptedModel, obedient, obedient_natively};
use tg_testkit::process::{Server, client};
use tg_testkit::shared_node::VirtualHost;
use tokio::net::TcpListener;

use crate::documents_become_answers::processed;
use crate::shared::Workspace;
use crate::workspaces;
use crate::world::{Bus, launch, on_both_buses, post};

/// Tools that are there and not for the runs: of a role that nobody has, of another group, one that writes and was not granted,
/// one of a state that the run is not in.
const OTHERS: [&str; 4] = ["pay", "ops_reset", "wipe", "later"];
/// Said in another collection, and in another workspace.
const CANARIES: [&str; 2] = ["canary-of-the-vault", "canary-of-the-neighbour"];
/// Where the documents are read from.
const BY: [&str; 3] = ["graph", "server", "passages"];
/// Documents that are read in the graph, too, and in the library, where one of each style is.
const IN_GRAPH: usize = 50;
const IN_LIBRARY: usize = Style::ALL.len();
/// Documents at the server that are read by a model which calls tools by its API: some of each style.
const NATIVELY: usize = 4 * Style::ALL.len();
const PATTERNS: [&str; 3] = ["react", "plan-then-execute", "supervisor"];

struct System {
    server: Server,
    model: ScriptedModel,
    mcp: Arc<McpServer>,
    /// Connections to where data are to be sent.
    leaks: Arc<AtomicUsize>,
    leak: String,
    _node: Option<VirtualHost>,
}

/// How a run begins: `nonce-graph-7` reads document 7 in the graph.
fn begins(nonce: &str) -> Directive {
    let mut parts = nonce.split('-').skip(1);
    let (by, number) = (parts.next().unwrap_or_default(), parts.next());
    let number = number.unwrap_or_default();
    let name = format!("document-{number}");
    let (tool, args) = match by {
        "graph" => ("graph_about", json!({ "name": name })),
        "server" => ("document", json!({ "id": number })),
        "crown" => ("graph_about", json!({"name": "Crown"})),
        _ => (
            "document_query",
            json!({"question": format!("harbour dues number {number}")}),
        ),
    };
    (tool.to_owned(), args)
}

/// Counts connections.
async fn listener() -> Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok((url, count))
}

impl System {
    async fn new(bus: Bus, native: bool) -> Result<Self> {
        let rules = match native {
            true => obedient_natively(begins),
            false => obedient(begins),
        };
        let model = ScriptedModel::start(rules).await?;
        let node = bus.broker().await?;
        let server = launch(&model, node.as_ref())
            .env("THREADGRAPH_AGENT__MAX_ITERATIONS", "100")
            .env("THREADGRAPH_AGENT__NATIVE_TOOLS", native.to_string())
            .ready()
            .await?;
        let (leak, leaks) = listener().await?;
        let system = Self {
            server,
            model,
            mcp: McpServer::start().await?,
            leaks,
            leak,
            _node: node,
        };
        workspaces::make(&system.server.url(), "other").await?;
        system.tools().await?;
        system.facts().await?;
        Ok(system)
    }

    fn targets(&self) -> Targets<'_> {
        Targets {
            tools: &OTHERS,
            collection: "vault",
            workspace: "other",
            url: &self.leak,
        }
    }

    async fn config(&self, kind: &str, key: &str, value: Value) -> Result<()> {
        let row = json!({"type": kind, "key": key, "value": value.to_string()});
        let ask = json!({"operation": "put", "values": [row]});
        let (status, told) = post(&self.server.url(), "api/v1/config", ask).await?;
        ensure!(status == 200, "{told}");
        Ok(())
    }

    async fn tools(&self) -> Result<()> {
        let read = json!({"name": "id", "type": "string", "description": "Which."});
        let all = [
            ("document", json!({"arguments": [read]})),
            ("pay", json!({"roles": ["treasurer"]})),
            ("ops_reset", json!({"group": ["ops"]})),
            ("wipe", json!({"writes": true})),
            ("later", json!({"applicable-states": ["later"]})),
        ];
        for (name, flags) in all {
            let server = json!({"url": self.mcp.url(), "remote-name": name});
            self.config("mcp", name, server).await?;
            let mut tool = json!({"name": name, "description": "d", "type": "mcp-tool", "mcp-tool": name,
                "arguments": [{"name": "to", "type": "string", "required": false},
                              {"name": "amount", "type": "number", "required": false}]});
            let flags = flags.as_object().context("flags")?.clone();
            tool.as_object_mut().context("a row")?.extend(flags);
            self.config("tool", name, tool).await?;
        }
        Ok(())
    }

    async fn import(
        &self,
        workspace: &str,
        collection: &str,
        facts: &[(String, String)],
    ) -> Result<()> {
        let iri = |text: &str| json!({"t": "i", "i": text});
        let label = "http://www.w3.org/2000/01/rdf-schema#label";
        let comment = "http://www.w3.org/2000/01/rdf-schema#comment";
        let lines = facts.iter().map(|(name, text)| {
            let subject = iri(&format!("urn:x:{name}"));
            let said = [(label, name), (comment, text)];
            let triples =
                said.map(|(p, o)| json!({"s": subject, "p": iri(p), "o": {"t": "l", "v": o}}));
            json!({"metadata": {"id": name, "collection": collection}, "triples": triples})
                .to_string()
                + "\n"
        });
        let url = self.server.url();
        let url =
            format!("{url}api/v1/flow/default/import/triples?workspace={workspace}&settled=true");
        let sent = client()?
            .post(url)
            .body(lines.collect::<String>())
            .send()
            .await?;
        ensure!(sent.status().is_success(), "{}", sent.text().await?);
        Ok(())
    }

    /// The documents at the server, some in the graph and, one of each style, in the library; canaries elsewhere.
    async fn facts(&self) -> Result<()> {
        let targets = self.targets();
        let facts: Vec<(String, String)> = (0..DOCUMENTS)
            .map(|number| (format!("document-{number}"), document(number, &targets)))
            .collect();
        self.import("default", "default", &facts[..IN_GRAPH])
            .await?;
        for (place, canary) in [("default", CANARIES[0]), ("other", CANARIES[1])] {
            let collection = if place == "other" { "default" } else { "vault" };
            let fact = ("Crown".to_owned(), canary.to_owned());
            self.import(place, collection, &[fact]).await?;
        }
        for (number, (_, text)) in facts.iter().enumerate() {
            self.mcp
                .texts
                .lock()
                .insert(number.to_string(), text.clone());
        }
        let url = self.server.url();
        for (number, (name, text)) in facts.iter().enumerate().take(IN_LIBRARY) {
            let content = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
            let metadata =
                json!({"id": format!("urn:x:{name}"), "kind": "text/plain", "title": name});
            let add = json!({"operation": "add-document", "document-metadata": metadata, "content": content});
            let (status, told) = post(&url, "api/v1/librarian", add).await?;
            ensure!(status == 200, "{told}");
            let id = format!("p{number}");
            let metadata = json!({"id": id, "document-id": format!("urn:x:{name}"), "flow": "default",
                "collection": "default", "tags": []});
            let add = json!({"operation": "add-processing", "processing-metadata": metadata});
            let (status, told) = post(&url, "api/v1/librarian", add).await?;
            ensure!(status == 200, "{told}");
            processed(&Workspace::first_of(&self.server), &id).await?;
        }
        Ok(())
    }

    /// Everything that a run must leave as it is: the configuration, and what the graphs say.
    async fn kept(&self) -> Result<Vec<String>> {
        let url = self.server.url();
        let (_, config) = post(&url, "api/v1/config", json!({"operation": "config"})).await?;
        let mut all = vec![config["config"].to_string()];
        for (workspace, collection) in [
            ("default", "default"),
            ("default", "vault"),
            ("other", "default"),
        ] {
            let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
            let ask = json!({"query": query, "collection": collection, "workspace": workspace});
            let (status, told) = post(&url, "api/v1/flow/default/service/sparql", ask).await?;
            ensure!(status == 200, "{told}");
            all.push(told["bindings"].to_string());
        }
        Ok(all)
    }

    /// What came of the tools that are not for the runs.
    fn nothing_came_of_it(&self, told: &dyn Fn() -> String) -> Result<()> {
        for tool in OTHERS {
            ensure!(self.mcp.count(tool) == 0, "{tool} was called; {}", told());
        }
        let leaks = self.leaks.load(Ordering::SeqCst);
        ensure!(leaks == 0, "{leaks} connections; {}", told());
        Ok(())
    }
}

async fn poisoned_documents_have_no_effect(bus: Bus) -> Result<()> {
    let system = System::new(bus, false).await?;
    let url = system.server.url();
    let before = system.kept().await?;
    let (mut obeyed, mut by_server) = (0, 0);
    for number in 0..DOCUMENTS {
        for (at, by) in BY.iter().enumerate() {
            let there = match *by {
                "server" => DOCUMENTS,
                "graph" => IN_GRAPH,
                _ => IN_LIBRARY,
            };
            if number >= there {
                continue;
            }
            let pattern = PATTERNS[(number / Style::ALL.len() + at) % PATTERNS.len()];
            let question = format!("What are the dues? nonce-{by}-{number}");
            let ask = json!({"question": question, "pattern": pattern});
            let (status, reply) = post(&url, "api/v1/flow/default/service/agent", ask).await?;
            let told = || {
                format!(
                    "document {number} ({:?}) by {by}, {pattern}: {reply}",
                    style(number)
                )
            };
            ensure!(status == 200, "{}", told());
            let seen = reply["observation"].as_str().unwrap_or_default();
            if seen.contains("there is no tool") || seen.contains("there is no argument") {
                obeyed += 1;
                by_server += usize::from(*by == "server");
            }
            system.nothing_came_of_it(&told)?;
            let reply = reply.to_string();
            ensure!(
                CANARIES.iter().all(|canary| !reply.contains(canary)),
                "{}",
                told()
            );
        }
    }
    // The model does as it is told, else this says nothing.
    let runs = DOCUMENTS + IN_GRAPH + IN_LIBRARY;
    ensure!(2 * obeyed > runs, "only {obeyed} of {runs} runs obeyed");
    ensure!(
        2 * by_server > DOCUMENTS,
        "only {by_server} of {DOCUMENTS} runs that read at the MCP server obeyed"
    );
    for call in system.model.calls() {
        let prompt = call.body.to_string();
        ensure!(
            CANARIES.iter().all(|canary| !prompt.contains(canary)),
            "{prompt}"
        );
    }
    ensure!(system.kept().await? == before, "something was written");
    // What was looked for is there, for who asks for it.
    let ask = json!({"question": "What of it? nonce-crown-1", "collection": "vault"});
    let (_, reply) = post(&url, "api/v1/flow/default/service/agent", ask).await?;
    ensure!(
        reply["observation"].to_string().contains(CANARIES[0]),
        "{reply}"
    );
    // The tools work where they are for the run: the counts above count.
    let direct = json!({"name": "pay", "parameters": {}});
    let (status, told) = post(&url, "api/v1/flow/default/service/mcp-tool", direct).await?;
    ensure!(status == 200 && system.mcp.count("pay") == 1, "{told}");
    client()?
        .get(&system.leak)
        .timeout(Duration::from_secs(1))
        .send()
        .await
        .ok();
    ensure!(
        system.leaks.load(Ordering::SeqCst) > 0,
        "the listener hears"
    );
    Ok(())
}

/// A model that calls tools by its API calls what it was never offered, too: nothing of that is done.
async fn poisoned_results_have_no_effect_on_calls_by_the_api(bus: Bus) -> Result<()> {
    let system = System::new(bus, true).await?;
    let url = system.server.url();
    let before = system.kept().await?;
    let mut obeyed = 0;
    for number in 0..NATIVELY {
        let question = format!("What are the dues? nonce-server-{number}");
        let ask = json!({"question": question, "pattern": "react"});
        let (status, reply) = post(&url, "api/v1/flow/default/service/agent", ask).await?;
        let told = || format!("document {number} ({:?}): {reply}", style(number));
        ensure!(status == 200, "{}", told());
        let seen = reply["observation"].as_str().unwrap_or_default();
        let refusals = ["there is no tool", "there is no argument"];
        obeyed += usize::from(refusals.iter().any(|refusal| seen.contains(refusal)));
        system.nothing_came_of_it(&told)?;
        let said = reply.to_string();
        let heard = CANARIES.iter().any(|canary| said.contains(canary));
        ensure!(!heard, "{}", told());
    }
    // The model was offered tools and called others, else this says nothing.
    ensure!(
        2 * obeyed > NATIVELY,
        "only {obeyed} of {NATIVELY} runs obeyed"
    );
    let calls = system.model.calls();
    let tools = calls
        .iter()
        .filter_map(|call| call.body["tools"].as_array());
    let mut names = tools.flatten().map(|tool| &tool["function"]["name"]);
    ensure!(
        names.any(|name| name == "document"),
        "no tools were offered"
    );
    for call in &calls {
        let prompt = call.body.to_string();
        let heard = CANARIES.iter().any(|canary| prompt.contains(canary));
        ensure!(!heard, "{prompt}");
    }
    ensure!(system.kept().await? == before, "something was written");
    Ok(())
}

on_both_buses!(
    poisoned_documents_have_no_effect,
    poisoned_results_have_no_effect_on_calls_by_the_api,
);
