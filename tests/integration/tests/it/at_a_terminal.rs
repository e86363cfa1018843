//! What only somebody at a terminal sees: the living line of whoever waits, the question before something is made, and
//! tables that are no wider than the terminal.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule};
use tg_testkit::process::tg;

use crate::shared::Workspace;
use crate::terminal::{COLUMNS, Shown, at_a_terminal};
use crate::world::{Bus, up};

/// Chunks of the document that is waited for: more than are on their way at once.
const PARTS: usize = 64;

/// A model that takes its time over each chunk.
fn slow_model() -> Vec<Rule> {
    let says = |of: &'static str, line: Value| {
        let reply = Reply::text(line.to_string()).delayed(Duration::from_millis(800));
        Rule::contains(of, reply)
    };
    vec![
        says(
            "## Definitions wanted",
            json!({"entity": "lantern", "definition": "a lamp"}),
        ),
        says(
            "## Relationships wanted",
            json!({"subject": "lantern", "predicate": "gives", "object": "light", "object-entity": true}),
        ),
    ]
}

/// The states of the living line, and the raw text from the first to the last of them.
fn living(shown: &Shown) -> Result<(Vec<String>, &str)> {
    let is_state = |line: &String| line.contains(" chunks, ") && line.contains(" %");
    let states: Vec<String> = shown.lines().into_iter().filter(is_state).collect();
    let text = &shown.shown;
    let first = text
        .find(" chunks, ")
        .with_context(|| format!("{shown:?}"))?;
    let last = text.rfind(" chunks, ").unwrap_or(first);
    Ok((states, &text[first..last]))
}

/// Whether a number stands between two texts: `~25 s`.
fn number_between(line: &str, before: &str, after: &str) -> bool {
    line.match_indices(after).any(|(at, _)| {
        let head = &line[..at];
        let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        digits > 0 && head[..head.len() - digits].ends_with(before)
    })
}

async fn the_line_lives(bus: Bus) -> Result<()> {
    let (place, _model) = Workspace::scripted(bus, slow_model()).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("lanterns.md");
    let part = |part: usize| {
        let words = format!("The lantern of hall {part} gives a blue light. ").repeat(30);
        format!("## Hall {part}\n\n{words}\n\n")
    };
    let text: String = (0..PARTS).map(part).collect();
    fs::write(&file, format!("# Lanterns of Harrowgate\n\n{text}"))?;
    let path = file.to_string_lossy().into_owned();
    let line = ["add", "--wait", &path, "-w", &place.id];
    let shown = at_a_terminal(&place.url, &[], &line).await?;

    ensure!(shown.code == Some(0), "{shown:?}");
    let (states, between) = living(&shown)?;
    ensure!(states.len() > 3, "{states:?}");
    ensure!(
        states.iter().all(|state| state.chars().count() <= COLUMNS),
        "{states:?}"
    );
    // One line, written over and over.
    ensure!(!between.contains('\n'), "{between:?}");
    let told = |before: &str, after: &str| {
        states
            .iter()
            .any(|state| number_between(state, before, after))
    };
    ensure!(told(", ", " %"), "{states:?}");
    ensure!(told(", ", " model calls"), "{states:?}");
    ensure!(told("~", " s"), "{states:?}");
    // It leaves the summary behind.
    let lines = shown.lines();
    let summary = lines.iter().position(|line| line.starts_with("1 added"));
    let summary = summary.with_context(|| format!("{lines:?}"))?;
    ensure!(
        !lines[summary..].iter().any(|line| line.contains(" %")),
        "{lines:?}"
    );
    Ok(())
}

#[tokio::test]
async fn the_line_of_whoever_waits_lives_on_the_embedded_bus() -> Result<()> {
    the_line_lives(Bus::Embedded).await
}

#[tokio::test]
async fn the_line_of_whoever_waits_lives_on_rabbitmq() -> Result<()> {
    the_line_lives(Bus::Rabbit).await
}

#[tokio::test]
async fn a_schema_is_made_when_the_user_says_yes_and_only_then() -> Result<()> {
    let place = Workspace::shared(Bus::Embedded).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("lamps.csv");
    fs::write(&file, "id,maker,height\n1,Frask,12.5\n2,Ottoline,3\n")?;
    let path = file.to_string_lossy().into_owned();
    let line = ["load-structured-data", &path, "--auto", "-w", &place.id];
    let question = "Make this schema and load the file? [y/N] ";

    for (typed, code) in [("\r", 0), ("no\r", 0), ("\u{3}", 130), ("\u{4}", 0)] {
        let shown = at_a_terminal(&place.url, &[(question, typed)], &line).await?;
        ensure!(shown.code == Some(code), "{typed:?}: {shown:?}");
        ensure!(shown.shown.contains("Proposed schema 'lamps'"), "{shown:?}");
        shown.fits()?;
        ensure!(!shown.shown.contains("made."), "{typed:?}: {shown:?}");
        let schemas = place.tg(&["list-config-items", "schema", "--json"]).await?;
        ensure!(!schemas.stdout.contains("lamps"), "{typed:?}: {schemas:?}");
    }

    let shown = at_a_terminal(&place.url, &[(question, "y\r")], &line).await?;
    ensure!(shown.code == Some(0), "{shown:?}");
    ensure!(shown.shown.contains("Schema 'lamps' made."), "{shown:?}");
    let query = "{ lamps(limit: 9) { id maker } }";
    let rows = place.tg(&["invoke-rows-query", query, "--json"]).await?;
    rows.expect("Frask")?.expect("Ottoline")?;
    Ok(())
}

#[tokio::test]
async fn tables_are_no_wider_than_the_terminal_and_cut_no_id() -> Result<()> {
    let (server, _node) = up(Bus::Embedded).await?;
    let url = server.url();
    let folder = tempfile::tempdir()?;
    let file = folder
        .path()
        .join("an-account-of-the-lanterns-of-harrowgate-and-of-their-makers.md");
    fs::write(
        &file,
        "The Quillon lantern was built by Marguerite Alder in 1911.",
    )?;
    let path = file.to_string_lossy().into_owned();
    tg(&url, &["add", "--wait", &path])
        .await?
        .expect("1 added")?;
    let question =
        "Who built the Quillon lantern, of which there are so many accounts in the library?";
    let asked = tg(&url, &["ask", question]).await?;
    let trace = asked
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("trace: "));
    let trace = trace.and_then(|line| line.split_whitespace().nth(2));
    let trace = trace.with_context(|| format!("{asked:?}"))?;

    let shown = at_a_terminal(&url, &[], &["list-explain-traces"]).await?;
    shown.fits()?;
    let lines = shown.lines();
    ensure!(lines[0].contains("Question"), "{lines:?}");
    ensure!(
        lines.iter().any(|line| line.trim() == trace),
        "{trace}: {lines:?}"
    );
    for line in [
        &["show-library-documents"][..],
        &["show-library-documents", "--long"],
        &["process-status"],
        &["show-library-processing"],
        &["show-flows"],
        &["show-flow-blueprints"],
        &["show-parameter-types"],
        &["show-tools"],
        &["list-collections"],
        &["why", "--all"],
        &["dead-letters"],
        &["parked", "list"],
        &["list-requests"],
        &["list-my-workspaces"],
        &["profiles"],
        &["models", "list"],
        &["invoke-document-embeddings", "lantern"],
    ] {
        let shown = at_a_terminal(&url, &[], line).await?;
        ensure!(shown.code == Some(0), "{line:?}: {shown:?}");
        shown.fits().with_context(|| format!("{line:?}"))?;
    }
    // What goes elsewhere is as wide as it is.
    let piped = tg(&url, &["list-explain-traces"]).await?;
    ensure!(
        piped
            .stdout
            .lines()
            .any(|line| line.contains(trace) && line.contains("Who built")),
        "{piped:?}"
    );
    Ok(())
}
