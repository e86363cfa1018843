//! Answers in pieces and in whole, over every endpoint.

use serde_json::json;
use tg_gateway::AuthMode;
use tg_testkit::place::Place;

use crate::world::World;

const RAG: &str = "/api/v1/flow/default/service/graph-rag";

async fn who_does_not_stream_gets_one_frame_with_the_answer(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (status, reply) = world.post(RAG, "", json!({"query": "q"})).await;
    assert_eq!((status, &reply["response"]), (200, &json!("forty-two")));
    let socket = world.socket("").await;
    let frames = socket
        .ask("graph-rag", "default", json!({"query": "q"}))
        .await
        .unwrap();
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0]["response"]["response"], "forty-two");
    assert_eq!(frames[0]["complete"], true);
    // Who asks for explanations gets them.
    let frames = socket
        .ask(
            "graph-rag",
            "default",
            json!({"query": "q", "explainable": true}),
        )
        .await
        .unwrap();
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0]["response"]["message_type"], "explain");
}

async fn who_streams_gets_every_frame_and_the_end(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let socket = world.socket("").await;
    let frames = socket
        .ask(
            "graph-rag",
            "default",
            json!({"query": "q", "streaming": true}),
        )
        .await
        .unwrap();
    let ends: Vec<_> = frames
        .iter()
        .map(|frame| {
            (
                frame["response"]["end_of_session"] == true,
                frame["complete"] == true,
            )
        })
        .collect();
    assert_eq!(
        ends,
        [(false, false), (false, false), (false, false), (true, true)]
    );
    let response = world
        .http
        .post(world.url(RAG))
        .header("accept", "text/event-stream")
        .json(&json!({"query": "q"}))
        .send()
        .await
        .unwrap();
    let text = response.text().await.unwrap();
    assert_eq!(text.matches("data: {\"response\"").count(), 4);
    assert!(text.contains("event: end"));
}

async fn a_failure_is_told_once_and_ends_everything(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (status, reply) = world.post(RAG, "", json!({"query": "fail"})).await;
    assert_eq!(
        (status, &reply["error"]["type"]),
        (200, &json!("graph-rag-error"))
    );
    let socket = world.socket("").await;
    let frames = socket
        .ask("graph-rag", "default", json!({"query": "fail"}))
        .await
        .unwrap();
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0]["response"]["error"]["message"], "no such thing");
    assert_eq!(frames[0]["response"]["end_of_session"], true);
    assert_eq!(frames[0]["complete"], true);
    let (_, reply) = world
        .post(RAG, "", json!({"query": "q", "edge-limit": "many"}))
        .await;
    assert_eq!(
        reply["error"]["message"],
        "edge-limit: must be a whole number"
    );
}

async fn the_way_around_the_translators_is_no_way_around_the_wall(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for interface in ["graph-rag", "something-else"] {
        let path = format!("/api/v1/flow/default/service/thru/{interface}");
        let body = json!({"query": "q", "collection": "default", "workspace": "default"});
        assert_eq!(
            world.post(&path, "tg_reader", body).await.0,
            403,
            "{interface}"
        );
    }
    let path = "/api/v1/flow/default/service/thru/graph-rag";
    // What only the system says of a question is not taken from a caller.
    for body in [
        json!({"query": "q"}),
        json!({"query": "q", "parent_uri": "urn:forged"}),
    ] {
        let (status, reply) = world.post(path, "tg_reader", body).await;
        assert_eq!((status, &reply["response"]), (200, &json!("forty-two")));
    }
}

tg_testkit::on_both_buses!(
    who_does_not_stream_gets_one_frame_with_the_answer,
    who_streams_gets_every_frame_and_the_end,
    a_failure_is_told_once_and_ends_everything,
    the_way_around_the_translators_is_no_way_around_the_wall,
);
