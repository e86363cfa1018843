//! `tg add` takes files to an answer in one step: what they are is found, what is there already stays as it is, what
//! changed is processed again, and what nothing can read is told and not added.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Output, root};

use crate::bad_files as files;
use crate::shared::Workspace;
use crate::world::Bus;

/// Its words are found nowhere else, least of all in the code.
const LAMPS: &str = "# The lamps of Pellworth\n\nThe Harrowgate lantern is a lamp made of blue glass. The Harrowgate \
    lantern was built by Ottoline Frask in 1887.\n";
const PAGE: &str = "<!doctype html><html><head><title>Gauges &amp; dials</title></head><body><p>The Corvane gauge was \
    calibrated by Ambrose Tull in 1903.</p></body></html>";

async fn add(place: &Workspace, args: &[&str]) -> Result<Output> {
    place
        .tg(&[&["add", "--wait", "-C", "docs"], args].concat())
        .await
}

/// A command that was asked for JSON: what it printed, and its exit code.
async fn told(place: &Workspace, args: &[&str]) -> Result<(Value, Option<i32>)> {
    let ran = add(place, &[&["--json"], args].concat()).await?;
    let read = serde_json::from_str(&ran.stdout).with_context(|| format!("{ran:?}"))?;
    Ok((read, ran.code))
}

/// `file: outcome` of each document, in order, without the directory.
fn outcomes(told: &Value) -> Vec<String> {
    let documents = told["documents"].as_array().into_iter().flatten();
    let mut outcomes: Vec<String> = documents
        .map(|one| {
            let file = one["file"].as_str().unwrap_or_default();
            let name = Path::new(file).file_name().unwrap_or_default();
            let outcome = one["outcome"].as_str().unwrap_or_default();
            format!("{}: {outcome}", name.to_string_lossy())
        })
        .collect();
    outcomes.sort();
    outcomes
}

async fn answers(place: &Workspace, question: &str) -> Result<String> {
    let asked = place
        .tg(&["invoke-document-rag", "-q", question, "-C", "docs"])
        .await?;
    Ok(asked.stdout)
}

async fn count(place: &Workspace, operation: &str, entries: &str) -> Result<usize> {
    let (_, reply) = place
        .post("api/v1/librarian", json!({"operation": operation}))
        .await?;
    Ok(reply[entries].as_array().map_or(0, Vec::len))
}

/// The first time: ids, titles, kinds and pages are told, and questions are answered.
async fn three_files(place: &Workspace, folder: &Path) -> Result<()> {
    let directory = folder.to_string_lossy();
    let ran = add(place, &[&directory]).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    ran.expect("lamps.md: added as https://trustgraph.ai/doc/")?
        .expect("(\"The lamps of Pellworth\", Markdown)")?
        .expect("(\"Gauges & dials\", HTML)")?
        .expect("(\"uncommon-clocks.pdf\", PDF, 3 pages)")?
        .expect("3 added.")?;
    ensure!(!ran.stdout.contains(".hidden"), "{ran:?}");
    for (question, answer) in [
        ("Who built the Harrowgate lantern?", "Ottoline Frask"),
        ("Who calibrated the Corvane gauge?", "Ambrose Tull"),
        (
            "Which mountain is close to the meridian of Nepal's time?",
            "Gaurishankar",
        ),
    ] {
        let said = answers(place, question).await?;
        ensure!(said.contains(answer), "{question}: {said}");
    }
    Ok(())
}

/// Again: nothing is done. Changed: that one alone, in its place.
async fn only_what_changed(place: &Workspace, folder: &Path) -> Result<()> {
    let directory = folder.to_string_lossy();
    let (again, code) = told(place, &[&directory]).await?;
    ensure!(code == Some(0), "{again}");
    ensure!(
        outcomes(&again)
            == [
                "lamps.md: unchanged",
                "page.html: unchanged",
                "uncommon-clocks.pdf: unchanged"
            ],
        "{again}"
    );
    ensure!(count(place, "list-processing", "processing-metadatas").await? == 3);

    let changed = LAMPS.replace("Ottoline Frask in 1887", "Wilhelmina Dray in 1891");
    fs::write(folder.join("lamps.md"), changed)?;
    let (changed, code) = told(place, &[&directory]).await?;
    ensure!(code == Some(0), "{changed}");
    ensure!(
        outcomes(&changed)
            == [
                "lamps.md: changed",
                "page.html: unchanged",
                "uncommon-clocks.pdf: unchanged"
            ],
        "{changed}"
    );
    ensure!(count(place, "list-documents", "document-metadatas").await? == 3);
    ensure!(count(place, "list-processing", "processing-metadatas").await? == 4);
    let said = answers(place, "Who built the Harrowgate lantern?").await?;
    ensure!(
        said.contains("Wilhelmina Dray") && !said.contains("Ottoline"),
        "{said}"
    );

    // The same content under another name is the document that is there.
    fs::copy(folder.join("lamps.md"), folder.join("copy.md"))?;
    let (copied, _) = told(place, &[&folder.join("copy.md").to_string_lossy()]).await?;
    ensure!(outcomes(&copied) == ["copy.md: unchanged"], "{copied}");
    ensure!(count(place, "list-documents", "document-metadatas").await? == 3);
    fs::remove_file(folder.join("copy.md"))?;
    Ok(())
}

/// A file that becomes one of another kind is exchanged; back again it is processed again.
async fn another_kind(place: &Workspace, folder: &Path) -> Result<()> {
    let path = folder.join("page.html");
    fs::write(
        &path,
        files::pdf(&["The Corvane gauge was sold to Edda Marl in 1911."], ""),
    )?;
    for (outcome, kind, question, answer) in [
        (
            "changed",
            "application/pdf",
            "Who was the Corvane gauge sold to?",
            "Edda Marl",
        ),
        (
            "changed",
            "text/html",
            "Who calibrated the Corvane gauge?",
            "Ambrose Tull",
        ),
    ] {
        let (told, code) = told(place, &[&path.to_string_lossy()]).await?;
        let one = &told["documents"][0];
        ensure!(
            code == Some(0) && one["outcome"] == outcome && one["kind"] == kind,
            "{told}"
        );
        ensure!(one["status"] == "complete", "{told}");
        let said = answers(place, question).await?;
        ensure!(said.contains(answer), "{said}");
        fs::write(&path, PAGE)?;
    }
    Ok(())
}

/// What nothing can read is told and not added; the rest is.
async fn what_cannot_be_read(place: &Workspace) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    fs::write(at("empty.txt"), "")?;
    fs::write(at("scan.png"), b"\x89PNG\r\n\x1a\n....")?;
    fs::write(at("sheet.xlsx"), b"PK\x03\x04....xl/workbook.xml")?;
    let fault = [
        "Grüße, größer, schön, früh, spät, Öl, Übung, Äpfel.".as_bytes(),
        b"caf\xe9 x",
    ]
    .concat();
    fs::write(at("fault.txt"), fault)?;
    // Its charset is told and taken.
    let latin = b"J\xf6rg M\xfcller keeps the tower of Gr\xf6\xdfenbach.";
    fs::write(at("latin.txt"), latin)?;
    fs::write(at("secret.pdf"), files::encrypted())?;
    let pdf = files::pdf(&["Nils Harrow keeps the locks of Tallowby."], "");
    fs::write(at("torn.pdf"), &pdf[..pdf.len() - 40])?;
    fs::write(at("plain.bin"), &pdf)?;
    // One that is locked for changes only can be read, one that asks for a password cannot.
    for (name, password) in [("locked.pdf", ""), ("closed.pdf", "secret")] {
        let locked = Command::new("qpdf")
            .args([
                "--encrypt",
                password,
                "owner",
                "256",
                "--",
                "plain.bin",
                name,
            ])
            .current_dir(folder.path())
            .status()
            .context("qpdf; `scripts/setup.sh test` installs what tests need")?;
        ensure!(locked.success(), "{name}: {locked}");
    }
    fs::remove_file(at("plain.bin"))?;
    fs::write(
        at("good.txt"),
        "Ilse Korvin keeps the tide tables of Brackwater.",
    )?;
    let before = count(place, "list-documents", "document-metadatas").await?;
    let directory = folder.path().to_string_lossy();
    let ran = add(place, &[&directory, "/no/such/file"]).await?;
    ensure!(ran.code == Some(1), "{ran:?}");
    for (name, why) in [
        ("empty.txt", "not added: is empty"),
        (
            "scan.png",
            "not added: is an image, which is not read; convert it to PDF or text",
        ),
        (
            "sheet.xlsx",
            "not added: is a spreadsheet, which is not read; convert it to PDF or text",
        ),
        (
            "fault.txt",
            "not added: is not UTF-8 text: byte 64 cannot be; convert it to UTF-8",
        ),
        (
            "secret.pdf",
            "not added: is encrypted; save a copy that opens without a password",
        ),
        (
            "closed.pdf",
            "not added: is encrypted; save a copy that opens without a password",
        ),
        ("torn.pdf", "not added: is damaged or incomplete"),
    ] {
        ran.expect(&format!("{name}: {why}"))?;
    }
    ran.expect("/no/such/file: not added: No such file")?
        .expect("(\"latin.txt\", text in windows-1252)")?
        .expect("locked.pdf: added as ")?
        .expect("3 added, 8 failed:")?;
    ensure!(count(place, "list-documents", "document-metadatas").await? == before + 3);
    let said = answers(place, "Who keeps the tide tables of Brackwater?").await?;
    ensure!(said.contains("Ilse Korvin"), "{said}");

    let said = answers(place, "Who keeps the locks of Tallowby?").await?;
    ensure!(said.contains("Nils Harrow"), "{said}");

    let said = answers(place, "Who keeps the tower of Größenbach?").await?;
    ensure!(said.contains("Jörg Müller"), "{said}");

    let ran = add(place, &["-f", "nosuch", &at("good.txt").to_string_lossy()]).await?;
    let told = ran.stderr.contains("flow nosuch does not run");
    ensure!(ran.code == Some(3) && told, "{ran:?}");
    Ok(())
}

async fn story(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("lamps.md"), LAMPS)?;
    fs::write(folder.path().join("page.html"), PAGE)?;
    fs::write(folder.path().join(".hidden"), "nobody's")?;
    let pdf = root().join("demo/documents/uncommon-clocks.pdf");
    fs::copy(pdf, folder.path().join("uncommon-clocks.pdf"))?;
    three_files(&place, folder.path()).await?;
    only_what_changed(&place, folder.path()).await?;
    another_kind(&place, folder.path()).await?;
    what_cannot_be_read(&place).await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
