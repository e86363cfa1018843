//! Official commands from PyPI, unmodified, where nobody has to log in: an agent with a tool in two flows and what its trace
//! says, and what they tell of a blueprint that is refused. What each command prints and how it ends is in
//! `official_commands`.

use anyhow::Result;
use serde_json::{Value, json};
use tg_testkit::model::two_step_react;
use tg_testkit::model_router::name_of;

use crate::shared::Workspace;
use crate::world::Bus;

async fn story(bus: Bus) -> Result<()> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let (place, model) = Workspace::scripted(bus, rules).await?;
    blueprints_are_checked_as_they_are_stored(&place).await?;
    // A flow beside the one that is there from the start.
    let second = ["-n", "everything", "-i", "second", "-d", "another"];
    let named = format!("llm-model={}", name_of(model.port()));
    let start = [&second[..], &["--param", &named]].concat();
    place.official("tg-start-flow", &start).await?;
    answers_and_traces(&place).await
}

/// What a check says of a blueprint is what storing it says, to our commands and to the official one.
async fn blueprints_are_checked_as_they_are_stored(place: &Workspace) -> Result<()> {
    let faulty = json!({"blueprint": {}, "interfaces": {}, "flow": {
        "agent-manager:{id}": {"topics": {
            "request": "request:tg:agent:other:default",
            "response": "response:tg:agent:other:default",
        }},
        "nobody-knows:{id}": {"topics": {"input": "flow:tg:x:{workspace}:{id}"}},
    }})
    .to_string();
    let checked = place
        .tg(&["check-blueprint", "-c", &faulty, "--json"])
        .await?;
    assert_eq!(checked.code, Some(2), "{checked:?}");
    let faults: Value = serde_json::from_str(&checked.stdout)?;
    let faults = faults.as_array().cloned().unwrap_or_default();
    assert!(faults.len() > 1, "{checked:?}");
    let put = ["-n", "faulty", "-c", &faulty];
    let ours = place
        .tg(&[&["put-flow-blueprint"][..], &put].concat())
        .await?;
    assert_eq!(ours.code, Some(2), "{ours:?}");
    let theirs = place.official("tg-put-flow-blueprint", &put).await?;
    let shown = place.tg(&["check-blueprint", "-c", &faulty]).await?;
    for fault in &faults {
        for part in ["path", "message"] {
            let part = fault[part].as_str().unwrap_or_default();
            assert!(!part.is_empty(), "{fault}");
            for said in [&ours, &theirs, &shown] {
                let whole = format!("{}{}", said.stdout, said.stderr);
                // Tables break lines.
                let squeezed = |text: &str| text.split_whitespace().collect::<String>();
                assert!(
                    squeezed(&whole).contains(&squeezed(part)),
                    "{part:?} is not in {whole}"
                );
            }
        }
    }
    place
        .tg(&["show-flow-blueprints"])
        .await?
        .refuse("faulty")?;
    let sound = place
        .tg(&["get-flow-blueprint", "everything"])
        .await?
        .stdout;
    place
        .tg(&["check-blueprint", "-c", &sound])
        .await?
        .expect("No faults.")?;
    let put = place
        .tg(&["put-flow-blueprint", "-n", "sound", "-c", &sound])
        .await?;
    assert_eq!(put.code, Some(0), "{put:?}");
    place.tg(&["show-flow-blueprints"]).await?.expect("sound")?;
    Ok(())
}

async fn answers_and_traces(place: &Workspace) -> Result<()> {
    let run = |command, args: &'static [&'static str]| place.official(command, args);
    run("tg-invoke-agent", &["-q", "What? nonce-official-9"])
        .await?
        .expect("nonce-official-9")?;
    run("tg-invoke-agent", &["-q", "What? nonce-official-9", "-v"])
        .await?
        .expect("42")?;
    let explained = run(
        "tg-invoke-agent",
        &["-q", "What? nonce-official-9", "-x", "-f", "second"],
    )
    .await?;
    explained.expect("nonce-official-9")?;
    assert!(
        explained.stderr.contains("[analysis: calculator]"),
        "{}",
        explained.stderr
    );
    assert!(
        explained.stderr.contains("[conclusion]"),
        "{}",
        explained.stderr
    );
    let list = run("tg-list-explain-traces", &["--format", "json"]).await?;
    list.expect("urn:trustgraph:agent:")?;
    let traces: serde_json::Value = serde_json::from_str(&list.stdout)?;
    let id = traces[0]["id"].as_str().unwrap_or_default().to_owned();
    place
        .official("tg-show-explain-trace", &[&id])
        .await?
        .expect("calculator")?
        .expect("42")?
        .expect("nonce-official-9")?;
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
