//! Recorded runs are run again from their records alone, and tell the same parts byte for byte.

use std::time::Duration;

use serde_json::json;
use tg_mesh::{Ask, Deadline, Host};
use tg_schemas::msg::{AgentRequest, AgentResponse, AgentRunsRequest, AgentRunsResponse};
use tg_schemas::processors::agent_manager::RUNS;
use tg_schemas::{Class, Error, ErrorCode, Topic};
use tg_testkit::place::Place;

use super::delegated::{self, calls, leaked};
use super::endings::ADD;
use super::planned::planned;
use super::supervised::{give, split};
use super::world::*;
use crate::options::Options;

/// Runs of any course that are replayed.
const COURSES: usize = 24;

fn recorded(question: AgentRequest) -> AgentRequest {
    AgentRequest {
        record: true,
        ..question
    }
}

pub(super) fn asks(id: &str, detach: bool) -> Ask {
    Ask {
        id: Some(id.into()),
        user_id: Some("ann".into()),
        detach,
        ..Ask::default()
    }
}

/// All that a run tells.
pub(super) async fn run(world: &World, question: AgentRequest, ask: Ask) -> Vec<AgentResponse> {
    let mut answer = world.ask_with(&recorded(question), ask);
    let mut parts = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        let Ok(part) = part else {
            // Who waits for it knows of its deadline, too.
            break;
        };
        parts.push(part);
    }
    parts
}

/// What an operation says of the parts of a run, as it is written, and the error that it ends with.
async fn told(
    mesh: &Host,
    operation: &str,
    (user, id): (&str, &str),
    from: usize,
) -> (Vec<String>, Option<Error>) {
    let topic = Topic::system(Class::Request, RUNS.name);
    let request = AgentRunsRequest {
        operation: operation.into(),
        user: user.into(),
        id: id.into(),
        from: from as i64,
        ..AgentRunsRequest::default()
    };
    let mut answer = mesh.ask::<_, AgentRunsResponse>(&topic, &request, Ask::default());
    let mut parts = Vec::new();
    while let Some(some) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        let some = match some {
            Ok(some) => some,
            Err(error) => return (parts, Some(error)),
        };
        if let Some(error) = some.error {
            return (parts, Some(error));
        }
        parts.extend(some.parts);
    }
    (parts, None)
}

/// A run tells the same when it is replayed; nobody is asked for that.
pub(super) async fn same_again(world: &World, id: &str, heard: &[AgentResponse]) {
    let asked = (world.calls(), world.tools.asked.lock().len());
    let shown = shown(heard);
    world.trace(|all| shown.is_subset(all)).await;
    let stored = world.store.count();
    let (then, error) = told(&world.mesh, "read-run", ("ann", id), 0).await;
    assert_eq!(error, None);
    let (again, error) = told(&world.mesh, "replay-run", ("ann", id), 0).await;
    assert_eq!(error, None, "{id}: {again:#?}");
    assert_eq!(again, then, "{id}");
    let read = again.iter().map(|part| serde_json::from_str(part).unwrap());
    let read: Vec<AgentResponse> = read.collect();
    assert_eq!(read, heard, "{id}");
    assert_eq!((world.calls(), world.tools.asked.lock().len()), asked);
    assert_eq!(world.store.count(), stored);
    let (rest, _) = told(&world.mesh, "replay-run", ("ann", id), 3).await;
    assert_eq!(rest, again[3.min(again.len())..]);
}

/// One of what a model may say next.
fn step(n: usize) -> Say {
    let broken = || Error::new(ErrorCode::Interrupted, "it broke off");
    match n % 8 {
        0 | 1 => Say::Text(ADD),
        2 => Say::Text("Thought: further\nAction: remote\nArgs: {\"x\": 4}"),
        3 => Say::Text("Thought: hm\nAction: calculator\nArgs: {\"expression\": \"1/0\"}"),
        4 => Say::Text("Action: nothing\nArgs: {}"),
        5 => Say::Text("I would rather not say"),
        6 => Say::Fail(broken()),
        _ => Say::Slowly(ADD),
    }
}

/// Of whatever course: tools that return and fail, that are not there, replies that cannot be read, calls that break off,
/// in pieces and whole, with and without an asker who may go.
async fn runs_of_any_course_are_told_again(place: Place) {
    let world = World::new(&place, []).await;
    let mut seed = 7_usize;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    };
    for n in 0..COURSES {
        let text = format!("q{n}");
        let mut says: Vec<Say> = (0..next(5)).map(|_| step(next(8))).collect();
        says.push(match next(4) {
            0 => Say::Fail(Error::new(ErrorCode::Provider, "away")),
            1 => Say::Text("Final Answer: at once"),
            _ => Say::Text("Thought: I know\nFinal Answer: It is:\n- 4\n"),
        });
        give(&world, &text, says);
        let (streaming, detach) = (next(2) == 0, next(2) == 0);
        let heard = run(&world, question(&text, streaming), asks(&text, detach)).await;
        same_again(&world, &text, &heard).await;
    }
}

async fn a_plan_is_told_again(place: Place, streaming: bool) {
    let plan = r#"[{"goal": "add", "tool_hint": "calculator", "depends_on": []},
        {"goal": "add more", "tool_hint": "", "depends_on": [0]}]"#;
    let add = r#"{"tool": "calculator", "arguments": {"expression": "2+2"}}"#;
    let divide = r#"{"tool": "calculator", "arguments": {"expression": "1/0"}}"#;
    let more = r#"{"tool": "remote", "arguments": {"x": 4}}"#;
    let script = [plan, add, divide, r#"["more"]"#, more, "It is:\n- 8"];
    let world = World::new(&place, script.map(Say::Text)).await;
    let heard = run(&world, planned("4+4?", streaming), asks("q", false)).await;
    assert_eq!(world.calls(), 6);
    same_again(&world, "q", &heard).await;
}

async fn a_plan_is_told_again_in_pieces(place: Place) {
    a_plan_is_told_again(place, true).await;
}

async fn a_plan_is_told_again_as_a_whole(place: Place) {
    a_plan_is_told_again(place, false).await;
}

async fn a_split_run_is_told_again(place: Place, streaming: bool) {
    let script = [
        Say::Text(r#"["a?", "b?", "c?", "d?"]"#),
        Say::Text("all of it"),
    ];
    let world = World::new(&place, script).await;
    give(
        &world,
        "a?",
        [Say::Slowly(ADD), Say::Text("Final Answer: A")],
    );
    give(
        &world,
        "b?",
        [Say::Text(ADD), Say::Slowly("Final Answer: B")],
    );
    let away = Error::new(ErrorCode::Provider, "away");
    give(&world, "c?", [Say::Text(ADD), Say::Fail(away)]);
    give(&world, "d?", [Say::Text("Thought: hm\nFinal Answer: D")]);
    let heard = run(&world, split("?", streaming), asks("q", false)).await;
    same_again(&world, "q", &heard).await;
}

async fn a_split_run_is_told_again_in_pieces(place: Place) {
    a_split_run_is_told_again(place, true).await;
}

async fn a_split_run_is_told_again_as_a_whole(place: Place) {
    a_split_run_is_told_again(place, false).await;
}

async fn work_of_other_agents_is_told_again(place: Place) {
    let graph = json!({"tasks": [
        {"id": "one", "agent_id": "a", "message": "a?"},
        {"id": "two", "agent_id": "b", "message": "b?"},
        {"id": "three", "agent_id": "b", "message": "c?", "depends_on": ["one"]},
    ]});
    let script = [
        calls("dispatch", &json!({"task_graph": graph})),
        calls("delegate", &json!({"agent_id": "a", "message": "deep?"})),
        Say::Text("Final Answer: from all"),
    ];
    let world = delegated::world(&place, script).await;
    give(
        &world,
        "a?",
        [Say::Slowly(ADD), Say::Text("Final Answer: A")],
    );
    give(&world, "b?", [Say::Text("Final Answer: B")]);
    give(&world, "c?", [Say::Text("Final Answer: C")]);
    let deeper = calls("delegate", &json!({"agent_id": "b", "message": "deeper?"}));
    give(&world, "deep?", [deeper, Say::Text("Final Answer: D")]);
    give(
        &world,
        "deeper?",
        [Say::Text(ADD), Say::Text("Final Answer: E")],
    );
    let heard = run(&world, question("q", true), asks("q", false)).await;
    assert!(heard.last().unwrap().error.is_none(), "{heard:#?}");
    same_again(&world, "q", &heard).await;
}

/// Ends that come from outside are where they were.
async fn a_late_run_ends_where_it_did(place: Place, detach: bool) {
    let words = "Thought: the quick brown fox jumps over the lazy dog and then it rests";
    let world = World::new(&place, [Say::Text(ADD), Say::Hang(words)]).await;
    let late = Ask {
        deadline: Some(Deadline::after(Duration::from_secs(3))),
        ..asks("late", detach)
    };
    run(&world, question("q", true), late).await;
    let (heard, error) = told(&world.mesh, "read-run", ("ann", "late"), 0).await;
    assert_eq!(error, None);
    let heard = heard.iter().map(|part| serde_json::from_str(part).unwrap());
    let heard: Vec<AgentResponse> = heard.collect();
    let code = heard.last().unwrap().error.as_ref().map(Error::code);
    assert_eq!(code, Some(ErrorCode::Timeout));
    same_again(&world, "late", &heard).await;
}

async fn a_run_that_its_asker_waited_for_ends_where_it_did(place: Place) {
    a_late_run_ends_where_it_did(place, false).await;
}

async fn a_run_that_went_on_alone_ends_where_it_did(place: Place) {
    a_late_run_ends_where_it_did(place, true).await;
}

/// The configuration that it went by is in the record.
async fn a_run_is_told_again_after_its_tools_have_changed(place: Place) {
    let script = [Say::Text(ADD), Say::Text("Final Answer: 4")];
    let world = World::new(&place, script).await;
    let heard = run(&world, question("q", true), asks("q", false)).await;
    let gone = [("tool-native", "calculator"), ("tool", "remote")];
    for (kind, key) in gone {
        world.config.apply(&world.mesh, kind, key, None).await;
    }
    let rules = json!("Answer in Latin.");
    let more = ("agent", "additional-context");
    world
        .config
        .apply(&world.mesh, more.0, more.1, Some(&rules))
        .await;
    same_again(&world, "q", &heard).await;
}

async fn who_may_not_read_a_run_may_not_replay_it(place: Place) {
    let script = [Say::Text("Final Answer: a"), Say::Text("Final Answer: b")];
    let world = World::new(&place, script).await;
    run(&world, question("q", false), asks("q", false)).await;
    let (parts, error) = told(&world.mesh, "replay-run", ("bob", "q"), 0).await;
    let error = error.unwrap();
    assert!(
        parts.is_empty() && error.message == "run not found",
        "{error}"
    );
    let (_, error) = told(&world.mesh, "replay-run", ("ann", "q"), 99).await;
    assert_eq!(error.unwrap().code(), ErrorCode::BadRequest);
    // One that nobody asked to record.
    let mut plain = world.ask_with(&question("q", false), asks("p", false));
    while plain.next().await.is_some() {}
    let (parts, error) = told(&world.mesh, "replay-run", ("ann", "p"), 0).await;
    let error = error.unwrap();
    assert_eq!((parts.len(), error.code()), (0, ErrorCode::NotFound));
    assert!(error.message.contains("--record"), "{error}");
}

async fn a_record_that_grows_too_large_is_not_replayed(place: Place) {
    let settings = Options {
        records_mb: 1,
        ..Options::default()
    };
    let large = format!("Final Answer: {}", "x".repeat(1 << 20));
    let world = World::with(&place, [leaked(large)], settings).await;
    run(&world, question("q", false), asks("q", false)).await;
    let (_, error) = told(&world.mesh, "replay-run", ("ann", "q"), 0).await;
    let error = error.unwrap();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert!(error.message.contains("grew over"), "{error}");
}

tg_testkit::on_both_buses!(
    runs_of_any_course_are_told_again,
    a_plan_is_told_again_in_pieces,
    a_plan_is_told_again_as_a_whole,
    a_split_run_is_told_again_in_pieces,
    a_split_run_is_told_again_as_a_whole,
    work_of_other_agents_is_told_again,
    a_run_that_its_asker_waited_for_ends_where_it_did,
    a_run_that_went_on_alone_ends_where_it_did,
    a_run_is_told_again_after_its_tools_have_changed,
    who_may_not_read_a_run_may_not_replay_it,
    a_record_that_grows_too_large_is_not_replayed,
);
