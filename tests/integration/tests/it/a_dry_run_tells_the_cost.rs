//! `--dry-run` tells what processing will take within a tenth of what it then takes, in chunks, model calls, tokens and money,
//! for every kind of document and every extractor. The model counts the tokens that it reads and writes; the dry run asks it
//! nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Crc;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, final_answer};
use tg_testkit::pdf::{self, prose, wrap};
use tg_testkit::process::tg;

use crate::world::{Bus, World, on_both_buses};

/// Flows with their blueprints; together they have every extractor.
const FLOWS: [(&str, &str); 4] = [
    ("default", "everything"),
    ("tables", "structured"),
    ("terms", "ontology"),
    ("agents", "agents"),
];
const COLLECTION: &str = "priced";
/// Dollars for a million tokens that are read and written.
const PRICES: (i64, i64) = (3, 15);
/// What is told before is within a part of this of what is counted after.
const PART: i64 = 10;

/// Always says the same about a kind of question.
fn model() -> Vec<Rule> {
    let says =
        |needle: &'static str, line: Value| Rule::contains(needle, Reply::text(line.to_string()));
    vec![
        says(
            "## Definitions wanted",
            json!({"entity": "Harrowgate lantern", "definition": "a lamp of blue glass"}),
        ),
        says(
            "## Relationships wanted",
            json!({"subject": "Harrowgate lantern", "predicate": "built by", "object": "Ottoline Frask",
                "object-entity": true}),
        ),
        says(
            "## Rows wanted",
            json!({"id": "harrowgate", "light": "blue"}),
        ),
        says(
            "## Ontology facts wanted",
            json!({"type": "entity", "entity": "Harrowgate lantern", "entity_type": "Lamp"}),
        ),
        Rule::always(Reply::text(final_answer(
            "It is in the text.",
            &json!({"type": "definition", "entity": "Harrowgate lantern", "definition": "a lamp"})
                .to_string(),
        ))),
    ]
}

/// Paragraphs that no other document has.
fn paragraphs(seed: usize) -> Vec<String> {
    (0..12).map(|at| prose(seed * 100 + at, 90)).collect()
}

fn documents(seed: usize) -> Vec<(&'static str, Vec<u8>)> {
    let text = |at: usize| paragraphs(seed * 10 + at);
    let markdown = text(1)
        .iter()
        .enumerate()
        .fold("# Harbours\n".to_owned(), |all, (at, one)| {
            format!("{all}\n## Part {at}\n\n{one}\n")
        });
    let html = text(2)
        .iter()
        .fold(String::new(), |all, one| format!("{all}<p>{one}</p>\n"));
    let csv = text(3)
        .iter()
        .enumerate()
        .fold("number,words\n".to_owned(), |all, (at, one)| {
            format!("{all}{at},\"{one}\"\n")
        });
    let object: Vec<Value> = text(4).iter().map(|one| json!({"words": one})).collect();
    vec![
        ("text/plain", text(0).join("\n\n").into_bytes()),
        ("text/markdown", markdown.into_bytes()),
        (
            "text/html",
            format!(
                "<html><head><title>Harbours</title></head><body><main>{html}</main></body></html>"
            )
            .into_bytes(),
        ),
        ("text/csv", csv.into_bytes()),
        ("application/json", json!(object).to_string().into_bytes()),
        ("application/pdf", paper(&text(5))),
        (
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            word(&text(6)),
        ),
    ]
}

fn paper(paragraphs: &[String]) -> Vec<u8> {
    let mut paper = pdf::Pdf::courier();
    for pages in paragraphs.chunks(3) {
        let lines = pages.iter().flat_map(|one| wrap(one, 80));
        let lines = lines
            .enumerate()
            .map(|(at, text)| pdf::line(72.0, 740.0 - 14.0 * at as f64, &text));
        paper.page(&lines.collect::<String>());
    }
    paper.finish("")
}

/// A Word document: a ZIP whose one entry is stored as it is.
fn word(paragraphs: &[String]) -> Vec<u8> {
    let body = paragraphs.iter().fold(String::new(), |all, one| {
        format!("{all}<w:p><w:r><w:t>{one}</w:t></w:r></w:p>")
    });
    let content = format!(
        "<?xml version=\"1.0\"?><w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
         <w:body>{body}</w:body></w:document>"
    );
    let (name, content) = (b"word/document.xml", content.as_bytes());
    let mut crc = Crc::new();
    crc.update(content);
    let length = u32::try_from(content.len()).unwrap_or(0).to_le_bytes();
    let mut about = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    about.extend(crc.sum().to_le_bytes());
    about.extend([length, length].concat());
    about.extend(u16::try_from(name.len()).unwrap_or(0).to_le_bytes());
    about.extend([0, 0]);
    let mut file = [b"PK\x03\x04".as_slice(), &about, name, content].concat();
    let directory = u32::try_from(file.len()).unwrap_or(0);
    file.extend(b"PK\x01\x02\x14\x00");
    file.extend(&about);
    file.extend([0; 14]);
    file.extend(name);
    let size = u32::try_from(file.len()).unwrap_or(0) - directory;
    file.extend(b"PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00");
    file.extend([size.to_le_bytes(), directory.to_le_bytes()].concat());
    file.extend([0, 0]);
    file
}

struct Story(World);

impl Story {
    async fn tg(&self, args: &[&str]) -> Result<String> {
        let ran = tg(&self.0.server.url(), args).await?;
        ensure!(ran.code == Some(0), "{args:?}: {ran:?}");
        Ok(ran.stdout)
    }

    async fn put(&self, kind: &str, key: &str, value: Value) -> Result<()> {
        let value = value.to_string();
        let line = [
            "put-config-item",
            "--type",
            kind,
            "--key",
            key,
            "--value",
            &value,
        ];
        self.tg(&line).await.map(drop)
    }

    /// What the flows need, and the flows.
    async fn prepare(&self) -> Result<()> {
        let fields = json!([{"name": "id", "type": "string", "primary_key": true}, {"name": "light", "type": "string"}]);
        for table in ["lamps", "lanterns"] {
            let schema = json!({"name": table, "description": "Lamps", "fields": fields});
            self.put("schema", table, schema).await?;
        }
        let classes =
            json!({"Lamp": {"uri": "https://e.x/lamps#Lamp", "rdfs:comment": "Gives light."}});
        let ontology = json!({"metadata": {"namespace": "https://e.x/lamps"}, "classes": classes});
        self.put("ontology", "lamps", ontology).await?;
        let get = [
            "get-config-item",
            "--type",
            "flow-blueprint",
            "--key",
            "ontology",
        ];
        let mut blueprint: Value = serde_json::from_str(self.tg(&get).await?.trim())?;
        let flow = blueprint["flow"].as_object_mut().context("no flow")?;
        let mut extractor = flow
            .remove("kg-extract-ontology:{id}")
            .context("no extractor")?;
        let topics = extractor["topics"].as_object_mut().context("no topics")?;
        topics.retain(|name, _| !name.starts_with("prompt-") && !name.starts_with("embeddings-"));
        for class in ["request", "response"] {
            topics.insert(
                format!("agent-{class}"),
                json!(format!("{class}:tg:agent:{{workspace}}:{{id}}")),
            );
        }
        flow.insert("kg-extract-agent:{id}".to_owned(), extractor);
        self.put("flow-blueprint", "agents", blueprint).await?;
        let (read, written) = (PRICES.0.to_string(), PRICES.1.to_string());
        self.tg(&[
            "set-token-costs",
            "--model",
            "scripted",
            "-i",
            &read,
            "-o",
            &written,
        ])
        .await?;
        for (flow, blueprint) in &FLOWS[1..] {
            self.tg(&["start-flow", "-n", blueprint, "-i", flow, "-d", "text"])
                .await?;
        }
        Ok(())
    }

    async fn numbers(
        &self,
        line: &[&str],
        of: impl Fn(&Value) -> Value,
    ) -> Result<BTreeMap<String, i64>> {
        let line = [line, &["--json"]].concat();
        let told: Value = serde_json::from_str(&self.tg(&line).await?)?;
        let told = of(&told);
        serde_json::from_value(told.clone()).with_context(|| told.to_string())
    }

    /// Tells before and counts after.
    async fn one(&self, flow: &str, (at, kind): (usize, &str), content: &[u8]) -> Result<()> {
        let learnt = at > 0;
        let id = format!(
            "urn:doc:{flow}:{at}:{}",
            kind.rsplit(['/', '.']).next().unwrap_or_default()
        );
        let add = json!({"operation": "add-document", "content": STANDARD.encode(content), "document-metadata":
            {"id": id, "kind": kind, "title": "Harbours", "comments": "", "metadata": [], "tags": []}});
        let (status, reply) = self.0.post("api/v1/librarian", add).await?;
        ensure!(status == 200, "{reply}");
        let line = [
            "start-library-processing",
            &id,
            "-i",
            flow,
            "--collection",
            COLLECTION,
        ];
        let asked = self.0.model.count();
        let before = self
            .numbers(&[&line[..], &["--dry-run"]].concat(), Value::clone)
            .await?;
        ensure!(self.0.model.count() == asked, "the dry run asked the model");
        let after = self
            .numbers(&[&line[..], &["--wait"]].concat(), |told| {
                told["progress"].clone()
            })
            .await?;
        let what = || format!("{flow} {kind}: {before:?}, then {after:?}");
        let close = |told: i64, counted: i64| (told - counted).abs() * PART <= counted;
        let mut names = vec!["chunks", "model-calls", "tokens-in"];
        if kind == "application/pdf" {
            names.push("pages");
        }
        if learnt {
            names.push("tokens-out");
        }
        for name in names {
            let (told, counted) = (before.get(name), after.get(name));
            let (told, counted) = told
                .zip(counted)
                .with_context(|| format!("{name}: {}", what()))?;
            ensure!(*counted > 0 && close(*told, *counted), "{name}: {}", what());
        }
        if learnt {
            let dollars = after["tokens-in"] * PRICES.0 + after["tokens-out"] * PRICES.1;
            let told = before.get("microdollars").with_context(what)?;
            ensure!(close(*told, dollars), "{dollars} microdollars: {}", what());
        }
        Ok(())
    }
}

async fn in_tokens_and_money(bus: Bus) -> Result<()> {
    let story = Story(World::with(bus, model()).await?);
    story.prepare().await?;
    let others = FLOWS.len();
    for (seed, (flow, _)) in FLOWS.iter().enumerate() {
        let mut all = documents(seed);
        // How long replies are is learnt from the first, whose kind comes again.
        all.extend(documents(seed + others).into_iter().take(1));
        for (at, (kind, content)) in all.iter().enumerate() {
            story.one(flow, (at, kind), content).await?;
        }
    }
    Ok(())
}

on_both_buses!(in_tokens_and_money);
