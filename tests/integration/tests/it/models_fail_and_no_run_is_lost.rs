//! Two backends of a model that stall, limit, fail, break off in the middle of a stream or answer, as a die says, under many
//! streamed runs at once. Each run ends once, in its answer or in a failure that is told, within a bound; what it shows is
//! never said twice, and no run gets anything of another.
//!
//! A backend that failed rests, so a run may find nobody to ask: then it is told so. It may also be told that its model
//! broke off, after a part of its answer. Silence, an end without a word and repeated text are never accepted.
//!
//! With a third backend that always answers, somebody is left to ask in each attempt: then a run fails only where a backend
//! broke off in the middle of its answer.
//!
//! Two processes of models share which backend rests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use serde_json::{Value, json};
use tg_testkit::model::{End, Reply, Rule, ScriptedModel, cut, final_answer, nonce_of, tool_call};
use tg_testkit::process::Launch;
use tg_testkit::services::{ANSWERING, without};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Socket, brief};

use crate::world::{Bus, on_both_buses, post};

const RUNS: usize = 64;
/// All runs together.
const BOUND: Duration = Duration::from_secs(120);
/// Seconds until a backend has to begin to answer.
const BEGINS_WITHIN: u64 = 2;
/// The same of the one that always does.
const ALWAYS_BEGINS_WITHIN: u64 = 60;
const PIECES: usize = 8;
/// Questions one after another, of which each of two processes gets some.
const IN_TURN: usize = 8;
const LOOKS: &str = "I should look this up.";
const KNOWS: &str = "I know it now.";

fn answer_of(nonce: &str) -> String {
    format!("The answer for {nonce} is here.")
}

/// A die of six sides; the same seed rolls the same.
fn die(seed: u64) -> impl Fn() -> usize + Send + Sync + 'static {
    let rolls = AtomicU64::new(seed);
    move || {
        // Numbers in a row, stirred (splitmix64).
        let mut z = rolls.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % 6).unwrap_or_default()
    }
}

/// A model of two steps, of which the die decides how it fares. Sides from `well` on are answers. `cuts` counts the answers
/// that break off.
fn rules(seed: u64, well: usize, cuts: &Arc<AtomicUsize>) -> Vec<Rule> {
    let cuts = Arc::clone(cuts);
    let roll = Arc::new(die(seed));
    let reply = move |prompt: &str| {
        let observed = prompt.lines().any(|line| line.starts_with("Observation:"));
        let text = match observed {
            true => final_answer(KNOWS, &answer_of(nonce_of(prompt).unwrap_or("nobody"))),
            false => tool_call(LOOKS, "calculator", &json!({"expression": "6*7"})),
        };
        let pieces = cut(&text, PIECES);
        match roll() {
            side if side >= well => Reply::pieces(pieces),
            0 => Reply::Silence,
            1 => Reply::rate_limited(1),
            2 => Reply::status(500, "secret words"),
            // At once, in the thought, or in the decision or answer.
            side => {
                cuts.fetch_add(1, Ordering::Relaxed);
                let some = pieces.into_iter().take(side * 2 - 5);
                Reply::pieces(some).ending(End::Disconnect)
            }
        }
    };
    vec![Rule::computed(|_| true, reply)]
}

/// The texts of a run by message: what was shown of each, put together.
fn shown(frames: &[Value]) -> Vec<(String, String, String)> {
    let mut all: Vec<(String, String, String)> = Vec::new();
    for chunk in frames.iter().map(|frame| &frame["response"]) {
        let text = |key: &str| chunk[key].as_str().unwrap_or_default().to_owned();
        let (kind, id) = (text("message_type"), text("message_id"));
        if !["thought", "observation", "answer"].contains(&kind.as_str()) {
            continue;
        }
        match all.iter_mut().find(|(_, known, _)| *known == id) {
            Some((_, _, said)) => *said += &text("content"),
            None => all.push((kind, id, text("content"))),
        }
    }
    all
}

/// Whether a run was answered; what is wrong with it is an error.
fn judged(frames: &[Value], nonce: &str) -> Result<bool> {
    let ends = |frame: &Value| frame["complete"] == true;
    ensure!(
        frames.iter().filter(|frame| ends(frame)).count() == 1,
        "ends once"
    );
    let last = frames.last().context("no frame")?;
    ensure!(ends(last), "something follows the end");
    let expected = answer_of(nonce);
    let texts = shown(frames);
    for (kind, id, said) in &texts {
        let whole = match (kind.as_str(), id.contains("/i1/")) {
            ("thought", true) => LOOKS,
            ("thought", false) => KNOWS,
            ("observation", _) => "42",
            _ => &expected,
        };
        ensure!(whole.starts_with(said.trim()), "{kind} {id}: {said:?}");
    }
    let observed = frames.iter().map(|frame| &frame["response"]);
    let observed = observed.filter(|chunk| chunk["message_type"] == "observation");
    ensure!(observed.count() <= 1, "observed twice");
    let answer = texts.iter().find(|(kind, ..)| kind == "answer");
    let answer = answer.map_or("", |(_, _, said)| said.trim());
    let failure = match &last["error"] {
        Value::Null => &last["response"]["error"],
        error => error,
    };
    if failure.is_null() {
        ensure!(answer == expected, "an end without the answer: {answer:?}");
        return Ok(true);
    }
    let told = failure["message"].as_str().context("no message")?;
    ensure!(!told.is_empty() && failure["type"].is_string(), "{failure}");
    ensure!(
        !told.contains("127.0.0.1") && !told.contains("secret"),
        "{told}"
    );
    Ok(false)
}

/// The answers of all runs under these backends; how many runs were answered.
async fn answered_by(bus: Bus, backends: Value) -> Result<usize> {
    let node = bus.broker().await?;
    let server = Launch::up()
        .env("THREADGRAPH_LLM__BACKENDS", backends.to_string())
        .env("THREADGRAPH_LLM__RETRY_BASE_DELAY", "0.1")
        .env("THREADGRAPH_LLM__RETRY_MAX_DELAY", "0.5")
        .over(node.as_ref())
        .ready()
        .await?;
    let socket = Socket::connect(&server.url(), "").await?;
    let nonce = |n: usize| format!("nonce-run-{n}-x");
    let asks = (0..RUNS).map(async |n| {
        let request = json!({"question": format!("What is {}?", nonce(n)), "streaming": true});
        let envelope = json!({"service": "agent", "flow": "default", "request": request});
        socket.send(envelope).await?.all(BOUND).await
    });
    let mut answered = 0;
    for (n, frames) in join_all(asks).await.into_iter().enumerate() {
        let frames = frames.with_context(|| format!("run {n}\n{}", server.log()))?;
        let well = judged(&frames, &nonce(n));
        answered += usize::from(well.with_context(|| format!("run {n}: {}", brief(&frames)))?);
    }
    ensure!(answered > 0, "nobody was answered\n{}", server.log());
    Ok(answered)
}

fn backend(name: &str, model: &ScriptedModel, priority: u8) -> Value {
    json!({
        "name": name, "provider": "openai", "url": model.url(), "priority": priority,
        "timeout": BEGINS_WITHIN, "supported_models": ["scripted"],
    })
}

/// One that is waited for.
fn patient(name: &str, model: &ScriptedModel, priority: u8) -> Value {
    let mut backend = backend(name, model, priority);
    backend["timeout"] = json!(ALWAYS_BEGINS_WITHIN);
    backend
}

async fn models_fail_and_no_run_is_lost(bus: Bus) -> Result<()> {
    let cuts = Arc::default();
    let near = ScriptedModel::start(rules(4711, 5, &cuts)).await?;
    let far = ScriptedModel::start(rules(1147, 2, &cuts)).await?;
    let backends = json!([backend("near", &near, 1), backend("far", &far, 2)]);
    answered_by(bus, backends).await?;
    ensure!(near.count() > 0 && far.count() > 0, "both were asked");
    Ok(())
}

/// The name of the backend that answers a question.
async fn answering(url: &str) -> Result<String> {
    let path = "api/v1/flow/default/service/text-completion";
    let ask = json!({"system": "", "prompt": "Who are you?"});
    let (status, reply) = post(url, path, ask).await?;
    ensure!(status == 200, "{reply}");
    let text = reply["response"].as_str().context("no response")?;
    Ok(text.to_owned())
}

/// Each process finds the preferred backend at an address of its own, where it fails for one of them only. Then the other one,
/// for which it always answered, asks it no more. Several processes need a broker.
#[tokio::test]
async fn line_108_two_processes_share_which_backend_rests() -> Result<()> {
    let node = VirtualHost::new().await?;
    // It asks for a pause that is longer than this test.
    let limited = ScriptedModel::start(vec![Rule::always(Reply::rate_limited(3000))]).await?;
    let near = ScriptedModel::start(vec![Rule::always(Reply::text("near"))]).await?;
    let far = ScriptedModel::start(vec![Rule::always(Reply::text("far"))]).await?;
    let serve = async |preferred: &ScriptedModel| {
        let backends = json!([patient("near", preferred, 1), patient("far", &far, 2)]);
        let launch = Launch::serve(&["llm"], &node.url());
        let launch = launch.env("THREADGRAPH_LLM__BACKENDS", backends.to_string());
        launch.spawn().await
    };
    let sound = serve(&near).await?;
    let others = without(&ANSWERING, &["llm"]);
    let mut rest = Launch::serve(&others, &node.url()).spawn().await?;
    rest.wait_ready().await?;
    let url = rest.url();
    ensure!(answering(&url).await? == "near", "{}", sound.log());

    let failing = serve(&limited).await?;
    let end = Instant::now() + BOUND;
    while limited.count() == 0 {
        ensure!(Instant::now() < end, "not asked\n{}", failing.log());
        answering(&url).await?;
    }
    // The broker gives both processes questions in turn. Neither asks the backend once the other process has the note.
    let mut asked = usize::MAX;
    while near.count() != asked {
        ensure!(Instant::now() < end, "not heard\n{}", sound.log());
        asked = near.count();
        for _ in 0..IN_TURN {
            answering(&url).await?;
        }
    }
    failing.kill9().await?;
    for _ in 0..IN_TURN {
        ensure!(answering(&url).await? == "far", "{}", sound.log());
    }
    ensure!(near.count() == asked, "asked again\n{}", sound.log());
    Ok(())
}

/// The router tries a question four times, each time with the backend that it tried least for it. So a question that two
/// backends fail before their first piece comes to the third one. After a first piece the router asks nobody else.
async fn who_has_a_sound_backend_is_answered(bus: Bus) -> Result<()> {
    let cuts = Arc::default();
    let near = ScriptedModel::start(rules(4711, 5, &cuts)).await?;
    let far = ScriptedModel::start(rules(1147, 2, &cuts)).await?;
    // Answers whatever side is rolled.
    let sound = ScriptedModel::start(rules(4177, 0, &cuts)).await?;
    let mut always = patient("sound", &sound, 3);
    // Its bounds are not under test.
    always["rate_limit_tpm"] = json!(1_000_000_000);
    always["max_concurrent"] = json!(2 * RUNS);
    let backends = json!([backend("near", &near, 1), backend("far", &far, 2), always]);
    let failed = RUNS - answered_by(bus, backends).await?;
    let cuts = cuts.load(Ordering::Relaxed);
    ensure!(failed <= cuts, "{failed} failed, {cuts} broke off");
    ensure!(sound.count() > 0, "the third was asked");
    Ok(())
}

on_both_buses!(
    models_fail_and_no_run_is_lost,
    who_has_a_sound_backend_is_answered
);
