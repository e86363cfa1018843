//! Lines of the contract of threads as they hold over the bus; `crates/threads` holds them without one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tg_mesh::Responder;
use tg_schemas::msg::{ListenerRequest, ListenerResponse, ThreadsRequest};
use tg_testkit::flow::SOON;
use tg_testkit::place::Place;
use tg_threads::ThreadId;
use tokio::sync::Notify;

use crate::world::{ANY, World, console, forward, respond, says, send, text, tool};

/// A thread that the tests name themselves.
const THREAD: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";
/// Takes numbers.
const ADDER: &str = r#"{"description": "Adds.", "types": {"add": {"type": "object", "required": ["a"],
    "properties": {"a": {"type": "integer"}}}}}"#;

fn on(thread: &str, message: ThreadsRequest) -> ThreadsRequest {
    ThreadsRequest {
        thread: thread.to_owned(),
        ..message
    }
}

/// 134: the listener gets a given thread, and one that is no id is another one each time.
async fn line_134_a_given_thread_is_kept(place: Place) {
    let mut world = World::start(&place, &[("echo", tool("Echoes."))]).await;
    world.listen("echo", |got| respond(&got.thread_id)).await;
    let kept = (vec![THREAD.to_owned()], THREAD.to_owned());
    for _ in 0..2 {
        assert_eq!(world.texts(&on(THREAD, send("echo", "x"))).await, kept);
    }
    let mut new = Vec::new();
    for bad in ["abc", "abc", "", "6F1F6A52-6F0C-4D3E-9A53-3A1C4B1E2D70"] {
        let (said, thread) = world.texts(&on(bad, send("echo", "x"))).await;
        assert!(ThreadId::parse(&thread).is_ok(), "{bad}: {thread}");
        assert_eq!(said, std::slice::from_ref(&thread));
        assert!(!new.contains(&thread) && thread != THREAD, "{bad}");
        new.push(thread);
    }
}

/// A listener reads when its thread began: the same in each message.
async fn a_listener_reads_when_its_thread_began(place: Place) {
    let mut world = World::start(&place, &[("echo", tool("Echoes."))]).await;
    world
        .listen("echo", |got| respond(&got.since_ms.to_string()))
        .await;
    let (first, thread) = world.texts(&send("echo", "x")).await;
    assert_eq!(world.texts(&on(&thread, send("echo", "x"))).await.0, first);
    let began: i64 = first[0].parse().unwrap();
    assert!(began > 0, "{began}");
}

/// 135: of two messages to one listener each has a thread and what is kept for it.
async fn line_135_messages_from_outside_are_apart(place: Place) {
    let mut world = World::start(&place, &[("counter", tool("Counts."))]).await;
    let counts: Mutex<HashMap<String, u32>> = Mutex::default();
    world
        .listen("counter", move |got| {
            let mut counts = counts.lock();
            let count = counts.entry(got.thread_id).or_default();
            *count += 1;
            respond(&count.to_string())
        })
        .await;
    let message = send("counter", "x");
    let (one, two) = tokio::join!(world.texts(&message), world.texts(&message));
    assert_eq!((one.0, two.0), (vec!["1".to_owned()], vec!["1".to_owned()]));
    assert_ne!(one.1, two.1);
    let again = on(&one.1, send("counter", "x"));
    assert_eq!(world.texts(&again).await, (vec!["2".to_owned()], one.1));
}

/// 139: a listener that answers although nobody waits any more changes nothing, neither then nor in the next message.
async fn line_139_a_late_answer_is_dropped(place: Place) {
    let rows = [
        ("boss", tool("Asks two.")),
        ("quick", tool("Answers.")),
        ("late", tool("Answers late.")),
    ];
    let mut world = World::start(&place, &rows).await;
    let steps = || Arc::new(Notify::new());
    let (begun, go, gone) = (steps(), steps(), steps());
    let (begins, goes, is_gone) = (begun.clone(), go.clone(), gone.clone());
    let late = move |_: ListenerRequest, mut out: Responder<ListenerResponse>| {
        let (begins, goes, is_gone) = (begins.clone(), goes.clone(), is_gone.clone());
        async move {
            begins.notify_one();
            goes.notified().await;
            let sent = out.send(respond("late")).await;
            is_gone.notify_one();
            sent
        }
    };
    world.answers("late", late).await;
    let quick = move |_: ListenerRequest, mut out: Responder<ListenerResponse>| {
        let begun = begun.clone();
        async move {
            begun.notified().await;
            out.send(respond("quick")).await
        }
    };
    world.answers("quick", quick).await;
    world
        .listen("boss", |got| match text(&got.payload).as_str() {
            "ask" => ListenerResponse {
                forwards: vec![says("late", "x"), says("quick", "x")],
                ..forward("", "")
            },
            said => respond(said),
        })
        .await;
    let first = world.texts(&on(THREAD, send("boss", "ask"))).await;
    assert_eq!(first, (vec!["quick".to_owned()], THREAD.to_owned()));
    go.notify_one();
    let answered = tokio::time::timeout(SOON, gone.notified()).await;
    answered.expect("it answers");
    let next = world.texts(&on(THREAD, send("boss", "next"))).await;
    assert_eq!(next, (vec!["next".to_owned()], THREAD.to_owned()));
}

/// 142: queues are named by listeners whose names have dots, and a respond takes one name off the chain.
async fn line_142_dots_split_nothing(place: Place) {
    let rows = [
        ("team.lead", tool("Leads.")),
        ("team.lead.math.add", tool("Adds.")),
        ("team", tool("Is neither.")),
    ];
    let mut world = World::start(&place, &rows).await;
    world
        .listen("team.lead.math.add", |got| {
            respond(&format!("3 for {}", got.from_id))
        })
        .await;
    world
        .listen("team.lead", |got| match got.from_id.as_str() {
            "gateway" => forward("team.lead.math.add", "1+2"),
            from => respond(&format!("{from}: {}", text(&got.payload))),
        })
        .await;
    world.listen("team", |_| respond("it is not asked")).await;
    let (said, thread) = world.texts(&send("team.lead", "x")).await;
    assert_eq!(said, ["team.lead.math.add: 3 for team.lead"]);
    let show = ThreadsRequest {
        operation: "show-thread".to_owned(),
        ..on(&thread, send("", ""))
    };
    let shown = world.whole(&show).await.unwrap();
    assert_eq!(shown.chain, ["system", "mesh", "gateway", "team.lead"]);
}

/// 144: an agent without peers reaches itself and its caller; to itself it writes on its own thread.
async fn line_144_an_agent_without_peers(place: Place) {
    let thinker = format!(r#"{{"description": "Thinks.", "agent": true, "types": {ANY}}}"#);
    let rows = [("thinker", thinker), ("greeter", tool("Greets."))];
    let mut world = World::start(&place, &rows).await;
    let seen: Arc<Mutex<Vec<ListenerRequest>>> = Arc::default();
    let sees = seen.clone();
    world
        .listen("thinker", move |got| {
            sees.lock().push(got.clone());
            match (got.r#type.as_str(), text(&got.payload).as_str()) {
                ("systemerror", _) => forward("thinker", "think"),
                (_, "think") => respond("thought"),
                _ => forward("greeter", "hi"),
            }
        })
        .await;
    world
        .listen("greeter", |_| respond("it is not asked"))
        .await;
    let (said, thread) = world.texts(&send("thinker", "x")).await;
    assert_eq!(said, ["thought"]);
    let seen = seen.lock().clone();
    let hops: Vec<_> = seen
        .iter()
        .map(|one| (one.from_id.as_str(), one.is_self_call))
        .collect();
    let expected = [("gateway", false), ("system", false), ("thinker", true)];
    assert_eq!(hops, expected);
    assert!(seen.iter().all(|one| one.thread_id == thread), "{seen:?}");
}

/// 144: only an agent is restricted to its peers. A row that restricts another listener is left out by the name of the field,
/// and what would listen under its name is not asked.
async fn line_144_a_tool_with_peers_is_left_out(place: Place) {
    let row = |more: &str| format!(r#"{{"description": "Sends.", {more}, "types": {ANY}}}"#);
    let rows = [
        ("delegates", row(r#""delegates": true"#)),
        ("sends", row(r#""peers": ["greeter"]"#)),
        ("greeter", tool("Greets.")),
        ("logger", tool("Logs.")),
    ];
    let mut world = World::start(&place, &rows).await;
    for name in ["delegates", "sends"] {
        world.listen(name, |_| forward("logger", "hi")).await;
    }
    world.listen("logger", |_| respond("it is not asked")).await;
    for name in ["delegates", "sends"] {
        let refused = world.whole(&send(name, "x")).await.unwrap_err();
        assert_eq!(refused.kind.as_str(), "request-error", "{name}");
    }
    let list = ThreadsRequest {
        operation: "list-refused-listeners".to_owned(),
        ..send("", "")
    };
    let refused = world.whole(&list).await.unwrap().listeners;
    let names: Vec<_> = refused.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["delegates", "sends"]);
    for (one, field) in refused.iter().zip(["'delegates'", "'peers'"]) {
        let said = format!("{field} is for agents only");
        assert!(one.why.starts_with(&said), "{}", one.why);
    }
}

/// 145: whatever is wrong with a message, the huhs differ in the attempt alone, of which the first 4,096 bytes come back.
async fn line_145_huhs_are_one(place: Place) {
    let world = World::start(&place, &[("calculator.add", ADDER.to_owned())]).await;
    let long = "x".repeat(10_000);
    let attempt = format!("{}eA==", "eHh4".repeat(1365));
    let mut huhs = Vec::new();
    for (to, kind, raw, back) in [
        ("calculator.add", "add", "not json", "bm90IGpzb24="),
        ("calculator.add", "add", r#"{"a":"x"}"#, "eyJhIjoieCJ9"),
        ("calculator.add", "sub", r#"{"a":1}"#, "eyJhIjoxfQ=="),
        ("ghost", "add", r#"{"a":1}"#, "eyJhIjoxfQ=="),
        ("calculator.add", "add", &long, &attempt),
    ] {
        let message = ThreadsRequest {
            to: to.to_owned(),
            r#type: kind.to_owned(),
            payload: raw.to_owned(),
            streaming: false,
            ..console("", "", THREAD)
        };
        let mut messages = world.whole(&message).await.unwrap().messages;
        assert_eq!(messages.len(), 1, "{to} {kind}: {messages:?}");
        let mut huh = messages.remove(0);
        let attempt = huh.payload.remove("original_attempt");
        assert_eq!(attempt, Some(Value::from(back)), "{to} {kind}");
        huhs.push(huh);
    }
    assert_eq!(
        (huhs[0].from.as_str(), huhs[0].r#type.as_str()),
        ("system", "huh")
    );
    assert_eq!(huhs[0].payload["error"], "Invalid payload structure");
    assert!(huhs.iter().all(|huh| *huh == huhs[0]), "{huhs:?}");
}

/// 149: an agent reads what its registered peers take and what its respond ends, and of nobody else.
async fn line_149_usage_names_the_peers(place: Place) {
    let peers = r#""peers": ["calculator.add", "missing"]"#;
    let boss = format!(r#"{{"description": "Leads.", "agent": true, {peers}, "types": {ANY}}}"#);
    let rows = [
        ("boss", boss),
        ("calculator.add", ADDER.to_owned()),
        ("logger", tool("Logs.")),
    ];
    let mut world = World::start(&place, &rows).await;
    world
        .listen("boss", |got| {
            respond(&got.usage_instructions.unwrap_or_default())
        })
        .await;
    let (said, _) = world.texts(&send("boss", "x")).await;
    let [usage] = said.as_slice() else {
        panic!("{said:?}");
    };
    for part in [
        "You are boss. Leads.",
        "calculator.add: Adds.",
        r#""required":["a"]"#,
        r#"for example {"a":1}"#,
        "When you respond, your call ends",
    ] {
        assert!(usage.contains(part), "{part} is not in {usage}");
    }
    for part in ["missing", "logger", "console"] {
        assert!(!usage.contains(part), "{part} is in {usage}");
    }
}

tg_testkit::on_both_buses!(
    line_134_a_given_thread_is_kept,
    a_listener_reads_when_its_thread_began,
    line_135_messages_from_outside_are_apart,
    line_139_a_late_answer_is_dropped,
    line_142_dots_split_nothing,
    line_144_an_agent_without_peers,
    line_144_a_tool_with_peers_is_left_out,
    line_145_huhs_are_one,
    line_149_usage_names_the_peers,
);
