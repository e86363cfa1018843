//! The page's library: what it says of files before they are added is what the command line says, of a library with more
//! documents than a page of a listing has nothing is missing, and documents are opened, processed, tried again and deleted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tg_testkit::process::{Server, root, tg};
use tokio::time::Instant;

use crate::console_page::{holds, is_clean, story};
use crate::shared::system;
use crate::world::{Bus, Installation, post, up};

/// More documents than one listing brought once.
const MANY: usize = 520;

/// Puts many documents into the library. A flow without schemas processes each: the test is about the page's listings, and extraction
/// would take most of its time. The document that the page adds is processed by the flow `default`.
async fn fill(server: &Server) -> Result<()> {
    let url = server.url();
    let flow = json!({"operation": "start-flow", "flow-id": "cards", "blueprint-name": "structured",
        "description": "cards"});
    ask(&url, "api/v1/flow", flow).await?;
    let add = |number: usize| {
        let url = url.clone();
        async move {
            let content = STANDARD.encode(format!("Card {number} is kept in drawer {number}."));
            let body = json!({
                "operation": "load-document",
                "document-metadata": {"id": format!("urn:card:{number}"), "kind": "text/plain", "title": format!("Card no. {number}!"), "tags": []},
                "content": content,
                "processing-metadata": {"flow": "cards", "collection": "default"},
            });
            let (status, reply) = post(&url, "api/v1/librarian", body).await?;
            ensure!(status == 200 && reply.get("error").is_none(), "{reply}");
            Ok(())
        }
    };
    add(1).await?;
    let rest = futures::stream::iter((2..=MANY).map(add)).buffer_unordered(8);
    rest.try_collect::<()>().await
}

async fn many(bus: Bus) -> Result<()> {
    let installation = Installation::new(bus).await?;
    let server = installation.up(None).await?;
    fill(&server).await?;
    let before = MANY.to_string();
    let seen = story("many.mjs", &[&server.url(), &before, "Card no. 1!"]).await?;
    is_clean(&seen)?;
    ensure!(seen["rows"] == 100 && seen["more"] == 200, "{seen}");
    ensure!(
        seen["first"] != "Card no. 1!" && seen["own"] == "The latest of all",
        "{seen}"
    );
    let counted = format!("{} documents, nothing is being processed.", MANY + 1);
    ensure!(seen["status"] == *counted, "{seen}");
    holds(&seen, "/found", &["Card no. 1!", "complete"])?;
    holds(
        &seen,
        "/again",
        &["The latest of all", "Markdown", "complete"],
    )
}

#[tokio::test]
async fn a_library_of_many_documents_is_whole_on_the_embedded_bus() -> Result<()> {
    many(Bus::Embedded).await
}

#[tokio::test]
async fn a_library_of_many_documents_is_whole_on_rabbitmq() -> Result<()> {
    many(Bus::Rabbit).await
}

/// Asks and expects no error.
async fn ask(url: &str, path: &str, body: Value) -> Result<Value> {
    let (status, reply) = post(url, path, body).await?;
    let error = reply.get("error").unwrap_or(&Value::Null);
    ensure!(status == 200 && error.is_null(), "{path}: {reply}");
    Ok(reply)
}

/// A document that failed for a reason that is mended since, one that nobody processed, and a second collection.
async fn prepare(url: &str) -> Result<()> {
    const LIBRARIAN: &str = "api/v1/librarian";
    let ontology = |key: &str, value: &str| json!({"operation": "put", "values": [{"type": "ontology", "key": key, "value": value}]});
    let broken = "@prefix ex: <urn:x:> . ex:Glassblower a";
    ask(url, "api/v1/config", ontology("broken", broken)).await?;
    let flow = json!({"operation": "start-flow", "flow-id": "terms", "blueprint-name": "ontology",
        "description": "terms"});
    ask(url, "api/v1/flow", flow).await?;
    for (id, title) in [("urn:terms", "Terms"), ("urn:notes", "Notes")] {
        let content = STANDARD.encode(format!("{title}: Ottoline Frask is a glassblower."));
        let add = json!({"operation": "add-document", "content": content, "document-metadata":
            {"id": id, "kind": "text/plain", "title": title, "comments": "", "metadata": [], "tags": []}});
        ask(url, LIBRARIAN, add).await?;
    }
    let process = json!({"operation": "add-processing", "processing-metadata": {"id": "terms",
        "document-id": "urn:terms", "flow": "terms", "collection": "default", "tags": []}});
    ask(url, LIBRARIAN, process).await?;
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let look = json!({"operation": "processing-status", "processing-id": "terms"});
        let reply = ask(url, LIBRARIAN, look).await?;
        if reply["processing-metadatas"][0]["retry"] == "retry-processing" {
            break;
        }
        ensure!(Instant::now() < end, "{reply}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let good = "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix ex: <urn:x:> .\n\
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
        ex:Glassblower a owl:Class ; rdfs:label \"glassblower\"@en .";
    ask(url, "api/v1/config", ontology("crafts", good)).await?;
    let second = json!({"operation": "update-collection", "collection": "second"});
    ask(url, "api/v1/collection-management", second).await?;
    Ok(())
}

async fn kept(bus: Bus) -> Result<()> {
    const TEXT: &str =
        "# The lamps of Pellworth\n\nThe Harrowgate lantern is a lamp made of blue glass.\n";
    let (server, _node) = up(bus).await?;
    let url = server.url();
    prepare(&url).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("lamps.md");
    std::fs::write(&file, TEXT)?;
    let file = file.to_string_lossy();
    let added = tg(&url, &["add", &file, "--wait"]).await?;
    ensure!(added.code == Some(0), "{added:?}");
    let seen = story("library.mjs", &[&url, &file]).await?;
    is_clean(&seen)?;
    ensure!(
        seen["again"] == json!({"documents": 1, "runs": 1}),
        "{seen}"
    );
    holds(&seen, "/text", &["made of blue glass"])?;
    ensure!(
        seen["saved"] == json!({"name": "lamps.md", "text": TEXT}),
        "{seen}"
    );
    holds(&seen, "/failed", &["failed", "Retry"])?;
    ensure!(
        seen["second"] == json!({"documents": 1, "runs": 2}),
        "{seen}"
    );
    ensure!(seen["twins"] == 1, "{seen}");
    ensure!(
        seen["question"] == "Delete “Notes”?" && seen["kept"] == 1,
        "{seen}"
    );
    let left = seen["left"].to_string();
    ensure!(left.contains("Terms") && !left.contains("Notes"), "{seen}");
    Ok(())
}

#[tokio::test]
async fn documents_are_opened_processed_and_deleted_on_the_embedded_bus() -> Result<()> {
    kept(Bus::Embedded).await
}

#[tokio::test]
async fn documents_are_opened_processed_and_deleted_on_rabbitmq() -> Result<()> {
    kept(Bus::Rabbit).await
}

/// The other half of what the command line is held against.
#[tokio::test]
async fn of_files_it_says_what_the_command_line_says() -> Result<()> {
    let url = system(Bus::Embedded).await?.url();
    let seen = story("kinds.mjs", &[&url]).await?;
    is_clean(&seen)?;
    let table = std::fs::read(root().join("console/test/kinds.json"))?;
    let cases: Vec<Value> = serde_json::from_slice(&table)?;
    let looked = seen["looked"].as_array().context("looked")?;
    ensure!(cases.len() > 60 && looked.len() == cases.len(), "{seen}");
    for (case, looked) in cases.iter().zip(looked) {
        // What it would have to guess is not a title.
        let title = case.get("page-title").unwrap_or(&case["title"]);
        let wanted = match case.get("refused") {
            Some(why) => json!({"refused": why}),
            None => json!({"kind": case["kind"], "title": title}),
        };
        ensure!(
            *looked == wanted,
            "{}: {looked} is not {wanted}",
            case["name"]
        );
    }
    Ok(())
}
