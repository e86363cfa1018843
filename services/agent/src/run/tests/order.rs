//! What goes first where two things wait for one thread. Each test has one thread, so that the order is certain. No test
//! compares times.

use std::sync::Arc;

use tg_mesh::Ask;
use tg_schemas::Class;
use tg_schemas::processors::agent_manager::{NEXT_STEP_AND_TRACE, STEP, STEP_TRACE};
use tg_testkit::faults::FaultyBus;
use tg_testkit::place::Place;

use super::endings::ADD;
use super::flushed::{is_over, until_over};
use super::world::{SOON, Say, World, question, topic};
use crate::options::Options;

fn script() -> Vec<Say> {
    vec![Say::Text(ADD), Say::Text("Final Answer: 4")]
}

/// In both steps: of the first the question's handler writes the record, of the second the first step.
async fn a_step_asks_its_model_before_its_record_is_written(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let world = World::over(Arc::new(bus.clone()), script(), Options::default()).await;
    // As the start of a flow does.
    let relays = [NEXT_STEP_AND_TRACE.name, STEP_TRACE.name];
    let relays = relays.map(|name| topic(Class::Flow, name));
    world.mesh.bus().declare(&relays, &[]).await.unwrap();
    let chunks = world.run(&question("2+2?", true)).await;
    assert!(chunks.last().unwrap().end_of_dialog);
    let model = topic(Class::Request, "prompt");
    let records = [STEP.name, NEXT_STEP_AND_TRACE.name].map(|name| topic(Class::Flow, name));
    let published = bus.published();
    let order = published.iter().filter_map(|topic| {
        if *topic == model {
            return Some("model");
        }
        records.contains(topic).then_some("record")
    });
    let mut order: Vec<&str> = order.collect();
    // A record that nobody could read at first is published again.
    order.dedup();
    assert_eq!(order, ["model", "record", "model", "record"]);
}

/// The ledger's commit would take the thread on which the asker reads. Over a broker nothing says which of the two is first.
async fn an_answer_is_read_before_the_ledger_notes_its_end(place: Place) {
    let world = World::new(&place, script()).await;
    let ask = Ask {
        id: Some("q".into()),
        user_id: Some("ann".into()),
        ..Ask::default()
    };
    let mut answer = world.ask_with(&question("2+2?", true), ask);
    loop {
        let part = tokio::time::timeout(SOON, answer.next()).await.unwrap();
        if part.unwrap().unwrap().end_of_dialog {
            break;
        }
    }
    assert!(!is_over(&world.ledger).await);
    until_over(&world.ledger).await;
}

mod embedded {
    use super::Place;

    #[tokio::test]
    async fn a_step_asks_its_model_before_its_record_is_written() {
        super::a_step_asks_its_model_before_its_record_is_written(Place::embedded()).await;
    }

    #[tokio::test]
    async fn an_answer_is_read_before_the_ledger_notes_its_end() {
        super::an_answer_is_read_before_the_ledger_notes_its_end(Place::embedded()).await;
    }
}

mod rabbitmq {
    use super::Place;

    #[tokio::test]
    async fn a_step_asks_its_model_before_its_record_is_written() {
        super::a_step_asks_its_model_before_its_record_is_written(Place::rabbitmq().await).await;
    }
}
