//! Steps of a plan that wait for nothing are taken at the same time.

use serde_json::json;
use tg_provenance::{Stored, Texts};
use tg_schemas::msg::AgentRun;
use tg_testkit::place::Place;

use super::delegated;
use super::dialog::outline;
use super::planned::planned;
use super::repeats::{RUN, continued, decision, died, of, run};
use super::replayed::{asks, run as run_recorded, same_again};
use super::supervised::give;
use super::together::{meeting, of_kind};
use super::world::{Say, World, rows};
use crate::engine::decision::{Chosen, Observation, Taken};
use crate::engine::phase::PLAN;
use crate::engine::plan;

const PLANNED: &str = r#"["a", "b", {"goal": "c", "depends_on": [0, 1]}]"#;
const ADD: &str = r#"{"tool": "calculator", "arguments": {"expression": "2+2"}}"#;
const MEET: [&str; 2] = [
    r#"{"tool": "meet", "arguments": {"n": 0}}"#,
    r#"{"tool": "meet", "arguments": {"n": 1}}"#,
];

/// What is said of the steps of [`PLANNED`], whatever the order in which they are asked for.
fn choices(world: &World, of_a: Vec<Say>) {
    give(world, "a", of_a);
    give(world, "b", [Say::Text(MEET[1])]);
    give(world, "c", [Say::Text(ADD)]);
}

/// The tool of each returns once both are called.
async fn they_are_taken_at_the_same_time_and_the_last_after_both(place: Place) {
    let script = vec![Say::Text(PLANNED), Say::Text("all of it")];
    let (world, meet) = meeting(&place, 2, script).await;
    choices(&world, vec![Say::Text(MEET[0])]);
    let chunks = world.run(&planned("?", false)).await;
    assert_eq!(
        outline(&chunks),
        [
            "explain  ",
            "thought  eom Created plan with 3 steps",
            "explain /plan ",
            "thought /i2/thought eom Step 0: a \u{2192} calling meet\nStep 1: b \u{2192} calling meet",
            "observation /i2/observation eom met as 0",
            "observation /i2/call/2/observation eom met as 1",
            "explain /step/0 ",
            "explain /step/1 ",
            "thought /i3/thought eom Step 2: c \u{2192} calling calculator",
            "observation /i3/observation eom builtin:calculator says 4",
            "explain /step/2 ",
            "thought  eom Synthesising final answer from plan results",
            "explain /synthesis ",
            "answer /synthesis eom eod all of it",
        ]
    );
    assert_eq!(meet.keys().len(), 2);
    let last = chunks.last().unwrap();
    assert_eq!((last.in_token, last.out_token), (Some(500), Some(50)));
    let asked = world.asked.lock().clone();
    assert_eq!(
        asked[3]["previous_results"],
        json!([{"index": 0, "result": "met as 0"}, {"index": 1, "result": "met as 1"}])
    );
    let (root, stored) = world.told(&chunks).await;
    let texts = world.texts(4).await;
    assert_eq!(texts[&format!("{root}/step/1/doc")], "met as 1");
    let stored: Stored = stored.into_iter().collect();
    let whole = stored.verify(&root, &Texts::Known(&texts), None);
    let whole = whole.expect("it holds").expect("there is one");
    assert_eq!((whole.entities, whole.texts), (6, 4));
}

async fn they_are_told_again(place: Place) {
    let script = vec![Say::Text(PLANNED), Say::Text("all of it")];
    let (world, _) = meeting(&place, 2, script).await;
    let unread = Say::Text(r#"{"tool": 4}"#);
    choices(&world, vec![unread, Say::Text(MEET[0])]);
    let heard = run_recorded(&world, planned("?", true), asks("q", false)).await;
    assert_eq!(
        world.calls(),
        6,
        "the choice for the first is asked for again"
    );
    same_again(&world, "q", &heard).await;
}

/// A process died after the first had returned.
async fn what_is_found_is_not_found_again(place: Place) {
    let world = World::new(&place, [Say::Text("both")]).await;
    let mut begun = AgentRun {
        pattern: PLAN.into(),
        named: true,
        ..run(2, true)
    };
    plan::adopt(&mut begun, &plan::read(r#"["a", "b"]"#, 9).unwrap(), 2);
    let chosen = |at: usize, name: &str, arguments: serde_json::Value| Chosen {
        name: name.into(),
        arguments: arguments.as_object().unwrap().clone(),
        place: Some(at),
        ..Chosen::default()
    };
    let calls = vec![
        chosen(0, "remote", json!({"x": 1})),
        chosen(1, "calculator", json!({"expression": "2+2"})),
    ];
    let decided = decision(Taken::Actions { calls });
    world
        .ledger
        .decide(&of(RUN), 2, &decided, &[], 1)
        .await
        .unwrap();
    let seen = Observation {
        text: "seen before".into(),
        called: true,
        ..Observation::default()
    };
    let key = of(RUN);
    let kept = world.ledger.observe_call(&key, (2, 0), &seen, 1);
    assert!(kept.await.unwrap());
    let chunks = continued(&world, died(begun, Vec::new(), 0)).await;
    let told = of_kind(&chunks, "observation");
    assert_eq!(told[0].content, "seen before");
    assert_eq!(told[1].content, "builtin:calculator says 4");
    assert_eq!(world.tools.asked.lock().len(), 1);
    let asked = world.asked.lock().clone();
    assert_eq!(asked.len(), 1, "only for the answer");
    assert_eq!(asked[0]["steps"][0]["result"], "seen before");
    assert_eq!(asked[0]["steps"][1]["result"], "builtin:calculator says 4");
}

async fn who_gives_work_waits_for_its_turn(place: Place) {
    let script = [Say::Text(r#"["find", "add"]"#), Say::Text("put together")];
    let world = delegated::world(&place, script).await;
    let find = r#"{"tool": "delegate", "arguments": {"agent_id": "b", "message": "b?"}}"#;
    give(&world, "find", [Say::Text(find), Say::Text(find)]);
    give(&world, "add", [Say::Text(ADD)]);
    give(&world, "b?", [Say::Text("Final Answer: B")]);
    let chunks = world.run(&planned("?", false)).await;
    let told = outline(&chunks);
    let at = |line: &str| told.iter().position(|other| other.starts_with(line));
    let (first, second) = (at("explain /step/1 "), at("explain /step/0 "));
    assert!(first.is_some() && first < second, "{told:#?}");
    let steps = world.asked.lock().last().unwrap()["steps"].clone();
    assert_eq!(steps[0]["result"], "B");
    assert_eq!(steps[1]["result"], "builtin:calculator says 4");
}

async fn a_workspace_says_how_many(place: Place) {
    let config = rows();
    config.put("agent-pattern", PLAN, r#"{"max_parallel_steps": 1}"#);
    let script = [
        Say::Text(r#"["a", "b"]"#),
        Say::Text(ADD),
        Say::Text(ADD),
        Say::Text("8"),
    ];
    let world = World::among(&place, script, config, Vec::new()).await;
    let told = outline(&world.run(&planned("?", false)).await);
    let line = "thought /i3/thought eom Step 1: b \u{2192} calling calculator";
    assert!(told.iter().any(|other| other == line), "{told:#?}");
}

tg_testkit::on_both_buses!(
    they_are_taken_at_the_same_time_and_the_last_after_both,
    they_are_told_again,
    what_is_found_is_not_found_again,
    who_gives_work_waits_for_its_turn,
    a_workspace_says_how_many,
);
