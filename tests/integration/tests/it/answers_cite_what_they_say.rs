//! An answer names what it cites so that a person can read it: number, title, page and words, the same on every way. A
//! refusal cites nothing, and what cites nothing or quotes wrongly is not verified.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule};
use tg_testkit::process::{Output, root};
use tg_testkit::socket::text_of;

use crate::documents_become_answers::processed;
use crate::shared::Workspace;
use crate::world::Bus;

/// The last paragraph has the words of a refusal.
const TEXT: &str = "The Harrowgate lantern was built by Ottoline Frask in 1887. It is a lamp made of blue glass.\n\n\
    The passages of the guide do not answer the question of its weight.\n";

const REFUSAL: &str = "The passages do not answer this question.";

/// The number of the passage that has the words.
fn passage_with(prompt: &str, words: &str) -> usize {
    let passages = prompt.lines().filter_map(|line| {
        let (number, text) = line.strip_prefix('[')?.split_once("] ")?;
        Some((number.parse::<usize>().ok()?, text))
    });
    // A passage may have several lines; what stands behind a number belongs to it.
    let mut numbers: Vec<(usize, usize)> = Vec::new();
    for (number, text) in passages {
        numbers.extend(prompt.find(text).map(|at| (at, number)));
    }
    let at = prompt.find(words).unwrap_or(0);
    let before = numbers.into_iter().filter(|(from, _)| *from <= at);
    before.max().map_or(99, |(_, number)| number)
}

const NO_FACT: &str = "The facts do not answer this question.";

/// The number of the fact that has the words.
fn fact_with(prompt: &str, words: &str) -> usize {
    let mut facts = prompt.lines().filter(|line| line.contains(words));
    let number = |line: &str| line.strip_prefix('[')?.split_once(']')?.0.parse().ok();
    facts.find_map(number).unwrap_or(99)
}

/// The one fact that a model finds, and what it says from facts.
fn rules_of_facts() -> Vec<Rule> {
    let asked = |words: &'static str, reply: fn(&str) -> String| {
        Rule::computed(
            move |prompt| prompt.contains("## Answer from facts") && prompt.contains(words),
            move |prompt| Reply::text(reply(prompt)),
        )
    };
    let fact = json!({"subject": "Harrowgate lantern", "predicate": "was built by",
        "object": "Ottoline Frask", "object-entity": true});
    vec![
        Rule::computed(
            |prompt| prompt.contains("## Relationships wanted") && prompt.contains("Ottoline"),
            move |_| Reply::text(fact.to_string()),
        ),
        asked("Who built the lantern?", |prompt| {
            let number = fact_with(prompt, "Ottoline Frask");
            format!("Ottoline Frask built it [{number}].")
        }),
        asked("How heavy is it?", |_| format!("{NO_FACT} [1]")),
    ]
}

/// A model that answers from passages and facts as each question is to be answered.
fn rules() -> Vec<Rule> {
    rules_of_facts()
        .into_iter()
        .chain(rules_of_passages())
        .collect()
}

fn rules_of_passages() -> Vec<Rule> {
    let asked = |words: &'static str, reply: fn(&str) -> String| {
        Rule::computed(
            move |prompt| prompt.contains("## Answer from passages") && prompt.contains(words),
            move |prompt| Reply::text(reply(prompt)),
        )
    };
    let tool =
        "Thought: I ask.\nAction: document_query\nArgs: {\"question\": \"Who built the lantern?\"}";
    vec![
        asked("Who built the lantern?", |prompt| {
            let number = passage_with(prompt, "Ottoline Frask");
            format!("Ottoline Frask was its builder [{number}]. People like it.")
        }),
        asked("Which mountain is near?", |prompt| {
            let number = passage_with(prompt, "Gaurishankar");
            format!("It is the mountain of Gaurishankar, or so they say [{number}].")
        }),
        asked("How heavy is it?", |_| format!("{REFUSAL} [1]")),
        asked("What is it made of?", |prompt| {
            let number = passage_with(prompt, "blue glass");
            format!("It is \"a lamp made of red glass\" [{number}].")
        }),
        asked("What is the capital?", |_| {
            "Paris is the capital city, as everybody knows.".to_owned()
        }),
        Rule::computed(
            |prompt| prompt.contains("## Your next step") && !prompt.contains("Observation: "),
            move |_| Reply::text(tool),
        ),
        Rule::contains(
            "## Your next step",
            Reply::text(
                "Thought: it is settled.\nFinal Answer: The builder was Ottoline Frask [1].",
            ),
        ),
        Rule::always(Reply::text("[]")),
    ]
}

async fn load(place: &Workspace, id: &str, kind: &str, path: &str) -> Result<()> {
    let args = [
        "add-library-document",
        "--id",
        id,
        "--name",
        id,
        "-k",
        kind,
        path,
    ];
    let added = place.tg(&args).await?;
    ensure!(added.code == Some(0), "{added:?}");
    let processing = format!("p-{id}");
    let args = [
        "start-library-processing",
        "-d",
        id,
        "--id",
        &processing,
        "-i",
        "default",
        "--collection",
        "docs",
    ];
    let started = place.tg(&args).await?;
    ensure!(started.code == Some(0), "{started:?}");
    processed(place, &processing).await?;
    Ok(())
}

async fn asked(place: &Workspace, question: &str, more: &[&str]) -> Result<Output> {
    let args = [&["ask", question, "-C", "docs"], more].concat();
    let ran = place.tg(&args).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    Ok(ran)
}

/// What was said on stderr.
fn heard(ran: &Output, text: &str) -> Result<()> {
    ensure!(ran.stderr.contains(text), "{text} in {ran:?}");
    Ok(())
}

/// The trace that an answer names, and what verifying it says.
async fn verified(place: &Workspace, ran: &Output) -> Result<Output> {
    let line = ran.stderr.lines().find(|line| line.starts_with("trace: "));
    let line = line.with_context(|| format!("{ran:?}"))?;
    let trace = line.split_whitespace().nth(3).context("its name")?;
    ensure!(line.ends_with(" -C docs"), "{line}");
    place
        .tg(&["verify-trace", trace, "-C", "docs", "--verbose"])
        .await
}

const WITH: [&str; 2] = ["--with", "document-rag"];
const UNSUPPORTED: &str = "No sentence of this answer is supported by a passage";

/// Asked in the terminal.
async fn people_read_it(place: &Workspace) -> Result<()> {
    let ran = asked(place, "Who built the lantern?", &WITH).await?;
    let expected = "Ottoline Frask was its builder [1]. People like it.\n\n\
                    [1] urn:doc:lantern: \"The Harrowgate lantern was built by Ottoline Frask in 1887.\"\n";
    ensure!(ran.stdout == expected, "{ran:?}");
    ensure!(!ran.stderr.contains(UNSUPPORTED), "{ran:?}");
    let told = verified(place, &ran).await?;
    told.expect("✓ Ottoline Frask was its builder.\n    supported by [1]")?
        .expect("– People like it.\n    supported by nothing")?;
    heard(&told, "links hold. 1 of 2 sentences rest on nothing.")?;
    ensure!(told.code == Some(0), "{told:?}");

    let ran = asked(place, "Which mountain is near?", &WITH).await?;
    ensure!(
        ran.stdout.contains("\n[1] urn:doc:clocks, page "),
        "{ran:?}"
    );
    let words = ran.stdout.rsplit("page ").next().unwrap_or_default();
    ensure!(words.contains("Gaurishankar"), "{ran:?}");

    let ran = asked(place, "How heavy is it?", &WITH).await?;
    ensure!(ran.stdout == format!("{REFUSAL}\n"), "{ran:?}");
    ensure!(!ran.stderr.contains(UNSUPPORTED), "{ran:?}");
    let told = verified(place, &ran).await?;
    heard(&told, "there is nothing to verify")?;
    ensure!(told.code == Some(1), "{told:?}");

    let ran = asked(place, "What is the capital?", &WITH).await?;
    heard(&ran, UNSUPPORTED)?;
    let told = verified(place, &ran).await?;
    heard(
        &told,
        "The answer cites nothing: there is nothing to verify.",
    )?;
    ensure!(told.code == Some(1), "{told:?}");
    // Without a name the newest trace, which is this one.
    let args = ["verify-trace", "-C", "docs", "--json"];
    let told = place.tg(&args).await?;
    let shown: Value = serde_json::from_str(&told.stdout)?;
    ensure!(
        shown["verified"] == false && told.code == Some(1),
        "{told:?}"
    );

    let ran = asked(place, "What is it made of?", &WITH).await?;
    let told = verified(place, &ran).await?;
    told.expect("quoted wrongly: \"a lamp made of red glass\" does not stand in [1]")?;
    ensure!(told.code == Some(1), "{told:?}");

    // Without `--with`, the flow's agent; its answer cites what its tool did.
    let ran = asked(place, "Who was it?", &["--json"]).await?;
    let shown: Value = serde_json::from_str(&ran.stdout)?;
    ensure!(shown["with"] == "agent", "{shown}");
    ensure!(
        shown["answer"] == "The builder was Ottoline Frask [1].",
        "{shown}"
    );
    ensure!(
        shown["citations"][0]["document"] == "urn:doc:lantern",
        "{shown}"
    );
    let told = verified(place, &ran).await?;
    told.expect("✓ number -> citation: [1] -> urn:trustgraph:prov:chunk:")?;
    ensure!(told.code == Some(0), "{told:?}");
    Ok(())
}

/// Asked of the graph: what is cited is the sentence that the fact was found in, with its document.
async fn facts_are_cited_by_their_sentences(place: &Workspace) -> Result<()> {
    const FACTS: [&str; 2] = ["--with", "graph-rag"];
    let ran = asked(place, "Who built the lantern?", &FACTS).await?;
    let expected = "Ottoline Frask built it [1].\n\n\
                    [1] urn:doc:lantern: \"The Harrowgate lantern was built by Ottoline Frask in 1887.\"\n";
    ensure!(ran.stdout == expected, "{ran:?}");
    let told = verified(place, &ran).await?;
    told.expect("✓ Ottoline Frask built it.\n    supported by [1]")?;
    ensure!(told.code == Some(0), "{told:?}");
    let ran = asked(
        place,
        "Who built the lantern?",
        &["--with", "graph-rag", "--json"],
    )
    .await?;
    let shown: Value = serde_json::from_str(&ran.stdout)?;
    let cited = &shown["citations"][0];
    ensure!(
        shown["with"] == "graph-rag"
            && cited["n"] == 1
            && cited["title"] == "urn:doc:lantern"
            && cited["text"] == "The Harrowgate lantern was built by Ottoline Frask in 1887.",
        "{shown}"
    );

    let ran = asked(place, "How heavy is it?", &FACTS).await?;
    ensure!(ran.stdout == format!("{NO_FACT}\n"), "{ran:?}");
    ensure!(!ran.stderr.contains(UNSUPPORTED), "{ran:?}");
    let told = verified(place, &ran).await?;
    heard(&told, "there is nothing to verify")?;
    ensure!(told.code == Some(1), "{told:?}");
    let heavy = json!({"query": "How heavy is it?", "collection": "docs"});
    let path = "api/v1/flow/default/service/graph-rag";
    let (_, reply) = place.post(path, heavy).await?;
    ensure!(
        reply["refused"] == true && reply["response"] == NO_FACT,
        "{reply}"
    );
    for none in ["citations", "sources"] {
        ensure!(reply.get(none).is_none(), "{none} of {reply}");
    }
    Ok(())
}

/// A short answer that was not asked to explain itself.
fn lean(reply: &Value) -> Result<()> {
    ensure!(reply["trace"].is_string(), "{reply}");
    ensure!(reply.get("explain_triples").is_none(), "{reply}");
    ensure!(reply.to_string().len() < 2_000, "{reply}");
    Ok(())
}

/// Asked by programs.
async fn programs_read_it(place: &Workspace) -> Result<()> {
    let path = "api/v1/flow/default/service/document-rag";
    let question = json!({"query": "Who built the lantern?", "collection": "docs"});
    let (status, reply) = place.post(path, question.clone()).await?;
    ensure!(status == 200, "{reply}");
    let cited = &reply["citations"][0];
    for (key, value) in [
        ("n", json!(1)),
        ("document", json!("urn:doc:lantern")),
        ("title", json!("urn:doc:lantern")),
        ("page", Value::Null),
        (
            "text",
            json!("The Harrowgate lantern was built by Ottoline Frask in 1887."),
        ),
    ] {
        ensure!(cited[key] == value, "{key} of {reply}");
    }
    let chunk = cited["chunk"].as_str().unwrap_or_default();
    ensure!(chunk.starts_with("urn:chunk:"), "{reply}");
    let trace = reply["trace"].as_str().unwrap_or_default();
    ensure!(trace.starts_with("urn:trustgraph:docrag:"), "{reply}");
    lean(&reply)?;

    let mut wants = question.clone();
    wants["explainable"] = json!(true);
    let (_, reply) = place.post(path, wants).await?;
    let triples = reply["explain_triples"].as_array().map_or(0, Vec::len);
    ensure!(triples > 20, "{reply}");
    let mut refuses = question.clone();
    refuses["explainable"] = json!(false);
    let (_, reply) = place.post(path, refuses).await?;
    ensure!(reply.get("explain_triples").is_none(), "{reply}");

    let mut streams = question;
    streams["streaming"] = json!(true);
    let socket = place.socket().await?;
    let frames = socket.ask("document-rag", "default", streams).await?;
    let last = frames.last().context("frames")?;
    ensure!(last["response"]["citations"][0] == *cited, "{last}");
    ensure!(last["response"]["trace"].is_string(), "{last}");

    let heavy = json!({"query": "How heavy is it?", "collection": "docs"});
    let (_, reply) = place.post(path, heavy).await?;
    ensure!(
        reply["refused"] == true && reply["response"] == REFUSAL,
        "{reply}"
    );
    ensure!(reply.get("citations").is_none(), "{reply}");
    ensure!(reply.get("sources").is_none(), "{reply}");

    let agent = json!({"question": "Who was it?", "collection": "docs"});
    let (_, reply) = place
        .post("api/v1/flow/default/service/agent", agent.clone())
        .await?;
    ensure!(reply["citations"][0] == *cited, "{reply}");
    lean(&reply)?;
    let question = json!({"query": "Who built the lantern?", "collection": "docs"});
    let (_, facts) = place
        .post("api/v1/flow/default/service/graph-rag", question)
        .await?;
    lean(&facts)?;
    let mut streams = agent;
    streams["streaming"] = json!(true);
    let frames = socket.ask("agent", "default", streams).await?;
    ensure!(
        text_of(&frames, "answer") == "The builder was Ottoline Frask [1].",
        "{frames:?}"
    );
    let last = frames.last().context("frames")?;
    ensure!(last["response"]["citations"][0] == *cited, "{last}");
    Ok(())
}

/// What is not there is told with what is.
async fn what_is_there_is_told(place: &Workspace) -> Result<()> {
    let ran = place.tg(&["ask", "why?", "-f", "nosuch"]).await?;
    heard(
        &ran,
        &format!(
            "flow nosuch does not run in workspace {}; running: default",
            place.id
        ),
    )?;
    ensure!(ran.code == Some(3), "{ran:?}");
    let ran = place
        .tg(&["ask", "How heavy is it?", "-C", "nosuch", WITH[0], WITH[1]])
        .await?;
    heard(&ran, "There is no collection nosuch; there are: ")?;
    heard(&ran, "docs")?;
    ensure!(ran.code == Some(3) && ran.stdout.is_empty(), "{ran:?}");
    Ok(())
}

async fn story(bus: Bus) -> Result<()> {
    let (place, _model) = Workspace::scripted(bus, rules()).await?;
    let file = tempfile::NamedTempFile::with_suffix(".txt")?;
    std::fs::write(file.path(), TEXT)?;
    let path = file.path().to_string_lossy().into_owned();
    load(&place, "urn:doc:lantern", "text/plain", &path).await?;
    let pdf = root().join("demo/documents/uncommon-clocks.pdf");
    load(
        &place,
        "urn:doc:clocks",
        "application/pdf",
        &pdf.to_string_lossy(),
    )
    .await?;
    people_read_it(&place).await?;
    facts_are_cited_by_their_sentences(&place).await?;
    programs_read_it(&place).await?;
    what_is_there_is_told(&place).await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
