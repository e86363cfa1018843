//! Official commands from PyPI, unmodified, where nobody has to log in: an agent with a tool in two flows and what its trace
//! says, and what they tell of a blueprint that is refused. What each command prints and how it ends is in
//! `official_commands`.

use anyhow::Result;
use serde_json::{Value, json};
use tg_testkit::official::official;
use tg_testkit::process::tg;

use crate::world::{Bus, World};

async fn story(bus: Bus) -> Result<()> {
    let world = World::two_step(bus).await?;
    let url = world.server.url();
    blueprints_are_checked_as_they_are_stored(&url).await?;
    official(&url, "tg-start-flow", &SECOND).await?;
    answers_and_traces(&url).await
}

/// A flow beside the one that is there from the start.
const SECOND: [&str; 6] = ["-n", "everything", "-i", "second", "-d", "another"];

/// What a check says of a blueprint is what storing it says, to our commands and to the official one.
async fn blueprints_are_checked_as_they_are_stored(url: &str) -> Result<()> {
    let faulty = json!({"blueprint": {}, "interfaces": {}, "flow": {
        "agent-manager:{id}": {"topics": {
            "request": "request:tg:agent:other:default",
            "response": "response:tg:agent:other:default",
        }},
        "nobody-knows:{id}": {"topics": {"input": "flow:tg:x:{workspace}:{id}"}},
    }})
    .to_string();
    let checked = tg(url, &["check-blueprint", "-c", &faulty, "--json"]).await?;
    assert_eq!(checked.code, Some(2), "{checked:?}");
    let faults: Value = serde_json::from_str(&checked.stdout)?;
    let faults = faults.as_array().cloned().unwrap_or_default();
    assert!(faults.len() > 1, "{checked:?}");
    let put = ["-n", "faulty", "-c", &faulty];
    let ours = tg(url, &[&["put-flow-blueprint"][..], &put].concat()).await?;
    assert_eq!(ours.code, Some(2), "{ours:?}");
    let theirs = official(url, "tg-put-flow-blueprint", &put).await?;
    let shown = tg(url, &["check-blueprint", "-c", &faulty]).await?;
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
    tg(url, &["show-flow-blueprints"]).await?.refuse("faulty")?;
    let sound = tg(url, &["get-flow-blueprint", "everything"]).await?.stdout;
    tg(url, &["check-blueprint", "-c", &sound])
        .await?
        .expect("No faults.")?;
    let put = tg(url, &["put-flow-blueprint", "-n", "sound", "-c", &sound]).await?;
    assert_eq!(put.code, Some(0), "{put:?}");
    tg(url, &["show-flow-blueprints"]).await?.expect("sound")?;
    Ok(())
}

async fn answers_and_traces(url: &str) -> Result<()> {
    let run = |command, args: &'static [&'static str]| official(url, command, args);
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
    official(url, "tg-show-explain-trace", &[&id])
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
