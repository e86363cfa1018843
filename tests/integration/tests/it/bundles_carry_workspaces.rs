//! A workspace goes into a bundle and out of it elsewhere, between our commands and the official ones, either
//! way round.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::official::official;
use tg_testkit::process::tg;

use crate::world::{Bus, on_both_buses, post, up};

async fn triples(url: &str) -> Result<Vec<Value>> {
    let ask = json!({"collection": "facts", "limit": 100});
    let (_, reply) = post(url, "api/v1/flow/default/service/triples", ask).await?;
    let all = reply["response"].as_array();
    Ok(all.with_context(|| format!("{reply}"))?.clone())
}

fn has(triples: &[Value], subject: &str, object: &Value) -> bool {
    triples
        .iter()
        .any(|triple| triple["s"]["i"] == subject && triple["o"] == *object)
}

on_both_buses!(between_systems);

async fn between_systems(bus: Bus) -> Result<()> {
    let (one, two, three) = (up(bus).await?, up(bus).await?, up(bus).await?);
    let (from, ours, theirs) = (one.0.url(), two.0.url(), three.0.url());
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (data, text, bundle) = (path("facts.ttl"), path("tower.txt"), path("w.tgx"));
    std::fs::write(
        &data,
        "<urn:e:tower> <urn:p:name> \"Turm\"@de , \"\u{5de}\"@he--rtl .\n<urn:sub> <urn:contains> <<( <urn:e:a> <urn:p:b> \"c\" )>> .\n",
    )?;
    std::fs::write(&text, "The tower is high.\n")?;

    // What a workspace has.
    tg(
        &from,
        &["set-collection", "facts", "-n", "Facts", "-t", "tagged"],
    )
    .await?;
    tg(
        &from,
        &["load-turtle", "-C", "facts", "--source", "never", &data],
    )
    .await?
    .expect("loaded")?;
    let add = [
        "--id",
        "urn:doc:tower",
        "--name",
        "The tower",
        "-k",
        "text/plain",
        &text,
    ];
    official(&from, "tg-add-library-document", &add).await?;
    tg(
        &from,
        &["set-prompt", "--id", "mine", "--prompt", "Say {{x}}."],
    )
    .await?;

    // The import is confirmed when the flow has it; what is exported is what the graph has.
    // A nameless node as the official loader sends it is a node for the bundle too.
    let nameless = path("nameless.ttl");
    std::fs::write(&nameless, "<urn:e:tower> <urn:p:part> [] .\n")?;
    let load = ["-i", "urn:doc:2", "-C", "facts", nameless.as_str()];
    official(&from, "tg-load-turtle", &load).await?;
    let found = stored(&from, 4).await?;
    ensure!(found.len() == 4, "{found:?}");

    // Ours to ours: everything.
    tg(&from, &["export-workspace", "-o", &bundle])
        .await?
        .expect("1 document to ")?;
    let dry = ["import-workspace", "-i", &bundle, "--dry-run"];
    tg(&ours, &dry).await?.expect("Would import")?;
    tg(&ours, &["show-library-documents"])
        .await?
        .refuse("urn:doc:tower")?;
    tg(&ours, &["import-workspace", "-i", &bundle])
        .await?
        .expect("4 triples, 1 document (0 skipped)")?;
    let tagged = json!({"t": "l", "v": "Turm", "ln": "de"});
    let found = stored(&ours, 4).await?;
    ensure!(has(&found, "urn:e:tower", &tagged), "{found:?}");
    let directed = json!({"t": "l", "v": "\u{5de}", "ln": "he", "dir": "rtl"});
    ensure!(has(&found, "urn:e:tower", &directed), "{found:?}");
    let nameless = |triple: &Value| triple["p"]["i"] == "urn:p:part" && triple["o"]["t"] == "b";
    ensure!(found.iter().any(nameless), "{found:?}");
    ensure!(
        found.iter().any(|triple| triple["o"]["t"] == "t"),
        "{found:?}"
    );
    official(&ours, "tg-list-collections", &[])
        .await?
        .expect("tagged")?;
    official(&ours, "tg-show-prompts", &[])
        .await?
        .expect("Say {{x}}.")?;
    official(&ours, "tg-get-document-content", &["urn:doc:tower"])
        .await?
        .expect("The tower is high.")?;
    // The flow still runs, and once more is nothing new.
    tg(&ours, &["show-flows"]).await?.expect("default")?;
    tg(&ours, &["import-workspace", "-i", &bundle])
        .await?
        .expect("0 documents (1 skipped)")?;

    // Ours to theirs and theirs to ours.
    with_the_official(&from, &theirs, (&bundle, &path("other.tgx"))).await
}

async fn with_the_official(from: &str, theirs: &str, (bundle, other): (&str, &str)) -> Result<()> {
    let tagged = json!({"t": "l", "v": "Turm", "ln": "de"});
    official(theirs, "tg-import-workspace", &["-i", bundle])
        .await?
        .expect("1 document(s)")?;
    let found = stored(theirs, 2).await?;
    ensure!(has(&found, "urn:e:tower", &tagged), "{found:?}");
    ensure!(found.len() == 2, "{found:?}");
    official(theirs, "tg-export-workspace", &["-o", other])
        .await?
        .refuse("xception")?;
    tg(from, &["remove-library-document", "--id", "urn:doc:tower"]).await?;
    let back = tg(from, &["import-workspace", "-i", other]).await?;
    back.expect("2 triples, 1 document (0 skipped)")?;
    ensure!(back.code == Some(0), "{back:?}");
    official(from, "tg-get-document-content", &["urn:doc:tower"])
        .await?
        .expect("The tower is high.")?;
    Ok(())
}

/// The triples once there are so many: an import is confirmed when the flow has it.
async fn stored(url: &str, count: usize) -> Result<Vec<Value>> {
    let mut found = triples(url).await?;
    for _ in 0..1_200 {
        if found.len() >= count {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        found = triples(url).await?;
    }
    Ok(found)
}
