//! No text for clients names a queue, a host, a path, a key or another tenant.

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::{Error, ErrorCode};
use tg_testkit::place::Place;

use crate::world::World;

const FORBIDDEN: &[&str] = &[
    "nt.",
    "tg.request",
    "request:tg",
    "flow:tg",
    "amqp",
    "rabbit",
    "5672",
    "10.1.2.3",
    "/var/",
    "sk-live",
    "tg_secret",
];

fn clean(text: &Value, what: &str) {
    let text = text.to_string();
    for word in FORBIDDEN {
        assert!(!text.contains(word), "{what}: {text}");
    }
}

async fn foreign_error_texts_are_masked_on_every_door(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let socket = world.socket("").await;
    for leak in [
        "no consumer on nt.request.agent:default:default",
        "publish to tg.request.prompt:other:x was returned",
        "topic request:tg:agent:other:default is gone, flow:tg:triples-store:other:f too",
        "dial amqp://guest:guest@rabbit-0:5672/%2f: refused",
        "connect to ('10.1.2.3', 5672) failed",
        "open '/var/lib/threadgraph/agent.sqlite': disk full",
        "401: bad key sk-live-0123456789abcdef0123",
        "token tg_secret0123456789abcdef",
    ] {
        let question = json!({"question": format!("fail:{leak}")});
        let (_, reply) = world
            .post("/api/v1/flow/default/service/agent", "", question.clone())
            .await;
        assert_eq!(reply["error"]["type"], "agent-error");
        clean(&reply, "rest");
        for frame in socket
            .ask("agent", "default", question.clone())
            .await
            .unwrap()
        {
            clean(&frame, "socket");
        }
        let events = world
            .http
            .post(world.url("/api/v1/flow/default/service/agent"))
            .header("accept", "text/event-stream")
            .json(&question)
            .send()
            .await
            .unwrap();
        clean(&Value::String(events.text().await.unwrap()), "events");
    }
}

async fn every_error_of_the_list_leaves_clean(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for code in ErrorCode::all() {
        let error = Error::new(code, "amqp://rabbit:5672 nt.request.x /var/lib/x");
        let question = json!({"question": format!("fail:{}", error.message)});
        let (_, reply) = world
            .post("/api/v1/flow/default/service/agent", "", question)
            .await;
        clean(&reply, code.as_str());
    }
}

async fn refusals_do_not_tell_of_other_tenants(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    world.start_flow("default", "secret-flow", 3).await;
    let ask = |workspace: &'static str, flow: &'static str| {
        let path = format!("/api/v1/flow/{flow}/service/agent");
        let world = &world;
        async move {
            let body = json!({"question": "q", "workspace": workspace});
            world.post(&path, "tg_reader", body).await
        }
    };
    let existing = ask("default", "secret-flow").await;
    let missing = ask("default", "no-flow").await;
    let nowhere = ask("no-workspace", "no-flow").await;
    assert_eq!(existing, missing);
    assert_eq!(existing, nowhere);
}

async fn a_mesh_that_is_gone_leaks_nothing(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    world.mesh.bus().close().await;
    for (path, body) in [
        (
            "/api/v1/flow/default/service/agent",
            json!({"question": "q"}),
        ),
        ("/api/v1/config", json!({"operation": "list"})),
        (
            "/api/v1/flow/default/service/text-load",
            json!({"text": "x"}),
        ),
        ("/api/v1/auth/bootstrap", json!({})),
    ] {
        let (_, reply) = world.post(path, "", body).await;
        assert!(reply.get("error").is_some(), "{path}: {reply}");
        clean(&reply, path);
    }
}

tg_testkit::on_both_buses!(
    foreign_error_texts_are_masked_on_every_door,
    every_error_of_the_list_leaves_clean,
    refusals_do_not_tell_of_other_tenants,
    a_mesh_that_is_gone_leaks_nothing,
);
