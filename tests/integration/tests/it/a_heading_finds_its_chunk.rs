//! A chunk is found by what stands above it: a heading, the title, the names of a table's columns, the page. What is cited
//! stays word for word what the document says.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::pdf::{LEFT, Pdf, line};
use tg_testkit::process::tg;

use crate::shared::Workspace;
use crate::world::{Bus, launch, post};

/// Lanterns, each in a section that names it in the heading alone.
const LANTERNS: [(&str, &str); 6] = [
    ("Harrowgate", "Ottoline Frask"),
    ("Pellworth", "Ambrose Tull"),
    ("Corvane", "Edda Marl"),
    ("Brackwater", "Ilse Korvin"),
    ("Nethermoor", "Wilhelmina Dray"),
    ("Tallowby", "Jonas Quist"),
];

/// Sections too long to share a chunk.
fn guide() -> String {
    let mut text = "---\nauthor: nobody\n---\n# A guide to sights\n\nThere are many.\n".to_owned();
    for (at, (place, builder)) in LANTERNS.iter().enumerate() {
        let filler = format!("Visitors of number {at} bring bread, water and a warm coat along. ")
            .repeat(20);
        text.push_str(&format!(
            "\n## {place}\n\nIt was built by {builder}.\n\n{filler}\n"
        ));
    }
    text
}

/// A table of many rows whose first alone has the names.
fn prices() -> String {
    let rows = (0..400).map(|n| format!("{n:03};Werkstra\u{df}e {n};kein Anstrich n\u{f6}tig\n"));
    format!("nummer;anschrift;bemerkung\n{}", rows.collect::<String>())
}

async fn ask(workspace: &Workspace, question: &str) -> Result<Value> {
    let body = json!({"query": question, "doc-limit": 1, "collection": "guides"});
    let path = "api/v1/flow/default/service/document-rag";
    let (status, answer) = workspace.post(path, body).await?;
    ensure!(status == 200, "{status}: {answer}");
    Ok(answer)
}

async fn library(workspace: &Workspace, body: Value) -> Result<Value> {
    Ok(workspace.post("api/v1/librarian", body).await?.1)
}

/// The parts of a document, and theirs.
async fn chunks(workspace: &Workspace, id: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut open = vec![id.to_owned()];
    while let Some(id) = open.pop() {
        let body = json!({"operation": "list-children", "document-id": id});
        let listed = library(workspace, body).await?;
        let parts = listed["document-metadatas"].as_array().cloned();
        for part in parts.unwrap_or_default() {
            match part["document-type"].as_str() {
                Some("chunk") => found.push(part),
                _ => open.push(part["id"].as_str().unwrap_or_default().to_owned()),
            }
        }
    }
    Ok(found)
}

async fn story(bus: Bus) -> Result<()> {
    let workspace = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("guide.md"), guide())?;
    let old: Vec<u8> = prices().chars().map(|c| c as u8).collect();
    fs::write(folder.path().join("adressen.csv"), old)?;
    let directory = folder.path().to_string_lossy();
    let args = ["add", "--wait", "-C", "guides", "--json", &directory];
    let ran = workspace.tg(&args).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let added: Value = serde_json::from_str(&ran.stdout)?;
    let id = |name: &str| -> Result<String> {
        let documents = added["documents"].as_array().context("documents")?;
        let mut one = documents.iter().filter(|one| {
            one["file"]
                .as_str()
                .is_some_and(|file| file.ends_with(name))
        });
        Ok(one.next().context("the document")?["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    };

    // One chunk may be read: the right one is the nearest although only its heading names it.
    for (place, builder) in LANTERNS {
        let answer = ask(&workspace, &format!("Who built {place}?")).await?;
        let said = answer["response"].as_str().unwrap_or_default();
        ensure!(said.contains(builder), "{place}: {answer}");
        let cited = answer["citations"][0]["text"].as_str().unwrap_or_default();
        ensure!(
            guide().contains(cited) && cited.contains(builder),
            "{place}: {answer}"
        );
    }
    let parts = chunks(&workspace, &id("guide.md")?).await?;
    let stands: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["comments"].as_str())
        .collect();
    ensure!(
        stands.contains(&"A guide to sights > Corvane"),
        "{stands:?}"
    );

    // Every chunk of the table is read with the names of its columns.
    let parts = chunks(&workspace, &id("adressen.csv")?).await?;
    ensure!(parts.len() > 3, "{parts:?}");
    let named = parts
        .iter()
        .filter(|part| part["comments"] == "adressen.csv\nnummer;anschrift;bemerkung")
        .count();
    ensure!(named + 1 == parts.len(), "{parts:?}");
    Ok(())
}

/// A PDF with a page about each lantern.
fn paper(lanterns: &[(&str, &str)]) -> Vec<u8> {
    let mut pdf = Pdf::courier();
    for (at, (place, builder)) in lanterns.iter().enumerate() {
        let first = line(LEFT, 700.0 - 12.0 * at as f64, &sentence(place, builder));
        let second = format!("Page after page tells of {place}.");
        pdf.page(&(first + &line(LEFT, 500.0, &second)));
    }
    let about = pdf.object("<< /Title (Lanterns on paper) >>");
    pdf.finish(&format!("/Info {about} 0 R"))
}

fn sentence(place: &str, builder: &str) -> String {
    format!("The {place} lantern was built by {builder}.")
}

/// What models are given of a chunk: the line that says where it stands, then its first sentence.
fn on_page(page: usize, (place, builder): (&str, &str)) -> String {
    format!(
        "(Lanterns on paper; page {page})\n{}",
        sentence(place, builder)
    )
}

/// The prompts that a model was given, by what they begin with.
fn prompts(model: &ScriptedModel, about: &str) -> Vec<String> {
    let calls = model.calls();
    let texts = calls.iter().filter_map(|call| {
        let messages = call.body["messages"].as_array()?;
        messages
            .iter()
            .rev()
            .find_map(|one| one["content"].as_str())
    });
    let wanted = texts.filter(|text| text.contains(about));
    wanted.map(str::to_owned).collect()
}

/// Adds the paper as it is now.
async fn add(url: &str, file: &std::path::Path, content: &[u8]) -> Result<()> {
    fs::write(file, content)?;
    let args = ["add", "--wait", "-C", "guides", &file.to_string_lossy()];
    let ran = tg(url, &args).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    Ok(())
}

/// The page goes to whoever reads a chunk; a page that is put in before others moves them, which costs nothing.
async fn of_pages(bus: Bus) -> Result<()> {
    let rules = vec![
        Rule::contains(
            "## Answer from passages",
            Reply::text("It was Edda Marl [1]."),
        ),
        Rule::always(Reply::text("[]")),
    ];
    let model = ScriptedModel::start(rules).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref())
        .env("THREADGRAPH_EMBEDDINGS__PROVIDER", "openai")
        .env("THREADGRAPH_EMBEDDINGS__URL", model.url());
    let server = launch.ready().await?;
    let url = server.url();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("lanterns.pdf");
    let three = &LANTERNS[..3];
    add(&url, &file, &paper(three)).await?;
    let embedded = model.embedded();
    let extraction = prompts(&model, "## Relationships wanted");
    for (lantern, page) in three.iter().zip(1..) {
        let read = on_page(page, *lantern);
        let is_of = |text: &&String| text.contains(&read);
        ensure!(
            embedded.iter().filter(is_of).count() == 1,
            "{read}: {embedded:?}"
        );
        ensure!(
            extraction.iter().filter(is_of).count() == 1,
            "{read}: {extraction:?}"
        );
    }
    let asked = async |page: usize, lantern| -> Result<()> {
        let body = json!({"query": "Who built Corvane?", "collection": "guides"});
        let path = "api/v1/flow/default/service/document-rag";
        let (status, answer) = post(&url, path, body).await?;
        ensure!(status == 200, "{status}: {answer}");
        let answers = prompts(&model, "## Answer from passages");
        let prompt = answers.last().context("no prompt")?;
        let read = on_page(page, lantern);
        ensure!(prompt.contains(&read), "{read}: {prompt}");
        // Once, and nothing else of pages.
        let told = prompt.matches("; page ").count();
        let passages = prompt.matches("(Lanterns on paper; page ").count();
        ensure!(told == passages, "{prompt}");
        let cited = &answer["citations"][0];
        let text = cited["text"].as_str().unwrap_or_default();
        let at = prompt.find(text).context("not in the prompt")?;
        let before = prompt[..at].rsplit("; page ").next().unwrap_or_default();
        let page: i64 = before.split(')').next().unwrap_or_default().parse()?;
        ensure!(cited["page"] == page, "page {page}: {answer}");
        Ok(())
    };
    asked(3, LANTERNS[2]).await?;

    // A page before all others.
    let before = (model.embedded().len(), prompts(&model, " wanted\n").len());
    let four = [&[LANTERNS[5]], three].concat();
    add(&url, &file, &paper(&four)).await?;
    let embedded = model.embedded().split_off(before.0);
    let new: Vec<_> = embedded
        .iter()
        .filter(|text| text.contains("was built by"))
        .collect();
    ensure!(
        new.len() == 1 && new[0].starts_with(&on_page(1, LANTERNS[5])),
        "{new:?}"
    );
    let extraction = prompts(&model, " wanted\n").split_off(before.1);
    let of_others = |text: &&String| three.iter().any(|(place, _)| text.contains(place));
    ensure!(
        !extraction.iter().any(|text| of_others(&text)),
        "{extraction:?}"
    );
    asked(4, LANTERNS[2]).await
}

#[tokio::test]
async fn of_pages_on_the_embedded_bus() -> Result<()> {
    of_pages(Bus::Embedded).await
}

#[tokio::test]
async fn of_pages_on_rabbitmq() -> Result<()> {
    of_pages(Bus::Rabbit).await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
