//! `tg sync` makes the library what a folder is, and `tg update-document` gives one document another content: what was said before is
//! not said any more.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tg_testkit::process::{Output, bin_dir};
use tokio::process::{Child, Command};

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

const LAMP: &str = "# Lamps\n\nThe Harrowgate lantern was built by Ottoline Frask in 1887.\n";
const OTHER_LAMP: &str = "# Lamps\n\nThe Harrowgate lantern was built by Berrit Solheim in 1887.\n";
const THIRD_LAMP: &str = "# Lamps\n\nThe Harrowgate lantern was built by Jocasta Prynne in 1887.\n";
const GAUGE: &str = "# Gauges\n\nThe Corvane gauge was calibrated by Ambrose Tull in 1903.\n";
const TIDES: &str = "# Tides\n\nThe tide tables of Brackwater are kept by Ilse Korvin.\n";

/// What was done to a followed folder is in answers by then.
const BOUND: Duration = Duration::from_secs(60);

async fn sync(place: &Workspace, folder: &Path) -> Result<Output> {
    let folder = folder.to_string_lossy();
    place.tg(&["sync", "--wait", "-C", "docs", &folder]).await
}

async fn answer(place: &Workspace, question: &str) -> Result<String> {
    let asked = place
        .tg(&["invoke-document-rag", "-q", question, "-C", "docs"])
        .await?;
    Ok(asked.stdout)
}

async fn documents(place: &Workspace) -> Result<Vec<String>> {
    let list = json!({"operation": "list-documents"});
    let (_, reply) = place.post("api/v1/librarian", list).await?;
    let all = reply["document-metadatas"].as_array().into_iter().flatten();
    let mut titles: Vec<String> = all
        .map(|one| one["title"].as_str().unwrap_or_default().to_owned())
        .collect();
    titles.sort();
    Ok(titles)
}

async fn a_folder(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    fs::write(at("lamp.md"), LAMP)?;
    fs::write(at("gauge.md"), GAUGE)?;
    let ran = sync(&place, folder.path()).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    ran.expect("2 added.")?;
    ensure!(documents(&place).await? == ["Gauges", "Lamps"]);
    // New, changed, gone, and one that stays.
    fs::write(at("tides.md"), TIDES)?;
    fs::write(at("lamp.md"), OTHER_LAMP)?;
    fs::remove_file(at("gauge.md"))?;
    let ran = sync(&place, folder.path()).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    ensure!(documents(&place).await? == ["Lamps", "Tides"], "{ran:?}");
    let lamp = "Who built the Harrowgate lantern?";
    for (question, said, former) in [
        (lamp, "Berrit Solheim", "Ottoline Frask"),
        (
            "Who keeps the tide tables of Brackwater?",
            "Ilse Korvin",
            "Ambrose Tull",
        ),
    ] {
        let told = answer(&place, question).await?;
        ensure!(
            told.contains(said) && !told.contains(former),
            "{question}: {told}"
        );
    }
    let gone = answer(&place, "Who calibrated the Corvane gauge?").await?;
    ensure!(!gone.contains("Ambrose Tull"), "{gone}");
    let ran = sync(&place, folder.path()).await?;
    ran.expect("2 unchanged.")?;
    // A folder that is not there empties nothing.
    let ran = sync(&place, &at("nowhere")).await?;
    ensure!(ran.code == Some(2), "{ran:?}");
    ensure!(ran.stderr.contains("is not a directory"), "{ran:?}");
    ensure!(documents(&place).await?.len() == 2);
    Ok(())
}

async fn a_document(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("lamp.md");
    let path = file.to_string_lossy();
    let update = [
        "update-document",
        "-d",
        "urn:lamp",
        "--wait",
        "-C",
        "docs",
        &path,
    ];
    fs::write(&file, LAMP)?;
    let ran = place.tg(&update).await?;
    ensure!(ran.code != Some(0), "it is not there: {ran:?}");
    ensure!(documents(&place).await?.is_empty());
    let add = ["add", "--wait", "-C", "docs", "--id", "urn:lamp", &path];
    place.tg(&add).await?.expect("1 added.")?;
    for (text, said, former) in [
        (OTHER_LAMP, "Berrit Solheim", "Ottoline Frask"),
        (THIRD_LAMP, "Jocasta Prynne", "Berrit Solheim"),
    ] {
        fs::write(&file, text)?;
        let ran = place.tg(&update).await?;
        ensure!(ran.code == Some(0), "{ran:?}");
        ran.expect("1 changed.")?;
        let told = answer(&place, "Who built the Harrowgate lantern?").await?;
        ensure!(told.contains(said) && !told.contains(former), "{told}");
    }
    ensure!(documents(&place).await? == ["Lamps"]);
    Ok(())
}

/// The command as it goes on; it ends with the test.
fn watching(place: &Workspace, folder: &Path) -> Result<Child> {
    let mut command = Command::new(bin_dir()?.join("tg"));
    command
        .args(["add", "--watch", "--delete", "-C", "docs"])
        .arg(folder)
        .env("TRUSTGRAPH_URL", &place.url)
        .env("THREADGRAPH_WORKSPACE", &place.id)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(command.spawn()?)
}

/// Waits until the library has these documents, and an answer says one thing and not another.
async fn until(
    place: &Workspace,
    titles: &[&str],
    [question, said, never]: [&str; 3],
) -> Result<()> {
    let begun = Instant::now();
    loop {
        let (there, told) = (documents(place).await?, answer(place, question).await?);
        if there == titles && told.contains(said) && !told.contains(never) {
            return Ok(());
        }
        ensure!(begun.elapsed() < BOUND, "{titles:?}: {there:?}, {told}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn a_followed_folder(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    fs::write(at("lamp.md"), LAMP)?;
    fs::write(at("gauge.md"), GAUGE)?;
    let mut runs = watching(&place, folder.path())?;
    let lamp = "Who built the Harrowgate lantern?";
    let gauge = "Who calibrated the Corvane gauge?";
    let tides = "Who keeps the tide tables of Brackwater?";
    let first = [gauge, "Ambrose Tull", "Ilse Korvin"];
    until(&place, &["Gauges", "Lamps"], first).await?;

    fs::write(at("tides.md"), TIDES)?;
    let new = [tides, "Ilse Korvin", "Ottoline Frask"];
    until(&place, &["Gauges", "Lamps", "Tides"], new).await?;
    fs::write(at("lamp.md"), OTHER_LAMP)?;
    let changed = [lamp, "Berrit Solheim", "Ottoline Frask"];
    until(&place, &["Gauges", "Lamps", "Tides"], changed).await?;
    fs::remove_file(at("gauge.md"))?;
    // What is left still answers; of what is gone nothing is said.
    until(&place, &["Lamps", "Tides"], [gauge, "", "Ambrose Tull"]).await?;
    until(&place, &["Lamps", "Tides"], changed).await?;

    ensure!(runs.try_wait()?.is_none(), "it goes on until it is told");
    let pid = runs.id().context("it is gone")?.to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().await?;
    ensure!(sent.success());
    let ended = tokio::time::timeout(BOUND, runs.wait_with_output());
    let ended = ended.await.context("it does not end")??;
    let said = String::from_utf8_lossy(&ended.stdout);
    let (code, talk) = (ended.status.code(), String::from_utf8_lossy(&ended.stderr));
    ensure!(code == Some(0), "{code:?}\n{said}\n{talk}");
    for count in ["3 added", "1 changed", "1 removed"] {
        ensure!(said.contains(count), "{count}: {said}\n{talk}");
    }
    Ok(())
}

on_both_buses!(a_folder, a_document, a_followed_folder);
