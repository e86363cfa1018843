//! Vectors of chunks that pass through a flow go into a file, and from it into another collection: through the
//! flow again, or as a core that is loaded and unloaded. So do all that are stored, of entities, too.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

const QUESTION: &str = "who keeps the tz database";

async fn saved_loaded_and_unloaded(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("saved").to_string_lossy().into_owned();

    place
        .tg(&["load-sample-documents"])
        .await?
        .expect("Uncommon clocks (urn:demo:clocks): loaded")?;
    place
        .tg(&["load-sample-documents"])
        .await?
        .expect("(urn:demo:tz): loaded")?;

    // The command looks on from before the document is processed; its file says that it does.
    let line = [
        "save-doc-embeds",
        "-o",
        &file,
        "--count",
        "1",
        "--idle",
        "60",
    ];
    let process = async {
        let listening = format!("{file}.part");
        for _ in 0..1_200 {
            if Path::new(&listening).exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let line = [
            "start-library-processing",
            "-d",
            "urn:demo:tz",
            "--id",
            "tz",
            "--wait",
        ];
        place.tg(&line).await
    };
    let (saved, processed) = tokio::join!(place.tg(&line), process);
    processed?.expect("complete")?;
    saved?.expect("Saved: 1 records, 1 chunks.")?;

    let near = |collection: &'static str| {
        let place = &place;
        async move {
            place
                .tg(&["invoke-document-embeddings", QUESTION, "-c", collection])
                .await
        }
    };
    place
        .tg(&["load-doc-embeds", "-i", &file, "-C", "again"])
        .await?
        .expect("Loaded: 1 records, 1 chunks.")?;
    let mut found = near("again").await?;
    for _ in 0..1_200 {
        if found.stdout.contains("urn:chunk:") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        found = near("again").await?;
    }
    found.expect("urn:chunk:")?;

    place
        .tg(&["put-de-core", "--id", "urn:kept", "-i", &file])
        .await?
        .expect("1 document-embeddings")?;
    place
        .tg(&["load-de-core", "--id", "urn:kept", "-C", "core"])
        .await?
        .expect("Loaded: 1 chunks")?;
    near("core").await?.expect("urn:chunk:")?;
    place
        .tg(&["unload-de-core", "--id", "urn:kept", "-C", "core"])
        .await?
        .expect("Unloaded: 1 chunks")?;
    let gone = near("core").await?;
    ensure!(!gone.stdout.contains("urn:chunk:"), "{gone:?}");
    Ok(())
}

/// All that is stored of a collection goes to a file, and from it into another collection, which then has the same.
async fn what_is_stored_leaves_and_comes_back(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    place
        .tg(&["load-sample-documents"])
        .await?
        .expect("(urn:demo:clocks): loaded")?;
    let process = ["start-library-processing", "-d", "urn:demo:clocks"];
    let process = [&process[..], &["--id", "clocks", "--wait"]].concat();
    place.tg(&process).await?.expect("complete")?;
    for of in ["entities", "chunks"] {
        let save = async |collection: &str, file: &str| -> Result<Vec<Value>> {
            let line = ["save-vectors", "--of", of, "-C", collection, "-o", file];
            place.tg(&line).await?.expect("Saved: ")?;
            let text = std::fs::read_to_string(file)?;
            let frames = text.lines().map(serde_json::from_str::<Value>);
            let frames = frames.collect::<serde_json::Result<Vec<_>>>()?;
            let mut all = Vec::new();
            for frame in &frames {
                ensure!(frame["model"].is_string(), "{frame}");
                let list = frame[of].as_array().context("no vectors")?;
                all.extend(list.iter().cloned());
            }
            all.sort_by_key(Value::to_string);
            Ok(all)
        };
        let (first, second) = (path(of), path(&format!("{of}-again")));
        let all = save("default", &first).await?;
        ensure!(!all.is_empty(), "{of}: nothing is stored");
        for vector in &all {
            ensure!(vector["text"].is_string(), "{vector}");
        }
        let loaded = ["load-vectors", "-i", &first, "-C", "again"];
        let said = format!("Loaded: {} vectors.", all.len());
        // Twice: what is there already is there once.
        for _ in 0..2 {
            place.tg(&loaded).await?.expect(&said)?;
        }
        let again = save("again", &second).await?;
        ensure!(again == all, "{of}: {again:?} instead of {all:?}");
    }
    Ok(())
}

on_both_buses!(
    saved_loaded_and_unloaded,
    what_is_stored_leaves_and_comes_back
);
