//! A fact that somebody loads is theirs: it stays when what an extraction found of the same is made anew, and when the document
//! goes, whether it was loaded before it was found or after, and over a restart.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_schemas::vocabulary::skos;
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Server, tg};
use tg_testkit::shared_node::VirtualHost;
use tokio::time::Instant;

use crate::world::{Bus, launch, on_both_buses, post};

const DOCUMENT: &str = "urn:doc:lantern";
/// Stands in the prompt that is changed.
const CHANGED: &str = "Use the newer words.";
const OLD: &str = "a lamp of blue glass";
const NEW: &str = "a light of cobalt glass";
const PROMPT: &str = "template.extract-definitions";
const BOUND: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// Defines the lantern in one way before the change, and in another one after it.
fn rules() -> Vec<Rule> {
    let said = |prompt: &str| {
        let definition = if prompt.contains(CHANGED) { NEW } else { OLD };
        json!({"entity": "Harrowgate lantern", "definition": definition}).to_string()
    };
    vec![
        Rule::computed(
            |prompt| prompt.contains("## Definitions wanted"),
            move |prompt| Reply::text(said(prompt)),
        ),
        Rule::computed(
            |prompt| prompt.contains("## Relationships wanted"),
            |_| {
                let built = json!({"subject": "Harrowgate lantern", "predicate": "built by", "object": "Ottoline Frask",
                    "object-entity": true});
                Reply::text(built.to_string())
            },
        ),
    ]
}

struct Story {
    data: TempDir,
    node: Option<VirtualHost>,
    model: ScriptedModel,
}

impl Story {
    async fn up(&self) -> Result<Server> {
        let launched = launch(&self.model, self.node.as_ref()).data(self.data.path());
        launched.ready().await
    }
}

async fn done(server: &Server, args: &[&str]) -> Result<String> {
    let ran = tg(&server.url(), args).await?;
    ensure!(ran.code == Some(0), "{args:?}: {ran:?}");
    Ok(ran.stdout)
}

async fn process(server: &Server, collection: &str) -> Result<()> {
    let line = [
        "start-library-processing",
        DOCUMENT,
        "-i",
        "default",
        "--collection",
        collection,
        "--wait",
    ];
    done(server, &line).await.map(drop)
}

/// Who is defined in a collection, and how.
async fn definitions(server: &Server, collection: &str) -> Result<Vec<(String, String)>> {
    let ask =
        json!({"collection": collection, "p": {"t": "i", "i": skos::DEFINITION}, "limit": 100});
    let (_, found) = post(&server.url(), "api/v1/flow/default/service/triples", ask).await?;
    let triples = found["response"]
        .as_array()
        .with_context(|| found.to_string())?;
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = triples
        .iter()
        .map(|one| (text(&one["s"]["i"]), text(&one["o"]["v"])))
        .collect();
    all.sort();
    all.dedup();
    Ok(all)
}

async fn are(server: &Server, collection: &str, wanted: &[&str]) -> Result<()> {
    let begun = Instant::now();
    loop {
        let now = definitions(server, collection).await?;
        let said: Vec<&str> = now.iter().map(|(_, said)| said.as_str()).collect();
        if said == wanted {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < BOUND,
            "{collection}: {now:?}, not {wanted:?}"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// Has the prompt of definitions ask for the newer words.
async fn change_the_prompt(server: &Server) -> Result<()> {
    let get = ["get-config-item", "--type", "prompt", "--key", PROMPT];
    let mut template: Value = serde_json::from_str(done(server, &get).await?.trim())?;
    let words = template["prompt"].as_str().context("no prompt")?;
    template["prompt"] = json!(format!("{words}\n{CHANGED}"));
    let template = template.to_string();
    let put = [
        "put-config-item",
        "--type",
        "prompt",
        "--key",
        PROMPT,
        "--value",
        &template,
    ];
    done(server, &put).await.map(drop)
}

async fn whichever_came_first(bus: Bus) -> Result<()> {
    let story = Story {
        data: tempfile::tempdir()?,
        node: bus.broker().await?,
        model: ScriptedModel::start(rules()).await?,
    };
    let server = story.up().await?;
    let text = STANDARD.encode("The Harrowgate lantern is a lamp of blue glass.");
    let add = json!({"operation": "add-document", "content": text, "document-metadata":
        {"id": DOCUMENT, "kind": "text/plain", "title": "A lantern", "comments": "", "metadata": [], "tags": []}});
    let (_, added) = post(&server.url(), "api/v1/librarian", add).await?;
    ensure!(added["error"].is_null(), "{added}");

    // What is found, somebody writes down, and loads it after it was found and before.
    process(&server, "after").await?;
    are(&server, "after", &[OLD]).await?;
    let lantern = definitions(&server, "after").await?.remove(0).0;
    let file = story.data.path().join("lantern.ttl");
    std::fs::write(
        &file,
        format!("<{lantern}> <{}> \"{OLD}\" .\n", skos::DEFINITION),
    )?;
    let path = file.to_string_lossy();
    for collection in ["after", "before"] {
        let load = [
            "load-turtle",
            "-i",
            "urn:doc:by-hand",
            "-C",
            collection,
            &path,
        ];
        done(&server, &load).await?;
    }
    for collection in ["before", "alone"] {
        process(&server, collection).await?;
        are(&server, collection, &[OLD]).await?;
    }

    server.kill9().await?;
    let server = story.up().await?;
    change_the_prompt(&server).await?;
    for collection in ["after", "before", "alone"] {
        done(&server, &["reindex", "-C", collection, "--wait"]).await?;
    }
    are(&server, "alone", &[NEW]).await?;
    for collection in ["after", "before"] {
        are(&server, collection, &[OLD, NEW]).await?;
    }

    done(&server, &["remove-library-document", "--id", DOCUMENT]).await?;
    are(&server, "alone", &[]).await?;
    for collection in ["after", "before"] {
        are(&server, collection, &[OLD]).await?;
    }
    Ok(())
}

on_both_buses!(whichever_came_first);
