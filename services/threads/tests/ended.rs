//! What ends threads stops what runs on them, and is announced.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::json;
use tg_mesh::Responder;
use tg_schemas::msg::{
    ListenerMessage, ListenerRequest, ListenerResponse, ThreadsEnded, ThreadsRequest,
};
use tg_schemas::{Class, ErrorCode, Topic};
use tg_testkit::flow::SOON;
use tg_testkit::place::Place;
use tokio::sync::Notify;

use crate::world::{World, forward, ids, respond, says, send, tool};

/// A thread that the tests name themselves.
const THREAD: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";

/// A listener that answers nothing until it is stopped.
#[derive(Clone, Default)]
struct Slow {
    calls: Arc<AtomicUsize>,
    begun: Arc<Notify>,
    stopped: Arc<Notify>,
}

impl Slow {
    async fn listens(&self, world: &mut World) {
        let slow = self.clone();
        let answer = move |_: ListenerRequest, out: Responder<ListenerResponse>| {
            let slow = slow.clone();
            async move {
                slow.calls.fetch_add(1, Ordering::AcqRel);
                slow.begun.notify_one();
                out.cancelled().cancelled().await;
                slow.stopped.notify_one();
                Ok(())
            }
        };
        world.answers("slow", answer).await;
    }
}

async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(SOON, what).await.expect("in time")
}

fn on_thread(to: &str, said: &str) -> ThreadsRequest {
    ThreadsRequest {
        thread: THREAD.to_owned(),
        ..send(to, said)
    }
}

/// The listener is stopped, what waits for it never reaches it, and whoever waits for the message is answered.
async fn closing_a_thread_stops_what_runs_on_it(place: Place) {
    let rows = [
        ("boss", tool("Asks twice.")),
        ("slow", tool("Never answers.")),
    ];
    let mut world = World::start(&place, &rows).await;
    let slow = Slow::default();
    slow.listens(&mut world).await;
    world
        .listen("boss", |_| ListenerResponse {
            forwards: vec![says("slow", "x"), says("slow", "y")],
            ..forward("", "")
        })
        .await;
    let message = on_thread("boss", "x");
    let close = ThreadsRequest {
        operation: "close-thread".to_owned(),
        ..on_thread("", "")
    };
    let closing = async {
        soon(slow.begun.notified()).await;
        world.whole(&close).await.unwrap().closed
    };
    let (answer, closed) = tokio::join!(world.whole(&message), closing);
    let answer = answer.unwrap();
    assert_eq!(closed, 2);
    assert!(answer.messages.is_empty(), "{answer:?}");
    assert_eq!(answer.thread, THREAD);
    soon(slow.stopped.notified()).await;
    assert_eq!(slow.calls.load(Ordering::Acquire), 1);
}

/// Two messages of one conversation: when the second is answered, nothing of the first runs below any more.
async fn a_respond_stops_what_an_earlier_message_runs(place: Place) {
    let rows = [("boss", tool("Asks.")), ("slow", tool("Never answers."))];
    let mut world = World::start(&place, &rows).await;
    let slow = Slow::default();
    slow.listens(&mut world).await;
    world
        .listen("boss", |got| match got.payload.get("text") {
            Some(said) if said == "wait" => forward("slow", "x"),
            _ => respond("done"),
        })
        .await;
    let (waits, goes) = (on_thread("boss", "wait"), on_thread("boss", "go"));
    let going = async {
        soon(slow.begun.notified()).await;
        world.texts(&goes).await
    };
    let (answer, (said, thread)) = tokio::join!(world.whole(&waits), going);
    assert_eq!((said, thread.as_str()), (vec!["done".to_owned()], THREAD));
    let answer = answer.unwrap();
    assert!(answer.messages.is_empty(), "{answer:?}");
    soon(slow.stopped.notified()).await;
}

/// Threads that end with an answer that failed are announced as all others are.
async fn what_ends_with_a_failed_answer_is_announced(place: Place) {
    let rows = [("boss", tool("Says much.")), ("leaf", tool("Is asked."))];
    let mut world = World::start(&place, &rows).await;
    let ended: Arc<Mutex<String>> = Arc::default();
    let below = ended.clone();
    world
        .listen("leaf", move |got| {
            *below.lock() = got.thread_id;
            respond("x")
        })
        .await;
    let large = "x".repeat(900_000);
    world
        .listen("boss", move |got| {
            if got.from_id == "gateway" {
                return forward("leaf", "x");
            }
            // More than an answer holds comes before the respond, which ends the thread of the other.
            let shown = ListenerMessage {
                to: "console".to_owned(),
                r#type: "consoleprompt".to_owned(),
                payload: [("output".to_owned(), json!(large))].into_iter().collect(),
            };
            ListenerResponse {
                forwards: vec![shown; 10],
                ..respond("done")
            }
        })
        .await;
    let topic = Topic::workspace(Class::Notify, "thread", &ids().0);
    let mut notices = world.flow.mesh.tap::<ThreadsEnded>(&topic).await.unwrap();
    let error = world.whole(&send("boss", "x")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge, "{error}");
    let notice = soon(notices.next()).await.expect("open").expect("a notice");
    let ended = ended.lock();
    assert!(notice.thread_ids.contains(&ended), "{notice:?}");
}

tg_testkit::on_both_buses!(
    closing_a_thread_stops_what_runs_on_it,
    a_respond_stops_what_an_earlier_message_runs,
    what_ends_with_a_failed_answer_is_announced,
);
