//! Runs that have several agents do what depends on each other.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tg_provenance::{Session, Stored, Texts};
use tg_schemas::msg::{AgentResponse, SessionNotice};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::place::Place;
use tokio::sync::Barrier;

use super::delegated::{calls, observed, world};
use super::repeats::{RUN, continued, decision, died, is_whole, of, run};
use super::supervised::give;
use super::tasks::{announcements, heard, until};
use super::world::{SOON, Say, World, question};
use crate::engine::decision::{Finding, Observation, Taken};
use crate::options::Options;
use crate::store::{Asked, Began, IsOver, TaskStatus, Told};

const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}\n";

fn task(id: &str, message: &str, after: &[&str]) -> Value {
    json!({"id": id, "agent_id": "b", "message": message, "depends_on": after})
}

fn dispatches(tasks: &Value) -> Say {
    calls("dispatch", &json!({"task_graph": {"tasks": tasks}}))
}

/// The tasks of a result.
fn results(told: &str) -> Value {
    let line = told.lines().nth(1).expect("a line of JSON");
    let all: Value = serde_json::from_str(line).expect("JSON");
    all["tasks"].clone()
}

fn statuses(told: &str) -> Vec<String> {
    let tasks = results(told);
    let tasks = tasks.as_array().expect("a list").iter();
    tasks
        .map(|task| task["status"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// How far the graph was, as it was told.
fn progress(chunks: &[AgentResponse]) -> Vec<String> {
    let of = chunks
        .iter()
        .filter(|chunk| chunk.message_id.contains("/progress/"));
    of.map(|chunk| chunk.content.clone()).collect()
}

/// Most tasks that went on at the same time: each begins with the entry of its session, and ends with a finding.
fn at_once(chunks: &[AgentResponse]) -> usize {
    let ids = chunks
        .iter()
        .filter_map(|chunk| chunk.explain_id.as_deref());
    let (mut now, mut most) = (0_usize, 0);
    for id in ids.skip(1) {
        match id.contains('/') {
            false => now += 1,
            true if id.contains("/finding/") => now -= 1,
            true => {}
        }
        most = most.max(now);
    }
    most
}

/// Line 119.
async fn line_119_two_go_side_by_side_and_the_third_after_both(place: Place) {
    let tasks = json!([
        task("A", "a?", &[]),
        task("B", "b?", &[]),
        task("C", "of {{A.output}} and {{B.output}}", &["A", "B"]),
    ]);
    let world = world(&place, [dispatches(&tasks), Say::Text("Final Answer: all")]).await;
    let both = Arc::new(Barrier::new(2));
    for (goal, end) in [("a?", "Final Answer: x"), ("b?", "Final Answer: y")] {
        let adds = Say::Meets(both.clone(), ADD);
        give(&world, goal, [adds, Say::Slowly(end)]);
    }
    give(&world, "of x and y", [Say::Text("Final Answer: z")]);
    let chunks = world.run(&question("q", true)).await;
    let told = observed(&chunks).remove(0);
    assert_eq!(statuses(&told), ["success"; 3]);
    assert_eq!(results(&told)[2]["output"], "z");
    let asked = world.asked.lock().clone();
    let asked: Vec<&str> = asked
        .iter()
        .filter_map(|terms| terms["question"].as_str())
        .collect();
    let both: BTreeSet<&str> = ["a?", "b?"].into();
    let first: BTreeSet<&str> = asked[1..3].iter().copied().collect();
    assert_eq!(first, both, "both are asked before one goes on: {asked:?}");
    assert_eq!(asked[5..], ["of x and y", "q"]);
    let said = progress(&chunks);
    assert_eq!(said[0], "Dispatching 3 tasks: A (b), B (b), C (b)");
    assert_eq!(said[3], "[3/3] C (b): success");
    assert_eq!(said.len(), 4);
    let (root, stored) = world.told(&chunks).await;
    let chained: Stored = stored.into_iter().collect();
    chained
        .verify(&root, &Texts::Unknown, None)
        .expect("it holds")
        .expect("there is one");
    assert_eq!(chained.roots(), std::slice::from_ref(&root));
}

/// Line 120, and the depth of line 113.
async fn line_120_a_graph_that_cannot_be_done_starts_nothing(place: Place) {
    let a = || task("A", "m", &[]);
    let script = [
        dispatches(&json!([])),
        dispatches(&json!([a(), a()])),
        dispatches(&json!([task("A", "m", &["A"])])),
        dispatches(&json!([task("A", "m", &["Z"])])),
        dispatches(&json!([a(), {"id": "B", "agent_id": "z", "message": "m"}])),
        Say::Text("Final Answer: none"),
    ];
    let world = world(&place, script).await;
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(
        observed(&chunks),
        [
            "error: task_graph: has no tasks",
            "error: task 'A' is there twice",
            "error: depends_on: the tasks go in a circle: A",
            "error: task 'A' depends on 'Z', which there is not",
            "error: task 'B': agent_id: there is no agent 'z'. Agents: a, b",
        ]
    );
    assert_eq!(world.calls(), 6);
    assert_eq!(world.ledger.findings(RUN).await.unwrap(), []);
}

/// Line 121.
async fn line_121_a_failure_that_blocks_ends_all_and_another_none(place: Place) {
    let tasks = |blocking: bool| {
        let mut first = task("A", "a?", &[]);
        first["blocking"] = blocking.into();
        json!([
            first,
            task("B", "b?", &[]),
            task("C", "use {{A.output}}", &["A"])
        ])
    };
    let script = [
        dispatches(&tasks(true)),
        dispatches(&tasks(false)),
        Say::Text("Final Answer: done"),
    ];
    let world = world(&place, script).await;
    let away = || Say::Fail(Error::new(ErrorCode::Provider, "away"));
    give(&world, "a?", [away(), away()]);
    give(
        &world,
        "b?",
        [Say::Hang("Thought: lo"), Say::Text("Final Answer: b")],
    );
    give(&world, "use {{A.output}}", [Say::Text("Final Answer: c")]);
    let hanging = world.model.cancelled.notified();
    let chunks = world.run(&question("q", false)).await;
    tokio::time::timeout(SOON, hanging)
        .await
        .expect("what was under way is cancelled");
    let told = observed(&chunks);
    assert_eq!(statuses(&told[0]), ["failed", "cancelled", "cancelled"]);
    assert!(
        told[0].contains("CANCELLED: cancelled: it depends on 'A', which failed"),
        "{told:?}"
    );
    assert_eq!(statuses(&told[1]), ["failed", "success", "success"]);
    assert_eq!(results(&told[1])[0]["error"], "away");
    assert_eq!(chunks.last().unwrap().content, "done");
}

/// Line 122.
async fn line_122_a_task_that_takes_too_long_is_given_up(place: Place) {
    let mut hangs = task("A", "a?", &[]);
    hangs["timeout_seconds"] = 1.into();
    let tasks = json!([hangs, task("B", "b?", &["A"])]);
    let world = world(
        &place,
        [dispatches(&tasks), Say::Text("Final Answer: done")],
    )
    .await;
    give(&world, "a?", [Say::Hang("Thought: lo")]);
    give(&world, "b?", [Say::Text("Final Answer: b")]);
    let chunks = world.run(&question("q", false)).await;
    let told = observed(&chunks).remove(0);
    assert_eq!(statuses(&told), ["timeout", "success"]);
    assert_eq!(results(&told)[0]["error"], "timeout after 1s");
}

/// Line 123.
async fn line_123_no_more_go_on_at_once_than_may(place: Place) {
    let tasks: Vec<Value> = (0..12)
        .map(|at| task(&format!("t{at}"), &format!("{at}?"), &[]))
        .collect();
    let config = super::delegated::agents();
    config.put(
        "tool",
        "dispatch",
        &json!({"name": "dispatch", "type": "dispatch", "max-concurrent": 3}).to_string(),
    );
    let script = [dispatches(&tasks.into()), Say::Text("Final Answer: done")];
    let world = World::among(&place, script, config, Vec::new()).await;
    let three = Arc::new(Barrier::new(3));
    for at in 0..12 {
        let says = Say::Meets(three.clone(), "Final Answer: x");
        give(&world, &format!("{at}?"), [says]);
    }
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(statuses(&observed(&chunks)[0]), ["success"; 12]);
    assert_eq!(at_once(&chunks), 3);
}

/// Line 123: they wait for slots of their workspace, of which there are five, and not for each other.
async fn line_123_five_graphs_at_once_all_end(place: Place) {
    let world = world(&place, []).await;
    for at in 0..5 {
        let tasks: Vec<Value> = (0..4)
            .map(|task| super::dispatched::task(&format!("t{task}"), "t?", &[]))
            .collect();
        let says = [dispatches(&tasks.into()), Say::Text("Final Answer: done")];
        give(&world, &format!("q{at}"), says);
    }
    give(
        &world,
        "t?",
        (0..20).map(|_| Say::Slowly("Final Answer: x")),
    );
    let questions = ["q0", "q1", "q2", "q3", "q4"].map(|text| question(text, false));
    let runs =
        futures::future::join_all(questions.iter().map(|question| world.run(question))).await;
    for chunks in runs {
        assert_eq!(statuses(&observed(&chunks)[0]), ["success"; 4]);
        assert_eq!(chunks.last().unwrap().content, "done");
    }
}

/// One task was done, another had used its tool, the third had not begun.
async fn a_graph_taken_up_goes_on_with_what_is_not_done(place: Place) {
    let world = world(&place, [Say::Text("Final Answer: all")]).await;
    give(&world, "b?", [Say::Text("Final Answer: y")]);
    give(&world, "of x and y", [Say::Text("Final Answer: z")]);
    let tasks = json!([
        task("A", "a?", &[]),
        task("B", "b?", &[]),
        task("C", "of {{A.output}} and {{B.output}}", &["A", "B"]),
    ]);
    let decided = decision(Taken::Action {
        name: "dispatch".into(),
        arguments: json!({"task_graph": {"tasks": tasks}})
            .as_object()
            .unwrap()
            .clone(),
    });
    world
        .ledger
        .decide(&of(RUN), 1, &decided, &[], 1)
        .await
        .unwrap();
    let finding = Finding {
        subagent: 256,
        goal: "a?".into(),
        run: "a0000000-0000-4000-8000-000000000000".into(),
        text: "x".into(),
        ..Finding::default()
    };
    world.ledger.found(&of(RUN), &finding, 1).await.unwrap();
    let asked = Asked {
        workspace: "default".into(),
        is_over: IsOver::when(|| false),
        key: format!("subagent/{RUN}/257"),
        text: "b?".into(),
        asker: None,
    };
    let begun = Began {
        run: "b0000000-0000-4000-8000-000000000000".into(),
        started_at: tg_mesh::clock::rfc3339(),
        route: None,
    };
    let begun = world
        .ledger
        .begin(asked, begun, 1)
        .await
        .unwrap()
        .unwrap()
        .run;
    let tool = decision(Taken::Action {
        name: "remote".into(),
        arguments: json!({"x": 1}).as_object().unwrap().clone(),
    });
    world
        .ledger
        .decide(&of(&begun), 1, &tool, &[], 1)
        .await
        .unwrap();
    let seen = Observation {
        text: "seen before".into(),
        ..Observation::default()
    };
    let key = of(&begun);
    let kept = world
        .ledger
        .observe(&key, 1, &seen, Told::default(), &[], 1);
    kept.await.unwrap();
    let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
    let told = observed(&chunks).remove(0);
    assert_eq!(statuses(&told), ["success"; 3]);
    assert_eq!(
        world.calls(),
        3,
        "a step of each task that was not done, and the answer"
    );
    assert!(world.tools.asked.lock().is_empty(), "no tool twice");
    let id = Session::new(RUN);
    let found = chunks.iter().filter_map(|chunk| chunk.explain_id.clone());
    let found: Vec<String> = found.filter(|entry| entry.contains("/finding/")).collect();
    assert_eq!(found, [id.finding(0), id.finding(1), id.finding(2)]);
    is_whole(&world).await;
}

/// A world whose tool `dispatch` answers at once.
async fn at_once_world(place: &Place, script: Vec<Say>) -> World {
    at_once_world_with(place, script, Options::default()).await
}

async fn at_once_world_with(place: &Place, script: Vec<Say>, options: Options) -> World {
    let config = super::delegated::agents();
    let tool =
        json!({"name": "dispatch", "type": "dispatch", "async": true, "progress-updates": true});
    config.put("tool", "dispatch", &tool.to_string());
    World::start(place.connect().await, script, options, config, Vec::new()).await
}

/// C.10: the session hears how far the tasks are, and what came of all of them.
async fn a_graph_that_is_not_waited_for_is_announced(place: Place) {
    let tasks = json!([task("A", "a?", &[]), task("B", "of {{A.output}}", &["A"])]);
    let script = vec![
        dispatches(&json!([])),
        dispatches(&tasks),
        Say::Text("Final Answer: others do it"),
    ];
    let world = at_once_world(&place, script).await;
    let mut tap = announcements(&world).await;
    give(&world, "a?", [Say::Slowly("Final Answer: x")]);
    give(&world, "of x", [Say::Slowly("Final Answer: z")]);
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(chunks.last().unwrap().content, "others do it");
    let told = observed(&chunks);
    assert_eq!(told[0], "error: task_graph: has no tasks");
    let begun = "Dispatching 2 tasks: A (b), B (b)";
    let given = format!("{begun}. They work on it as task ");
    assert!(told[1].starts_with(&given), "{told:?}");
    let mut notices: Vec<SessionNotice> = Vec::new();
    while !matches!(notices.last(), Some(last) if last.kind == "announce") {
        notices.push(heard(&mut tap).await);
    }
    let reports = notices.iter().filter(|notice| notice.kind == "progress");
    let reports: Vec<&str> = reports.map(|notice| notice.text.as_str()).collect();
    assert_eq!(reports[..2], [begun, "[1/2] A (b): success"]);
    let last = &notices[notices.len() - 1];
    let result = last.text.strip_prefix("**dispatch**\n\n");
    let result = result.expect("who did it");
    assert_eq!(statuses(result), ["success"; 2]);
    assert_eq!(results(result)[1]["output"], "z");
    let root = chunks[0].explain_id.clone().unwrap();
    assert!(root.ends_with(&last.session_id), "{root} {last:?}");
    let all = until(&world, 1, |task| task.status == TaskStatus::Success).await;
    let [row] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(
        (row.kind.as_str(), row.agent.as_str()),
        ("dispatch", "dispatch")
    );
    assert!(row.session.starts_with("orchestrator:"), "{row:?}");
}

/// As of one task: it is announced and listed as failed, with the reason.
async fn a_graph_of_which_no_task_succeeds_has_failed(place: Place) {
    let tasks = json!([task("A", "a?", &[]), task("B", "b?", &["A"])]);
    let script = vec![dispatches(&tasks), Say::Text("Final Answer: others do it")];
    let world = at_once_world(&place, script).await;
    let mut tap = announcements(&world).await;
    for question in ["a?", "b?"] {
        let away = Error::new(ErrorCode::Provider, "away");
        give(&world, question, [Say::Fail(away)]);
    }
    world.run(&question("q", false)).await;
    let fault = "no task succeeded: A (failed): away; B (failed): away";
    let all = until(&world, 1, |task| task.status == TaskStatus::Failed).await;
    assert_eq!((all[0].error.as_str(), all[0].result.as_str()), (fault, ""));
    let mut notice = heard(&mut tap).await;
    while notice.kind != "announce" {
        notice = heard(&mut tap).await;
    }
    let announced = format!("**dispatch**\n\nThe task failed: {fault}");
    assert_eq!(notice.text, announced);
}

/// A graph ends when its time is over, also while other tasks have all places of the process.
async fn a_graph_that_gets_no_place_ends_with_its_time(place: Place) {
    let options = Options {
        task_seconds: 1,
        ..Options::default()
    };
    let tasks = json!([task("A", "a?", &[])]);
    let script = vec![dispatches(&tasks), Say::Text("Final Answer: others do it")];
    let all = u32::try_from(options.delegate_tasks).unwrap();
    let world = at_once_world_with(&place, script, options).await;
    let taken = world.agent.tasks.places.acquire_many(all).await.unwrap();
    world.run(&question("q", false)).await;
    let rows = until(&world, 1, |task| task.status == TaskStatus::Failed).await;
    let fault = "no task succeeded: A (failed): the deadline has passed";
    assert_eq!(rows[0].error, fault);
    drop(taken);
}

/// Line 118 of a graph: what is under way ends with it.
async fn a_graph_that_is_not_waited_for_is_cancelled(place: Place) {
    let tasks = json!([task("A", "a?", &[]), task("B", "b?", &["A"])]);
    let script = vec![dispatches(&tasks), Say::Text("Final Answer: others do it")];
    let world = at_once_world(&place, script).await;
    give(&world, "a?", [Say::Hang("")]);
    world.run(&question("q", false)).await;
    let hangs = tokio::time::timeout(SOON, world.model.hanging.notified());
    hangs.await.expect("the first task is under way");
    let all = until(&world, 1, |task| task.status == TaskStatus::Running).await;
    let (workspace, id) = (&all[0].workspace, &all[0].id);
    let cancelled = world.agent.tasks.cancel(&world.ledger, workspace, id);
    assert!(cancelled.await.unwrap());
    let ends = tokio::time::timeout(SOON, world.model.cancelled.notified());
    ends.await.expect("its model is asked no further");
    let all = until(&world, 1, |task| task.status == TaskStatus::Cancelled).await;
    assert_eq!(all.len(), 1);
}

tg_testkit::on_both_buses!(
    a_graph_that_is_not_waited_for_is_announced,
    a_graph_that_gets_no_place_ends_with_its_time,
    a_graph_of_which_no_task_succeeds_has_failed,
    a_graph_that_is_not_waited_for_is_cancelled,
    line_119_two_go_side_by_side_and_the_third_after_both,
    line_120_a_graph_that_cannot_be_done_starts_nothing,
    line_121_a_failure_that_blocks_ends_all_and_another_none,
    line_122_a_task_that_takes_too_long_is_given_up,
    line_123_no_more_go_on_at_once_than_may,
    line_123_five_graphs_at_once_all_end,
    a_graph_taken_up_goes_on_with_what_is_not_done,
);
