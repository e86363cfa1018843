//! Streams of other services than the agent that are joined again, at the gateway that took them (`rejoined_elsewhere`: through
//! another one); and endpoints where nothing goes on without its caller.

use serde_json::{Value, json};
use tg_gateway::{AuthMode, GatewayOptions};
use tg_testkit::place::Place;

use crate::runs::streamed;
use crate::socket::{Raw, agent, hear, raw, say};
use crate::world::{BOUND, World};

const RAG: &str = "/api/v1/flow/default/service/graph-rag";

pub fn asked(query: &str) -> Value {
    json!({"id": query, "service": "graph-rag", "flow": "default", "detach": true,
        "request": {"query": query, "streaming": true}})
}

/// The frames of the next answer.
pub async fn answer(socket: &mut Raw) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let frame = hear(socket).await;
        let last = frame["complete"] == true;
        all.push(frame);
        if last {
            return all;
        }
    }
}

pub fn run_of(frame: &Value) -> String {
    frame["run"].as_str().unwrap_or_default().to_owned()
}

pub fn offsets(frames: &[Value]) -> Vec<Option<u64>> {
    frames.iter().map(|one| one["offset"].as_u64()).collect()
}

async fn retrieval_is_joined_behind_any_part(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, asked("q")).await;
    let all = answer(&mut socket).await;
    assert_eq!(offsets(&all), [Some(0), Some(1), Some(2), Some(3)]);
    let run = run_of(&all[0]);
    let resume = json!({"id": "r", "resume": {"run": run, "offset": 1}});
    say(&mut socket, resume).await;
    let rest = answer(&mut socket).await;
    assert_eq!(offsets(&rest), [Some(2), Some(3)]);
    for (again, first) in rest.iter().zip(&all[2..]) {
        assert_eq!(
            (&again["response"], &again["run"]),
            (&first["response"], &first["run"])
        );
    }
    // Over HTTP too: all of it, what is behind an event, and nothing.
    let path = format!("/api/v1/runs/{run}");
    let whole = streamed(world.http.get(world.url(&path))).await;
    let ids: Vec<&str> = whole.iter().map(|(id, _)| id.as_str()).collect();
    let expected = [0, 1, 2, 3].map(|number| format!("{run}:{number}"));
    assert_eq!(ids, expected);
    for ((_, again), first) in whole.iter().zip(&all) {
        assert_eq!(again["response"], first["response"]);
    }
    let again = world.http.post(world.url(RAG)).json(&json!({"query": "q"}));
    let again = again.header("last-event-id", format!("{run}:2"));
    let last = streamed(again).await;
    assert_eq!((last.len(), &last[0].0), (1, &expected[3]));
    let nothing = format!("{path}?offset=3");
    let nothing = streamed(world.http.get(world.url(&nothing))).await;
    let end = json!({"response": {}, "complete": true});
    assert_eq!(nothing, [(String::new(), end)]);
    let (_, reply) = world.get(&path, "").await;
    assert_eq!(reply["end_of_session"], true, "{reply}");
    // Only what goes on without its caller is kept.
    let mut cancelled = asked("q");
    cancelled["detach"] = json!(false);
    say(&mut socket, cancelled).await;
    let all = answer(&mut socket).await;
    assert_eq!((all.len(), offsets(&all)[0]), (4, None));
}

async fn a_turn_of_a_session_is_joined_again(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    let turn = json!({"id": "t", "service": "sessions", "detach": true, "request":
        {"operation": "send-message", "session_id": "thread", "content": "x", "streaming": true}});
    say(&mut socket, turn).await;
    let all = answer(&mut socket).await;
    let resume = json!({"id": "r", "resume": {"run": run_of(&all[0]), "offset": 0}});
    say(&mut socket, resume).await;
    let rest = answer(&mut socket).await;
    assert_eq!((all.len(), rest.len()), (3, 2));
    assert_eq!(rest[1]["response"], all[2]["response"]);
}

async fn what_listeners_say_is_joined_again(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    let message = json!({"id": "m", "service": "threads", "detach": true, "request":
        {"operation": "send-message", "to": "greeter", "type": "textinput", "payload": {"text": "hi"},
            "streaming": true}});
    say(&mut socket, message).await;
    let all = answer(&mut socket).await;
    assert_eq!(offsets(&all), [Some(0), Some(1), Some(2)]);
    let resume = json!({"id": "r", "resume": {"run": run_of(&all[0]), "offset": 0}});
    say(&mut socket, resume).await;
    let rest = answer(&mut socket).await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0]["response"]["chunk"], "-two");
    assert_eq!(rest[1]["response"], all[2]["response"]);
}

const SESSION: &str = "/a1/agents/ann/sessions/s/messages";
const SESSION_STREAM: &str = "/a1/agents/ann/sessions/s/messages/stream";
/// Its turn does not end.
const HANGING_STREAM: &str = "/a1/agents/ann/sessions/slow/messages/stream";
const CHAT_STREAM: &str = "/a1/agents/ann/chat/stream";
const CONVERSATION: &str = "/api/v1/workspaces/default/agents/a/conversations/c/messages";
const CONVERSATION_STREAM: &str =
    "/api/v1/workspaces/default/agents/a/conversations/c/messages/stream";

async fn endpoints_that_do_not_read_the_header_refuse_it(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let asked = async |path: &str, body: &Value, (name, value): (&str, &str)| {
        let request = world.http.post(world.url(path)).header(name, value);
        let response = request.json(body).timeout(BOUND).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let said = json!([{"role": "user", "content": "hi"}]);
    for (path, body) in [
        (
            "/v1/chat/completions",
            json!({"model": "one", "messages": said}),
        ),
        (
            "/v1/messages",
            json!({"model": "one", "max_tokens": 64, "messages": said}),
        ),
        ("/a1/agents/ann/chat", json!({"message": "x"})),
        (SESSION, json!({"message": "x"})),
        (CONVERSATION, json!({"content": "x"})),
        ("/langgraph/assistants/search", json!({})),
        (
            "/mcp",
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ),
    ] {
        for header in [
            ("x-on-disconnect", "detach"),
            ("x-on-disconnect", "grace=9"),
            ("x-detach", "true"),
        ] {
            let (status, told) = asked(path, &body, header).await;
            assert_eq!(status, 400, "{path} {header:?}: {told}");
            let named = format!("{}: must be ", header.0);
            assert!(told.contains(&named), "{path} {header:?}: {told}");
        }
        for header in [("x-on-disconnect", "cancel"), ("x-detach", "false")] {
            let (status, told) = asked(path, &body, header).await;
            // The runs of LangGraph have a field for it, and these turns go on: the header would not be honoured.
            let turns = [SESSION, CONVERSATION].contains(&path);
            let decides_nothing = turns || path.starts_with("/langgraph");
            let is_refused = decides_nothing && header.0 == "x-on-disconnect";
            assert_eq!(status == 400, is_refused, "{path} {header:?}: {told}");
            assert!(
                is_refused || matches!(status, 200 | 201),
                "{path} {header:?}: {told}"
            );
            let named = "x-on-disconnect: must be left out";
            assert!(!is_refused || told.contains(named), "{path}: {told}");
        }
    }
}

/// Where operations are answered with events, what they are asked, and whether the turn goes on whatever the header says.
fn streams_of_operations() -> Vec<(&'static str, Value, bool)> {
    vec![
        (CHAT_STREAM, json!({"message": "x"}), false),
        (SESSION_STREAM, json!({"message": "x"}), true),
        (CONVERSATION_STREAM, json!({"content": "x"}), false),
    ]
}

/// Asks with a header. The status, and the body without signs of life.
async fn posted(
    world: &World,
    (path, body): (&str, &Value),
    (name, value): (&str, &str),
) -> (u16, String) {
    let request = world.http.post(world.url(path)).header(name, value);
    let response = request.json(body).timeout(BOUND).send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, text.replace(": ping\n\n", ""))
}

async fn events_of_operations_know_who_may_leave_them(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for (path, body, goes_on) in streams_of_operations() {
        for (header, is_taken) in [
            (("x-on-disconnect", "detach"), true),
            (("x-detach", "true"), true),
            (("x-detach", "false"), true),
            (("x-on-disconnect", "cancel"), !goes_on),
            (("x-on-disconnect", "grace=9"), false),
        ] {
            let (status, told) = posted(&world, (path, &body), header).await;
            let expected = if is_taken { 200 } else { 400 };
            assert_eq!(status, expected, "{path} {header:?}: {told}");
            let is_named = told.contains("x-on-disconnect: must be ");
            assert_eq!(is_named, !is_taken, "{path} {header:?}: {told}");
        }
    }
}

async fn events_of_operations_are_joined_behind_any_of_them(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for (path, body, _) in streams_of_operations() {
        let detach = ("x-on-disconnect", "detach");
        let (_, whole) = posted(&world, (path, &body), detach).await;
        let ids: Vec<&str> = whole
            .lines()
            .filter_map(|line| line.strip_prefix("id: "))
            .collect();
        let (run, _) = ids[0].rsplit_once(':').unwrap();
        let expected = [0, 1, 2].map(|number| format!("{run}:{number}"));
        assert_eq!(ids, expected, "{path}: {whole}");
        let events: Vec<&str> = whole.split_inclusive("\n\n").collect();
        for (at, id) in ids.iter().enumerate() {
            let rest = posted(&world, (path, &body), ("last-event-id", *id)).await;
            assert_eq!(rest, (200, events[at + 1..].concat()), "{path}: {id}");
        }
        // Without the word nothing is kept, and events have no place.
        let (_, plain) = posted(&world, (path, &body), ("x-detach", "false")).await;
        assert!(
            plain.contains("event: done") && !plain.contains("id: "),
            "{plain}"
        );
        let never = format!("{}:0", never_given(run));
        for (id, expected) in [(never.as_str(), 404), ("r:1", 404), ("7", 400)] {
            let (status, told) = posted(&world, (path, &body), ("last-event-id", id)).await;
            assert_eq!(status, expected, "{path} {id}: {told}");
        }
    }
}

async fn a_turn_that_was_left_is_joined_until_it_is_cancelled(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let body = json!({"message": "x"});
    let request = world.http.post(world.url(HANGING_STREAM)).json(&body);
    let request = request.header("x-on-disconnect", "detach").timeout(BOUND);
    let mut left = request.send().await.unwrap();
    let mut begun = String::new();
    while !begun.contains("data: ") {
        let piece = left.chunk().await.unwrap().expect("an event");
        begun.push_str(std::str::from_utf8(&piece).unwrap());
    }
    drop(left);
    let id = begun.lines().find_map(|line| line.strip_prefix("id: "));
    let id = id.expect("a place");
    let (run, _) = id.rsplit_once(':').unwrap();
    let cancel = json!({"operation": "cancel-run", "run": run});
    let (rest, cancelled) = tokio::join!(
        posted(&world, (HANGING_STREAM, &body), ("last-event-id", id)),
        world.post("/api/v1/requests", "", cancel),
    );
    assert_eq!(cancelled.1, json!({"cancelled": run, "ended": false}));
    let (status, text) = rest;
    assert_eq!(status, 200, "{text}");
    assert!(text.starts_with("event: error\n"), "{text}");
    assert!(text.contains("turn_interrupted"), "{text}");
    assert!(text.contains("a turn of a session continues"), "{text}");
}

async fn events_of_operations_are_joined_by_their_account_alone(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let body = json!({"message": "x"});
    let asks = async |key: &str, user: &str, (name, value): (&str, &str)| {
        let request = world.http.post(world.url(SESSION_STREAM)).bearer_auth(key);
        let request = request.header("spass-user-id", user).header(name, value);
        let response = request.json(&body).timeout(BOUND).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, text.replace(": ping\n\n", ""))
    };
    let detach = ("x-on-disconnect", "detach");
    // The last of them has the right user, and may not ask agents.
    for (asker, others) in [
        ("tg_reader", ["tg_admin", "tg_manager", "tg_neighbour"]),
        ("tg_admin", ["tg_reader", "tg_manager", "tg_scoped"]),
    ] {
        let (status, whole) = asks(asker, "ann", detach).await;
        assert_eq!(status, 200, "{asker}: {whole}");
        let id = whole.lines().find_map(|line| line.strip_prefix("id: "));
        let id = id.expect("a place");
        let (_, rest) = whole.split_once("\n\n").expect("an event");
        // The application vouches for the user whom it names.
        for user in ["ann", "bob"] {
            let joined = asks(asker, user, ("last-event-id", id)).await;
            assert_eq!(joined, (200, rest.to_owned()), "{asker} {user}");
        }
        for other in others {
            let (status, told) = asks(other, "ann", ("last-event-id", id)).await;
            assert_eq!(status, 404, "{asker} {other}: {told}");
            assert!(told.contains("run not found"), "{asker} {other}: {told}");
        }
    }
}

async fn a_stream_that_was_left_goes_on_and_is_cancelled_by_who_joins_it(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, asked("hang")).await;
    let run = run_of(&hear(&mut socket).await);
    assert_eq!(hear(&mut socket).await["response"]["response"], "forty");
    socket.close(None).await.unwrap();
    let mut socket = raw(&world, "/api/v1/socket").await;
    let resume = json!({"id": "r", "resume": {"run": run}});
    say(&mut socket, resume.clone()).await;
    for offset in [0, 1] {
        assert_eq!(hear(&mut socket).await["offset"], offset);
    }
    say(&mut socket, json!({"type": "cancel", "id": "r"})).await;
    assert_eq!(hear(&mut socket).await["error"]["type"], "cancelled");
    // Who joins once more gets that too.
    say(&mut socket, resume).await;
    let all = answer(&mut socket).await;
    assert_eq!(offsets(&all), [Some(0), Some(1), None]);
    assert_eq!(all[2]["error"]["type"], "cancelled", "{:?}", all[2]);
    let cancel = json!({"operation": "cancel-run", "run": run});
    let (_, reply) = world.post("/api/v1/requests", "", cancel).await;
    assert_eq!(reply, json!({"cancelled": run, "ended": true}));
}

async fn what_was_cut_of_a_long_stream_is_announced(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, asked("long")).await;
    let all = answer(&mut socket).await;
    assert_eq!(all.len(), 9);
    let run = run_of(&all[0]);
    let kept = streamed(world.http.get(world.url(&format!("/api/v1/runs/{run}")))).await;
    let announced = &kept[0].1["response"];
    assert_eq!(announced["message_type"], "gap");
    let next = announced["gap"]["next"].as_u64().unwrap();
    assert_eq!(announced["gap"]["first"], 0);
    let ids: Vec<&str> = kept.iter().map(|(id, _)| id.as_str()).collect();
    let expected: Vec<String> = (next - 1..9).map(|n| format!("{run}:{n}")).collect();
    assert_eq!(ids, expected);
}

/// On a bus inside the process there is no other one to ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_gateway_of_the_same_process_says_that_it_does_not_have_it() {
    let world = World::start(&Place::embedded(), AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, asked("q")).await;
    let run = run_of(&answer(&mut socket).await[0]);
    let options = GatewayOptions::new("127.0.0.1:0".parse().unwrap(), AuthMode::None);
    let other = tg_gateway::serve(world.mesh.mesh().clone(), options).await;
    let other = other.unwrap();
    let cancel = json!({"operation": "cancel-run", "run": run});
    let read = world.http.get(format!("{}api/v1/runs/{run}", other.url()));
    let cancel = world
        .http
        .post(format!("{}api/v1/requests", other.url()))
        .json(&cancel);
    for request in [read, cancel] {
        let reply: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(reply["error"]["type"], "not-found", "{reply}");
        let text = reply["error"]["message"].to_string();
        assert!(text.contains("this gateway does not keep"), "{text}");
    }
}

async fn a_stream_is_its_askers_and_their_administrators(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, json!({"type": "auth", "token": "tg_reader"})).await;
    assert_eq!(hear(&mut socket).await["type"], "auth-ok");
    say(&mut socket, asked("q")).await;
    let run = run_of(&answer(&mut socket).await[0]);
    let path = format!("/api/v1/runs/{run}");
    let (_, reply) = world.get(&path, "tg_reader").await;
    assert_eq!(reply["end_of_session"], true, "{reply}");
    let (_, reply) = world.get(&path, "tg_admin").await;
    assert_eq!(reply["error"]["message"], "run not found");
    let cancel = json!({"operation": "cancel-run", "run": run});
    let (_, reply) = world.post("/api/v1/requests", "tg_admin", cancel).await;
    assert_eq!(reply["error"]["message"], "run not found");
    let all = format!("{path}?all=true&workspace=acme");
    let (_, reply) = world.get(&all, "tg_admin").await;
    assert_eq!(reply["end_of_session"], true, "{reply}");
    // Those of another workspace are not of this one.
    let elsewhere = format!("{path}?all=true&workspace=default");
    let (_, reply) = world.get(&elsewhere, "tg_admin").await;
    assert_eq!(reply["error"]["message"], "run not found");
}

/// A name that the gateway which keeps a stream would give to another one.
pub fn never_given(run: &str) -> String {
    let (_, mark) = run.rsplit_once('.').expect("a mark");
    format!("never.{mark}")
}

async fn a_stream_is_cancelled_only_with_the_right_to_read_it(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, json!({"type": "auth", "token": "tg_admin"})).await;
    assert_eq!(hear(&mut socket).await["type"], "auth-ok");
    say(&mut socket, asked("hang")).await;
    let run = run_of(&hear(&mut socket).await);
    let cancel = async |run: &str, token: &str| {
        let cancel = json!({"operation": "cancel-run", "run": run});
        world.post("/api/v1/requests", token, cancel).await
    };
    // Another key of the same user.
    let (status, refused) = cancel(&run, "tg_scoped").await;
    assert_eq!(refused["error"]["message"], "run not found", "{refused}");
    let unknown = cancel(&never_given(&run), "tg_scoped").await;
    assert_eq!((status, refused), unknown);
    // Nor by the id of its request.
    let by_id = async |id: &str, token: &str| {
        let cancel = json!({"operation": "cancel-request", "id": id});
        world.post("/api/v1/requests", token, cancel).await
    };
    let (id, _) = run.rsplit_once('.').expect("a mark");
    let unknown = by_id("other", "tg_scoped").await;
    assert_eq!(unknown.1["error"]["message"], "request not found");
    assert_eq!(by_id(id, "tg_scoped").await, unknown);
    let (_, reply) = cancel(&run, "tg_admin").await;
    assert_eq!(reply, json!({"cancelled": run, "ended": false}));
    // A run of the agent, which is here and in the agent's ledger.
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, json!({"type": "auth", "token": "tg_admin"})).await;
    assert_eq!(hear(&mut socket).await["type"], "auth-ok");
    let mut asked = agent(json!("a"), "hang");
    asked["detach"] = json!(true);
    say(&mut socket, asked).await;
    let run = run_of(&hear(&mut socket).await);
    assert_eq!(by_id(&run, "tg_scoped").await, unknown);
    // One of which only the ledger knows.
    assert_eq!(by_id("r", "tg_scoped").await, unknown);
    assert!(world.fakes.runs_cancelled.lock().is_empty());
    let (_, reply) = by_id(&run, "tg_admin").await;
    assert_eq!(reply["cancelled"], run, "{reply}");
}

tg_testkit::on_both_buses!(
    a_stream_is_cancelled_only_with_the_right_to_read_it,
    retrieval_is_joined_behind_any_part,
    a_turn_of_a_session_is_joined_again,
    what_listeners_say_is_joined_again,
    endpoints_that_do_not_read_the_header_refuse_it,
    events_of_operations_know_who_may_leave_them,
    events_of_operations_are_joined_behind_any_of_them,
    a_turn_that_was_left_is_joined_until_it_is_cancelled,
    events_of_operations_are_joined_by_their_account_alone,
    a_stream_that_was_left_goes_on_and_is_cancelled_by_who_joins_it,
    what_was_cut_of_a_long_stream_is_announced,
    a_stream_is_its_askers_and_their_administrators,
);
