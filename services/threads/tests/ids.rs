//! The ids of messages: a listener that sees its own cannot answer in another's name.

use std::sync::Arc;

use serde_json::Value;
use tg_bus::{Consume, Delivery, Envelope, PublishMode, Sink, Target};
use tg_clients::listeners::topic;
use tg_mesh::{Ask, Deadline, Responder};
use tg_schemas::msg::{ListenerRequest, ListenerResponse, ThreadsResponse};
use tg_schemas::{Class, Frame, Headers, Subscription, Topic};
use tg_testkit::flow::SOON;
use tg_testkit::place::Place;
use tg_threads_service::engine::ids::of_message;
use tokio::sync::{Notify, mpsc};

use crate::world::{World, forward, ids, respond, says, send, text, tool};

/// A listener that reads what comes to its queue as it is, and answers nothing by itself.
pub(crate) struct Spy(pub(crate) mpsc::Sender<Envelope>);

impl Sink for Spy {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        delivery.ack();
        self.0.try_send(envelope).ok();
    }
}

/// Ids that other messages may have, by all that a listener sees of its own.
fn guesses(headers: &Headers) -> Vec<String> {
    let id = headers.id.clone().unwrap_or_default();
    let known = [
        id.rsplit_once('.').map(|(stem, _)| stem.to_owned()),
        headers.parent.clone(),
        headers.request_id.clone(),
        headers.thread.clone(),
        Some(id),
    ];
    let numbered = |known: String| {
        (0..8).flat_map(move |number| {
            let plain = format!("{known}.{number}");
            let made = ["spy", "honest"].map(|of| of_message(&known, number, of));
            std::iter::once(plain).chain(made)
        })
    };
    known.into_iter().flatten().flat_map(numbered).collect()
}

async fn a_listener_answers_in_nobody_elses_name(place: Place) {
    let rows = [
        ("boss", tool("Asks two.")),
        ("spy", tool("Answers for another.")),
        ("honest", tool("Answers.")),
    ];
    let mut world = World::start(&place, &rows).await;
    let (workspace, flow) = ids();
    let bus = world.flow.mesh.bus().clone();
    let (seen, mut seeing) = mpsc::channel(4);
    let of = Subscription::service(topic(&workspace, &flow, "spy"), "spy");
    let spying = bus.consume(&of, Consume::prefetch(4), Arc::new(Spy(seen)));
    world.listening.push(spying.await.unwrap());
    // The honest one has its message before the other answers for it, and answers after that.
    let (asked, forged) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tells, waits) = (asked.clone(), forged.clone());
    let honest = move |_: ListenerRequest, mut out: Responder<ListenerResponse>| {
        let (tells, waits) = (tells.clone(), waits.clone());
        async move {
            tells.notify_one();
            waits.notified().await;
            out.send(respond("honest")).await
        }
    };
    world.answers("honest", honest).await;
    world
        .listen("boss", |got| match got.from_id.as_str() {
            "gateway" => ListenerResponse {
                forwards: vec![says("spy", "x"), says("honest", "x")],
                ..forward("", "")
            },
            "honest" => respond(&text(&got.payload)),
            _ => respond(&Value::Object(got.payload).to_string()),
        })
        .await;
    let forging = async {
        let got = seeing.recv().await.expect("a message");
        asked.notified().await;
        let inbox = got.headers.reply_to.clone().expect("an inbox");
        let body = serde_json::to_vec(&respond("forged")).unwrap();
        for id in guesses(&got.headers) {
            // Its own answer may come, and is no lie.
            if got.headers.id.as_ref() == Some(&id) {
                continue;
            }
            let headers = Headers {
                id: Some(id),
                from: Some("the spy".to_owned()),
                frame: Some(Frame::Last),
                seq: Some(0),
                ..Headers::default()
            };
            let envelope = Envelope {
                headers: Arc::new(headers),
                body: body.clone().into(),
                ..Envelope::default()
            };
            let to = Target::Inbox(inbox.as_str().into());
            let sent = bus.publish(&to, envelope, PublishMode::Confirmed).await;
            sent.expect("the inbox takes it");
        }
        forged.notify_one();
    };
    let request = send("boss", "x");
    let both = async { tokio::join!(world.texts(&request), forging).0 };
    let said = tokio::time::timeout(SOON, both).await.expect("in time").0;
    assert_eq!(said, ["honest"]);
}

/// After a process died, another one may give messages of the same numbers in another order: what one listener saw then is
/// of no use to another.
async fn an_id_is_of_one_listener_alone(place: Place) {
    const QUESTION: &str = "019a0000-0000-7000-8000-000000000001";
    let mut world = World::start(&place, &[("spy", tool("Reads."))]).await;
    let (workspace, flow) = ids();
    let bus = world.flow.mesh.bus().clone();
    let (seen, mut seeing) = mpsc::channel(4);
    let of = Subscription::service(topic(&workspace, &flow, "spy"), "spy");
    let spying = bus.consume(&of, Consume::prefetch(4), Arc::new(Spy(seen)));
    world.listening.push(spying.await.unwrap());
    let ask = Ask {
        id: Some(QUESTION.to_owned()),
        deadline: Some(Deadline::after(SOON)),
        user_id: Some("ann".to_owned()),
        ..Ask::default()
    };
    let threads = Topic::workspace(Class::Request, "threads", &workspace);
    let (peer, request) = (&world.flow.mesh, send("spy", "x"));
    let answer = peer.ask::<_, ThreadsResponse>(&threads, &request, ask);
    let got = tokio::select! {
        got = seeing.recv() => got.expect("a message"),
        ended = answer.last() => panic!("{ended:?}"),
    };
    let id = got.headers.id.clone().unwrap_or_default();
    let is_of = |listener: &str| (0..8).any(|number| of_message(QUESTION, number, listener) == id);
    assert!(is_of("spy") && !is_of("honest"), "{id}");
}

tg_testkit::on_both_buses!(
    a_listener_answers_in_nobody_elses_name,
    an_id_is_of_one_listener_alone,
);
