//! What goes first where two things wait for one thread. Each test has one thread, so that the order is certain. No test
//! compares times.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::Ask;
use tg_schemas::Class;
use tg_schemas::processors::agent_manager::{NEXT_STEP_AND_TRACE, STEP, STEP_TRACE};
use tg_testkit::faults::FaultyBus;
use tg_testkit::place::Place;

use super::endings::ADD;
use super::flushed::is_over;
use super::world::{SOON, Say, World, question, topic};
use crate::options::Options;

/// Between two looks at whether a run is over.
const PAUSE: Duration = Duration::from_millis(5);

fn script() -> Vec<Say> {
    vec![Say::Text(ADD), Say::Text("Final Answer: 4")]
}

/// What a run published, in order: questions to the model and records of steps. What follows its like is left out: a record that
/// nobody could read at first is published again.
async fn published(place: Place, ask: Ask) -> Vec<&'static str> {
    let bus = FaultyBus::new(place.connect().await, 1);
    let world = World::over(Arc::new(bus.clone()), script(), Options::default()).await;
    // As the start of a flow does.
    let relays = [NEXT_STEP_AND_TRACE.name, STEP_TRACE.name];
    let relays = relays.map(|name| topic(Class::Flow, name));
    world.mesh.bus().declare(&relays, &[]).await.unwrap();
    let answer = world.ask_with(&question("2+2?", true), ask).last();
    let last = tokio::time::timeout(SOON, answer).await.unwrap().unwrap();
    assert!(last.end_of_dialog);
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
    order.dedup();
    order
}

/// In both steps: of the first the question's handler writes the record, of the second the first step.
async fn a_step_asks_its_model_before_its_record_is_written(place: Place) {
    let order = published(place, Ask::default()).await;
    assert_eq!(order, ["model", "record", "model", "record"]);
}

/// Its asker may be away, so that nobody asks again after a kill in between.
async fn a_detached_run_has_its_record_before_its_model_is_asked(place: Place) {
    let ask = Ask {
        detach: true,
        id: Some("q".into()),
        user_id: Some("ann".into()),
        ..Ask::default()
    };
    let order = published(place, ask).await;
    assert!(order.starts_with(&["record", "model"]), "{order:?}");
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
    let ended = async {
        while !is_over(&world.ledger).await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(SOON, ended).await.unwrap();
}

mod embedded {
    use super::Place;

    #[tokio::test]
    async fn a_step_asks_its_model_before_its_record_is_written() {
        super::a_step_asks_its_model_before_its_record_is_written(Place::embedded()).await;
    }

    #[tokio::test]
    async fn a_detached_run_has_its_record_before_its_model_is_asked() {
        super::a_detached_run_has_its_record_before_its_model_is_asked(Place::embedded()).await;
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

    #[tokio::test]
    async fn a_detached_run_has_its_record_before_its_model_is_asked() {
        super::a_detached_run_has_its_record_before_its_model_is_asked(Place::rabbitmq().await)
            .await;
    }
}
