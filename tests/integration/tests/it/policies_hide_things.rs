//! Where a collection has policies, a user sees what these let them see, whichever way they ask; who is not known sees nothing,
//! and who may not configure writes no policy.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Server, client, tg_as};

use crate::edge::{first_key, iam, with_keys};
use crate::world::{Bus, launch, on_both_buses};

const SOON: Duration = Duration::from_secs(30);

/// `urn:x:bob` is secret to all but bosses.
const POLICY: &str = r#"
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix x: <urn:x:> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
x:policy a sh:NodeShape ; rdfs:label "Secrets" ;
  sh:target [ sh:select "SELECT ?this WHERE { ?this a <urn:x:Secret> FILTER NOT EXISTS { ?user <https://trustgraph.ai/ontology/user-context/role> <urn:x:boss> } }" ] ;
  sh:rule [ sh:construct "CONSTRUCT { [] a <http://www.w3.org/ns/shacl#ValidationResult> } WHERE { ?this a <urn:x:Secret> }" ] .
"#;
const FACTS: &str = r#"
@prefix x: <urn:x:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
x:ann rdfs:label "Ann" ; x:knows x:bob . x:bob a x:Secret ; rdfs:label "Robert" .
"#;
/// A boss that nobody made one.
const FORGED: &str = r#"
@prefix uc: <https://trustgraph.ai/ontology/user-context/> .
<urn:x:me> a uc:UserContext ; uc:role <urn:x:boss> ; <urn:x:says> "is forged" .
"#;
const GRAPH: &str = "api/v1/flow/default/graph/default";

struct System {
    server: Server,
    admin: String,
}

impl System {
    async fn post(&self, key: &str, path: &str, kind: &str, body: &str) -> Result<(u16, String)> {
        let url = format!("{}{path}", self.server.url());
        let ask = client()?.post(url).bearer_auth(key);
        let reply = ask
            .header("content-type", kind)
            .body(body.to_owned())
            .send()
            .await?;
        Ok((reply.status().as_u16(), reply.text().await?))
    }

    async fn flow(&self, key: &str, kind: &str, body: Value) -> Result<String> {
        let path = format!("api/v1/flow/default/service/{kind}");
        Ok(self
            .post(key, &path, "application/json", &body.to_string())
            .await?
            .1)
    }

    async fn user(&self, name: &str, role: &str) -> Result<String> {
        let user = json!({"username": name, "roles": [role]});
        let made = iam(
            &self.server,
            &self.admin,
            json!({"operation": "create-user", "user": user}),
        );
        let made = made.await?;
        let id = made["user"]["id"].as_str().context("no id")?.to_owned();
        Ok(id)
    }

    async fn key(&self, user: &str) -> Result<String> {
        let key = json!({"user_id": user, "name": "k"});
        let made = iam(
            &self.server,
            &self.admin,
            json!({"operation": "create-api-key", "key": key}),
        );
        let made = made.await?;
        Ok(made["api_key_plaintext"]
            .as_str()
            .context("no key")?
            .to_owned())
    }

    /// A token with roles that policies know.
    async fn token(&self, name: &str, roles: Value) -> Result<String> {
        let context = json!({ "roles": roles }).to_string();
        let args = ["mint-token", "--username", name, "--user-context", &context];
        let minted = tg_as(&self.server.url(), &self.admin, "", &args).await?;
        ensure!(minted.code == Some(0), "{minted:?}");
        Ok(minted.stdout.trim().to_owned())
    }

    /// Everything that is shown of the graph, by the endpoint.
    async fn seen(&self, key: &str) -> Result<Vec<(&'static str, String)>> {
        let all = json!({"g": "*", "limit": 1000});
        let streamed = json!({"g": "*", "limit": 1000, "streaming": true});
        let query = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
        let ask = json!({"query": "Whom does Ann know?", "streaming": false});
        let client = client()?;
        let export = format!(
            "{}api/v1/flow/default/export/triples?stored=1&token={key}",
            self.server.url()
        );
        let store = format!("{}{GRAPH}?default", self.server.url());
        Ok(vec![
            ("triples", self.flow(key, "triples", all).await?),
            (
                "triples, streamed",
                self.flow(key, "triples", streamed).await?,
            ),
            (
                "sparql",
                self.flow(key, "sparql", json!({ "query": query })).await?,
            ),
            (
                "thru",
                self.flow(
                    key,
                    "thru/triples",
                    json!({"g": "*", "limit": 1000, "collection": "default"}),
                )
                .await?,
            ),
            ("graph-rag", self.flow(key, "graph-rag", ask).await?),
            (
                "SPARQL protocol",
                self.post(
                    key,
                    "api/v1/flow/default/sparql/default",
                    "application/sparql-query",
                    query,
                )
                .await?
                .1,
            ),
            (
                "graph store",
                client
                    .get(store)
                    .bearer_auth(key)
                    .send()
                    .await?
                    .text()
                    .await?,
            ),
            (
                "export",
                client
                    .get(export)
                    .bearer_auth(key)
                    .send()
                    .await?
                    .text()
                    .await?,
            ),
        ])
    }

    /// They are refused to all others, by each way in.
    async fn policies_are_for_who_may_configure(&self, writer: &str, reader: &str) -> Result<()> {
        let turtle = "text/turtle";
        // Policies are written by who may configure.
        let policies = format!("{GRAPH}?graph=urn:graph:policy");
        let (_, refused) = self.post(writer, &policies, turtle, POLICY).await?;
        ensure!(refused.contains("config:write"), "{refused}");
        let line = json!({"metadata": {"id": "x", "root": "", "collection": "default"}, "triples": [
            {"s": {"t": "i", "i": "urn:x:policy"}, "p": {"t": "i", "i": "urn:x:p"}, "o": {"t": "l", "v": "v"},
             "g": "urn:graph:policy"}]});
        let lines = "api/v1/flow/default/import/triples";
        let (_, refused) = self
            .post(writer, lines, "application/x-ndjson", &line.to_string())
            .await?;
        ensure!(refused.contains("config:write"), "{refused}");
        let core = json!({"operation": "put-kg-core", "id": "x", "triples": line});
        let (_, refused) = self
            .post(
                &self.admin,
                "api/v1/knowledge",
                "application/json",
                &core.to_string(),
            )
            .await?;
        ensure!(refused.contains("triples.triples[0].g"), "{refused}");
        ensure!(
            self.flow(reader, "triples", json!({}))
                .await?
                .contains("Robert")
        );
        let written = self.post(&self.admin, &policies, turtle, POLICY).await?;
        ensure!(written.0 == 202, "{written:?}");
        soon("the policy counts", async || {
            let said = self.flow(reader, "triples", json!({})).await?;
            Ok(said.contains("policy-enforcement-error"))
        })
        .await?;
        Ok(())
    }
}

async fn from_each_who_may_not_see_them(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    let system = System { server, admin };
    let (wrote, key) = (
        system.user("walt", "writer").await?,
        system.user("rita", "reader").await?,
    );
    let (writer, reader) = (system.key(&wrote).await?, system.key(&key).await?);
    let turtle = "text/turtle";
    let default = format!("{GRAPH}?default");
    ensure!(system.post(&writer, &default, turtle, FACTS).await?.0 == 202);
    soon("the facts are there", async || {
        Ok(system
            .flow(&reader, "triples", json!({}))
            .await?
            .contains("Robert"))
    })
    .await?;

    system
        .policies_are_for_who_may_configure(&writer, &reader)
        .await?;

    // Who is not known sees nothing, whatever they say of themselves.
    let boss = json!({"user_id": "me", "roles": ["urn:x:boss"]});
    for key in [&reader, &writer, &system.admin] {
        for (way, shown) in system.seen(key).await? {
            ensure!(
                !shown.contains("Robert") && !shown.contains("Ann"),
                "{way}: {shown}"
            );
        }
        let said = json!({"user-context": boss, "user_context": boss});
        for kind in ["triples", "thru/triples", "sparql"] {
            let mut ask = said.clone();
            ask["query"] = json!("SELECT * { ?s ?p ?o }");
            let shown = system.flow(key, kind, ask).await?;
            ensure!(
                shown.contains("policy-enforcement-error"),
                "{kind}: {shown}"
            );
        }
    }
    let clerk = system.token("rita", json!(["urn:x:clerk"])).await?;
    let boss_token = system.token("rita", json!(["urn:x:boss"])).await?;
    // Nobody writes themselves a role.
    let written = system.post(&writer, &default, turtle, FORGED).await?;
    ensure!(written.0 == 202, "{written:?}");
    soon("what is forged is there", async || {
        let said = system.flow(&boss_token, "triples", json!({})).await?;
        Ok(said.contains("is forged"))
    })
    .await?;
    for (way, shown) in system.seen(&clerk).await? {
        ensure!(
            !shown.contains("Robert") && !shown.contains("urn:x:bob"),
            "{way}: {shown}"
        );
        ensure!(!shown.contains("shacl"), "{way}: {shown}");
        ensure!(
            way == "graph-rag" || shown.contains("Ann"),
            "{way}: {shown}"
        );
    }
    let shown = system
        .flow(&clerk, "triples", json!({ "user-context": boss }))
        .await?;
    ensure!(!shown.contains("Robert"), "{shown}");
    for (way, shown) in system.seen(&boss_token).await? {
        ensure!(
            way == "graph-rag" || shown.contains("Robert"),
            "{way}: {shown}"
        );
    }
    // What passes by is judged by nobody, so it is not for those who are.
    let live = format!("{}api/v1/flow/default/export/triples", system.server.url());
    let live = client()?
        .get(live)
        .bearer_auth(&clerk)
        .send()
        .await?
        .text()
        .await?;
    ensure!(live.contains("stored"), "{live}");
    Ok(())
}

/// The agent asks GraphRAG, which asks the graph: on the way the user is not forgotten.
async fn also_when_an_agent_asks_for_them(bus: Bus) -> Result<()> {
    let look =
        "Thought: I look.\nAction: knowledge_query\nArgs: {\"question\": \"Whom does Ann know?\"}";
    let model = ScriptedModel::start(vec![
        Rule::computed(
            |prompt| prompt.contains("## Your next step") && !prompt.contains("Observation: "),
            move |_| Reply::text(look),
        ),
        Rule::contains(
            "## Your next step",
            Reply::text("Thought: done.\nFinal Answer: done."),
        ),
        Rule::always(Reply::text("Ann")),
    ])
    .await?;
    let broker = bus.broker().await?;
    let server = launch(&model, broker.as_ref())
        .arg("--auth")
        .arg("iam")
        .ready()
        .await?;
    let admin = first_key(&server).await?;
    let system = System { server, admin };
    system.user("rita", "reader").await?;
    let context =
        |node: &str, text: &str| json!({"entity": {"t": "i", "i": node}, "context": text});
    let known = json!({"metadata": {"id": "x", "root": "", "collection": "default"},
        "entities": [context("urn:x:ann", "Ann"), context("urn:x:bob", "Robert")]});
    let lines = "api/v1/flow/default/import/entity-contexts";
    let kind = "application/x-ndjson";
    ensure!(
        system
            .post(&system.admin, lines, kind, &known.to_string())
            .await?
            .0
            == 200
    );
    let turtle = "text/turtle";
    ensure!(
        system
            .post(&system.admin, &format!("{GRAPH}?default"), turtle, FACTS)
            .await?
            .0
            == 202
    );
    let policies = format!("{GRAPH}?graph=urn:graph:policy");
    ensure!(
        system
            .post(&system.admin, &policies, turtle, POLICY)
            .await?
            .0
            == 202
    );
    let boss = system.token("rita", json!(["urn:x:boss"])).await?;
    let clerk = system.token("rita", json!(["urn:x:clerk"])).await?;
    let asked = async |token: &str| -> Result<(String, String)> {
        let before = model.calls().len();
        let said = system
            .flow(token, "agent", json!({"question": "Whom does Ann know?"}))
            .await?;
        let calls = model.calls();
        let prompts = calls[before..].iter().map(|call| call.body.to_string());
        Ok((said, prompts.collect()))
    };
    soon("everything is there", async || {
        Ok(asked(&boss).await?.1.contains("Robert") && !asked(&clerk).await?.1.contains("Robert"))
    })
    .await?;
    let (said, prompts) = asked(&clerk).await?;
    ensure!(
        said.contains("done") && prompts.contains("Observation: "),
        "{said}\n{prompts}"
    );
    ensure!(
        !said.contains("Robert") && !prompts.contains("urn:x:bob"),
        "{said}\n{prompts}"
    );
    Ok(())
}

/// Waits until something is so.
async fn soon(what: &str, so: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + SOON;
    while !so().await? {
        ensure!(Instant::now() < end, "{what}: not yet");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

on_both_buses!(
    from_each_who_may_not_see_them,
    also_when_an_agent_asks_for_them
);
