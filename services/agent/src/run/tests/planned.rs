//! Runs that plan ahead.

use std::collections::BTreeSet;

use serde_json::json;
use tg_provenance::{Session, Stored, Texts};
use tg_schemas::msg::{AgentRequest, AgentResponse};
use tg_testkit::place::Place;

use super::dialog::{joined, outline};
use super::world::{Say, World, question, rows, shown, values};
use crate::engine::phase::PLAN;
use crate::options::Options;

const TWO_STEPS: &str = r#"[{"goal": "add", "tool_hint": "calculator", "depends_on": []},
    {"goal": "add more", "tool_hint": "", "depends_on": [0]}]"#;
const ADD: &str = r#"{"tool": "calculator", "arguments": {"expression": "2+2"}}"#;
const MORE: &str = r#"{"tool": "remote", "arguments": {"x": 4}}"#;
const DIVIDE: &str = r#"{"tool": "calculator", "arguments": {"expression": "1/0"}}"#;

pub(super) fn planned(text: &str, streaming: bool) -> AgentRequest {
    AgentRequest {
        pattern: PLAN.into(),
        ..question(text, streaming)
    }
}

/// As the contract of chunks has them.
const EXPECTED: &[&str] = &[
    "explain  ",
    "thought  eom Created plan with 2 steps",
    "explain /plan ",
    "thought /i2/thought eom Step 0: add \u{2192} calling calculator",
    "observation /i2/observation eom builtin:calculator says 4",
    "explain /step/0 ",
    "thought /i3/thought eom Step 1: add more \u{2192} calling remote",
    "observation /i3/observation eom far says 4",
    "explain /step/1 ",
    "thought  eom Synthesising final answer from plan results",
];

fn script() -> [Say; 4] {
    [
        Say::Text(TWO_STEPS),
        Say::Text(ADD),
        Say::Text(MORE),
        Say::Text("It is:\n- 8"),
    ]
}

async fn a_planned_run_has_its_chunks_in_order(place: Place) {
    let world = World::new(&place, script()).await;
    let chunks = world.run(&planned("4+4?", false)).await;
    let mut expected = EXPECTED.to_vec();
    expected.push("explain /synthesis ");
    expected.push("answer /synthesis eom eod It is:\n- 8");
    assert_eq!(outline(&chunks), expected);
    let last = chunks.last().unwrap();
    assert_eq!((last.in_token, last.out_token), (Some(400), Some(40)));
    let asked = world.asked.lock().clone();
    assert_eq!(asked[1]["previous_results"], json!([]));
    assert_eq!(
        asked[2]["previous_results"],
        json!([{"index": 0, "result": "builtin:calculator says 4"}])
    );
    assert_eq!(asked[3]["steps"][1]["goal"], "add more");
}

async fn a_streamed_plan_answers_in_pieces(place: Place) {
    let world = World::new(&place, script()).await;
    let chunks = world.run(&planned("4+4?", true)).await;
    assert!(chunks.len() > EXPECTED.len() + 3);
    let mut expected = EXPECTED.to_vec();
    expected.push("answer /synthesis It is:\n- 8");
    expected.push("explain /synthesis ");
    expected.push("answer /synthesis eom eod ");
    assert_eq!(joined(&chunks), expected);
}

/// Everything that was shown is stored, as one chain whose texts are in the library.
async fn the_trace_of_a_plan_is_whole(place: Place) {
    let world = World::new(&place, script()).await;
    let chunks = world.run(&planned("4+4?", true)).await;
    assert_eq!(world.ended().await, "plan-complete");
    let (root, stored) = world.told(&chunks).await;
    assert_eq!(shown(&chunks), stored);
    let texts = world.texts(3).await;
    let chained: Stored = stored.iter().cloned().collect();
    let whole = chained.verify(&root, &Texts::Known(&texts), None);
    let whole = whole.expect("it holds").expect("there is one");
    assert_eq!((whole.entities, whole.texts), (5, 3));
    let id = Session::new(root.rsplit(':').next().unwrap());
    let from = "http://www.w3.org/ns/prov#wasDerivedFrom";
    let from: BTreeSet<String> = values(&stored, from).into_iter().collect();
    let expected = [id.iri().to_owned(), id.plan(0), id.step_result(1)];
    assert_eq!(from, expected.into());
}

async fn a_failure_has_the_rest_planned_anew(place: Place) {
    let script = [
        Say::Text(TWO_STEPS),
        Say::Text(DIVIDE),
        Say::Text(r#"["add"]"#),
        Say::Text(ADD),
        Say::Text("4"),
    ];
    let world = World::new(&place, script).await;
    let chunks = world.run(&planned("?", false)).await;
    let told = outline(&chunks);
    for line in [
        "explain /step/0 ",
        "thought  eom Revised plan: 1 steps to go",
        "explain /plan/1 ",
        "thought /i4/thought eom Step 2: add \u{2192} calling calculator",
        "explain /step/2 ",
        "answer /synthesis eom eod 4",
    ] {
        assert!(told.iter().any(|other| other == line), "{line}: {told:#?}");
    }
    assert!(!told.iter().any(|line| line.contains("/step/1")));
    let asked = world.asked.lock().clone();
    let framing = asked[2]["framing"].as_str().unwrap();
    assert!(framing.contains("failed: add") && framing.contains("division by zero"));
}

async fn without_revisions_what_depends_on_a_failure_is_left_out(place: Place) {
    let config = rows();
    config.put("agent-pattern", PLAN, r#"{"max_replan_depth": 0}"#);
    let script = [Say::Text(TWO_STEPS), Say::Text(DIVIDE), Say::Text("no")];
    let world = World::among(&place, script, config, Vec::new()).await;
    let chunks = world.run(&planned("?", false)).await;
    let last = chunks.last().unwrap();
    assert_eq!((last.content.as_str(), last.end_of_dialog), ("no", true));
    let asked = world.asked.lock().clone();
    let steps = asked[2]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1, "{steps:?}");
}

async fn what_is_no_plan_is_one_step(place: Place) {
    let script = [
        Say::Text("no plan"),
        Say::Text("{}"),
        Say::Text("4"),
        Say::Text("what tool?"),
        Say::Text(r#"{"tool": "", "arguments": {}}"#),
        Say::Text("done"),
    ];
    let world = World::new(&place, script).await;
    let told = outline(&world.run(&planned("?", false)).await);
    assert_eq!(told[1], "thought  eom Created plan with 1 steps");
    assert_eq!(
        told[4],
        "observation /i2/observation eom (no tool was needed)"
    );
    assert_eq!(told.last().unwrap(), "answer /synthesis eom eod done");
    let asked = world.asked.lock().clone();
    let goal = asked[4]["goal"].as_str().unwrap();
    assert!(goal.contains("what tool?"), "{goal}");
}

/// Steps that always fail, plans without end: the bound of steps holds, and there is an answer.
async fn a_plan_never_takes_more_steps_than_a_run_may(place: Place) {
    let options = || Options {
        max_iterations: 3,
        ..Options::default()
    };
    let at_once = vec![
        Say::Text(r#"["a", "b", "c", "d", "e"]"#),
        Say::Text(ADD),
        Say::Text(DIVIDE),
        Say::Text(ADD),
        Say::Text("the end"),
    ];
    let in_turn = vec![
        Say::Text(r#"["a", {"goal": "b", "depends_on": [0]}]"#),
        Say::Text(ADD),
        Say::Text(DIVIDE),
        Say::Text(r#"["f", "g", "h"]"#),
        Say::Text(DIVIDE),
        Say::Text("the end"),
    ];
    for (script, planned_first) in [(at_once, 3), (in_turn, 2)] {
        let world = World::with(&place.another().await, script, options()).await;
        let chunks = world.run(&planned("?", false)).await;
        let told = outline(&chunks);
        let first = format!("thought  eom Created plan with {planned_first} steps");
        assert_eq!(told[1], first);
        let seen = |chunk: &&AgentResponse| chunk.message_type == "observation";
        assert_eq!(chunks.iter().filter(seen).count(), 3);
        assert_eq!(told.last().unwrap(), "answer /synthesis eom eod the end");
    }
}

tg_testkit::on_both_buses!(
    a_planned_run_has_its_chunks_in_order,
    a_streamed_plan_answers_in_pieces,
    the_trace_of_a_plan_is_whole,
    a_failure_has_the_rest_planned_anew,
    without_revisions_what_depends_on_a_failure_is_left_out,
    what_is_no_plan_is_one_step,
    a_plan_never_takes_more_steps_than_a_run_may,
);
