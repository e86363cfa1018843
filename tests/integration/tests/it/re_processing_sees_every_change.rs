//! What was processed is processed again where a prompt, an ontology, a schema, the model or the cutting has changed, and only
//! by those whom that concerns: the model is asked exactly as often as something changed, the old facts go and the new come.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_schemas::vocabulary::skos;
use tg_testkit::model::{Reply, Rule};
use tg_testkit::process::{Output, tg};

use crate::world::{Bus, World, on_both_buses};

const DOCUMENT: &str = "urn:doc:lantern";
const COLLECTION: &str = "kept";
/// What prompts are for, by their first line.
const ASKED: [(&str, &str); 4] = [
    ("definitions", "## Definitions wanted"),
    ("relationships", "## Relationships wanted"),
    ("rows", "## Rows wanted"),
    ("ontology", "## Ontology facts wanted"),
];
/// Stands in what is changed.
const CHANGED: &str = "Use the newer words.";

/// Says one thing before a change, and another one after it.
fn model() -> Vec<Rule> {
    let rule = |needle: &'static str, said: fn(bool) -> Value| {
        Rule::computed(
            move |prompt| prompt.contains(needle),
            move |prompt| Reply::text(said(prompt.contains(CHANGED)).to_string()),
        )
    };
    vec![
        rule(ASKED[0].1, |newer| match newer {
            false => json!({"entity": "Harrowgate lantern", "definition": "a lamp of blue glass"}),
            true => {
                json!({"entity": "Harrowgate lantern", "definition": "a light of cobalt glass"})
            }
        }),
        rule(ASKED[1].1, |_| {
            json!({"subject": "Harrowgate lantern", "predicate": "built by", "object": "Ottoline Frask",
                "object-entity": true})
        }),
        rule(ASKED[2].1, |newer| match newer {
            false => json!({"id": "harrowgate", "light": "blue"}),
            true => json!({"id": "harrowgate-hall", "light": "cobalt"}),
        }),
        rule(ASKED[3].1, |newer| match newer {
            false => {
                json!({"type": "entity", "entity": "Harrowgate lantern", "entity_type": "Lamp"})
            }
            true => json!({"type": "entity", "entity": "Harrowgate hall", "entity_type": "Lamp"}),
        }),
    ]
}

/// Two paragraphs that each are a chunk, and together one of twice the size.
fn text() -> String {
    let of = |what: &str| format!("The Harrowgate lantern {what}. ").repeat(36);
    format!(
        "{}\n\n{}",
        of("is a lamp of blue glass"),
        of("was built by Ottoline Frask")
    )
}

struct Story {
    world: World,
    /// Calls that were accounted for.
    asked: BTreeMap<&'static str, usize>,
}

impl Story {
    async fn tg(&self, args: &[&str]) -> Result<Output> {
        let ran = tg(&self.world.server.url(), args).await?;
        ensure!(ran.code == Some(0), "{args:?}: {ran:?}");
        Ok(ran)
    }

    async fn put(&self, kind: &str, key: &str, value: &str) -> Result<()> {
        let item = [
            "put-config-item",
            "--type",
            kind,
            "--key",
            key,
            "--value",
            value,
        ];
        self.tg(&item).await.map(drop)
    }

    async fn ask(&self, path: &str, body: Value) -> Result<Value> {
        let (status, reply) = self.world.post(path, body).await?;
        ensure!(
            status == 200 && reply["error"].is_null(),
            "{path}: {status} {reply}"
        );
        Ok(reply)
    }

    /// Starts a flow, with parameters.
    async fn start(&self, flow: &str, blueprint: &str, parameters: &[&str]) -> Result<()> {
        let mut line = vec!["start-flow", "-n", blueprint, "-i", flow, "-d", "text"];
        for one in parameters {
            line.extend(["--param", one]);
        }
        self.tg(&line).await.map(drop)
    }

    async fn process(&self, flow: &str) -> Result<()> {
        let line = [
            "start-library-processing",
            DOCUMENT,
            "-i",
            flow,
            "--collection",
            COLLECTION,
            "--wait",
        ];
        self.tg(&line).await.map(drop)
    }

    /// Processes again what changed. Returns what is told of each flow: outcome, chunks that were due, and what changed.
    async fn reindex(&self, more: &[&str]) -> Result<BTreeMap<String, (String, i64, Value)>> {
        let line = [&["reindex", "-C", COLLECTION, "--json"], more].concat();
        let ran = self.tg(&line).await?;
        let told: Value = serde_json::from_str(&ran.stdout).with_context(|| format!("{ran:?}"))?;
        let documents = told["documents"].as_array().context("no documents")?;
        let one = |one: &Value| {
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let due = one["chunks-due"].as_i64().unwrap_or(-1);
            (text("flow"), (text("outcome"), due, one["changes"].clone()))
        };
        Ok(documents.iter().map(one).collect())
    }

    /// Only this flow is due, for this reason; it is processed again, and the model is asked as often.
    async fn due(
        &mut self,
        flow: &str,
        changes: Value,
        asked: &[(&'static str, usize)],
    ) -> Result<()> {
        let planned = self.reindex(&["--dry-run"]).await?;
        for (of, (outcome, _, changed)) in &planned {
            let wanted = if of == flow { "due" } else { "unchanged" };
            ensure!(outcome == wanted, "{of}: {planned:?}");
            ensure!(of != flow || *changed == changes, "{planned:?}");
        }
        self.asks(&[])?;
        let begun = self.reindex(&["--wait"]).await?;
        ensure!(begun[flow].0 == "begun", "{begun:?}");
        self.asks(asked)?;
        let settled = self.reindex(&[]).await?;
        let unchanged = settled.values().all(|(outcome, ..)| outcome == "unchanged");
        ensure!(unchanged, "{settled:?}");
        self.asks(&[])
    }

    /// The model was asked so often since the last look, and for nothing else.
    fn asks(&mut self, wanted: &[(&'static str, usize)]) -> Result<()> {
        let mut now: BTreeMap<&'static str, usize> = BTreeMap::new();
        for call in self.world.model.calls() {
            let said = call.body["messages"].to_string();
            let kind = ASKED.iter().find(|(_, line)| said.contains(line));
            *now.entry(kind.map_or("other", |(name, _)| name))
                .or_default() += 1;
        }
        let mut since = now.clone();
        since.retain(|kind, count| {
            *count -= self.asked.get(kind).copied().unwrap_or(0);
            *count > 0
        });
        ensure!(
            since == wanted.iter().copied().collect(),
            "{since:?}, not {wanted:?}"
        );
        self.asked = now;
        Ok(())
    }

    /// Objects of a predicate in the facts.
    async fn objects(&self, predicate: &str) -> Result<Vec<String>> {
        let ask = json!({"collection": COLLECTION, "p": {"t": "i", "i": predicate}, "limit": 1000});
        let found = self.ask("api/v1/flow/default/service/triples", ask).await?;
        let triples = found["response"].as_array().context("no response")?;
        let object = |one: &Value| {
            one["o"]["v"]
                .as_str()
                .or(one["o"]["i"].as_str())
                .map(str::to_owned)
        };
        let mut objects: Vec<String> = triples.iter().filter_map(object).collect();
        objects.sort();
        objects.dedup();
        Ok(objects)
    }

    /// Names of the rows.
    async fn rows(&self) -> Result<Vec<String>> {
        let query = "{ lamps(limit: 100) { id light } }";
        let line = [
            "invoke-rows-query",
            "-f",
            "tables",
            "-q",
            query,
            "-C",
            COLLECTION,
            "--format",
            "json",
        ];
        let ran = self.tg(&line).await?;
        let found: Value = serde_json::from_str(&ran.stdout)?;
        let rows = found.pointer("/data/lamps").or_else(|| found.get("lamps"));
        let rows = rows
            .and_then(Value::as_array)
            .with_context(|| ran.stdout.clone())?;
        Ok(rows
            .iter()
            .map(|row| row["id"].as_str().unwrap_or_default().to_owned())
            .collect())
    }

    /// What is of a class.
    async fn lamps(&self) -> Result<Vec<String>> {
        let ask = json!({"collection": COLLECTION, "o": {"t": "i", "i": "https://e.x/lamps#Lamp"}, "limit": 100});
        let found = self.ask("api/v1/flow/default/service/triples", ask).await?;
        let triples = found["response"].as_array().context("no response")?;
        let mut names: Vec<String> = triples
            .iter()
            .filter_map(|one| one["s"]["i"].as_str())
            .filter(|name| name.contains("harrowgate"))
            .map(|name| name.rsplit('/').next().unwrap_or_default().to_owned())
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The entities that have vectors, by their terms.
    async fn entities(&self, text: &str) -> Result<BTreeSet<String>> {
        let made = self
            .ask(
                "api/v1/flow/default/service/embeddings",
                json!({"texts": [text]}),
            )
            .await?;
        let vector = made["vectors"][0].clone();
        let ask = json!({"vector": vector, "collection": COLLECTION, "limit": 100});
        let found = self
            .ask("api/v1/flow/default/service/graph-embeddings", ask)
            .await?;
        let entities = found["entities"].as_array().context("no entities")?;
        Ok(entities
            .iter()
            .map(|one| one["entity"].to_string())
            .collect())
    }
}

fn schema(description: &str) -> String {
    json!({"name": "lamps", "description": description, "fields": [
        {"name": "id", "type": "string", "primary_key": true},
        {"name": "light", "type": "string"}]})
    .to_string()
}

fn ontology(comment: &str) -> String {
    json!({"metadata": {"namespace": "https://e.x/lamps"}, "classes": {
        "Lamp": {"uri": "https://e.x/lamps#Lamp", "rdfs:comment": comment}}})
    .to_string()
}

async fn by_whom_it_concerns(bus: Bus) -> Result<()> {
    let world = World::with(bus, model()).await?;
    let mut story = Story {
        world,
        asked: BTreeMap::new(),
    };
    story.put("schema", "lamps", &schema("Lamps")).await?;
    story
        .put("ontology", "lamps", &ontology("Gives light."))
        .await?;
    story.start("tables", "structured", &[]).await?;
    story.start("terms", "ontology", &[]).await?;
    let add = json!({"operation": "add-document", "content": STANDARD.encode(text()), "document-metadata":
        {"id": DOCUMENT, "kind": "text/plain", "title": "A lantern", "comments": "", "metadata": [], "tags": []}});
    story.ask("api/v1/librarian", add).await?;
    for flow in ["default", "tables", "terms"] {
        story.process(flow).await?;
    }
    story.asks(&[
        ("definitions", 2),
        ("ontology", 2),
        ("relationships", 2),
        ("rows", 2),
    ])?;
    ensure!(story.objects(skos::DEFINITION).await? == ["a lamp of blue glass"]);
    ensure!(story.rows().await? == ["harrowgate"]);
    ensure!(
        story.lamps().await? == ["harrowgate-lantern"],
        "{:?}",
        story.lamps().await?
    );
    let entities = story.entities("a lamp of blue glass").await?;
    ensure!(!entities.is_empty(), "entities have vectors");
    // Nothing changed: nothing is asked.
    let same = story.reindex(&["--wait"]).await?;
    ensure!(
        same.len() == 3 && same.values().all(|one| one.0 == "unchanged"),
        "{same:?}"
    );
    story.process("default").await?;
    story.asks(&[])?;

    prompt(&mut story).await?;
    let now = story.entities("a lamp of blue glass").await?;
    ensure!(now == entities, "the same entities: {entities:?}, {now:?}");
    story.put("schema", "lamps", &schema(CHANGED)).await?;
    let changes = json!({"kg-extract-rows": ["schema"]});
    story.due("tables", changes, &[("rows", 2)]).await?;
    ensure!(
        story.rows().await? == ["harrowgate-hall"],
        "{:?}",
        story.rows().await?
    );
    story.put("ontology", "lamps", &ontology(CHANGED)).await?;
    let changes = json!({"kg-extract-ontology": ["ontology"]});
    story.due("terms", changes, &[("ontology", 2)]).await?;
    ensure!(
        story.lamps().await? == ["harrowgate-hall"],
        "{:?}",
        story.lamps().await?
    );
    model_and_cutting(&mut story).await
}

/// Another prompt of one extractor: the other one of the flow is not asked.
async fn prompt(story: &mut Story) -> Result<()> {
    let get = [
        "get-config-item",
        "--type",
        "prompt",
        "--key",
        "template.extract-definitions",
    ];
    let held = story.tg(&get).await?;
    let first = held.stdout.trim().to_owned();
    let mut template: Value = serde_json::from_str(&first)?;
    let words = format!(
        "{}\n{CHANGED}",
        template["prompt"].as_str().context("no prompt")?
    );
    template["prompt"] = json!(words);
    story
        .put(
            "prompt",
            "template.extract-definitions",
            &template.to_string(),
        )
        .await?;
    let changes = json!({"kg-extract-definitions": ["prompt"]});
    story
        .due("default", changes.clone(), &[("definitions", 2)])
        .await?;
    ensure!(story.objects(skos::DEFINITION).await? == ["a light of cobalt glass"]);
    // Back to what it was, and on again: each time exactly what that makes is there, and the replies that are kept of it are
    // not paid again.
    let second = template.to_string();
    for (prompt, wanted) in [
        (&first, "a lamp of blue glass"),
        (&second, "a light of cobalt glass"),
    ] {
        let key = "template.extract-definitions";
        story.put("prompt", key, prompt).await?;
        story.due("default", changes.clone(), &[]).await?;
        let told = story.objects(skos::DEFINITION).await?;
        ensure!(told == [wanted], "{told:?}");
    }
    Ok(())
}

/// Another model is asked everything; another size of chunks makes other chunks, and what came from the old ones goes.
async fn model_and_cutting(story: &mut Story) -> Result<()> {
    for (parameters, changes, asked) in [
        (
            vec!["llm-model=another"],
            json!({"kg-extract-definitions": ["model"], "kg-extract-relationships": ["model"]}),
            2,
        ),
        (
            vec!["llm-model=another", "chunk-size=6000"],
            json!({"chunker": ["parameters"]}),
            1,
        ),
    ] {
        story.tg(&["stop-flow", "default"]).await?;
        story.start("default", "everything", &parameters).await?;
        let asked = [("definitions", asked), ("relationships", asked)];
        story.due("default", changes, &asked).await?;
        ensure!(story.objects(skos::DEFINITION).await? == ["a light of cobalt glass"]);
    }
    // Forced: done again, from the replies that are kept.
    let forced = story.reindex(&["--force", "--wait"]).await?;
    ensure!(forced.values().all(|one| one.0 == "begun"), "{forced:?}");
    story.asks(&[])?;
    ensure!(story.objects(skos::DEFINITION).await? == ["a light of cobalt glass"]);
    ensure!(story.rows().await? == ["harrowgate-hall"]);
    Ok(())
}

on_both_buses!(by_whom_it_concerns);
