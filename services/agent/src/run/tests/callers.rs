//! Who asks travels beside messages, in their headers: no body and no queue names a user.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use tg_mesh::{Ask, Tap};
use tg_schemas::Class;
use tg_schemas::msg::AgentRun;
use tg_schemas::processors::agent_manager::STEP;
use tg_testkit::faults::FaultyBus;
use tg_testkit::place::Place;

use super::delegated::{agents, calls};
use super::supervised::give;
use super::world::{SOON, Say, World, question, topic};
use crate::engine::usage::Scope;
use crate::options::Options;
use crate::store::Days;

const USER: &str = "ann-4711";

/// Whether any of some messages names the user.
fn name_the_user<M: Serialize>(bodies: &[M]) -> bool {
    let texts = bodies.iter().map(|body| serde_json::to_string(body));
    let mut texts = texts.map(|text| text.expect("JSON"));
    texts.any(|text| text.contains(USER))
}

/// Records of steps up to that of a number.
async fn until(tap: &mut Tap<AgentRun>, step: i64) -> Vec<AgentRun> {
    let mut runs: Vec<AgentRun> = Vec::new();
    while runs.last().is_none_or(|run| run.step < step) {
        let next = tokio::time::timeout(SOON, tap.next()).await;
        runs.push(next.expect("in time").expect("open").expect("read"));
    }
    runs
}

/// Line 129.
async fn line_129_no_body_and_no_queue_names_the_user(place: Place) {
    let script = [
        calls(
            "delegate",
            &json!({"agent_id": "a", "message": "a?", "mode": "persistent"}),
        ),
        calls("remote", &json!({"x": 1})),
        Say::Text("Final Answer: done"),
    ];
    let bus = FaultyBus::new(place.connect().await, 1);
    let over = Arc::new(bus.clone());
    let world = World::start(over, script, Options::default(), agents(), Vec::new()).await;
    give(&world, "a?", [Say::Text("Final Answer: A")]);
    let mut steps: Tap<AgentRun> = world
        .mesh
        .tap(&topic(Class::Flow, STEP.name))
        .await
        .expect("a tap");
    let mut asked = question("q", false);
    asked.conversation_id = "talk".into();
    let ask = Ask {
        user_id: Some(USER.to_owned()),
        ..Ask::default()
    };
    let mut answer = world.ask_with(&asked, ask);
    let mut chunks = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        chunks.push(part.unwrap());
    }
    assert_eq!(chunks.last().unwrap().content, "done");
    let runs = until(&mut steps, 3).await;
    assert!(!name_the_user(&runs), "steps");
    assert!(!name_the_user(&[asked]), "the question");
    let prompts = world.model.asked.lock().clone();
    assert!(prompts.len() >= 4 && !name_the_user(&prompts), "prompts");
    let tools = world.tools.asked.lock().clone();
    assert!(tools.len() == 1 && !name_the_user(&tools), "tools");
    assert!(!name_the_user(&chunks), "answers");
    let names = bus.names();
    assert!(
        names.iter().any(|name| name.contains(STEP.name)),
        "{names:?}"
    );
    assert!(!name_the_user(&names), "{names:?}");
    // The agent knows who it was all the same.
    let days = Days {
        scope: Scope::Key,
        since: String::new(),
        until: "9999".into(),
        daily: false,
    };
    let keys = world.ledger.usage("default", &days, "", 9).await.unwrap();
    assert_eq!(keys[0].0, format!("user:{USER}"));
}

tg_testkit::on_both_buses!(line_129_no_body_and_no_queue_names_the_user);
