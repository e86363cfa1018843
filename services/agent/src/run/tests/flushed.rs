//! A run is over in the ledger only when the bus has its whole answer: a process that takes the agent's place afterwards has
//! nothing to send. The end is one message.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tg_mesh::Ask;
use tg_schemas::Error;
use tg_schemas::msg::{AgentRequest, AgentResponse};
use tg_testkit::faults::FaultyBus;
use tg_testkit::place::Place;

use super::endings::ADD;
use super::supervised::{give, split};
use super::world::{SOON, Say, World, question};
use crate::options::Options;
use crate::store::{Ledger, Whose};

/// How long the bus takes to have the end of an answer, and between two looks at whether a run is over.
const TAKES: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(5);

/// Whether the run of the question `q` is over.
pub(super) async fn is_over(ledger: &Ledger) -> bool {
    let whose = Whose::User("ann".into());
    let run = ledger.of_question(&whose, "q").await.unwrap();
    run.unwrap().over
}

/// Waits until that run is over.
pub(super) async fn until_over(ledger: &Ledger) {
    let ended = async {
        while !is_over(ledger).await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(SOON, ended).await.unwrap();
}

/// Asks, and looks into the ledger whenever a message is flushed. Returns the last part once the run is over: one message was
/// flushed, and the run was under way while the bus took it.
async fn flushed(
    place: Place,
    script: Vec<Say>,
    asks: AgentRequest,
    detach: bool,
) -> AgentResponse {
    let bus = FaultyBus::new(place.connect().await, 1);
    let world = World::over(Arc::new(bus.clone()), script, Options::default()).await;
    give(&world, "a?", [Say::Text("Final Answer: A")]);
    give(&world, "b?", [Say::Text(ADD), Say::Text("Final Answer: B")]);
    let seen = Arc::<Mutex<Vec<bool>>>::default();
    let (ledger, looks) = (world.ledger.clone(), seen.clone());
    bus.on_flush(move || {
        let (ledger, looks) = (ledger.clone(), looks.clone());
        let look = async move {
            tokio::time::sleep(TAKES).await;
            let over = is_over(&ledger).await;
            looks.lock().push(over);
        };
        look.boxed()
    });
    let ask = Ask {
        id: Some("q".into()),
        user_id: Some("ann".into()),
        detach,
        ..Ask::default()
    };
    let mut answer = world.ask_with(&asks, ask);
    let mut last = None;
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        last = Some(part.unwrap());
    }
    until_over(&world.ledger).await;
    assert_eq!(*seen.lock(), [false]);
    // The last entry of the trace and the last chunk are one message.
    assert_eq!(bus.flushed(), [2]);
    let last = last.unwrap();
    assert!(last.end_of_dialog);
    last
}

async fn an_answered_run_is_over_when_the_bus_has_its_answer(place: Place) {
    let script = vec![Say::Text(ADD), Say::Text("Final Answer: 4")];
    let last = flushed(place, script, question("q", true), false).await;
    assert!(last.error.is_none());
}

async fn a_detached_run_is_over_when_the_bus_has_its_answer(place: Place) {
    let script = vec![Say::Text(ADD), Say::Text("Final Answer: 4")];
    let last = flushed(place, script, question("q", false), true).await;
    assert!(last.error.is_none());
}

async fn a_failed_run_is_over_when_the_bus_has_its_error(place: Place) {
    let fault = Error::typed("llm-error", "the provider said no");
    let script = vec![Say::Text(ADD), Say::Fail(fault)];
    let last = flushed(place, script, question("q", true), false).await;
    assert!(last.error.is_some());
}

/// What its subagents say is the parent's to send: their own ends are flushed nowhere.
async fn a_run_with_subagents_is_over_when_the_bus_has_its_answer(place: Place) {
    let script = vec![Say::Text(r#"["a?", "b?"]"#), Say::Text("both")];
    let last = flushed(place, script, split("a and b?", true), false).await;
    assert!(last.error.is_none());
}

tg_testkit::on_both_buses!(
    an_answered_run_is_over_when_the_bus_has_its_answer,
    a_detached_run_is_over_when_the_bus_has_its_answer,
    a_failed_run_is_over_when_the_bus_has_its_error,
    a_run_with_subagents_is_over_when_the_bus_has_its_answer,
);
