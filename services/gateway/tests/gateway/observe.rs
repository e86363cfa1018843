//! Metrics queries of the official commands.

use serde_json::json;
use tg_gateway::AuthMode;
use tg_testkit::place::Place;

use crate::world::World;

async fn queries_are_answered_from_the_live_mesh(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (status, body) = world
        .get("/api/metrics/query?query=processor_info", "")
        .await;
    assert_eq!((status, &body["status"]), (200, &json!("success")));
    let processors: Vec<_> = body["data"]["result"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sample| sample["metric"]["processor"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        processors.contains(&"agent-manager".to_owned()),
        "{processors:?}"
    );
    assert!(
        processors.contains(&"api-gateway".to_owned()),
        "{processors:?}"
    );

    let query = "consumer_state%7Bconsumer_state%3D%22running%22,flow%3D%22default%22%7D";
    let path = format!("/api/metrics/query?query={query}");
    let (_, body) = world.get(&path, "").await;
    let samples = body["data"]["result"].as_array().unwrap();
    assert!(samples.iter().any(|sample| {
        sample["metric"]["processor"] == "agent-manager" && sample["value"][1] == "1"
    }));
    let (_, body) = world
        .get("/api/metrics/query?query=input_tokens_total", "")
        .await;
    assert_eq!(body["data"]["result"], json!([]));
    assert_eq!(
        world.get("/api/metrics/query?query=rate(x)", "").await.0,
        400
    );
    assert_eq!(world.get("/api/metrics/series", "").await.0, 404);
    for path in ["/metrics", "/api/metrics", "/api/metrics/"] {
        assert_eq!(world.get(path, "").await.0, 200, "{path}");
    }
}

tg_testkit::on_both_buses!(queries_are_answered_from_the_live_mesh,);
