//! So many requests a second, by key, user and address.

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;

use crate::world::World;

const CONFIG: &str = "/api/v1/config";
/// More requests than a burst, and than what is let in meanwhile.
const MANY: usize = 1_000;

/// Asks until it is told to slow down.
async fn exhaust(world: &World, token: &str, otherwise: u16) -> reqwest::Response {
    for number in 0..MANY {
        let list = json!({"operation": "list"});
        let asked = world.http.post(world.url(CONFIG)).bearer_auth(token);
        let response = asked.json(&list).send().await.unwrap();
        if response.status() == 429 {
            assert!(number >= 10, "a burst of ten seconds: {number}");
            return response;
        }
        assert_eq!(response.status().as_u16(), otherwise);
    }
    panic!("it was never told to slow down");
}

async fn listed(world: &World, token: &str) -> u16 {
    let list = json!({"operation": "list"});
    world.post(CONFIG, token, list).await.0
}

fn reader_token(world: &World) -> String {
    let key = tg_jwt::SigningKey::generate().unwrap();
    world.fakes.iam.signing.lock().push(key.clone());
    let now = tg_mesh::clock::now().timestamp();
    let claims = tg_jwt::Claims::new("reader", "acme", 0, now);
    key.sign(&claims).unwrap()
}

async fn a_key_has_its_pace_and_is_told_when_to_come_again(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.settings.requests_a_second_of_a_key = 1;
    })
    .await;
    let refused = exhaust(&world, "tg_reader", 200).await;
    let wait: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=11).contains(&wait), "{wait}");
    let body: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(body["error"]["type"], "busy");
    let text = body["error"]["message"].as_str().unwrap();
    assert!(text.contains("key") && !text.contains("id of"), "{text}");
    // A second goes by now and then, and lets one in.
    let export = "/api/v1/flow/default/export/triples?stored=1";
    let mut tries = 0;
    while world.get(export, "tg_reader").await.0 != 429 {
        tries += 1;
        assert!(tries < MANY, "handshakes have the same pace");
    }
    // Another key, another credential of the same user, and who has none.
    assert_eq!(listed(&world, "tg_admin").await, 200);
    assert_eq!(listed(&world, &reader_token(&world)).await, 200);
    assert_eq!(listed(&world, "tg_wrong").await, 401);
}

async fn a_user_has_a_pace_whatever_they_come_with(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.settings.requests_a_second_of_a_user = 1;
    })
    .await;
    let token = reader_token(&world);
    exhaust(&world, "tg_reader", 200).await;
    let mut let_in = 0;
    while listed(&world, &token).await != 429 {
        let_in += 1;
        assert!(let_in < 10, "a token has no burst of its own");
    }
    assert_eq!(listed(&world, "tg_admin").await, 200);
}

async fn an_address_has_a_pace_also_for_those_who_are_not_known(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.settings.requests_a_second_of_an_address = 1;
    })
    .await;
    exhaust(&world, "tg_wrong", 401).await;
    let asked = world.fakes.iam.asked.lock().len();
    let login = json!({"username": "ada", "password": "p"});
    let mut refused = 0;
    for _ in 0..20 {
        let (status, _) = world.post("/api/v1/auth/login", "", login.clone()).await;
        refused += usize::from(status == 429);
        refused += usize::from(listed(&world, "tg_admin").await == 429);
    }
    assert!(refused > 0);
    let more = world.fakes.iam.asked.lock().len() - asked;
    assert!(
        more <= 3 * (40 - refused),
        "who is refused costs iam nothing"
    );
    assert_eq!(world.get("/health/ready", "").await.0, 200);
}

async fn a_socket_tells_the_request_and_stays_open(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.settings.requests_a_second_of_a_key = 1;
    })
    .await;
    let socket = world.socket("tg_reader").await;
    let mut answered = 0;
    let fault = loop {
        let frames = socket.ask("triples", "default", json!({})).await.unwrap();
        match frames[0].get("error") {
            Some(error) => break error.clone(),
            None => answered += 1,
        }
        assert!(answered < MANY, "it was never told to slow down");
    };
    assert!(answered >= 10, "{answered}");
    assert_eq!(fault["type"], "busy");
    let text = fault["message"].as_str().unwrap();
    assert!(text.contains("second"), "{text}");
    let again = socket.ask("triples", "default", json!({})).await.unwrap();
    assert!(!again.is_empty(), "the socket is open");
    let other = world.socket("tg_admin").await;
    let frames = other.ask("triples", "default", json!({})).await.unwrap();
    assert!(frames[0].get("error").is_none(), "{}", frames[0]);
}

tg_testkit::on_both_buses!(
    a_key_has_its_pace_and_is_told_when_to_come_again,
    a_user_has_a_pace_whatever_they_come_with,
    an_address_has_a_pace_also_for_those_who_are_not_known,
    a_socket_tells_the_request_and_stays_open,
);
