//! The page's library: what it says of files before they are added is what the command line says, and of a library with
//! more documents than a page of a listing has nothing is missing.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tg_testkit::process::{Server, root};

use crate::console_page::{holds, is_clean, story};
use crate::shared::system;
use crate::world::{Bus, Installation, post};

/// More documents than one listing brought once.
const MANY: usize = 520;

/// Puts many documents into the library; each is processed.
async fn fill(server: &Server) -> Result<()> {
    let url = server.url();
    let add = |number: usize| {
        let url = url.clone();
        async move {
            let content = STANDARD.encode(format!("Card {number} is kept in drawer {number}."));
            let body = json!({
                "operation": "load-document",
                "document-metadata": {"id": format!("urn:card:{number}"), "kind": "text/plain", "title": format!("Card no. {number}!"), "tags": []},
                "content": content,
                "processing-metadata": {"flow": "default", "collection": "default"},
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
