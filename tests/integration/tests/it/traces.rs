//! Runs and the traces they leave, read through the endpoints that clients use.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tg_provenance::{Stored, Texts};
use tg_schemas::Triple;
use tg_testkit::model::{Rule, two_step_react};
use tg_testkit::socket::{Frames, Socket, brief, text_of};

const RETRIEVAL: &str = "urn:graph:retrieval";
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
const STARTED: &str = "http://www.w3.org/ns/prov#startedAtTime";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const REASON: &str = "https://trustgraph.ai/ns/terminationReason";
/// What an entity of a trace has exactly once, if others of its kind have it.
const SINGLE: &[&str] = &[
    LABEL,
    STARTED,
    REASON,
    "https://trustgraph.ai/ns/entityHash",
    "https://trustgraph.ai/ns/thought",
    "https://trustgraph.ai/ns/inToken",
    "https://trustgraph.ai/ns/outToken",
];
/// How long a trace may lag behind its answer.
const LAG: Duration = Duration::from_secs(60);

/// A model of two steps that takes its time: each reply in eight pieces.
pub fn slow(pause: Duration) -> Vec<Rule> {
    two_step_react("calculator", json!({"expression": "6*7"}), 8)
        .into_iter()
        .map(|rule| rule.delayed(pause))
        .collect()
}

/// The answer that the scripted model gives to a question with this nonce.
pub fn expected(nonce: &str) -> String {
    format!("The answer for {nonce} is here.")
}

/// The thoughts that the scripted model has on the way.
const THOUGHTS: [&str; 2] = ["I should look this up.", "I know it now."];

/// Starts a streamed run.
pub async fn begin(socket: &Socket, flow: &str, nonce: &str, detach: bool) -> Result<Frames> {
    let mut envelope = question(flow, nonce);
    if detach {
        envelope["detach"] = json!(true);
    }
    socket.send(envelope).await
}

/// The same, which is to be over within so many seconds.
pub async fn begin_within(socket: &Socket, nonce: &str, seconds: u64) -> Result<Frames> {
    let mut envelope = question("default", nonce);
    envelope["timeout"] = json!(seconds);
    socket.send(envelope).await
}

fn question(flow: &str, nonce: &str) -> Value {
    json!({
        "service": "agent", "flow": flow,
        "request": {"question": format!("What is it? {nonce}"), "streaming": true},
    })
}

/// The thoughts of a run; one that was broken off is the last.
fn thoughts(frames: &[Value]) -> Vec<String> {
    let mut all = vec![String::new()];
    let said = frames.iter().map(|frame| &frame["response"]);
    for chunk in said.filter(|chunk| chunk["message_type"] == "thought") {
        let text = chunk["content"].as_str().unwrap_or_default();
        if let Some(last) = all.last_mut() {
            last.push_str(text);
        }
        if chunk["end_of_message"] == true {
            all.push(String::new());
        }
    }
    let whole = all.iter().map(|text| text.trim().to_owned());
    whole.filter(|text| !text.is_empty()).collect()
}

/// Whether thoughts are those of the script from the beginning on, none twice, and none left out.
fn are_a_beginning(thoughts: &[String]) -> bool {
    thoughts.len() <= THOUGHTS.len()
        && thoughts
            .iter()
            .zip(THOUGHTS)
            .enumerate()
            .all(|(at, (said, whole))| {
                let last = at + 1 == thoughts.len();
                said == whole || (last && whole.starts_with(said.as_str()))
            })
}

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// With its own answer; the IRI of its session.
    Answered(String),
    /// With an error frame, maybe after part of the answer.
    Failed(Value),
}

/// Reads a run to its end. Whatever else comes than the right answer or a clear error is an error here.
pub async fn end(frames: Frames, nonce: &str, bound: Duration) -> Result<Ended> {
    end_after(Vec::new(), frames, nonce, bound).await
}

/// The same for a run of which some frames were read.
pub async fn end_after(
    mut read: Vec<Value>,
    frames: Frames,
    nonce: &str,
    bound: Duration,
) -> Result<Ended> {
    read.extend(frames.all(bound).await?);
    let frames = read;
    let last = frames.last().expect("at least one frame");
    let text = text_of(&frames, "answer");
    let expected = expected(nonce);
    let error = [&last["error"], &last["response"]["error"]]
        .into_iter()
        .find(|error| !error.is_null());
    if let Some(error) = error {
        let message = error["message"].as_str().unwrap_or_default();
        let beginning = expected.starts_with(text.trim()) && are_a_beginning(&thoughts(&frames));
        if message.is_empty() || !beginning {
            bail!("{nonce}: an unclear end: {}", brief(&frames));
        }
        return Ok(Ended::Failed(error.clone()));
    }
    let whole = text.trim() == expected && text_of(&frames, "observation") == "42";
    if !whole || thoughts(&frames) != THOUGHTS {
        bail!("{nonce}: not the answer: {}", brief(&frames));
    }
    let session = frames
        .iter()
        .find_map(|frame| frame["response"]["explain_id"].as_str());
    match session {
        Some(session) => Ok(Ended::Answered(session.to_owned())),
        None => bail!("{nonce}: no session: {}", brief(&frames)),
    }
}

/// Reads a detached run to the end of what its asker gets; the IRI of its session. What counts is its
/// trace: an asker who is told that the answer was interrupted has heard no word twice until then.
pub async fn end_detached(frames: Frames, nonce: &str, bound: Duration) -> Result<String> {
    let frames = frames.all(bound).await?;
    let last = frames.last().expect("at least one frame");
    let error = [&last["error"], &last["response"]["error"]];
    let broke_off = error.iter().any(|error| !error.is_null());
    let (text, expected) = (text_of(&frames, "answer"), expected(nonce));
    if text.trim() != expected && !(broke_off && expected.starts_with(text.trim())) {
        bail!("{nonce}: not the answer: {}", brief(&frames));
    }
    let session = frames
        .iter()
        .find_map(|frame| frame["response"]["explain_id"].as_str());
    match session {
        Some(session) => Ok(session.to_owned()),
        None => bail!("{nonce}: no session: {}", brief(&frames)),
    }
}

/// Subjects of the retrieval graph and their objects of one predicate.
async fn objects(socket: &Socket, predicate: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let request = json!({
        "p": {"t": "i", "i": predicate}, "g": RETRIEVAL, "limit": 100_000, "collection": "default",
    });
    let frames = socket.ask("triples", "default", request).await?;
    let mut all = BTreeMap::<String, Vec<String>>::new();
    for frame in &frames {
        if !frame["error"].is_null() || !frame["response"]["error"].is_null() {
            bail!("{frame}");
        }
        for triple in frame["response"]["response"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let text = |term: &Value| {
                let text = term["v"].as_str().or(term["i"].as_str());
                text.unwrap_or_default().to_owned()
            };
            all.entry(text(&triple["s"]))
                .or_default()
                .push(text(&triple["o"]));
        }
    }
    all.values_mut().for_each(|objects| objects.sort());
    Ok(all)
}

/// Holds the whole graph of traces against the promise: every session that began has ended, each of the
/// answered ones with an answer, and no entity has two of what it has one of.
pub async fn check(socket: &Socket, answered: &[String]) -> Result<()> {
    let end = tokio::time::Instant::now() + LAG;
    loop {
        let outcome = verdict(socket, answered).await?;
        match outcome {
            Ok(()) => return Ok(()),
            Err(why) if tokio::time::Instant::now() > end => bail!("{why}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// The chain of every session holds, however often a step of it was taken.
async fn chains(socket: &Socket) -> Result<Result<(), String>> {
    let request = json!({"g": RETRIEVAL, "limit": 100_000, "collection": "default"});
    let frames = socket.ask("triples", "default", request).await?;
    let triples = frames
        .iter()
        .filter_map(|frame| frame["response"]["response"].as_array());
    let stored: Stored = triples.flatten().filter_map(Triple::from_api).collect();
    for root in stored.roots() {
        match stored.verify(&root, &Texts::Unknown, None) {
            Ok(Some(_)) => {}
            other => return Ok(Err(format!("the chain of {root}: {other:?}"))),
        }
    }
    Ok(Ok(()))
}

async fn verdict(socket: &Socket, answered: &[String]) -> Result<Result<(), String>> {
    let ends = objects(socket, REASON).await?;
    for session in answered {
        let reason = ends.get(&format!("{session}/final"));
        if reason.is_none_or(|reason| reason != &["final-answer"]) {
            return Ok(Err(format!(
                "{session} was answered, its end is {reason:?}"
            )));
        }
    }
    for session in objects(socket, STARTED).await?.keys() {
        if !ends.contains_key(&format!("{session}/final")) {
            return Ok(Err(format!("{session} has no end")));
        }
    }
    if let Err(why) = chains(socket).await? {
        return Ok(Err(why));
    }
    let kinds = objects(socket, TYPE).await?;
    let of_answered = |subject: &str| answered.iter().any(|session| subject.starts_with(session));
    for predicate in SINGLE {
        let all = objects(socket, predicate).await?;
        for (subject, objects) in &all {
            if objects.len() != 1 {
                return Ok(Err(format!("{subject} has {predicate} {objects:?}")));
            }
        }
        // What one entity of a kind has, each of an answered run has.
        let having: BTreeSet<_> = all
            .keys()
            .filter_map(|subject| kinds.get(subject))
            .collect();
        for (subject, kind) in kinds.iter().filter(|(subject, _)| of_answered(subject)) {
            if having.contains(kind) && !all.contains_key(subject) {
                return Ok(Err(format!("{subject}, {kind:?}, lacks {predicate}")));
            }
        }
    }
    Ok(Ok(()))
}
