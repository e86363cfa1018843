//! Runs that give work to other agents.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tg_provenance::{Session, Stored, Texts};
use tg_schemas::msg::AgentResponse;
use tg_schemas::vocabulary::tg;
use tg_schemas::{Error, ErrorCode, Term, Triple};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use super::repeats::{RUN, continued, decision, died, of, run};
use super::supervised::give;
use super::world::{Say, World, question, rows};
use crate::engine::decision::Taken;
use crate::options::Options;
use crate::sessions::{InMemory, SessionId, Sessions, Turn};

const ASK_A: &str =
    "Thought: ask\nAction: delegate\nArgs: {\"agent_id\": \"a\", \"message\": \"a?\"}\n";

/// Agents `a`, which may ask `b` alone, and `b`, which may ask all.
pub(super) fn agents() -> Config {
    let config = rows();
    let tool = |kind: &str| json!({"name": kind, "type": kind, "description": "Asks."}).to_string();
    config.put("tool", "delegate", &tool("delegate"));
    config.put("tool", "dispatch", &tool("dispatch"));
    let agent = |id: &str, row: Value| config.put("agent-definition", id, &row.to_string());
    agent(
        "a",
        json!({"description": "Adds.", "framing": "You are A.", "agents": ["b"],
               "capabilities": [{"name": "sums", "tags": ["numbers"], "strength": 0.5}]}),
    );
    agent("b", json!({"name": "Bee"}));
    config
}

pub(super) async fn world(place: &Place, script: impl IntoIterator<Item = Say>) -> World {
    World::among(place, script, agents(), Vec::new()).await
}

/// What the tools of the run itself returned.
pub(super) fn observed(chunks: &[AgentResponse]) -> Vec<String> {
    let root = chunks[0].explain_id.clone().expect("the session's entry");
    let own = chunks
        .iter()
        .filter(|chunk| chunk.message_type == "observation" && chunk.message_id.starts_with(&root));
    own.map(|chunk| chunk.content.clone()).collect()
}

async fn another_agent_does_it_and_its_trace_is_part_of_the_run(place: Place) {
    let script = [Say::Text(ASK_A), Say::Text("Final Answer: from A")];
    let world = world(&place, script).await;
    give(&world, "a?", [Say::Text("Thought: hm\nFinal Answer: A")]);
    let chunks = world.run(&question("q", true)).await;
    assert_eq!(observed(&chunks), ["A"]);
    let last = chunks.last().unwrap();
    assert!(last.end_of_dialog && last.error.is_none());
    assert_eq!((last.in_token, last.out_token), (Some(300), Some(30)));
    let asked = world.asked.lock().clone();
    let tools = asked[0]["tools"].to_string();
    assert!(
        tools.contains("- a: Adds. Good at: sums [numbers] (0.5)"),
        "{tools}"
    );
    let tools = asked[1]["tools"].to_string();
    assert!(
        !tools.contains("- a:") && tools.contains("- b: Bee"),
        "{tools}"
    );
    assert_eq!(asked[1]["context"], "You are A.");
    let (root, stored) = world.told(&chunks).await;
    let texts = world.texts(6).await;
    let chained: Stored = stored.iter().cloned().collect();
    let whole = chained.verify(&root, &Texts::Known(&texts), None);
    let whole = whole.expect("it holds").expect("there is one");
    // Session, choice, thought, finding, observation, end; session, pattern, thought, end.
    assert_eq!(whole.entities, 10);
    assert_eq!(
        chained.roots(),
        std::slice::from_ref(&root),
        "it is no trace of its own"
    );
    let id = Session::new(root.rsplit(':').next().unwrap());
    let from = |entity: &str| {
        let of = stored.iter().filter(|triple| {
            triple.s == Some(Term::iri(entity))
                && triple.p == Some(Term::iri("http://www.w3.org/ns/prov#wasDerivedFrom"))
        });
        of.filter_map(|triple| triple.o.clone())
            .collect::<BTreeSet<_>>()
    };
    assert!(from(&id.finding(0)).contains(&Term::iri(id.iteration(1))));
}

/// A reply that calls a tool.
pub(super) fn calls(tool: &str, arguments: &Value) -> Say {
    leaked(format!("Thought: ask\nAction: {tool}\nArgs: {arguments}\n"))
}

pub(super) fn leaked(text: String) -> Say {
    Say::Text(Box::leak(text.into_boxed_str()))
}

fn delegates(agent: &str, message: &str) -> Say {
    calls("delegate", &json!({"agent_id": agent, "message": message}))
}

/// Line 113: each of a chain gives its work on, and the sixth is refused.
async fn line_113_a_chain_ends_at_its_depth(place: Place) {
    let world = world(
        &place,
        [delegates("b", "1?"), Say::Text("Final Answer: end")],
    )
    .await;
    for (at, next) in (1..=5).zip(2..) {
        let says = [
            delegates("b", &format!("{next}?")),
            leaked(format!("Final Answer: {at}")),
        ];
        give(&world, &format!("{at}?"), says);
    }
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(observed(&chunks), ["1"]);
    assert_eq!(world.calls(), 12);
    let told = world.asked.lock()[6]["history"][0]["observation"].clone();
    assert_eq!(told, "error: delegation depth limit (5) reached");
    assert_eq!(chunks.last().unwrap().in_token, Some(1200));
}

async fn a_delegate_at_its_limit_gives_what_it_has(place: Place) {
    let limits = Options {
        max_iterations: 2,
        ..Options::default()
    };
    let script = [delegates("a", "a?"), Say::Text("Final Answer: done")];
    let world = World::start(place.connect().await, script, limits, agents(), Vec::new()).await;
    let add = |what: &str| calls("calculator", &json!({"expression": what}));
    give(&world, "a?", [add("2+1"), add("2+2")]);
    let chunks = world.run(&question("q", false)).await;
    let told = observed(&chunks);
    let why = "[subagent stopped] Too many agent iterations";
    assert!(
        told[0].starts_with(why) && told[0].ends_with('4'),
        "{told:?}"
    );
    assert_eq!(chunks.last().unwrap().content, "done");
    // The conclusion of the delegate is an answer, with a link to its document.
    let limit = Term::literal("max-iterations");
    let of = |all: &BTreeSet<Triple>| -> Option<Vec<Term>> {
        let end = all.iter().find(|triple| triple.o == Some(limit.clone()))?;
        let about = all.iter().filter(|triple| triple.s == end.s);
        Some(about.filter_map(|triple| triple.o.clone()).collect())
    };
    let stored = world.trace(|all| of(all).is_some()).await;
    let about = of(&stored).unwrap();
    assert!(about.contains(&Term::iri(tg::ANSWER)), "{about:?}");
    assert!(!about.contains(&Term::iri(tg::ERROR)), "{about:?}");
    let document = |term: &Term| matches!(term, Term::Iri(iri) if iri.ends_with("/answer"));
    assert!(about.iter().any(document), "{about:?}");
}

/// Lines 93 and 117: what was stopped says so, and a long result is cut.
async fn line_093_a_result_says_that_it_was_stopped_or_cut(place: Place) {
    let config = agents();
    let loops =
        json!({"warningThreshold": 2, "criticalThreshold": 3, "globalCircuitBreakerThreshold": 4});
    config.put("agent", "loop_detection", &loops.to_string());
    let script = [
        delegates("a", "a?"),
        delegates("b", "b?"),
        Say::Text("Final Answer: done"),
    ];
    let world = World::among(&place, script, config, Vec::new()).await;
    let again = || calls("calculator", &json!({"expression": "2+2"}));
    give(&world, "a?", [again(), again(), again(), again()]);
    give(
        &world,
        "b?",
        [leaked(format!("Final Answer: {}", "x".repeat(20_000)))],
    );
    let chunks = world.run(&question("q", false)).await;
    let told = observed(&chunks);
    assert!(
        told[0].starts_with("[subagent stopped] Stopped by loop detection"),
        "{told:?}"
    );
    let expected = format!(
        "{}\n[cut: 16384 of 20000 characters shown]",
        "x".repeat(16_384)
    );
    assert_eq!(told[1], expected);
    assert!(!chunks.last().unwrap().stopped);
}

/// Line 92: an agent that is come back to goes on counting its calls.
async fn line_092_a_persistent_agent_goes_on_with_its_window(place: Place) {
    let config = agents();
    let loops =
        json!({"warningThreshold": 2, "criticalThreshold": 3, "globalCircuitBreakerThreshold": 4});
    config.put("agent", "loop_detection", &loops.to_string());
    let asks = |message: &str| {
        let call = json!({"agent_id": "b", "message": message, "mode": "persistent"});
        calls("delegate", &call)
    };
    let script = [asks("1?"), asks("2?"), Say::Text("Final Answer: done")];
    let world = World::among(&place, script, config, Vec::new()).await;
    let again = || calls("calculator", &json!({"expression": "2+2"}));
    give(
        &world,
        "1?",
        [again(), again(), Say::Text("Final Answer: not yet")],
    );
    give(&world, "2?", [again(), Say::Text("Final Answer: at last")]);
    let chunks = world.run(&question("q", false)).await;
    let told = observed(&chunks);
    assert_eq!(told[0], "not yet");
    assert!(
        told[1].starts_with("[subagent stopped] Stopped by loop detection"),
        "{told:?}"
    );
    assert_eq!(world.tools.asked.lock().len(), 2, "the third is not made");
}

/// End users of one application have one key, and a conversation each: what one of them said in a session that its model names
/// nobody else is told, whatever they name.
async fn a_session_that_is_named_is_of_its_conversation_alone(place: Place) {
    let asks = |message: &str| {
        let call = json!({"agent_id": "b", "message": message, "session_id": "main"});
        calls("delegate", &call)
    };
    let done = || Say::Text("Final Answer: done");
    let script = [asks("1?"), done(), asks("2?"), done(), asks("3?"), done()];
    let world = world(&place, script).await;
    for (message, answer) in [("1?", "one"), ("2?", "two"), ("3?", "three")] {
        let text: &str = Box::leak(format!("Final Answer: {answer}").into_boxed_str());
        give(&world, message, [Say::Text(text)]);
    }
    let context = async |conversation: &str, message: &str| {
        let asked = tg_schemas::msg::AgentRequest {
            conversation_id: conversation.into(),
            ..question("q", false)
        };
        world.run(&asked).await;
        let asked = world.asked.lock().clone();
        let mut own = asked.into_iter();
        let own = own.find(|terms| terms["question"] == message);
        own.expect("it was asked")["context"].clone()
    };
    assert_eq!(context("of ann", "1?").await, Value::Null);
    assert_eq!(context("of bob", "2?").await, Value::Null);
    let told = "Earlier in this session:\nAsked: 1?\nYou answered: one";
    assert_eq!(context("of ann", "3?").await, told);
}

/// A step of a plan gives work on as well.
async fn a_step_of_a_plan_asks_another_agent(place: Place) {
    let script = [
        Say::Text(r#"[{"goal": "find"}]"#),
        Say::Text(r#"{"tool": "delegate", "arguments": {"agent_id": "b", "message": "b?"}}"#),
        Say::Text("put together"),
    ];
    let world = world(&place, script).await;
    give(&world, "b?", [Say::Text("Final Answer: B")]);
    let asked = tg_schemas::msg::AgentRequest {
        pattern: "plan-then-execute".into(),
        ..question("q", true)
    };
    let chunks = world.run(&asked).await;
    let last = chunks.last().unwrap();
    assert!(last.end_of_dialog && last.error.is_none(), "{last:?}");
    let steps = world.asked.lock().last().unwrap()["steps"].clone();
    assert_eq!(steps[0]["result"], "B");
    let (root, stored) = world.told(&chunks).await;
    let chained: Stored = stored.into_iter().collect();
    let whole = chained
        .verify(&root, &Texts::Unknown, None)
        .expect("it holds");
    // Session, plan, finding, step, end; session, pattern, end.
    assert_eq!(whole.expect("there is one").entities, 8);
    assert_eq!(chained.roots(), std::slice::from_ref(&root));
}

/// An agent has the tools of its own groups, and its caller has none of them.
async fn an_agent_uses_the_tools_of_its_own_groups(place: Place) {
    let config = agents();
    config.put(
        "tool",
        "far",
        r#"{"name": "far", "type": "text-completion", "description": "Far.", "group": ["far"]}"#,
    );
    config.put("agent-definition", "f", r#"{"group": ["far"]}"#);
    let script = [delegates("f", "f?"), Say::Text("Final Answer: done")];
    let world = World::among(&place, script, config, Vec::new()).await;
    give(&world, "f?", [Say::Text("Final Answer: F")]);
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(observed(&chunks), ["F"]);
    let asked = world.asked.lock().clone();
    let has = |at: usize| asked[at]["tools"].to_string().contains("Far.");
    assert_eq!([has(0), has(1), has(2)], [false, true, false]);
}

/// Lines 114 and 111, and failures: what went wrong is told, and the run goes on.
async fn a_call_that_cannot_be_made_is_told(place: Place) {
    let script = [
        delegates("z", "m"),
        calls("delegate", &json!({"message": "sing"})),
        calls("delegate", &json!({"message": "numbers: a sum"})),
        delegates("b", "b?"),
        Say::Text("Final Answer: done"),
    ];
    let world = world(&place, script).await;
    give(&world, "numbers: a sum", [Say::Text("Final Answer: 3")]);
    give(
        &world,
        "b?",
        [Say::Fail(Error::new(ErrorCode::Provider, "away"))],
    );
    let chunks = world.run(&question("q", false)).await;
    let told = observed(&chunks);
    assert_eq!(
        told[0],
        "error: agent_id: there is no agent 'z'. Agents: a, b"
    );
    assert_eq!(
        told[1],
        "error: agent_id: no agent fits; name one by agent_id. Agents: a, b"
    );
    assert_eq!(told[2], "3");
    assert_eq!(told[3], "error: delegate b failed: away");
    assert_eq!(chunks.last().unwrap().content, "done");
}

/// Line 130: whoever takes a step up again adds no second turn to the session of the agent that it asked.
async fn line_130_a_step_that_is_taken_again_adds_no_second_turn(place: Place) {
    for kept_before in [false, true] {
        let sessions = Arc::new(InMemory::default());
        let script = [Say::Text("Final Answer: done")];
        let place = place.another().await;
        let world = World::with_sessions(&place, script, agents(), sessions.clone()).await;
        give(&world, "b?", [Say::Text("Final Answer: B")]);
        let asks = json!({"agent_id": "b", "message": "b?", "mode": "persistent"});
        let asks = Taken::Action {
            name: "delegate".into(),
            arguments: asks.as_object().unwrap().clone(),
        };
        let decided = decision(asks);
        world
            .ledger
            .decide(&of(RUN), 1, &decided, &[], 1)
            .await
            .unwrap();
        let session = SessionId {
            workspace: "default".into(),
            user: String::new(),
            agent: "b".into(),
            name: format!("subagent:b:persistent:{RUN}"),
        };
        let turn = Turn {
            id: format!("{RUN}/1"),
            asked: "b?".into(),
            answered: "B".into(),
            ..Turn::default()
        };
        if kept_before {
            // Whoever died had kept the turn, and not what came of the call.
            sessions.add(&session, turn.clone()).await.unwrap();
        }
        let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
        assert_eq!(chunks.last().unwrap().content, "done");
        let turns = sessions.turns(&session).await.unwrap();
        let turns: Vec<_> = turns.iter().map(|one| (&one.id, &one.answered)).collect();
        assert_eq!(turns, [(&turn.id, &turn.answered)], "{kept_before}");
    }
}

/// C.9: the model that a call names, else the agent's own, else that of the flow; none that the agent does not allow.
async fn a_call_names_one_of_the_models_of_an_agent(place: Place) {
    let config = agents();
    let row = json!({"name": "Cee", "model": "m1", "model_choices": ["m2"]});
    config.put("agent-definition", "c", &row.to_string());
    let asks = |agent: &str, message: &str, model: &str| {
        let call = json!({"agent_id": agent, "message": message, "model": model});
        calls("delegate", &call)
    };
    let script = [
        asks("c", "1?", ""),
        asks("c", "2?", "m2"),
        asks("c", "3?", "m3"),
        asks("b", "4?", ""),
        Say::Text("Final Answer: done"),
    ];
    let world = World::among(&place, script, config, Vec::new()).await;
    for goal in ["1?", "2?", "4?"] {
        give(&world, goal, [Say::Text("Final Answer: it")]);
    }
    let chunks = world.run(&question("q", false)).await;
    let refused = "error: model: must be one of: m2";
    assert_eq!(observed(&chunks), ["it", "it", refused, "it"]);
    let asked = world.model.asked.lock();
    let models = asked.iter().map(|one| one.settings.as_ref());
    let models: Vec<&str> = models
        .map(|settings| settings.map_or("", |one| one.model.as_str()))
        .collect();
    assert_eq!(models, ["", "m1", "", "m2", "", "", "", ""]);
}

tg_testkit::on_both_buses!(
    a_call_names_one_of_the_models_of_an_agent,
    line_092_a_persistent_agent_goes_on_with_its_window,
    line_130_a_step_that_is_taken_again_adds_no_second_turn,
    another_agent_does_it_and_its_trace_is_part_of_the_run,
    a_call_that_cannot_be_made_is_told,
    line_113_a_chain_ends_at_its_depth,
    line_093_a_result_says_that_it_was_stopped_or_cut,
    a_delegate_at_its_limit_gives_what_it_has,
    a_step_of_a_plan_asks_another_agent,
    a_session_that_is_named_is_of_its_conversation_alone,
    an_agent_uses_the_tools_of_its_own_groups,
);
