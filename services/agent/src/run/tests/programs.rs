//! Work that is given to agents that are programs.

use serde_json::{Value, json};
use tg_mesh::Tap;
use tg_schemas::msg::SessionNotice;
use tg_schemas::{Class, Topic, WorkspaceId};
use tg_testkit::place::Place;

use super::delegated::{agents, calls, observed};
use super::supervised::give;
use super::world::{SOON, Say, World, question};
use crate::options::Options;
use crate::store::{TaskStatus, TasksOf, Whose};

/// Agent `coder` answers with its message behind `got: `; `broken` fails.
fn settings() -> Options {
    let program =
        |script: &str| json!({"engine": "cli", "command": "sh", "args": ["-c", script, "sh"]});
    let listed = json!({
        "coder": program(r#"echo "got: $1""#),
        "broken": program("echo s3cret >&2; exit 1"),
    });
    Options {
        cli_agents: Some(serde_json::from_value(Value::String(listed.to_string())).unwrap()),
        ..Options::default()
    }
}

async fn world(place: &Place, script: impl IntoIterator<Item = Say>) -> World {
    let bus = place.connect().await;
    World::start(bus, script, settings(), agents(), Vec::new()).await
}

async fn heard(tap: &mut Tap<SessionNotice>) -> SessionNotice {
    let next = tokio::time::timeout(SOON, tap.next());
    next.await.expect("in time").expect("open").expect("read")
}

/// Line 124: a program is never waited for: what it answers, or that it failed, is announced.
async fn line_124_a_program_does_a_task_that_is_announced(place: Place) {
    for (agent, announced, status) in [
        ("coder", "got: m", TaskStatus::Success),
        ("broken", "the program failed", TaskStatus::Failed),
    ] {
        let script = [
            calls("delegate", &json!({"agent_id": agent, "message": "m"})),
            Say::Text("Final Answer: done"),
        ];
        let world = world(&place.another().await, script).await;
        let workspace = WorkspaceId::new("default").unwrap();
        let topic = Topic::workspace(Class::Notify, "session", &workspace);
        let mut tap: Tap<SessionNotice> = world.mesh.tap(&topic).await.unwrap();
        let chunks = world.run(&question("q", false)).await;
        assert_eq!(chunks.last().unwrap().content, "done");
        let told = observed(&chunks);
        let begins = format!("Agent {agent} works on it as task ");
        assert!(told[0].starts_with(&begins), "{told:?}");
        let notice = heard(&mut tap).await;
        assert!(notice.text.contains(announced), "{}", notice.text);
        assert!(!notice.text.contains("s3cret"), "{}", notice.text);
        let of = TasksOf::Whose(Whose::User(String::new()));
        let owner = &world.agent.tasks.owner;
        let tasks = world.ledger.tasks(&of, owner, ("", 9), 1).await.unwrap();
        assert_eq!((tasks.len(), tasks[0].status), (1, status));
    }
}

/// Line 124: a task of a graph is a program's, and another agent goes on from what that answered.
async fn line_124_a_program_does_a_part_of_a_graph(place: Place) {
    let graph = json!({"task_graph": {"tasks": [
        {"id": "A", "agent_id": "coder", "message": "one"},
        {"id": "B", "agent_id": "b", "message": "then {{A.output}}", "depends_on": ["A"]},
        {"id": "C", "agent_id": "broken", "message": "two"},
    ]}});
    let script = [calls("dispatch", &graph), Say::Text("Final Answer: done")];
    let world = world(&place, script).await;
    give(&world, "then got: one", [Say::Text("Final Answer: B")]);
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(chunks.last().unwrap().content, "done");
    let told = observed(&chunks).concat();
    for part in ["got: one", "then got: one", "the program failed"] {
        let known = told.contains(part)
            || world
                .asked
                .lock()
                .iter()
                .any(|terms| terms["question"] == part);
        assert!(known, "{part}: {told}");
    }
    assert!(!told.contains("s3cret"), "{told}");
}

tg_testkit::on_both_buses!(
    line_124_a_program_does_a_task_that_is_announced,
    line_124_a_program_does_a_part_of_a_graph,
);
