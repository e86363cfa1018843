//! Where a collection has policies, a user sees what these let them see, whichever way they ask; who is not known sees nothing,
//! and who may not configure writes no policy.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Server, client, tg_as};

use crate::edge::{first_key, iam, with_keys};
use crate::world::{Bus, launch, on_both_buses};

const SOON: Duration = Duration::from_secs(60);

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

    /// The lines of a live export until one holds a word, or it ends.
    async fn live(
        &self,
        key: &str,
        until: &str,
        write: impl AsyncFn() -> Result<()>,
    ) -> Result<String> {
        let live = format!("{}api/v1/flow/default/export/triples", self.server.url());
        let mut live = client()?.get(live).bearer_auth(key).send().await?;
        write().await?;
        let mut seen = String::new();
        let end = Instant::now() + SOON;
        while !seen.contains(until) {
            let left = end.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, live.chunk()).await?? {
                Some(bytes) => seen += &String::from_utf8_lossy(&bytes),
                None => break,
            }
        }
        Ok(seen)
    }

    /// Vectors name the entities that the graph shows; a core, which no policy judges, is for who is held to none.
    async fn vectors_and_cores_are_no_way_around(&self, clerk: &str, boss: &str) -> Result<()> {
        let entity = |id: &str| json!({"entity": {"t": "i", "i": id}, "vector": [1.0, 0.5], "text": "Robert"});
        let vectors = json!({"metadata": {"id": "x", "root": "", "collection": "default"},
            "entities": [entity("urn:x:ann"), entity("urn:x:bob"), entity("urn:x:nobody")]});
        let lines = "api/v1/flow/default/import/graph-embeddings?settled=true";
        let kind = "application/x-ndjson";
        let written = self
            .post(&self.admin, lines, kind, &vectors.to_string())
            .await?;
        ensure!(written.0 == 200, "{written:?}");
        let near = json!({"vector": [1.0, 0.5], "limit": 10, "collection": "default", "model": ""});
        let export = format!(
            "{}api/v1/flow/default/export/graph-embeddings?stored=1",
            self.server.url()
        );
        let seen = async |key: &str| -> Result<Vec<String>> {
            let stored = client()?.get(&export).bearer_auth(key).send().await?;
            Ok(vec![
                self.flow(key, "graph-embeddings", near.clone()).await?,
                self.flow(key, "thru/graph-embeddings", near.clone())
                    .await?,
                stored.text().await?,
            ])
        };
        // Pages of all that is stored are for the gateway's own questions, whoever asks for them.
        let pages = json!({"export": true, "collection": "default"});
        for key in [clerk, boss, &self.admin] {
            let shown = self
                .flow(key, "thru/graph-embeddings", pages.clone())
                .await?;
            ensure!(!shown.contains("urn:x:"), "{shown}");
        }
        for shown in seen(clerk).await? {
            ensure!(shown.contains("urn:x:ann"), "{shown}");
            for hidden in ["urn:x:bob", "urn:x:nobody", "Robert"] {
                ensure!(!shown.contains(hidden), "{hidden}: {shown}");
            }
        }
        for shown in seen(boss).await? {
            ensure!(
                shown.contains("urn:x:ann") && shown.contains("urn:x:bob"),
                "{shown}"
            );
        }
        for shown in seen(&self.admin).await? {
            ensure!(
                shown.contains("policy-enforcement-error") && !shown.contains("urn:x:ann"),
                "{shown}"
            );
        }

        let core = json!({"operation": "put-kg-core", "id": "secrets", "graph-embeddings":
            {"metadata": {"id": "secrets", "collection": "default"}, "entities": vectors["entities"]}});
        let get = json!({"operation": "get-kg-core", "id": "secrets"});
        let knowledge = async |key: &str, ask: &Value| -> Result<String> {
            let ask = ask.to_string();
            let asked = self.post(key, "api/v1/knowledge", "application/json", &ask);
            Ok(asked.await?.1)
        };
        let put = knowledge(&self.admin, &core).await?;
        ensure!(!put.contains("error"), "{put}");
        for key in [clerk, boss] {
            let told = knowledge(key, &get).await?;
            ensure!(
                told.contains("policy-enforcement-error") && !told.contains("urn:x:bob"),
                "{told}"
            );
        }
        // Nor is it as a file.
        let file = format!("{}api/v1/export-core?id=secrets", self.server.url());
        for (key, has) in [(clerk, false), (boss, false), (&*self.admin, true)] {
            let core = client()?.get(&file).bearer_auth(key).send().await?;
            let core = String::from_utf8_lossy(&core.bytes().await?).into_owned();
            ensure!(core.contains("urn:x:bob") == has, "{core}");
        }
        Ok(())
    }

    /// Who looks on while triples are written sees what they would see of them, and who is not known to the policies nothing.
    async fn live_shows_no_more(&self, writer: &str, clerk: &str, boss: &str) -> Result<()> {
        let turtle = "text/turtle";
        let default = format!("{GRAPH}?default");
        let write = async |facts: &str| -> Result<()> {
            let written = self.post(writer, &default, turtle, facts).await?;
            ensure!(written.0 == 202, "{written:?}");
            Ok(())
        };
        let facts = |n: u8| {
            let hidden = format!("<urn:x:spy{n}> a <urn:x:Secret> ; <urn:x:says> \"hidden\" .");
            let open = format!(
                "<urn:x:ann> <urn:x:says> \"open {n}\" ; <urn:x:knows> <urn:x:bob> , <urn:x:spy{n}> ."
            );
            format!("{hidden}\n{open}")
        };
        let twice = async |first: u8| {
            write(&facts(first)).await?;
            write(&facts(first + 1)).await
        };
        // Records come in their order: with the second, all of the first has come.
        let seen = self.live(clerk, "open 2", async || twice(1).await).await?;
        ensure!(seen.contains("open 1") && seen.contains("open 2"), "{seen}");
        for hidden in ["hidden", "urn:x:spy", "urn:x:bob", "Secret"] {
            ensure!(!seen.contains(hidden), "{hidden}: {seen}");
        }
        let seen = self.live(boss, "open 4", async || twice(3).await).await?;
        ensure!(
            seen.contains("hidden") && seen.contains("urn:x:spy3"),
            "{seen}"
        );
        for key in [writer, &self.admin] {
            let until = "policy-enforcement-error";
            let seen = self.live(key, until, async || twice(5).await).await?;
            ensure!(seen.contains(until) && !seen.contains("open"), "{seen}");
        }
        // What else passes by is judged by nobody, so it is not for those who are.
        let url = format!(
            "{}api/v1/flow/default/export/entity-contexts",
            self.server.url()
        );
        let told = client()?.get(url).bearer_auth(clerk).send().await?;
        let told = told.text().await?;
        ensure!(told.contains("stored"), "{told}");
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
    system
        .vectors_and_cores_are_no_way_around(&clerk, &boss_token)
        .await?;
    system
        .live_shows_no_more(&writer, &clerk, &boss_token)
        .await
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
