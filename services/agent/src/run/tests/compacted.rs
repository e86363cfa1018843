//! Runs that are longer than their model reads; the numbers are those of the acceptance lines.

use std::collections::BTreeSet;

use serde_json::Value;
use tg_provenance::{Stored, Texts};
use tg_schemas::msg::{AgentRequest, AgentResponse, AgentStep};
use tg_schemas::{Error, ErrorCode, Triple};
use tg_testkit::place::Place;

use super::world::{Say, World, question, rows, shown, values};
use crate::options::Options;

const TIER: &str = "https://trustgraph.ai/ns/compactionTier";
const STEPS: &str = "https://trustgraph.ai/ns/compactedSteps";
const SUMMARY: &str = "https://trustgraph.ai/ns/summary";
const ANSWER: Say = Say::Text("Final Answer: it is 4");

/// A question with so many steps before it, each with a thought of so many characters.
fn after(steps: usize, thought: usize) -> AgentRequest {
    let step = |n: usize| AgentStep {
        thought: format!("{n} of /etc/hosts {}", "x".repeat(thought)),
        action: "calculator".to_owned(),
        observation: format!("{n} says 4"),
        ..AgentStep::default()
    };
    AgentRequest {
        history: (1..=steps).map(step).collect(),
        ..question("q", false)
    }
}

fn reads(context_window: u64) -> Options {
    Options {
        context_window,
        ..Options::default()
    }
}

fn too_long() -> Say {
    let told = "the request is longer than the model can read";
    Say::Fail(Error::new(ErrorCode::TooLarge, told))
}

/// The last chunk of a run that answered.
fn answered(chunks: &[AgentResponse]) -> &AgentResponse {
    let last = chunks.last().expect("an end");
    assert_eq!(
        (last.message_type.as_str(), last.content.as_str()),
        ("answer", "it is 4"),
        "{last:?}"
    );
    last
}

/// What stands for earlier steps: how good, how many, the text.
fn compacted(triples: &BTreeSet<Triple>) -> [Vec<String>; 3] {
    [TIER, STEPS, SUMMARY].map(|name| values(triples, name))
}

fn history(asked: &std::collections::BTreeMap<String, Value>) -> usize {
    asked["history"].as_array().expect("steps").len()
}

/// 100, 103: the steps that stay are shown as they are, and the trace says what stands for the others.
async fn a_long_run_goes_on_with_a_summary(place: Place) {
    let first = Say::Text("Action: calculator\nArgs: {\"expression\": \"2+2\"}");
    let script = ["One.", "Two.", "Three.", "All three."].map(Say::Text);
    let script = script.into_iter().chain([first, ANSWER]);
    let world = World::with(&place, script, reads(5_400)).await;
    let chunks = world.run(&after(6, 3_200)).await;
    let last = answered(&chunks);
    // The summaries are part of what the run took.
    assert_eq!((last.in_token, last.out_token), (Some(600), Some(60)));
    let asked = world.asked.lock().clone();
    let dialog = asked[0]["dialog"].as_str().expect("text");
    assert!(
        dialog.starts_with("[assistant]: 1 of /etc/hosts x"),
        "{dialog}"
    );
    assert!(
        dialog.ends_with("\n[tool]: [tool result: calculator]"),
        "{dialog}"
    );
    let summaries = asked[3]["summaries"].as_str().expect("text");
    assert!(
        summaries.starts_with("1.\nOne.\nIdentifiers: /etc/hosts\n\n2.\nTwo."),
        "{summaries}"
    );
    let summary = "All three.\nIdentifiers: /etc/hosts";
    // The next step is shown the same, and its own as well.
    for (at, steps) in [(4, 3), (5, 4)] {
        assert_eq!(history(&asked[at]), steps);
        let context = asked[at]["context"].as_str().expect("text");
        assert!(context.ends_with(summary), "{context}");
    }
    assert_eq!(asked.len(), 6);
    let told = compacted(&shown(&chunks));
    let wanted = [["full"], ["3"], [summary]].map(|one| one.map(str::to_owned).to_vec());
    assert_eq!(told, wanted);
    let root = last.trace.clone();
    let holds = |all: &BTreeSet<Triple>| {
        let stored: Stored = all.iter().cloned().collect();
        matches!(stored.verify(&root, &Texts::Unknown, None), Ok(Some(_)))
    };
    assert_eq!(compacted(&world.trace(holds).await), wanted);
    // The entities of the trace add up to what the run took: nothing is counted on two of them.
    let (_, stored) = world.told(&chunks).await;
    let sum = |name: &str| -> u64 {
        let counts = values(&stored, &format!("https://trustgraph.ai/ns/{name}"));
        counts
            .iter()
            .map(|count| count.parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!((sum("inToken"), sum("outToken")), (600, 60));
}

/// 98
async fn line_098_a_window_that_leaves_no_room_for_a_summary_is_cleared(place: Place) {
    let world = World::with(&place, [ANSWER], reads(4_500)).await;
    let chunks = world.run(&after(6, 3_200)).await;
    answered(&chunks);
    assert_eq!(history(&world.asked.lock()[0]), 3);
    let [tier, steps, text] = compacted(&shown(&chunks));
    assert_eq!(
        (tier.concat(), steps.concat(), text.len()),
        ("hard_clear".into(), "3".into(), 0)
    );
}

/// 101
async fn line_101_where_no_summary_can_be_had_a_note_stands_for_the_steps(place: Place) {
    let fails = || Say::Fail(Error::new(ErrorCode::Provider, "no"));
    let script = [fails(), fails(), fails(), ANSWER];
    let world = World::with(&place, script, reads(15_000)).await;
    let mut question = after(6, 10);
    for step in &mut question.history[3..] {
        step.thought = "x".repeat(18_000);
    }
    let chunks = world.run(&question).await;
    answered(&chunks);
    let told = compacted(&shown(&chunks));
    assert_eq!(told[0].concat(), "note");
    assert!(told[2].concat().contains("could not be summed up"));
}

/// What tools returned is shortened first; nothing is stored of that.
async fn long_results_are_shortened_before_anything_is_summed_up(place: Place) {
    let world = World::with(&place, [ANSWER], reads(16_000)).await;
    let mut question = after(6, 10);
    for step in &mut question.history {
        step.observation = "y".repeat(9_000);
    }
    let chunks = world.run(&question).await;
    answered(&chunks);
    let asked = world.asked.lock();
    let steps = asked[0]["history"].as_array().expect("steps");
    let lengths = steps
        .iter()
        .map(|step| step["observation"].as_str().map(str::len));
    let lengths: Vec<_> = lengths.map(Option::unwrap_or_default).collect();
    assert_eq!(lengths, [187, 187, 187, 9_000, 9_000, 9_000]);
    assert_eq!(
        compacted(&shown(&chunks)),
        [const { Vec::<String>::new() }; 3]
    );
}

/// How many steps the model was shown each time.
fn histories(world: &World) -> Vec<usize> {
    let asked = world.asked.lock();
    let react = asked.iter().filter(|terms| terms.contains_key("history"));
    react.map(history).collect()
}

/// 104, 99
async fn line_104_what_is_too_long_for_the_model_is_made_shorter(place: Place) {
    let script = [too_long(), Say::Text("Summed up."), ANSWER];
    let world = World::with(&place, script, Options::default()).await;
    let chunks = world.run(&after(6, 10)).await;
    answered(&chunks);
    assert_eq!(compacted(&shown(&chunks))[0].concat(), "full");
    assert_eq!(histories(&world), [6, 3]);
}

/// Nothing is left to sum up: the question is asked alone, once.
async fn what_cannot_be_summed_up_is_left_out(place: Place) {
    let world = World::with(&place, [too_long(), ANSWER], Options::default()).await;
    let chunks = world.run(&after(2, 10)).await;
    answered(&chunks);
    assert_eq!(histories(&world), [2, 0]);
    assert_eq!(compacted(&shown(&chunks))[0].concat(), "hard_clear");
}

/// 104
async fn line_104_what_stays_too_long_is_an_error(place: Place) {
    let script = [too_long(), Say::Text("Summed up."), too_long(), too_long()];
    let world = World::with(&place, script, Options::default()).await;
    let chunks = world.run(&after(6, 10)).await;
    let last = chunks.last().expect("an end");
    let error = last.error.clone().expect("an error");
    assert!(
        error.message.contains("longer than the model can read"),
        "{error}"
    );
    assert_eq!(histories(&world), [6, 3, 0]);
}

async fn a_workspace_says_how(place: Place) {
    let config = rows();
    config.put("agent", "compaction", r#"{"enabled": false}"#);
    config.put("llm-model", "scripted", r#"{"context_window": 5400}"#);
    let world = World::among(&place, [ANSWER], config, Vec::new()).await;
    let chunks = world.run(&after(6, 3_200)).await;
    answered(&chunks);
    assert_eq!(history(&world.asked.lock()[0]), 6);
    assert!(compacted(&shown(&chunks))[0].is_empty());
}

/// It counts from when the model has answered.
async fn a_workspace_says_what_its_model_reads(place: Place) {
    let config = rows();
    config.put(
        "agent",
        "compaction",
        r#"{"observationMask": false, "keepLastN": 1}"#,
    );
    config.put("llm-model", "scripted", r#"{"context_window": 16000}"#);
    let first = Say::Text("Action: calculator\nArgs: {\"expression\": \"2+2\"}");
    let script = ["1.", "2.", "3.", "4.", "All."].map(Say::Text);
    let script = [first].into_iter().chain(script).chain([ANSWER]);
    let world = World::among(&place, script, config, Vec::new()).await;
    let chunks = world.run(&after(5, 12_000)).await;
    answered(&chunks);
    let asked = world.asked.lock();
    assert_eq!(
        (history(&asked[0]), history(asked.last().expect("asked"))),
        (5, 2)
    );
    let dialog = asked[1]["dialog"].as_str().expect("text");
    assert!(dialog.ends_with("\n[tool]: 1 says 4"), "{dialog}");
}

/// 104: counted over all steps of a run. Three times it is summed up, then the model is asked the question alone, then it is an error.
async fn line_104_a_run_recovers_three_times_in_all_its_steps(place: Place) {
    let add = || Say::Text("Action: calculator\nArgs: {\"expression\": \"2+2\"}");
    let mut script = Vec::new();
    for summary in ["One.", "Two.", "Three."] {
        script.extend([too_long(), Say::Text(summary), add()]);
    }
    script.extend([too_long(), add(), too_long(), ANSWER]);
    let world = World::with(&place, script, reads(128_000)).await;
    let chunks = world.run(&after(8, 10)).await;
    let last = chunks.last().expect("an end");
    let error = last.error.clone().expect("an error");
    assert!(
        error.message.contains("longer than the model can read"),
        "{error}"
    );
    let [mut tiers, ..] = compacted(&shown(&chunks));
    tiers.sort();
    assert_eq!(tiers, ["full", "full", "full", "hard_clear"]);
    let asked = world.asked.lock().clone();
    assert_eq!(asked.len(), 12, "nobody is asked after the last");
    // Of the steps that were left out nothing is shown in the next one, either.
    assert_eq!([history(&asked[10]), history(&asked[11])], [0, 1]);
}

tg_testkit::on_both_buses!(
    line_104_a_run_recovers_three_times_in_all_its_steps,
    a_long_run_goes_on_with_a_summary,
    line_098_a_window_that_leaves_no_room_for_a_summary_is_cleared,
    line_101_where_no_summary_can_be_had_a_note_stands_for_the_steps,
    long_results_are_shortened_before_anything_is_summed_up,
    line_104_what_is_too_long_for_the_model_is_made_shorter,
    what_cannot_be_summed_up_is_left_out,
    line_104_what_stays_too_long_is_an_error,
    a_workspace_says_how,
    a_workspace_says_what_its_model_reads,
);
