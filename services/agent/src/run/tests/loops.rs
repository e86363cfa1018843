//! Loops are found, told, blocked and broken; the numbers are those of the acceptance lines.

use std::collections::BTreeSet;

use serde_json::Value;
use tg_provenance::{Stored, Texts};
use tg_schemas::Triple;
use tg_schemas::msg::{AgentRequest, AgentResponse};
use tg_testkit::place::Place;

use super::world::{Say, World, question, rows, values};
use crate::options::Options;

const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";
const POLL: &str = "Thought: wait\nAction: job_status\nArgs: {\"x\": 1}";
const OTHER: &str = "Action: remote\nArgs: {\"x\": 1}";
const RUNG: &str = "https://trustgraph.ai/ns/guardRung";
const DETECTOR: &str = "https://trustgraph.ai/ns/guardDetector";
const WHY: &str = "http://www.w3.org/2000/01/rdf-schema#comment";

fn patient() -> Options {
    Options {
        max_iterations: 50,
        ..Options::default()
    }
}

fn times(say: &'static str, count: usize) -> Vec<Say> {
    (0..count).map(|_| Say::Text(say)).collect()
}

/// What guards did, as the asker gets it: rung and detector.
fn rungs(chunks: &[AgentResponse]) -> Vec<[String; 2]> {
    let explained = chunks.iter().map(|chunk| chunk.explain_triples.clone());
    let explained = explained.map(|triples| triples.into_iter().collect::<BTreeSet<Triple>>());
    let rungs = explained.filter(|triples| !values(triples, RUNG).is_empty());
    rungs
        .map(|triples| [RUNG, DETECTOR].map(|name| values(&triples, name).concat()))
        .collect()
}

/// The last chunk of a run that was stopped.
fn stopped(chunks: &[AgentResponse]) -> &AgentResponse {
    let last = chunks.last().expect("an end");
    assert_eq!(last.message_type, "answer", "{last:?}");
    assert!(last.stopped && last.end_of_dialog && last.end_of_message);
    assert_eq!(last.finish_reason, "loop");
    last
}

/// Waits until the stored trace is whole, and returns it.
async fn whole(world: &World, chunks: &[AgentResponse]) -> BTreeSet<Triple> {
    let root = chunks.last().expect("an end").trace.clone();
    let holds = |all: &BTreeSet<Triple>| {
        let stored: Stored = all.iter().cloned().collect();
        matches!(stored.verify(&root, &Texts::Unknown, None), Ok(Some(_)))
    };
    world.trace(holds).await
}

/// 85, 93 of a flow's dialog, 94
async fn line_085_094_the_same_call_is_warned_of_told_blocked_and_stopped(place: Place) {
    let world = World::with(&place, times(ADD, 30), patient()).await;
    let chunks = world.run(&question("q", false)).await;
    let why = "Stopped by loop detection (generic_repeat): 'calculator' was called 20 times with the same \
               arguments; the loop is broken";
    let last = stopped(&chunks);
    let first = last.content.lines().next();
    assert_eq!(first, Some(why), "{}", last.content);
    assert!(
        last.content
            .ends_with("'calculator' returned:\nbuiltin:calculator says 4"),
        "{}",
        last.content
    );
    assert_eq!(last.loop_window.len(), 20);

    // The tenth is warned of, those after it are not made, and the twentieth ends the run.
    assert_eq!((world.calls(), world.tools.asked.lock().len()), (20, 10));
    let of = |rung: &str| [rung.to_owned(), "generic_repeat".to_owned()];
    let mut climbed = vec![of("warn"), of("tell")];
    climbed.extend((11..=20).map(|_| of("block")));
    climbed.push(of("stop"));
    assert_eq!(rungs(&chunks), climbed);

    let stored = whole(&world, &chunks).await;
    assert_eq!(world.ended().await, "loop");
    assert!(values(&stored, WHY).contains(&why.to_owned()));
    assert_eq!(values(&stored, RUNG).len(), 13);
    let texts = world.library.holds(1).await;
    assert!(
        texts
            .values()
            .any(|(_, text)| text.starts_with("Stopped by"))
    );

    // The model read the warning once, with what its call returned.
    let asked = world.asked.lock();
    let history = asked[10]["history"].as_array().expect("steps").clone();
    let warned = |step: &&Value| {
        let seen = step["observation"].as_str().expect("text");
        seen.contains("Warning: 'calculator' was called 10 times")
    };
    assert_eq!(history.iter().filter(warned).count(), 1);
    assert!(warned(&history.last().expect("a step")));
}

/// C.3: an agent's definition says when there is too much of a loop, whatever its workspace says.
async fn an_agent_has_thresholds_of_its_own(place: Place) {
    let config = || {
        let config = rows();
        config.put("agent", "loop_detection", r#"{"enabled": false}"#);
        config
    };
    let of = |text: &str| AgentRequest {
        loop_detection: text.to_owned(),
        ..question("q", false)
    };
    let script = times(ADD, 8);
    let own = r#"{"enabled": true, "warningThreshold": 2, "criticalThreshold": 4}"#;
    let bus = place.connect().await;
    let world = World::start(bus, script, patient(), config(), Vec::new()).await;
    let chunks = world.run(&of(own)).await;
    stopped(&chunks);
    assert_eq!((world.calls(), world.tools.asked.lock().len()), (4, 2));
    // What cannot be read says nothing.
    let script = times(ADD, 8);
    let bus = place.another().await.connect().await;
    let world = World::start(bus, script, patient(), config(), Vec::new()).await;
    let chunks = world.run(&of("{")).await;
    assert!(!chunks.last().unwrap().stopped);
}

/// 91
async fn line_091_nothing_is_stopped_where_nothing_is_looked_for(place: Place) {
    let settings = Options {
        loop_detection: false,
        ..patient()
    };
    let mut script = times(ADD, 40);
    script.push(Say::Text("Final Answer: 4"));
    let world = World::with(&place, script, settings).await;
    let chunks = world.run(&question("q", false)).await;
    let last = chunks.last().expect("an end");
    assert_eq!((last.content.as_str(), last.stopped), ("4", false));
    assert!(last.finish_reason == "stop" && rungs(&chunks).is_empty());
    assert_eq!(world.tools.asked.lock().len(), 40);
}

/// 92: on another replica in the next turn of the session.
async fn line_092_a_session_carries_its_window_from_turn_to_turn_and_replica_to_replica(
    place: Place,
) {
    let settings = || Options {
        max_iterations: 20,
        ..Options::default()
    };
    let mut script = times(ADD, 8);
    script.push(Say::Text("Final Answer: not yet"));
    let world = World::with(&place, script, settings()).await;
    let first = world.run(&question("q", false)).await;
    let carried = first.last().expect("an end").loop_window.clone();
    assert_eq!(carried.len(), 8);

    let other = World::with(&place.another().await, times(ADD, 20), settings()).await;
    let mut next = question("q", false);
    next.loop_window = carried;
    let chunks = other.run(&next).await;
    assert!(stopped(&chunks).content.contains("called 20 times"));
    assert_eq!(other.calls(), 12);
    whole(&other, &chunks).await;
}

/// 88: a poll is made each time, as only what it returns says whether it is in vain.
async fn line_088_a_poll_without_progress_ends_with_what_it_last_returned(place: Place) {
    let config = rows();
    let row = r#"{"name": "job_status", "type": "mcp-tool", "mcp-tool": "far",
                  "arguments": [{"name": "x", "type": "number"}]}"#;
    config.put("tool", "job_status", row);
    let own = r#"{"genericRepeat": false, "warningThreshold": 3, "criticalThreshold": 5}"#;
    config.put("agent", "loop_detection", own);
    let world = World::among(&place, times(POLL, 9), config, Vec::new()).await;
    let chunks = world.run(&question("q", true)).await;
    let last = stopped(&chunks);
    assert!(
        last.content.starts_with(
            "Stopped by loop detection (known_poll_no_progress): 'job_status' was polled 5 times"
        ),
        "{}",
        last.content
    );
    assert_eq!(world.tools.asked.lock().len(), 5);
    let of = |rung: &str| [rung.to_owned(), "known_poll_no_progress".to_owned()];
    assert_eq!(rungs(&chunks), [of("warn"), of("tell"), of("stop")]);
    let seen = chunks
        .iter()
        .filter(|chunk| chunk.message_type == "observation");
    assert_eq!(seen.count(), 5);
    let stored = whole(&world, &chunks).await;
    let rungs = values(&stored, RUNG);
    assert_eq!((rungs.len(), rungs.contains(&"stop".to_owned())), (3, true));
}

/// 89, with the thresholds of the workspace.
async fn line_089_two_calls_in_turn_are_stopped(place: Place) {
    let config = rows();
    let own = r#"{"genericRepeat": false, "warningThreshold": 4, "criticalThreshold": 6}"#;
    config.put("agent", "loop_detection", own);
    let script = (0..9).map(|at| Say::Text([ADD, OTHER][at % 2]));
    let world = World::among(&place, script, config, Vec::new()).await;
    let chunks = world.run(&question("q", false)).await;
    assert!(stopped(&chunks).content.contains("(ping_pong)"));
    assert_eq!(world.calls(), 6);
    let did: Vec<_> = rungs(&chunks).into_iter().map(|[rung, _]| rung).collect();
    assert_eq!(did, ["warn", "tell", "warn", "tell", "block", "stop"]);
    whole(&world, &chunks).await;
}

tg_testkit::on_both_buses!(
    an_agent_has_thresholds_of_its_own,
    line_085_094_the_same_call_is_warned_of_told_blocked_and_stopped,
    line_091_nothing_is_stopped_where_nothing_is_looked_for,
    line_092_a_session_carries_its_window_from_turn_to_turn_and_replica_to_replica,
    line_088_a_poll_without_progress_ends_with_what_it_last_returned,
    line_089_two_calls_in_turn_are_stopped,
);
