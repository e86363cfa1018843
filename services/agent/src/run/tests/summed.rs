//! Each call of a model stands on one entity of a trace: all of them together are what the ledger counts for the run.

use serde_json::json;
use tg_schemas::msg::AgentResponse;
use tg_schemas::vocabulary::tg;
use tg_testkit::place::Place;

use super::delegated::{agents, calls};
use super::routed::with_types;
use super::supervised::give;
use super::world::{Say, World, question, values};
use crate::engine::phase::{PLAN, REACT, SUPERVISOR};
use crate::engine::router::SELECT;
use crate::engine::usage::Scope;
use crate::options::Options;
use crate::store::Days;

/// Uses a tool that asks a model.
const ASK: &str = "Thought: ask\nAction: llm\nArgs: {\"question\": \"x\"}";
/// The same twice, side by side.
const BOTH: &str = concat!(
    "Thought: ask\nActions: [{\"name\": \"llm\", \"arguments\": {\"question\": \"x\"}}, ",
    "{\"name\": \"llm\", \"arguments\": {\"question\": \"y\"}}]"
);
const END: Say = Say::Text("Final Answer: done");
/// Takes 7 tokens and answers in 3.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/programs/stays.sh");

/// A world whose router asks a model for the type of a question, and again for its pattern, which is this one.
async fn routed(place: &Place, pattern: &'static str, script: Vec<Say>) -> World {
    let config = with_types();
    let all = json!({"description": "hazards", "valid_patterns": [REACT, SUPERVISOR, PLAN]});
    config.put("agent-task-type", "risk", &all.to_string());
    for name in [SUPERVISOR, PLAN] {
        config.put("agent-pattern", name, r#"{"description": "several parts"}"#);
    }
    let world = World::among(place, script, config, Vec::new()).await;
    give(&world, SELECT, [Say::Text(pattern)]);
    world
}

/// What the ledger counts for the only run: tokens in and out.
async fn counted(world: &World) -> [u64; 2] {
    let days = Days {
        scope: Scope::Run,
        since: String::new(),
        until: "9999".into(),
        daily: false,
    };
    let runs = world.ledger.usage("default", &days, "", 9).await.unwrap();
    let [(_, all)] = &runs[..] else {
        panic!("one run: {runs:?}");
    };
    [all.in_token, all.out_token]
}

/// The sum over the stored trace, what the ledger counts, and what the last chunk says are these.
async fn same(world: &World, chunks: &[AgentResponse], expected: [u64; 2]) {
    let last = chunks.last().expect("an end");
    assert_eq!((last.error.as_ref(), last.end_of_dialog), (None, true));
    let (_, stored) = world.told(chunks).await;
    let sum = |name: &str| -> u64 {
        let counts = values(&stored, name);
        counts
            .iter()
            .map(|count| count.parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!([sum(tg::IN_TOKEN), sum(tg::OUT_TOKEN)], expected);
    assert_eq!(counted(world).await, expected);
    let told = [last.in_token, last.out_token].map(|count| count.unwrap_or(0));
    assert_eq!(told.map(|count| u64::try_from(count).unwrap()), expected);
}

/// Issue 31, 6: two calls of the router, two decisions, the tool's own.
async fn a_trace_adds_up_with_a_router_and_a_tool_that_asks(place: Place) {
    let world = routed(&place, REACT, vec![Say::Text(ASK), END]).await;
    let chunks = world.run(&question("Which?", false)).await;
    same(&world, &chunks, [500, 50]).await;
}

/// The same of two that are used side by side.
async fn a_trace_adds_up_with_tools_side_by_side(place: Place) {
    let world = routed(&place, REACT, vec![Say::Text(BOTH), END]).await;
    let chunks = world.run(&question("Which?", false)).await;
    same(&world, &chunks, [600, 60]).await;
}

/// Two steps are taken together, then one: the router, the plan, three choices, two tools that ask, the answer.
async fn a_trace_adds_up_over_a_plan(place: Place) {
    let planned = r#"["a", "b", {"goal": "c", "depends_on": [0, 1]}]"#;
    let script = vec![Say::Text(planned), Say::Text("all of it")];
    let world = routed(&place, PLAN, script).await;
    for (goal, choice) in [
        ("a", r#"{"tool": "llm", "arguments": {"question": "x"}}"#),
        ("b", r#"{"tool": "llm", "arguments": {"question": "y"}}"#),
        (
            "c",
            r#"{"tool": "calculator", "arguments": {"expression": "2+2"}}"#,
        ),
    ] {
        give(&world, goal, [Say::Text(choice)]);
    }
    let chunks = world.run(&question("Which?", false)).await;
    assert_eq!(chunks.last().unwrap().content, "all of it");
    same(&world, &chunks, [900, 90]).await;
}

/// The router, the split, three decisions of subagents, the tool of one of them, the answer.
async fn a_trace_adds_up_over_subagents(place: Place) {
    let script = vec![Say::Text(r#"["a?", "b?"]"#), Say::Text("both")];
    let world = routed(&place, SUPERVISOR, script).await;
    give(&world, "a?", [Say::Text(ASK), END]);
    give(&world, "b?", [END]);
    let chunks = world.run(&question("Which?", false)).await;
    assert_eq!(chunks.last().unwrap().content, "both");
    same(&world, &chunks, [800, 80]).await;
}

/// A program has no trace, an agent has one.
async fn a_trace_adds_up_over_a_program(place: Place) {
    let listed = json!({"coder": {"engine": "cli-stream", "command": PROGRAM}}).to_string();
    let options = Options {
        cli_agents: Some(serde_json::from_value(listed.into()).unwrap()),
        ..Options::default()
    };
    let graph = json!({"task_graph": {"tasks": [
        {"id": "A", "agent_id": "coder", "message": "one"},
        {"id": "B", "agent_id": "b", "message": "two"},
    ]}});
    let script = [calls("dispatch", &graph), END];
    let bus = place.connect().await;
    let world = World::start(bus, script, options, agents(), Vec::new()).await;
    give(&world, "two", [END]);
    let chunks = world.run(&question("q", false)).await;
    same(&world, &chunks, [307, 33]).await;
}

tg_testkit::on_both_buses!(
    a_trace_adds_up_with_a_router_and_a_tool_that_asks,
    a_trace_adds_up_with_tools_side_by_side,
    a_trace_adds_up_over_a_plan,
    a_trace_adds_up_over_subagents,
    a_trace_adds_up_over_a_program,
);
