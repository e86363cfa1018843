//! Documents go in through the official commands, are processed to the end, and answer questions with the
//! places they come from, asked directly or by the agent. Without a key: `builtin` reads them.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tg_testkit::process::root;
use tg_testkit::socket::{Socket, brief, text_of};
use tokio::time::Instant;

use crate::shared::Workspace;
use crate::world::Bus;

/// A small document is processed by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

/// Its words are found nowhere else, least of all in the code.
const TEXT: &str = "The Harrowgate lantern is a lamp made of blue glass. The Harrowgate lantern was built by \
    Ottoline Frask in 1887. Ottoline Frask was a glassblower from Pellworth. The lantern hangs in the hall of \
    the Pellworth museum. Visitors may light it on the first Sunday of May.\n";

/// The processing record once it has come to its end.
pub(crate) async fn processed(place: &Workspace, id: &str) -> Result<Value> {
    let end = Instant::now() + BOUND;
    loop {
        let ask = json!({"operation": "list-processing"});
        let (_, reply) = place.post("api/v1/librarian", ask).await?;
        let records = reply["processing-metadatas"].as_array();
        let record = records
            .into_iter()
            .flatten()
            .find(|record| record["id"] == id)
            .with_context(|| format!("{reply}"))?;
        match record["status"].as_str() {
            Some("processing") if Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Some("complete") => return Ok(record.clone()),
            _ => bail!("{record}"),
        }
    }
}

/// Of what was handed on everything came to its store.
fn all_that_was_made_is_stored(record: &Value) -> Result<()> {
    for kind in ["triples", "vectors"] {
        let done = &record["progress"][kind];
        let total = &record["progress"][format!("{kind}-total")];
        ensure!(done == total && done.as_i64() > Some(0), "{kind}: {record}");
    }
    Ok(())
}

/// Answers can be followed to their documents, link by link, until a document is taken away.
async fn traces_lead_to_documents(place: &Workspace) -> Result<()> {
    let listed = place
        .tg(&["list-explain-traces", "-C", "docs", "--json"])
        .await?;
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    let trace = |question: &str| {
        let mut all = listed.as_array().into_iter().flatten();
        let found = all.find(|trace| trace["question"] == question);
        let id = found.and_then(|trace| trace["id"].as_str());
        id.map(str::to_owned)
            .with_context(|| format!("{question} in {listed}"))
    };
    let verify = async |id: &str| {
        place
            .tg(&["verify-trace", id, "-C", "docs", "--verbose"])
            .await
    };
    let by_text = trace("Who built the Harrowgate lantern?")?;
    let by_facts = trace("Who is Ottoline Frask?")?;
    let by_page = trace("Which mountain is close to the meridian of Nepal's time?")?;
    for (id, link) in [
        (&by_text, "✓ chunk -> what it is part of"),
        (&by_facts, "✓ fact -> where it was found"),
        (&by_page, "✓ page -> what it is part of"),
    ] {
        let verified = verify(id).await?;
        verified.expect(link)?.expect("✓ document -> library")?;
        ensure!(verified.code == Some(0), "{verified:?}");
    }

    let removed = place
        .tg(&["remove-library-document", "--id", "urn:doc:lantern"])
        .await?;
    ensure!(removed.code == Some(0), "{removed:?}");
    for id in [&by_text, &by_facts] {
        let end = Instant::now() + BOUND;
        loop {
            let broken = verify(id).await?;
            if broken.code == Some(1) {
                broken.expect("✗")?;
                break;
            }
            ensure!(Instant::now() < end, "{broken:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    ensure!(
        verify(&by_page).await?.code == Some(0),
        "the other document is still there"
    );
    Ok(())
}

/// The agent asks the documents what the graph does not settle, and its answer can be followed through the
/// answer of its tool. What the graph knows it still takes from there.
async fn the_agent_asks_the_documents(place: &Workspace) -> Result<()> {
    let question = "Which Sunday may visitors light the Harrowgate lantern?";
    let ask = json!({"question": question, "collection": "docs", "streaming": true});
    let socket = place.socket().await?;
    let frames = socket.ask("agent", "default", ask).await?;
    let answer = text_of(&frames, "answer");
    ensure!(
        answer.contains("first Sunday of May [1]"),
        "{answer}\n{frames:#?}"
    );
    let last = frames.last().context("frames")?;
    let cited = &last["response"]["citations"][0];
    ensure!(cited["document"] == "urn:doc:lantern", "{last}");
    let session = frames
        .iter()
        .find_map(|frame| frame["response"]["explain_id"].as_str())
        .with_context(|| brief(&frames))?;
    let below = frames.iter().any(|frame| {
        let id = frame["response"]["explain_id"].as_str();
        id.is_some_and(|id| id.starts_with("urn:trustgraph:docrag:"))
    });
    ensure!(below, "the tool's trace comes with the run's: {frames:#?}");

    let verified = place
        .tg(&["verify-trace", session, "-C", "docs", "--verbose"])
        .await?;
    for link in [
        "✓ number -> citation: [1] -> urn:trustgraph:prov:chunk:",
        "✓ chunk -> what it is part of",
        "✓ document -> library: urn:doc:lantern",
    ] {
        verified.expect(link)?;
    }
    ensure!(verified.code == Some(0), "{verified:?}");
    let args = [
        "show-explain-trace",
        session,
        "-C",
        "docs",
        "--show-provenance",
    ];
    let shown = place.tg(&args).await?;
    shown
        .expect("Action: document_query")?
        .expect("DocRAG Question")?
        .expect("-> urn:doc:lantern")?
        .expect("Cites: [1]")?;

    let known =
        json!({"question": "Who was Ottoline Frask?", "collection": "docs", "streaming": true});
    let frames = socket.ask("agent", "default", known).await?;
    let answer = text_of(&frames, "answer");
    ensure!(answer.contains("glassblower"), "{answer}");
    let told = serde_json::to_string(&frames)?;
    ensure!(
        !told.contains("docrag"),
        "the graph knows that: {}",
        brief(&frames)
    );

    let unknown = json!({"question": "How much does the Harrowgate lantern weigh?", "collection": "docs", "streaming": true});
    let frames = socket.ask("agent", "default", unknown).await?;
    let answer = text_of(&frames, "answer");
    ensure!(answer.starts_with("I found no"), "{answer}");
    a_plan_is_shown(place, &socket).await
}

/// Our command shows the trace of a run that planned: its steps, what each found, and the answer from them.
async fn a_plan_is_shown(place: &Workspace, socket: &Socket) -> Result<()> {
    let question = "What is 2 + 3? What is 6 + 7?";
    let ask = json!({"question": question, "pattern": "plan-then-execute", "streaming": true});
    let frames = socket.ask("agent", "default", ask).await?;
    let session = frames
        .iter()
        .find_map(|frame| frame["response"]["explain_id"].as_str())
        .with_context(|| brief(&frames))?;
    let shown = place.tg(&["show-explain-trace", session]).await?;
    shown
        .expect("--- Plan ---")?
        .expect("Plan with 2 steps:")?
        .expect("--- Step Result ---")?
        .expect("Step: What is 6 + 7?")?
        .expect("--- Synthesis ---")?;
    Ok(())
}

async fn story(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let file = tempfile::NamedTempFile::with_suffix(".txt")?;
    std::fs::write(file.path(), TEXT)?;
    let path = file.path().to_string_lossy().into_owned();
    let pdf = root().join("demo/documents/uncommon-clocks.pdf");
    let pdf = pdf.to_string_lossy().into_owned();
    let add = |id: &'static str, kind: &'static str, path: String| {
        let place = &place;
        async move {
            let args = ["--id", id, "--name", id, "-k", kind, path.as_str()];
            place.official("tg-add-library-document", &args).await
        }
    };
    add("urn:doc:lantern", "text/plain", path)
        .await?
        .refuse("rror")?;
    add("urn:doc:clocks", "application/pdf", pdf)
        .await?
        .refuse("rror")?;
    let listed = place.official("tg-show-library-documents", &[]).await?;
    listed.expect("urn:doc:lantern")?.expect("urn:doc:clocks")?;

    for (document, id) in [
        ("urn:doc:lantern", "p-lantern"),
        ("urn:doc:clocks", "p-clocks"),
    ] {
        let args = [
            "-d",
            document,
            "--id",
            id,
            "-i",
            "default",
            "--collection",
            "docs",
        ];
        place
            .official("tg-start-library-processing", &args)
            .await?
            .refuse("rror")?;
    }
    for (id, least) in [("p-lantern", 1), ("p-clocks", 3)] {
        let record = processed(&place, id).await.with_context(|| place.log())?;
        let chunks = record["progress"]["chunks"].as_i64().unwrap_or_default();
        all_that_was_made_is_stored(&record)?;
        ensure!(chunks >= least, "{record}");
    }

    let asked = |command: &'static str, question: &'static str| {
        let place = &place;
        async move {
            place
                .official(command, &["-q", question, "-C", "docs"])
                .await
        }
    };
    asked(
        "tg-invoke-document-rag",
        "Who built the Harrowgate lantern?",
    )
    .await?
    .expect("Ottoline Frask")?;
    asked(
        "tg-invoke-document-rag",
        "Which mountain is close to the meridian of Nepal's time?",
    )
    .await?
    .expect("Gaurishankar")?;
    asked("tg-invoke-graph-rag", "Who is Ottoline Frask?")
        .await?
        .expect("glassblower")?;

    let provenance = ["urn:doc:lantern", "-C", "docs", "--show-content"];
    place
        .official("tg-show-extraction-provenance", &provenance)
        .await?
        .expect("urn:doc:lantern")?
        .expect("chunk")?;
    place
        .official("tg-list-explain-traces", &["-C", "docs"])
        .await?
        .expect("Harrowgate")?;

    the_agent_asks_the_documents(&place).await?;
    traces_lead_to_documents(&place).await?;

    place
        .official("tg-delete-collection", &["docs", "-y"])
        .await?
        .refuse("rror")?;
    let gone = asked(
        "tg-invoke-document-rag",
        "Who built the Harrowgate lantern?",
    )
    .await?;
    gone.refuse("Ottoline Frask")?;
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
