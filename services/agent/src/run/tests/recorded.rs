//! A step that is begun while its record is on its way keeps and says nothing before the record is durable.

use std::sync::Arc;
use std::time::Duration;

use tg_testkit::faults::{Faults, FaultyBus};
use tg_testkit::place::Place;

use super::world::*;
use crate::options::Options;
use tg_schemas::msg::AgentResponse;
use tg_schemas::{Class, Topic};

const FULL: Faults = Faults {
    lose: 0.0,
    duplicate: 0.0,
    delay: 0.0,
    delay_up_to: Duration::ZERO,
    doubt: 0.0,
    refuse: 0.0,
    full: true,
};

/// The asker hears of the fault and nothing else, and can ask again.
async fn nothing_is_said_of_a_run_that_cannot_be_recorded(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let script = [Say::Text("Final Answer: 4"), Say::Text("Final Answer: 4")];
    let world = World::over(Arc::new(bus.clone()), script, Options::default()).await;
    bus.set(FULL);
    let chunks = world.run(&question("2 + 2?", true)).await;
    let error = chunks[0].error.as_ref().map(|error| error.kind.as_str());
    assert_eq!(
        (chunks.len(), error),
        (1, Some("storage-error")),
        "{chunks:?}"
    );
    bus.set(Faults::default());
    let chunks = world.run(&question("2 + 2?", true)).await;
    assert_eq!(contents(&chunks, "answer").concat(), "4");
}

/// The step before keeps the run: it hands on again when the record can be written, and the tool is not called twice.
async fn a_step_that_cannot_be_recorded_is_handed_on_again(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    // Each try begins the step, which asks the model, before it is known whether it is recorded.
    let tries = (0..20).map(|_| Say::Text("Final Answer: 4"));
    let script = [Say::Text(
        r#"Thought: add
Action: calculator
Args: {"expression": "2 + 2"}"#,
    )]
    .into_iter()
    .chain(tries);
    let world = World::over(Arc::new(bus.clone()), script, Options::default()).await;
    let mut answer = world.ask(&question("2 + 2?", true));
    let mut chunks = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        let chunk = part.unwrap();
        match chunk.message_type.as_str() {
            "action" => bus.set(FULL),
            // What follows is of the next step; the record of it comes only once there is room.
            "observation" => {
                let bus = bus.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    bus.set(Faults::default());
                });
            }
            _ => {}
        }
        chunks.push(chunk);
    }
    assert_eq!(
        contents(&chunks, "observation"),
        ["builtin:calculator says 4"]
    );
    assert_eq!(contents(&chunks, "answer").concat(), "4");
    assert!(chunks.last().unwrap().end_of_dialog);
}

/// The record that begins a run, and one for each of its steps: with it the next step, or the end.
async fn a_step_is_one_durable_record(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let add = r#"Thought: add
Action: calculator
Args: {"expression": "2 + 2"}"#;
    let script = [add, add, "Final Answer: 4"].map(Say::Text);
    let world = World::over(Arc::new(bus.clone()), script, Options::default()).await;
    // As the start of a flow does.
    let relays = ["agent-next", "agent-trace"].map(|base| topic(Class::Flow, base));
    world.mesh.bus().declare(&relays, &[]).await.unwrap();
    let before = bus.confirmed().len();
    let chunks = world.run(&question("2 + 2?", true)).await;
    assert_eq!(contents(&chunks, "answer").concat(), "4");
    let records = bus.confirmed().split_off(before);
    let records: Vec<&str> = records.iter().map(Topic::name).collect();
    let expected = ["agent-step", "agent-next", "agent-next", "agent-trace"];
    assert_eq!(
        records,
        expected.map(|base| format!("{base}:default:default"))
    );
}

fn contents(chunks: &[AgentResponse], kind: &str) -> Vec<String> {
    let of_kind = chunks.iter().filter(|c| c.message_type == kind);
    of_kind.map(|c| c.content.clone()).collect()
}

tg_testkit::on_both_buses!(
    nothing_is_said_of_a_run_that_cannot_be_recorded,
    a_step_that_cannot_be_recorded_is_handed_on_again,
    a_step_is_one_durable_record,
);
