//! Messages between listeners are part of the trace of the message from outside.

use std::sync::Arc;

use tg_bus::Consume;
use tg_clients::listeners::topic;
use tg_mesh::{Ask, Deadline};
use tg_schemas::msg::ThreadsResponse;
use tg_schemas::{Class, Subscription, Topic};
use tg_testkit::flow::SOON;
use tg_testkit::place::Place;
use tokio::sync::mpsc;

use crate::ids::Spy;
use crate::world::{World, forward, ids, send, tool};

/// The trace of whoever sends the message.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The second listener of a chain reads the trace from its message, as the first one does.
async fn a_forward_is_part_of_the_trace(place: Place) {
    let rows = [("boss", tool("Forwards.")), ("spy", tool("Reads."))];
    let mut world = World::start(&place, &rows).await;
    world.listen("boss", |_| forward("spy", "x")).await;
    let (workspace, flow) = ids();
    let bus = world.flow.mesh.bus().clone();
    let (seen, mut seeing) = mpsc::channel(4);
    let of = Subscription::service(topic(&workspace, &flow, "spy"), "spy");
    let spying = bus.consume(&of, Consume::prefetch(4), Arc::new(Spy(seen)));
    world.listening.push(spying.await.unwrap());
    let ask = Ask {
        deadline: Some(Deadline::after(SOON)),
        user_id: Some("ann".to_owned()),
        traceparent: Some(format!("00-{TRACE}-00f067aa0ba902b7-01")),
        ..Ask::default()
    };
    let threads = Topic::workspace(Class::Request, "threads", &workspace);
    let (peer, request) = (&world.flow.mesh, send("boss", "x"));
    let answer = peer.ask::<_, ThreadsResponse>(&threads, &request, ask);
    let got = tokio::select! {
        got = seeing.recv() => got.expect("a message"),
        ended = answer.last() => panic!("{ended:?}"),
    };
    let trace = got.headers.traceparent.clone().unwrap_or_default();
    assert!(trace.starts_with(&format!("00-{TRACE}-")), "{trace}");
}

tg_testkit::on_both_buses!(a_forward_is_part_of_the_trace);
