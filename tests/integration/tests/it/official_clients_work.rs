//! The official commands from PyPI, unmodified, on printed content: most of them exit 0 on failure.

use anyhow::Result;
use serde_json::{Value, json};
use tg_testkit::process::{official, tg};

use crate::world::{Bus, World};

async fn story(bus: Bus) -> Result<()> {
    let world = World::two_step(bus).await?;
    let url = world.server.url();
    configuration_and_flows(&url).await?;
    blueprints_are_checked_as_they_are_stored(&url).await?;
    tools_and_prompts(&url).await?;
    answers_and_traces(&url).await?;
    graphs(&url).await?;

    let run = |command, args: &'static [&'static str]| official(&url, command, args);
    run("tg-stop-flow", &["-i", "second"])
        .await?
        .refuse("Exception")?;
    run("tg-show-flows", &[]).await?.refuse("another")?;
    run("tg-stop-flow", &["-i", "second"])
        .await?
        .expect("Flow ID invalid")?;
    Ok(())
}

async fn configuration_and_flows(url: &str) -> Result<()> {
    let run = |command, args: &'static [&'static str]| official(url, command, args);
    run("tg-show-flows", &[])
        .await?
        .expect("everything")?
        .expect("default")?;
    run("tg-show-flow-blueprints", &[])
        .await?
        .expect("everything")?
        .expect("ontology")?;
    run("tg-get-flow-blueprint", &["-n", "structured"])
        .await?
        .expect("interfaces")?;
    run("tg-show-parameter-types", &[])
        .await?
        .expect("llm-model")?;
    run(
        "tg-put-config-item",
        &["--type", "notes", "--key", "k", "--value", "\"v-77\""],
    )
    .await?;
    run("tg-get-config-item", &["--type", "notes", "--key", "k"])
        .await?
        .expect("v-77")?;
    run("tg-list-config-items", &["--type", "notes"])
        .await?
        .expect("k")?;
    run("tg-delete-config-item", &["--type", "notes", "--key", "k"]).await?;
    run("tg-get-config-item", &["--type", "notes", "--key", "k"])
        .await?
        .refuse("v-77")?;
    run("tg-show-config", &[]).await?.expect("flow-blueprint")?;

    run(
        "tg-start-flow",
        &["-n", "everything", "-i", "second", "-d", "another"],
    )
    .await?;
    run("tg-show-flows", &[])
        .await?
        .expect("second")?
        .expect("another")?;
    run(
        "tg-start-flow",
        &["-n", "nothing", "-i", "third", "-d", "x"],
    )
    .await?
    .expect("does not exist")?;
    Ok(())
}

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

async fn tools_and_prompts(url: &str) -> Result<()> {
    let run = |command, args: &'static [&'static str]| official(url, command, args);
    run("tg-show-tools", &[]).await?.expect("llm")?;
    let set = [
        "--id",
        "helper",
        "--name",
        "helper",
        "--type",
        "text-completion",
        "--description",
        "Asks the model",
    ];
    official(url, "tg-set-tool", &set).await?;
    run("tg-show-tools", &[]).await?.expect("helper")?;
    run("tg-delete-tool", &["--id", "helper"]).await?;
    run("tg-show-prompts", &[]).await?.expect("agent-react")?;
    let metrics = format!("{url}api/metrics");
    official(url, "tg-show-processor-state", &["-m", &metrics])
        .await?
        .expect("agent-manager")?;
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
    run("tg-invoke-llm", &["Be brief.", "nonce-llm-5"])
        .await?
        .refuse("Exception")?;

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

async fn graphs(url: &str) -> Result<()> {
    let file = tempfile::NamedTempFile::with_suffix(".ttl")?;
    std::fs::write(file.path(), "<urn:e:a> <urn:e:knows> \"caf\u{e9}\"@fr .\n")?;
    let sparql = "SELECT ?o WHERE { <urn:e:a> <urn:e:knows> ?o }";
    let path = file.path().to_string_lossy().into_owned();
    let loaded = tg_testkit::process::tg(url, &["load-turtle", "-i", "d", &path]).await?;
    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    official(url, "tg-invoke-sparql-query", &["-q", sparql])
        .await?
        .expect("caf\u{e9}")?;
    official(url, "tg-query-graph", &["-s", "urn:e:a"])
        .await?
        .expect("caf\u{e9}")?;
    official(url, "tg-show-graph", &[])
        .await?
        .expect("urn:e:knows")?;
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
