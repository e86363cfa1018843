//! Runs and the traces they leave, read through the endpoints that clients use.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use tg_provenance::{Stored, Texts};
use tg_schemas::Triple;
use tg_schemas::vocabulary::{prov, rdf, rdfs, tg};
use tg_testkit::model::{Rule, two_step_react};
use tg_testkit::socket::{Frames, Socket, brief, text_of};

const RETRIEVAL: &str = "urn:graph:retrieval";
/// Most statements that are read of the graph of traces.
const LIMIT: usize = 100_000;

/// A kind of entity in the trace of a run that takes two steps.
struct Kind {
    class: &'static str,
    /// How many the trace of an answered run has.
    count: usize,
    /// What each has exactly once, however its run ended.
    always: &'static [&'static str],
    /// What each of an answered run has exactly once besides.
    answered: &'static [&'static str],
}

/// Every kind of such a trace: an entity of another kind is a fault.
const KINDS: &[Kind] = &[
    Kind {
        class: tg::AGENT_QUESTION,
        count: 1,
        always: &[
            rdfs::LABEL,
            prov::STARTED_AT_TIME,
            tg::QUERY,
            tg::ENTITY_HASH,
        ],
        answered: &[],
    },
    Kind {
        class: tg::ANALYSIS,
        count: 1,
        always: &[
            rdfs::LABEL,
            prov::WAS_DERIVED_FROM,
            tg::ACTION,
            tg::ARGUMENTS,
            tg::STEP_NUMBER,
            tg::ENTITY_HASH,
            tg::PREVIOUS_HASH,
        ],
        answered: &[tg::THOUGHT, tg::IN_TOKEN, tg::OUT_TOKEN],
    },
    Kind {
        class: tg::THOUGHT_CLASS,
        count: 2,
        always: &[
            rdfs::LABEL,
            prov::WAS_DERIVED_FROM,
            tg::TEXT_HASH,
            tg::ENTITY_HASH,
            tg::PREVIOUS_HASH,
        ],
        answered: &[],
    },
    Kind {
        class: tg::OBSERVATION,
        count: 1,
        always: &[
            rdfs::LABEL,
            prov::WAS_DERIVED_FROM,
            tg::TOOL_DURATION_MS,
            tg::TEXT_HASH,
            tg::ENTITY_HASH,
            tg::PREVIOUS_HASH,
        ],
        answered: &[],
    },
    Kind {
        class: tg::CONCLUSION,
        count: 1,
        always: &[
            rdfs::LABEL,
            prov::WAS_DERIVED_FROM,
            tg::TERMINATION_REASON,
            tg::ENTITY_HASH,
            tg::PREVIOUS_HASH,
        ],
        answered: &[tg::THOUGHT, tg::TEXT_HASH, tg::IN_TOKEN, tg::OUT_TOKEN],
    },
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

/// Objects by predicate.
type Said = BTreeMap<String, Vec<String>>;

/// Subjects of the retrieval graph and what is said of each.
async fn described(socket: &Socket) -> Result<BTreeMap<String, Said>> {
    let request = json!({"g": RETRIEVAL, "limit": LIMIT, "collection": "default"});
    let frames = socket.ask("triples", "default", request).await?;
    let mut all = BTreeMap::<String, Said>::new();
    let mut count = 0;
    for frame in &frames {
        if !frame["error"].is_null() || !frame["response"]["error"].is_null() {
            bail!("{frame}");
        }
        let triples = frame["response"]["response"].as_array();
        for triple in triples.into_iter().flatten() {
            let text = |term: &Value| {
                let text = term["v"].as_str().or(term["i"].as_str());
                text.unwrap_or_default().to_owned()
            };
            let said = all.entry(text(&triple["s"])).or_default();
            let objects = said.entry(text(&triple["p"])).or_default();
            objects.push(text(&triple["o"]));
            count += 1;
        }
    }
    ensure!(count < LIMIT, "not all of the traces were read");
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
pub async fn chains(socket: &Socket) -> Result<Result<(), String>> {
    let request = json!({"g": RETRIEVAL, "limit": LIMIT, "collection": "default"});
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
    let all = described(socket).await?;
    if let Err(why) = ends(&all, answered) {
        return Ok(Err(why));
    }
    if let Err(why) = chains(socket).await? {
        return Ok(Err(why));
    }
    Ok(kinds(&all, answered))
}

/// Every session that began has ended, each of the answered ones with an answer.
fn ends(all: &BTreeMap<String, Said>, answered: &[String]) -> Result<(), String> {
    let reason = |session: &str| {
        all.get(&format!("{session}/final"))?
            .get(tg::TERMINATION_REASON)
    };
    for session in answered {
        let reason = reason(session);
        if reason.is_none_or(|reason| reason != &["final-answer"]) {
            return Err(format!("{session} was answered, its end is {reason:?}"));
        }
    }
    let began = |said: &Said| said.contains_key(prov::STARTED_AT_TIME);
    match all
        .iter()
        .find(|(session, said)| began(said) && reason(session).is_none())
    {
        Some((session, _)) => Err(format!("{session} has no end")),
        None => Ok(()),
    }
}

/// Every entity is of one of the kinds and has what its kind has.
fn kinds(all: &BTreeMap<String, Said>, answered: &[String]) -> Result<(), String> {
    let mut counts = BTreeMap::<(&str, &str), usize>::new();
    for (subject, said) in all {
        let classes = said.get(rdf::TYPE).map_or(&[][..], Vec::as_slice);
        let of = |kind: &&Kind| classes.iter().any(|class| class == kind.class);
        let Some(kind) = KINDS.iter().find(of) else {
            return Err(format!("{subject} is of no kind: {classes:?}"));
        };
        let session = answered.iter().find(|run| subject.starts_with(*run));
        if let Some(session) = session {
            *counts.entry((session, kind.class)).or_default() += 1;
        }
        for (at, predicate) in kind.always.iter().chain(kind.answered).enumerate() {
            let objects = said.get(*predicate).map_or(&[][..], Vec::as_slice);
            let must = at < kind.always.len() || session.is_some();
            if objects.len() > 1 || (must && objects.is_empty()) {
                let class = kind.class;
                return Err(format!("{subject}, {class}: {predicate} {objects:?}"));
            }
        }
    }
    for session in answered {
        for kind in KINDS {
            let count = counts.get(&(session, kind.class)).copied();
            if count.unwrap_or_default() != kind.count {
                let class = kind.class;
                return Err(format!("{session} has {count:?} of {class}"));
            }
        }
    }
    Ok(())
}
