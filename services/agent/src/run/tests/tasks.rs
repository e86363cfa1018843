//! Work that is given to other agents and not waited for.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use tg_mesh::{Cx, Processor, Tap};
use tg_provenance::Session;
use tg_schemas::msg::{
    AgentRunsRequest, AgentRunsResponse, AgentTask, OperationResponse, SessionNotice,
};
use tg_schemas::processors::{agent_manager, sessions};
use tg_schemas::{Class, Error, Term, Topic, WorkspaceId};
use tg_testkit::config::Config;
use tg_testkit::fakes::Played;
use tg_testkit::place::Place;

use super::delegated::{agents, calls, leaked, observed};
use super::replayed;
use super::supervised::give;
use super::world::{SOON, Say, World, question};
use crate::options::Options;
use crate::run::Agent;
use crate::sessions::{InMemory, Notification, SessionId, Sessions, Turn};
use crate::store::{TaskRow, TaskStatus, TasksOf, Whose};

/// Agent `bee` does what it is given on its own.
fn rows() -> Config {
    let config = agents();
    config.put(
        "agent-definition",
        "bee",
        &json!({"name": "The Bee", "async": true}).to_string(),
    );
    config
}

async fn world(place: &Place, script: impl IntoIterator<Item = Say>) -> World {
    World::among(place, script, rows(), Vec::new()).await
}

fn give_task(message: &str) -> Say {
    calls("delegate", &json!({"agent_id": "bee", "message": message}))
}

fn acts(action: &str, task: &str, message: &str) -> Say {
    let call = json!({"action": action, "task_id": task, "message": message});
    calls("delegate", &call)
}

/// The id that was told of a task.
fn id(told: &str) -> String {
    let (_, rest) = told.split_once("task ").expect("a task");
    rest.chars().take_while(char::is_ascii_hexdigit).collect()
}

pub(super) async fn announcements(world: &World) -> Tap<SessionNotice> {
    let workspace = WorkspaceId::new("default").unwrap();
    let topic = Topic::workspace(Class::Notify, "session", &workspace);
    world.mesh.tap(&topic).await.unwrap()
}

pub(super) async fn heard(tap: &mut Tap<SessionNotice>) -> SessionNotice {
    let next = tokio::time::timeout(SOON, tap.next());
    next.await.expect("in time").expect("open").expect("read")
}

async fn tasks(world: &World) -> Vec<TaskRow> {
    let mut all = tasks_of(world, "").await;
    all.extend(tasks_of(world, "ann").await);
    all
}

async fn tasks_of(world: &World, user: &str) -> Vec<TaskRow> {
    let of = TasksOf::Whose(Whose::User(user.into()));
    let owner = &world.agent.tasks.owner;
    let tasks = world.ledger.tasks(&of, owner, ("", 100), 1);
    tasks.await.unwrap()
}

/// Tasks, once so many are as wanted.
pub(super) async fn until(
    world: &World,
    count: usize,
    wanted: impl Fn(&TaskRow) -> bool,
) -> Vec<TaskRow> {
    let there = async {
        loop {
            let all = tasks(world).await;
            if all.iter().filter(|task| wanted(task)).count() >= count {
                return all;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, there).await.expect("in time")
}

async fn listed(world: &World) -> Vec<AgentTask> {
    let ask = AgentRunsRequest {
        operation: "list-tasks".into(),
        ..AgentRunsRequest::default()
    };
    let topic = Topic::system(Class::Request, agent_manager::RUNS.name);
    let mut answer = world
        .mesh
        .ask::<_, AgentRunsResponse>(&topic, &ask, tg_mesh::Ask::default());
    let answer = tokio::time::timeout(SOON, answer.next()).await.unwrap();
    answer.expect("a part").expect("an answer").tasks
}

/// Line 116: the call answers at once, with the agent and 16 digits of the task; what comes of it is announced, as it is without a
/// main agent, and listed.
async fn line_116_a_task_is_announced(place: Place) {
    let script = [
        give_task("b?"),
        acts("status", "", ""),
        Say::Text("Final Answer: done"),
    ];
    let world = world(&place, script).await;
    let mut tap = announcements(&world).await;
    give(&world, "b?", [Say::Slowly("Final Answer: B")]);
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(chunks.last().unwrap().content, "done");
    let told = observed(&chunks);
    let task = id(&told[0]);
    assert!(
        told[0].starts_with("Agent bee works") && task.len() == 16,
        "{told:?}"
    );
    let status = format!("1 task(s):\n[{}] agent=bee, status=", &task[..8]);
    assert!(told[1].starts_with(&status), "{told:?}");
    assert!(told[1].ends_with(", message: \"b?\""), "{told:?}");
    let notice = heard(&mut tap).await;
    assert_eq!(notice.text, "**The Bee**\n\nB");
    assert_eq!(notice.kind, "announce");
    let root = chunks[0].explain_id.clone().unwrap();
    assert!(root.ends_with(&notice.session_id), "{root} {notice:?}");
    let all = listed(&world).await;
    let [one] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert!(one.id.len() == 24 && one.id.starts_with(&task));
    assert_eq!(
        (&*one.status, &*one.result, &*one.agent, &*one.kind),
        ("success", "B", "bee", "delegate")
    );
    assert!(one.started_ms >= one.created_ms && one.completed_ms >= one.started_ms);
}

/// C.9: what is announced stands in its session before anybody hears of it.
async fn what_is_announced_is_kept_by_the_sessions_first(place: Place) {
    let (heard, kept) = announced(&place, 1).await;
    assert_eq!(
        (&*heard.session_id, &*heard.text),
        ("talk", "**The Bee**\n\nB")
    );
    let asked = SessionNotice {
        notification: "The task of agent The Bee is completed. Its result:\n\nB".into(),
        ..heard
    };
    assert_eq!(kept, [asked]);
}

/// Only the sessions service has what is announced kept: another client names any conversation, also the session of another user.
async fn a_client_that_names_a_conversation_writes_into_no_session(place: Place) {
    let (heard, kept) = announced(&place, 0).await;
    assert_eq!(heard.session_id, "talk");
    assert!(kept.is_empty(), "{kept:?}");
}

/// What is announced of the task of a run with so many callers, and what the sessions service kept before.
async fn announced(place: &Place, callers: i64) -> (SessionNotice, Vec<SessionNotice>) {
    let service: Arc<Played<SessionNotice, OperationResponse>> = Played::new(|_: &Cx, _| {
        Ok(OperationResponse {
            last: true,
            ..OperationResponse::default()
        })
    });
    let keeps = Processor::new(sessions::PROCESSOR).serves(sessions::NOTICES, service.clone());
    let script = [give_task("b?"), Say::Text("Final Answer: done")];
    let world = World::among(place, script, rows(), vec![keeps]).await;
    let mut tap = announcements(&world).await;
    give(&world, "b?", [Say::Text("Final Answer: B")]);
    let asked = tg_schemas::msg::AgentRequest {
        conversation_id: "talk".into(),
        caller_depth: callers,
        ..question("q", false)
    };
    world.run(&asked).await;
    let notice = heard(&mut tap).await;
    let kept = service.asked.lock().clone();
    (notice, kept)
}

/// Line 113: work that is given as tasks is as deep as any other.
async fn line_113_a_chain_of_tasks_ends_at_its_depth(place: Place) {
    let world = world(&place, [give_task("1?"), Say::Text("Final Answer: end")]).await;
    for (at, next) in (1..=5).zip(2..) {
        let says = [
            give_task(&format!("{next}?")),
            leaked(format!("Final Answer: {at}")),
        ];
        give(&world, &format!("{at}?"), says);
    }
    world.run(&question("q", false)).await;
    let done = until(&world, 5, |task| task.status == TaskStatus::Success).await;
    assert_eq!(done.len(), 5, "the sixth was refused");
    let asked = world.asked.lock().clone();
    let told = asked.iter().rev().find_map(|terms| {
        let told = terms["history"][0]["observation"].as_str()?;
        told.starts_with("error").then(|| told.to_owned())
    });
    assert_eq!(told.unwrap(), "error: delegation depth limit (5) reached");
}

/// Line 115: a persistent session knows what was asked before, an ephemeral one does not; also as tasks.
async fn line_115_a_persistent_session_is_come_back_to(place: Place) {
    let asks = |agent: &str, message: &str, mode: &str| {
        let call = json!({"agent_id": agent, "message": message, "mode": mode});
        calls("delegate", &call)
    };
    let script = [
        asks("b", "1?", "persistent"),
        asks("b", "2?", "persistent"),
        asks("b", "3?", "ephemeral"),
        asks("bee", "4?", "ephemeral"),
        asks("bee", "5?", "ephemeral"),
        asks("bee", "6?", "persistent"),
        asks("bee", "7?", "persistent"),
        Say::Text("Final Answer: done"),
    ];
    let world = world(&place, script).await;
    for at in 1..=7 {
        let says = leaked(format!("Final Answer: answer {at}"));
        give(&world, &format!("{at}?"), [says]);
    }
    let asked = tg_schemas::msg::AgentRequest {
        conversation_id: "talk".into(),
        ..question("q", false)
    };
    world.run(&asked).await;
    let context = |question: &str| {
        let asked = world.asked.lock().clone();
        let own = asked
            .into_iter()
            .find(|terms| terms["question"] == question);
        own.unwrap()["context"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(context("1?"), "");
    assert_eq!(
        context("2?"),
        "Earlier in this session:\nAsked: 1?\nYou answered: answer 1"
    );
    assert_eq!(context("3?"), "");
    let done = until(&world, 4, |task| task.status == TaskStatus::Success).await;
    let of = |message: &str| {
        let own = done.iter().find(|task| task.message == message);
        own.unwrap().session.clone()
    };
    assert_ne!(of("4?"), of("5?"));
    assert_eq!(of("6?"), "subagent:bee:persistent:talk");
    assert_eq!(of("6?"), of("7?"));
}

/// Line 118: a task is cancelled and steered, and stays cancelled.
async fn line_118_a_task_is_cancelled_and_steered(place: Place) {
    let world = world(&place, [give_task("long"), Say::Text("Final Answer: 1")]).await;
    let mut tap = announcements(&world).await;
    give(&world, "long", [Say::Hang("")]);
    let conversation = |text: &str| tg_schemas::msg::AgentRequest {
        conversation_id: "talk".into(),
        ..question(text, false)
    };
    let chunks = world.run(&conversation("q1")).await;
    let task = id(&observed(&chunks)[0]);
    until(&world, 1, |task| task.status == TaskStatus::Running).await;
    give(
        &world,
        "q2",
        [
            acts("cancel", "", ""),
            acts("cancel", "0123456789", ""),
            acts("steer", &task, ""),
            acts("steer", &task, "short"),
            acts("cancel", &task[..8], ""),
            Say::Text("Final Answer: 2"),
        ],
    );
    give(&world, "short", [Say::Text("Final Answer: S")]);
    let chunks = world.run(&conversation("q2")).await;
    let told = observed(&chunks);
    assert_eq!(told[0], "error: task_id: is required");
    assert_eq!(told[1], "error: there is no task '0123456789'");
    assert_eq!(told[2], "error: message: is required");
    let steered = id(&told[3]);
    assert_ne!(steered, task);
    assert_eq!(told[4], format!("Task {task} of agent bee is cancelled."));
    assert_eq!(heard(&mut tap).await.text, "**The Bee**\n\nS");
    let all = until(&world, 1, |task| task.status == TaskStatus::Success).await;
    let of = |id: &str| all.iter().find(|task| task.id.starts_with(id)).unwrap();
    assert_eq!(of(&task).status, TaskStatus::Cancelled);
    assert_eq!(of(&task).error, "cancelled");
    assert_ne!(of(&task).session, of(&steered).session);
    // Of another conversation nobody sees them.
    give(
        &world,
        "q3",
        [
            acts("status", "", ""),
            acts("cancel", &steered, ""),
            Say::Text("Final Answer: 3"),
        ],
    );
    let told = observed(&world.run(&question("q3", false)).await);
    assert_eq!(told[0], "No tasks.");
    assert_eq!(told[1], format!("error: there is no task '{steered}'"));
}

/// Line 118: a task is steered to the agent that the call names; one that has succeeded is neither steered nor cancelled.
async fn line_118_a_task_is_steered_to_another_agent(place: Place) {
    let world = world(&place, [give_task("long"), Say::Text("Final Answer: 1")]).await;
    let mut tap = announcements(&world).await;
    give(&world, "long", [Say::Hang("")]);
    let asked = |text: &str| tg_schemas::msg::AgentRequest {
        conversation_id: "talk".into(),
        ..question(text, false)
    };
    let chunks = world.run(&asked("q1")).await;
    let task = id(&observed(&chunks)[0]);
    until(&world, 1, |task| task.status == TaskStatus::Running).await;
    let steers = |agent: &str| {
        let call =
            json!({"action": "steer", "task_id": task, "message": "short", "agent_id": agent});
        calls("delegate", &call)
    };
    let script = [steers("z"), steers("a"), Say::Text("Final Answer: 2")];
    give(&world, "q2", script);
    give(&world, "short", [Say::Text("Final Answer: S")]);
    let told = observed(&world.run(&asked("q2")).await);
    assert_eq!(
        told[0],
        "error: agent_id: there is no agent 'z'. Agents: a, b, bee"
    );
    assert!(
        told[1].starts_with("Agent a works on it as task "),
        "{told:?}"
    );
    let steered = id(&told[1]);
    assert_eq!(heard(&mut tap).await.text, "**a**\n\nS");
    let script = [
        acts("cancel", &steered, ""),
        acts("steer", &steered, "again"),
        Say::Text("Final Answer: 3"),
    ];
    give(&world, "q3", script);
    let told = observed(&world.run(&asked("q3")).await);
    let over = format!("error: task {steered} is over: success");
    assert_eq!(told, [over.as_str(), over.as_str()]);
    let all = tasks(&world).await;
    let status = |id: &str| {
        let found = all.iter().find(|task| task.id.starts_with(id));
        found.map(|task| (task.agent.as_str(), task.status))
    };
    assert_eq!(status(&task), Some(("bee", TaskStatus::Cancelled)));
    assert_eq!(status(&steered), Some(("a", TaskStatus::Success)));
    assert_eq!(all.len(), 2, "nothing else was begun");
}

/// Line 118: what a process had under way that is gone has failed.
async fn line_118_a_restart_interrupts_tasks(place: Place) {
    let world = world(&place, [give_task("long"), Say::Text("Final Answer: 1")]).await;
    give(&world, "long", [Say::Hang("")]);
    world.run(&question("q", false)).await;
    until(&world, 1, |task| task.status == TaskStatus::Running).await;
    let own = world.ledger.clone();
    let next = Agent::new(Options::default(), move || Ok(own.clone()));
    let of = TasksOf::Whose(Whose::User(String::new()));
    let owner = &next.tasks.owner;
    let found = world.ledger.tasks(&of, owner, ("", 9), 7).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].status, TaskStatus::Failed);
    assert_eq!(found[0].error, "interrupted by restart");
    assert_eq!(found[0].completed_ms, 7);
}

/// Line 118: a process that stops cancels what it has under way.
async fn a_process_that_stops_cancels_its_tasks(place: Place) {
    let world = world(&place, [give_task("long"), Say::Text("Final Answer: 1")]).await;
    give(&world, "long", [Say::Hang("")]);
    world.run(&question("q", false)).await;
    until(&world, 1, |task| task.status == TaskStatus::Running).await;
    world.mesh.stopping().cancel();
    let all = until(&world, 1, |task| task.status == TaskStatus::Cancelled).await;
    assert_eq!(all[0].error, "shutdown");
}

/// Only so many tasks go on at the same time; others wait.
async fn tasks_wait_for_their_places(place: Place) {
    let script = (0..6).map(|at| give_task(&format!("{at}?")));
    let world = world(&place, script.chain([Say::Text("Final Answer: 1")])).await;
    for at in 0..6 {
        give(&world, &format!("{at}?"), [Say::Hang("")]);
    }
    world.run(&question("q", false)).await;
    let all = until(&world, 5, |task| task.status == TaskStatus::Running).await;
    let waits = all.iter().filter(|task| task.status == TaskStatus::Pending);
    let waits: Vec<_> = waits.collect();
    assert_eq!(waits.len(), 1);
    // One that waits can be cancelled, too.
    let tasks = &world.agent.tasks;
    let (workspace, id) = (&waits[0].workspace, &waits[0].id);
    assert!(tasks.cancel(&world.ledger, workspace, id).await.unwrap());
    assert!(!tasks.cancel(&world.ledger, workspace, id).await.unwrap());
}

/// What a recorded run gave away and was told of it is replayed from its record; no task is given again.
async fn a_recorded_run_is_replayed_without_its_tasks(place: Place) {
    let asks = |message: &str| {
        let call = json!({"agent_id": "b", "message": message, "mode": "persistent"});
        calls("delegate", &call)
    };
    let script = [
        asks("1?"),
        asks("2?"),
        give_task("b?"),
        acts("cancel", "no", ""),
        Say::Text("Final Answer: done"),
    ];
    let world = world(&place, script).await;
    for at in ["1", "2", "b"] {
        let says = leaked(format!("Final Answer: answer {at}"));
        give(&world, &format!("{at}?"), [says]);
    }
    let chunks = replayed::run(&world, question("q", true), replayed::asks("q", false)).await;
    assert!(chunks.last().unwrap().error.is_none());
    let done = until(&world, 1, |task| task.status == TaskStatus::Success).await;
    let end = Session::new(&done[0].run).conclusion();
    let end = Some(Term::iri(end));
    world.trace(|all| all.iter().any(|one| one.s == end)).await;
    replayed::same_again(&world, "q", &chunks).await;
    assert_eq!(tasks(&world).await, done);
}

/// A main agent that notes what it is told.
#[derive(Default)]
struct Main {
    kept: InMemory,
    told: Mutex<Vec<Notification>>,
}

#[async_trait]
impl Sessions for Main {
    async fn turns(&self, of: &SessionId) -> Result<Vec<Turn>, Error> {
        self.kept.turns(of).await
    }

    async fn add(&self, to: &SessionId, turn: Turn) -> Result<(), Error> {
        self.kept.add(to, turn).await
    }

    async fn tell(&self, notification: &Notification) -> Result<Option<String>, Error> {
        self.told.lock().push(notification.clone());
        Ok(Some("The bee is done.".to_owned()))
    }
}

/// Line 116: a main agent announces it in its own words.
async fn line_116_a_main_agent_announces_it(place: Place) {
    let main = Arc::new(Main::default());
    let script = [give_task("b?"), Say::Text("Final Answer: done")];
    let world = World::with_sessions(&place, script, rows(), main.clone()).await;
    let mut tap = announcements(&world).await;
    give(
        &world,
        "b?",
        [Say::Fail(Error::new(
            tg_schemas::ErrorCode::Provider,
            "away",
        ))],
    );
    let asked = tg_schemas::msg::AgentRequest {
        conversation_id: "talk".into(),
        ..question("q", false)
    };
    world.run(&asked).await;
    let notice = heard(&mut tap).await;
    assert_eq!(
        (&*notice.text, &*notice.session_id),
        ("The bee is done.", "talk")
    );
    let told = main.told.lock().clone();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].text, "The task of agent The Bee has failed: away");
    assert_eq!(told[0].session, "talk");
}

tg_testkit::on_both_buses!(
    a_client_that_names_a_conversation_writes_into_no_session,
    line_113_a_chain_of_tasks_ends_at_its_depth,
    line_116_a_main_agent_announces_it,
    line_115_a_persistent_session_is_come_back_to,
    a_process_that_stops_cancels_its_tasks,
    a_recorded_run_is_replayed_without_its_tasks,
    line_118_a_restart_interrupts_tasks,
    what_is_announced_is_kept_by_the_sessions_first,
    line_116_a_task_is_announced,
    line_118_a_task_is_cancelled_and_steered,
    line_118_a_task_is_steered_to_another_agent,
    tasks_wait_for_their_places,
);
