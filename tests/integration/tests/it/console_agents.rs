//! A conversation on the page: the tools that its agent calls are seen while they are called, and the passages that it was given open.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, final_answer, tool_call};
use tg_testkit::process::tg;

use crate::console_page::{holds, is_clean, story};
use crate::world::{Bus, World, on_both_buses};

const LAMPS: &str =
    "# The lamps of Pellworth\n\nThe Harrowgate lantern is a lamp made of blue glass.\n";
const QUESTION: &str = "What is the Harrowgate lantern made of?";
const ANSWER: &str = "It is made of blue glass.";

/// The model of the agent searches once and then answers. Of documents it says that they hold no facts.
fn rules() -> Vec<Rule> {
    let call = json!({"query": "Harrowgate lantern"});
    let call = tool_call("I look it up.", "search_kb", &call);
    let answer = Reply::text(final_answer("It is known.", ANSWER));
    let is_step = |prompt: &str| prompt.contains("## Your next step");
    vec![
        Rule::computed(
            move |prompt| is_step(prompt) && prompt.contains("Observation: "),
            move |_| answer.clone().delayed(Duration::from_millis(300)),
        ),
        Rule::computed(is_step, move |_| Reply::text(call.clone())),
        Rule::always(Reply::text("[]")),
    ]
}

async fn calls_and_sources_are_seen(bus: Bus) -> Result<()> {
    let world = World::with(bus, rules()).await?;
    let url = world.server.url();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("lamps.md");
    std::fs::write(&file, LAMPS)?;
    let file = file.to_string_lossy();
    for args in [
        &["add", "--wait", "-C", "docs", &file][..],
        &["put-agent", "Scout", "-C", "docs"],
    ] {
        let ran = tg(&url, args).await?;
        ensure!(ran.code == Some(0), "{ran:?}\n{}", world.server.log());
    }
    let seen = story("sources.mjs", &[&url, "Scout", QUESTION]).await?;
    is_clean(&seen)?;
    ensure!(seen["answer"] == ANSWER, "{seen}");
    // The call was on the page before the answer.
    holds(
        &seen,
        "/underWay",
        &["search_kb", "query: Harrowgate lantern"],
    )?;
    let calls = seen["calls"].as_array().context("calls")?;
    ensure!(calls.len() == 1, "{seen}");
    holds(&seen, "/calls/0", &["search_kb", "blue glass"])?;
    holds(&seen, "/sources/0", &["The lamps of Pellworth"])?;
    holds(&seen, "/passage/title", &["The lamps of Pellworth"])?;
    holds(&seen, "/passage/text", &["blue glass"])?;
    ensure!(seen["closed"] == true, "{seen}");
    ensure!(
        seen["again"] == seen["sources"] && seen["sources"] != Value::Null,
        "{seen}"
    );
    Ok(())
}

on_both_buses!(calls_and_sources_are_seen);
