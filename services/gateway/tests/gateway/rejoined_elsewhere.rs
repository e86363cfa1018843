//! Streams of other services than the agent that are joined again through another gateway, whose process shares only the broker with
//! the one that keeps them.

use std::time::Duration;

use serde_json::{Value, json};
use tg_gateway::{AuthMode, GatewayHandle, GatewayOptions};
use tg_mesh::Host;
use tg_testkit::place::Place;

use crate::rejoined::{answer, asked, never_given, offsets, run_of};
use crate::socket::{Raw, hear, raw, say};
use crate::world::{BOUND, World};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// A gateway in a process of its own.
struct Other {
    _mesh: Host,
    handle: GatewayHandle,
    http: reqwest::Client,
}

impl Other {
    async fn start(place: &Place, auth_mode: AuthMode) -> Self {
        let mesh = tg_testkit::place::host(place.connect().await).await;
        for processor in tg_gateway::processors(&mesh) {
            mesh.host(processor).await.unwrap();
        }
        let options = GatewayOptions::new("127.0.0.1:0".parse().unwrap(), auth_mode);
        let handle = tg_gateway::serve(mesh.mesh().clone(), options).await;
        Self {
            _mesh: mesh,
            handle: handle.unwrap(),
            http: reqwest::Client::new(),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.handle.local_addr())
    }

    async fn get(&self, path: &str, token: &str) -> Value {
        reply(self.http.get(self.url(path)), token).await
    }

    async fn cancel(&self, run: &str, token: &str) -> Value {
        let body = json!({"operation": "cancel-run", "run": run});
        let request = self.http.post(self.url("/api/v1/requests")).json(&body);
        reply(request, token).await
    }

    async fn socket(&self) -> Raw {
        let url = format!("ws://{}/api/v1/socket", self.handle.local_addr());
        tokio_tungstenite::connect_async(url).await.unwrap().0
    }
}

async fn reply(request: reqwest::RequestBuilder, token: &str) -> Value {
    let request = match token {
        "" => request,
        token => request.bearer_auth(token),
    };
    let response = request.timeout(BOUND).send().await.unwrap();
    response.json().await.unwrap()
}

/// The bytes of a stream of events, without the heartbeats of a slow machine.
async fn events(url: String) -> String {
    let request = reqwest::Client::new().get(url).timeout(BOUND);
    let request = request.header("accept", "text/event-stream");
    let text = request.send().await.unwrap().text().await.unwrap();
    text.replace(": ping\n\n", "")
}

/// Asks until the reply is as wanted: a gateway that has just begun knows neither all workspaces nor all gateways.
async fn until(
    what: &str,
    mut ask: impl AsyncFnMut() -> Value,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    let asking = async {
        loop {
            let reply = ask().await;
            if wanted(&reply) {
                break reply;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(BOUND, asking).await.expect(what)
}

/// A system with its gateway and another gateway that reaches its streams, a socket of the first one and the name of a stream that is
/// over.
async fn gateways(auth_mode: AuthMode, token: &str) -> (World, Other, Raw, String) {
    let place = Place::rabbitmq().await;
    let world = World::start(&place, auth_mode).await;
    let other = Other::start(&place, auth_mode).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    if !token.is_empty() {
        say(&mut socket, json!({"type": "auth", "token": token})).await;
        assert_eq!(hear(&mut socket).await["type"], "auth-ok");
    }
    say(&mut socket, asked("q")).await;
    let run = run_of(&answer(&mut socket).await[0]);
    let path = format!("/api/v1/runs/{run}");
    until(
        "the other gateway reaches no stream",
        async || other.get(&path, token).await,
        |reply| reply["end_of_session"] == true,
    )
    .await;
    (world, other, socket, run)
}

fn is_elsewhere(reply: &Value) -> bool {
    let text = reply["error"]["message"].to_string();
    reply["error"]["type"] == "not-found" && text.contains("this gateway does not keep")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_has_the_same_bytes_through_another_gateway() {
    let (world, other, mut socket, _) = gateways(AuthMode::None, "").await;
    // The parts of the second one are longer than a message between gateways, and its first ones are not kept.
    for query in ["q", "long"] {
        say(&mut socket, asked(query)).await;
        let all = answer(&mut socket).await;
        let run = run_of(&all[0]);
        for offset in ["", "?offset=1", "?offset=2"] {
            let path = format!("/api/v1/runs/{run}{offset}");
            let first = events(world.url(&path)).await;
            assert!(first.contains(&run) && first.trim_end().ends_with("data: {}"));
            let again = events(other.url(&path)).await;
            assert!(again == first, "{query}{offset}: {} bytes", again.len());
        }
    }
    say(&mut socket, asked("q")).await;
    let all = answer(&mut socket).await;
    let mut there = other.socket().await;
    let resume = json!({"id": "r", "resume": {"run": run_of(&all[0]), "offset": 1}});
    say(&mut there, resume).await;
    let rest = answer(&mut there).await;
    assert_eq!(offsets(&rest), [Some(2), Some(3)]);
    for (again, first) in rest.iter().zip(&all[2..]) {
        assert_eq!(
            (&again["response"], &again["run"]),
            (&first["response"], &first["run"])
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_under_way_is_followed_and_cancelled_through_another_gateway() {
    let (world, other, mut socket, over) = gateways(AuthMode::None, "").await;
    say(&mut socket, asked("hang")).await;
    let run = run_of(&hear(&mut socket).await);
    let request = other.http.get(other.url(&format!("/api/v1/runs/{run}")));
    let request = request.header("accept", "text/event-stream");
    let mut response = request.timeout(BOUND).send().await.unwrap();
    let mut told = String::new();
    while !told.contains("forty") {
        let chunk = response.chunk().await.unwrap().expect("it is under way");
        told.push_str(&String::from_utf8_lossy(&chunk));
    }
    let expected = json!({"cancelled": run, "ended": false});
    assert_eq!(other.cancel(&run, "").await, expected);
    while let Some(chunk) = response.chunk().await.unwrap() {
        told.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(told.contains("\"cancelled\""), "{told}");
    // Whoever asked reads that too, and whoever joins it at the gateway that keeps it.
    let asker = answer(&mut socket).await;
    let last = asker.last().expect("a frame");
    assert_eq!(last["error"]["type"], "cancelled", "{last}");
    let told = events(world.url(&format!("/api/v1/runs/{run}"))).await;
    assert!(told.contains("\"cancelled\""), "{told}");
    let expected = json!({"cancelled": over, "ended": true});
    assert_eq!(other.cancel(&over, "").await, expected);
    // A client that has joined it there cancels it by a frame, too.
    say(&mut socket, asked("hang")).await;
    let run = run_of(&hear(&mut socket).await);
    let mut there = other.socket().await;
    say(&mut there, json!({"id": "r", "resume": {"run": run}})).await;
    for offset in [0, 1] {
        assert_eq!(hear(&mut there).await["offset"], offset);
    }
    say(&mut there, json!({"type": "cancel", "id": "r"})).await;
    assert_eq!(hear(&mut there).await["error"]["type"], "cancelled");
    let told = events(world.url(&format!("/api/v1/runs/{run}"))).await;
    assert!(told.contains("\"cancelled\""), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_gateway_that_keeps_a_stream_has_gone_another_one_says_so() {
    let (world, other, socket, run) = gateways(AuthMode::None, "").await;
    // A gateway waits for its sockets before it closes.
    drop(socket);
    // Nor is there one that nobody has heard of.
    let never = other.get("/api/v1/runs/x.g00000000", "").await;
    assert!(is_elsewhere(&never), "{never}");
    world.handle.close().await;
    let path = format!("/api/v1/runs/{run}");
    until(
        "the stream is still there",
        async || other.get(&path, "").await,
        is_elsewhere,
    )
    .await;
    let told = other.cancel(&run, "").await;
    assert!(is_elsewhere(&told), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_another_gateway_a_stream_is_its_askers_and_their_administrators() {
    let (_world, other, _socket, run) = gateways(AuthMode::Iam, "tg_reader").await;
    let path = format!("/api/v1/runs/{run}");
    let reply = other.get(&path, "tg_admin").await;
    assert_eq!(reply["error"]["message"], "run not found");
    let reply = other.cancel(&run, "tg_admin").await;
    assert_eq!(reply["error"]["message"], "run not found");
    let all = format!("{path}?all=true&workspace=acme");
    let reply = other.get(&all, "tg_admin").await;
    assert_eq!(reply["end_of_session"], true, "{reply}");
    // Those of another workspace are not of this one.
    let elsewhere = format!("{path}?all=true&workspace=default");
    let reply = other.get(&elsewhere, "tg_admin").await;
    assert_eq!(reply["error"]["message"], "run not found");
    let reply = other.get(&path, "tg_reader").await;
    assert_eq!(reply["end_of_session"], true, "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_another_gateway_a_stream_is_cancelled_only_with_the_right_to_read_it() {
    let (_world, other, mut socket, _) = gateways(AuthMode::Iam, "tg_admin").await;
    say(&mut socket, asked("hang")).await;
    let run = run_of(&hear(&mut socket).await);
    // Another key of the same user.
    let refused = other.cancel(&run, "tg_scoped").await;
    assert_eq!(refused["error"]["message"], "run not found", "{refused}");
    let unknown = other.cancel(&never_given(&run), "tg_scoped").await;
    assert_eq!(refused, unknown);
    let expected = json!({"cancelled": run, "ended": false});
    assert_eq!(other.cancel(&run, "tg_admin").await, expected);
}
