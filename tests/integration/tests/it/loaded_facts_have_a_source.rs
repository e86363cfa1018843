//! An answer from facts that were loaded names the file that has them, and is verified to there: for the agent and for GraphRAG. A file
//! that is loaded without a source gives answers that cite nothing.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

const FACTS: &str = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
    @prefix e: <http://staff.example.net/> .\n\
    e:anna rdfs:label \"Anna Berg\" ; e:leads e:turbines .\n\
    e:turbines rdfs:label \"Turbine Team\" .\n";
const QUESTION: &str = "What does Anna Berg lead?";

async fn said(place: &Workspace, args: &[&str]) -> Result<(Option<i32>, Value)> {
    let ran = place.tg(args).await?;
    let said = serde_json::from_str(&ran.stdout);
    let said = said.with_context(|| format!("{args:?}: {} {}", ran.stdout, ran.stderr))?;
    Ok((ran.code, said))
}

/// Asks, and returns the answer with the name of its trace.
async fn asked(place: &Workspace, with: &str, collection: &str) -> Result<(Value, String)> {
    let args = ["ask", "--json", "--with", with, "-C", collection, QUESTION];
    let (_, answer) = said(place, &args).await?;
    let trace = answer["trace"].as_str().context("a trace")?.to_owned();
    Ok((answer, trace))
}

async fn an_answer_names_the_file_of_its_facts(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("team.ttl");
    std::fs::write(&path, FACTS)?;
    let path = path.to_str().context("a path")?;
    for load in [
        ["load-turtle", "-C", "staff", "--source", "small", path],
        ["load-turtle", "-C", "bare", "--source", "never", path],
        // GraphRAG begins at vectors, which this command makes, too.
        ["load-knowledge", "-C", "staff", "-i", "team.ttl", path],
    ] {
        let loaded = place.tg(&load).await?;
        ensure!(loaded.code == Some(0), "{loaded:?}");
    }
    for with in ["agent", "graph-rag"] {
        let (answer, trace) = asked(&place, with, "staff").await?;
        let [cited] = answer["citations"]
            .as_array()
            .context(answer.to_string())?
            .as_slice()
        else {
            anyhow::bail!("one citation by {with}: {answer}");
        };
        ensure!(
            cited["document"] == "urn:document:team.ttl",
            "{with}: {answer}"
        );
        ensure!(cited["title"] == "team.ttl", "{with}: {answer}");
        let text = cited["text"].as_str().unwrap_or_default();
        ensure!(text == "Anna Berg leads Turbine Team", "{with}: {answer}");
        let (code, verified) = said(&place, &["verify", "--json", "-C", "staff", &trace]).await?;
        ensure!(
            code == Some(0) && verified["verified"] == true,
            "{with}: {verified}"
        );
        ensure!(
            verified["sources-gone"] == serde_json::json!([]),
            "{with}: {verified}"
        );
    }
    // Without a source nothing is made up.
    let (answer, trace) = asked(&place, "agent", "bare").await?;
    let none = |cited: &Value| cited.as_array().is_none_or(Vec::is_empty);
    ensure!(none(&answer["citations"]), "{answer}");
    let (code, verified) = said(&place, &["verify", "--json", "-C", "bare", &trace]).await?;
    ensure!(
        code != Some(0) && verified["verified"] == false,
        "{verified}"
    );
    Ok(())
}

on_both_buses!(an_answer_names_the_file_of_its_facts);
