//! Threads as whoever is outside sees them, over listeners of the test's own on either bus.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_clients::listeners::listen;
use tg_mesh::Responder;
use tg_schemas::ErrorCode;
use tg_schemas::msg::{
    ListenerMessage, ListenerRequest, ListenerResponse, ThreadMessage, ThreadsRequest,
    ThreadsResponse,
};
use tg_testkit::flow::SOON;
use tg_testkit::place::Place;

use crate::world::{ANY, World, console, forward, ids, respond, says, send, text, tool};

/// 136 to 138: forwards, responds, and what a sub-listener keeps, over the bus.
async fn a_message_goes_along_its_chain(place: Place) {
    let rows = [
        ("researcher", tool("Researches.")),
        ("calculator", tool("Keeps a number.")),
    ];
    let mut world = World::start(&place, &rows).await;
    let kept: Arc<Mutex<HashMap<String, String>>> = Arc::default();
    world
        .listen("calculator", move |got| {
            assert_eq!((got.from_id.as_str(), got.own_name), ("researcher", None));
            let mut kept = kept.lock();
            match text(&got.payload).strip_prefix("store ") {
                Some(value) => {
                    kept.insert(got.thread_id, value.to_owned());
                    respond("stored")
                }
                None => respond(kept.get(&got.thread_id).map_or("nothing", String::as_str)),
            }
        })
        .await;
    world
        .listen("researcher", |got| match text(&got.payload).as_str() {
            "first" => forward("calculator", "store 5"),
            "stored" | "second" => forward("calculator", "recall"),
            answer => respond(answer),
        })
        .await;
    let (said, thread) = world.texts(&send("researcher", "first")).await;
    assert_eq!(said, ["5"]);
    let again = ThreadsRequest {
        thread: thread.clone(),
        ..send("researcher", "second")
    };
    assert_eq!(
        world.texts(&again).await,
        (vec!["nothing".to_owned()], thread)
    );
}

/// 143, 145, 147: what is not a peer, not there, not taken, and what panics.
async fn faults_say_nothing_of_their_cause(place: Place) {
    let peers = format!(
        r#"{{"description": "Asks.", "agent": true, "peers": ["broken", "absent"], "types": {ANY}}}"#
    );
    let rows = [
        ("asker", peers),
        ("broken", tool("Breaks.")),
        ("absent", tool("Is not there.")),
        ("logger", tool("Logs.")),
    ];
    let mut world = World::start(&place, &rows).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    world
        .listen("broken", move |_| {
            counted.fetch_add(1, Ordering::AcqRel);
            panic!("a secret");
        })
        .await;
    world
        .listen("asker", |got| {
            assert_eq!(got.own_name.as_deref(), Some("asker"));
            let told = got.usage_instructions.unwrap_or_default();
            assert!(told.contains("broken: Breaks.") && !told.contains("logger"));
            match got.r#type.as_str() {
                "systemerror" => respond(&Value::Object(got.payload).to_string()),
                _ => forward(&text(&got.payload), "x"),
            }
        })
        .await;
    let routing = r#"{"code":"routing","message":"Message could not be delivered. Please verify your target and try again.","retry_allowed":true}"#;
    for wanted in ["logger", "nosuch", "absent"] {
        assert_eq!(
            world.texts(&send("asker", wanted)).await.0,
            [routing],
            "{wanted}"
        );
    }
    let (said, _) = world.texts(&send("asker", "broken")).await;
    assert!(
        said[0].contains("validation") && !said[0].contains("secret"),
        "{said:?}"
    );
    assert_eq!(calls.load(Ordering::Acquire), 1);
    // A message that was put back would be handled before the next one.
    world.texts(&send("asker", "broken")).await;
    assert_eq!(calls.load(Ordering::Acquire), 2);
    let mut bad = vec![send("ghost", "x"), send("asker", "x"), send("asker", "x")];
    bad[1].r#type = "sub".to_owned();
    bad[2].payload = "not json".to_owned();
    for request in bad {
        let error = world.whole(&request).await.unwrap_err();
        let told = (error.kind.as_str(), error.message.as_str());
        assert_eq!(told, ("request-error", "Invalid payload structure"));
        assert_eq!(error.code(), ErrorCode::BadRequest);
    }
}

/// 140, 146, and that a thread is its caller's alone.
async fn threads_end_and_are_shown_to_few(place: Place) {
    let rows = [
        ("echo", tool("Echoes.")),
        ("sink", tool("Takes.")),
        ("liar", tool("Lies.")),
    ];
    let mut world = World::start(&place, &rows).await;
    world
        .listen("echo", |got| respond(&text(&got.payload)))
        .await;
    world
        .listen("sink", |_| ListenerResponse {
            end_of_stream: true,
            ..ListenerResponse::default()
        })
        .await;
    world
        .listen("liar", |got| match got.r#type.as_str() {
            "huh" => respond("sorry"),
            _ => {
                let mut lie = respond("x");
                lie.respond.as_mut().unwrap().r#type = "systemerror".to_owned();
                lie
            }
        })
        .await;
    assert_eq!(world.texts(&send("liar", "x")).await.0, ["sorry"]);
    let (said, thread) = world.texts(&send("sink", "x")).await;
    assert!(said.is_empty());
    let show = |thread: &str| ThreadsRequest {
        operation: "show-thread".to_owned(),
        thread: thread.to_owned(),
        ..send("", "")
    };
    let gone = world.whole(&show(&thread)).await.unwrap_err();
    assert_eq!(gone.code(), ErrorCode::NotFound);
    let (_, thread) = world.texts(&send("echo", "x")).await;
    let shown = world.whole(&show(&thread)).await.unwrap();
    assert_eq!(shown.chain, ["system", "mesh", "gateway", "echo"]);
    let on = ThreadsRequest {
        thread: thread.clone(),
        ..send("echo", "x")
    };
    let other: ThreadsResponse = world.ask(&on, "bob").last().await.unwrap();
    assert_ne!(other.thread, thread);
    let close = ThreadsRequest {
        operation: "close-thread".to_owned(),
        ..show(&thread)
    };
    assert_eq!(world.ask(&close, "bob").last().await.unwrap().closed, 0);
    assert!(world.whole(&close).await.unwrap().closed > 0);
    assert_ne!(world.texts(&on).await.1, thread);
    let nowhere = ThreadsRequest {
        flow: "other".to_owned(),
        ..send("echo", "x")
    };
    let error = world.whole(&nowhere).await.unwrap_err();
    assert_eq!(error.message, "flow: there is no flow 'other'");
}

/// 150 from the side of the service: pieces, the prompt, and the same thread for the next line.
async fn a_console_talks(place: Place) {
    let mut world = World::start(&place, &[("greeter", tool("Greets."))]).await;
    let answer = |got: ListenerRequest, mut out: Responder<ListenerResponse>| async move {
        for chunk in ["hello ", "there"] {
            let piece = ListenerResponse {
                chunk: chunk.to_owned(),
                ..ListenerResponse::default()
            };
            out.send(piece).await?;
        }
        out.send(respond(&format!("hello {}", text(&got.payload))))
            .await
    };
    let (workspace, flow) = ids();
    let peer = &world.flow.mesh;
    let listening = listen(peer, (&workspace, &flow), "greeter", answer).await;
    world.listening.push(listening.unwrap());
    let list = ThreadsRequest {
        operation: "list-listeners".to_owned(),
        ..send("", "")
    };
    let listed = world.whole(&list).await.unwrap().listeners;
    let names: Vec<_> = listed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["agent", "console", "console-router", "greeter"]);
    let mut thread = String::new();
    for _ in 0..3 {
        let mut answer = world.ask(&console("greeter", "you", &thread), "ann");
        let (mut said, mut prompts, mut last) = (String::new(), Vec::<ThreadMessage>::new(), None);
        while let Some(part) = answer.next().await {
            let part = part.unwrap();
            said.push_str(&part.chunk);
            prompts.extend(part.messages.clone());
            last = Some(part);
        }
        let last = last.unwrap();
        assert_eq!(said, "hello there");
        assert_eq!(prompts.len(), 1);
        assert_eq!(prompts[0].r#type, "consoleprompt");
        let shown = json!({"output": "hello you", "source": "greeter", "show_banner": false});
        assert_eq!(Value::Object(prompts[0].payload.clone()), shown);
        assert!(thread.is_empty() || thread == last.thread);
        thread = last.thread;
    }
}

/// Whoever gives up stops what runs for them; the thread goes on with the next message.
async fn what_is_given_up_stops(place: Place) {
    let mut world = World::start(&place, &[("slow", tool("Takes long."))]).await;
    let stopped = Arc::new(tokio::sync::Notify::new());
    let tells = stopped.clone();
    let answer = move |got: ListenerRequest, mut out: Responder<ListenerResponse>| {
        let tells = tells.clone();
        async move {
            if text(&got.payload) != "wait" {
                return out.send(respond("back")).await;
            }
            let piece = ListenerResponse {
                chunk: "so far".to_owned(),
                ..ListenerResponse::default()
            };
            out.send(piece).await?;
            out.cancelled().cancelled().await;
            tells.notify_one();
            Ok(())
        }
    };
    let (workspace, flow) = ids();
    let peer = &world.flow.mesh;
    let listening = listen(peer, (&workspace, &flow), "slow", answer).await;
    world.listening.push(listening.unwrap());
    let wait = ThreadsRequest {
        streaming: true,
        ..send("slow", "wait")
    };
    let mut waiting = world.ask(&wait, "ann");
    let mut thread = String::new();
    while let Some(part) = waiting.next().await {
        let part = part.unwrap();
        if !part.thread.is_empty() {
            thread = part.thread;
        }
        if part.chunk == "so far" {
            break;
        }
    }
    drop(waiting);
    let told = tokio::time::timeout(SOON, stopped.notified()).await;
    told.expect("the listener is stopped");
    let again = ThreadsRequest {
        thread: thread.clone(),
        ..send("slow", "again")
    };
    assert_eq!(world.texts(&again).await, (vec!["back".to_owned()], thread));
}

/// A listener has one message of a thread at a time, in their order.
async fn a_thread_has_one_message_at_a_time(place: Place) {
    let rows = [
        ("boss", tool("Asks two.")),
        ("left", tool("One.")),
        ("right", tool("Another.")),
    ];
    let mut world = World::start(&place, &rows).await;
    for name in ["left", "right"] {
        world.listen(name, |_| respond("done")).await;
    }
    let state = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let shared = state.clone();
    let answer = move |got: ListenerRequest, mut out: Responder<ListenerResponse>| {
        let state = shared.clone();
        async move {
            let (inside, answers) = &*state;
            assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "two at a time");
            tokio::task::yield_now().await;
            let returned = match (got.from_id.as_str(), answers.load(Ordering::Acquire)) {
                ("gateway", _) => ListenerResponse {
                    forwards: vec![says("left", "x"), says("right", "x")],
                    ..forward("", "")
                },
                (_, 0) => {
                    answers.fetch_add(1, Ordering::AcqRel);
                    // To oneself: the second answer has come meanwhile, or comes.
                    forward("boss", "think")
                }
                ("boss", _) => ListenerResponse {
                    end_of_stream: true,
                    ..ListenerResponse::default()
                },
                _ => respond("both"),
            };
            inside.fetch_sub(1, Ordering::AcqRel);
            out.send(returned).await
        }
    };
    let (workspace, flow) = ids();
    let peer = &world.flow.mesh;
    let listening = listen(peer, (&workspace, &flow), "boss", answer).await;
    world.listening.push(listening.unwrap());
    for _ in 0..20 {
        state.1.store(0, Ordering::Release);
        assert_eq!(world.texts(&send("boss", "x")).await.0, ["both"]);
    }
}

/// What listeners have at a time is bounded, and what is beyond cannot be delivered.
async fn what_listeners_have_is_bounded(place: Place) {
    let rows = [("ping", tool("Pings.")), ("pong", tool("Pongs."))];
    let mut world = World::start(&place, &rows).await;
    let large = "x".repeat(300_000);
    world
        .listen("ping", move |got| match got.from_id.as_str() {
            "system" => respond(&Value::Object(got.payload).to_string()),
            "gateway" => ListenerResponse {
                forwards: vec![says("pong", &large); 40],
                ..forward("", "")
            },
            _ => ListenerResponse {
                end_of_stream: true,
                ..ListenerResponse::default()
            },
        })
        .await;
    world.listen("pong", |_| respond("pong")).await;
    let (said, _) = world.texts(&send("ping", "x")).await;
    assert!(!said.is_empty());
    assert!(said.iter().all(|one| one.contains("routing")), "{said:?}");
}

/// An answer that was too large leaves nothing in progress: the thread ends as any other.
async fn what_was_too_large_is_over(place: Place) {
    let rows = [("boss", tool("Says much.")), ("other", tool("Is asked."))];
    let mut world = World::start(&place, &rows).await;
    let large = "x".repeat(900_000);
    world.listen("other", |_| respond("x")).await;
    world
        .listen("boss", move |got| {
            let mut returned = ListenerResponse {
                end_of_stream: true,
                ..ListenerResponse::default()
            };
            if text(&got.payload) == "much" {
                let shown = ListenerMessage {
                    to: "console".to_owned(),
                    r#type: "consoleprompt".to_owned(),
                    payload: [("output".to_owned(), json!(large))].into_iter().collect(),
                };
                returned.forwards = vec![shown; 10];
                returned.forwards.push(says("other", "x"));
            }
            returned
        })
        .await;
    let on = |said: &str| ThreadsRequest {
        thread: "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70".to_owned(),
        ..send("boss", said)
    };
    let error = world.whole(&on("much")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge, "{error}");
    let (said, thread) = world.texts(&on("nothing")).await;
    assert!(said.is_empty() && thread == on("").thread, "{said:?}");
    let show = ThreadsRequest {
        operation: "show-thread".to_owned(),
        ..on("")
    };
    let gone = world.whole(&show).await.unwrap_err();
    assert_eq!(gone.code(), ErrorCode::NotFound);
}

/// Whoever is asked and never answers holds up nobody, once nobody waits for it: it is stopped.
async fn what_is_thrown_away_is_not_waited_for(place: Place) {
    let rows = [
        ("boss", tool("Asks two.")),
        ("slow", tool("Never answers.")),
        ("quick", tool("Answers.")),
    ];
    let mut world = World::start(&place, &rows).await;
    let stopped = Arc::new(tokio::sync::Notify::new());
    let tells = stopped.clone();
    let hangs = move |_: ListenerRequest, out: Responder<ListenerResponse>| {
        let tells = tells.clone();
        async move {
            out.cancelled().cancelled().await;
            tells.notify_one();
            Ok(())
        }
    };
    let (workspace, flow) = ids();
    let peer = &world.flow.mesh;
    let listening = listen(peer, (&workspace, &flow), "slow", hangs).await;
    world.listening.push(listening.unwrap());
    world.listen("quick", |_| respond("quick")).await;
    world
        .listen("boss", |got| match got.from_id.as_str() {
            // The second for the slow one waits for the first.
            "gateway" => ListenerResponse {
                forwards: vec![says("slow", "x"), says("slow", "y"), says("quick", "x")],
                ..forward("", "")
            },
            _ => respond(&text(&got.payload)),
        })
        .await;
    assert_eq!(world.texts(&send("boss", "x")).await.0, ["quick"]);
    let told = tokio::time::timeout(SOON, stopped.notified()).await;
    told.expect("the listener is stopped");
}

/// What agents read of their peers counts as what their messages take.
async fn what_agents_read_of_their_peers_is_bounded(place: Place) {
    let schema = format!(r#"{{"type": "object", "title": "{}"}}"#, "x".repeat(60_000));
    let types: Vec<_> = (0..4).map(|n| format!(r#""type{n}": {schema}"#)).collect();
    let large = format!(
        r#"{{"description": "Takes much.", "types": {{{}}}}}"#,
        types.join(", ")
    );
    let agent = format!(
        r#"{{"description": "Thinks.", "agent": true, "peers": ["large"], "types": {ANY}}}"#
    );
    let names: Vec<_> = (0..40).map(|n| format!("agent-{n}")).collect();
    let mut rows = vec![("boss", tool("Asks all.")), ("large", large)];
    rows.extend(names.iter().map(|name| (name.as_str(), agent.clone())));
    let mut world = World::start(&place, &rows).await;
    for name in &names {
        world
            .listen(name, |got| {
                assert!(got.usage_instructions.unwrap_or_default().len() > 200_000);
                respond("done")
            })
            .await;
    }
    let all: Vec<_> = names.iter().map(|name| says(name, "x")).collect();
    world
        .listen("boss", move |got| match got.from_id.as_str() {
            "gateway" => ListenerResponse {
                forwards: all.clone(),
                ..forward("", "")
            },
            "system" => respond(&Value::Object(got.payload).to_string()),
            _ => ListenerResponse {
                end_of_stream: true,
                ..ListenerResponse::default()
            },
        })
        .await;
    let (said, _) = world.texts(&send("boss", "x")).await;
    assert!(!said.is_empty());
    assert!(said.iter().all(|one| one.contains("routing")), "{said:?}");
}

/// Rows that cannot be used are listed, each with why.
async fn rows_that_cannot_be_used_are_listed(place: Place) {
    let rows = [
        ("greeter", tool("Greets.")),
        ("mute", "{}".to_owned()),
        ("odd", r#"{"description": "x", "speed": 1}"#.to_owned()),
    ];
    let world = World::start(&place, &rows).await;
    let list = |limit: i64, after: &str| ThreadsRequest {
        operation: "list-refused-listeners".to_owned(),
        limit,
        after: after.to_owned(),
        ..send("", "")
    };
    let listed = world.whole(&list(0, "")).await.unwrap().listeners;
    let told: Vec<_> = listed
        .iter()
        .map(|one| (one.name.as_str(), one.why.as_str()))
        .collect();
    let [mute, ("odd", odd)] = told.as_slice() else {
        panic!("{told:?}");
    };
    let why = "the description is required, and has at most 4096 bytes";
    assert_eq!(*mute, ("mute", why));
    assert!(
        odd.starts_with("it cannot be read: unknown field `speed`"),
        "{odd}"
    );
    let first = world.whole(&list(1, "")).await.unwrap();
    assert_eq!(first.listeners, listed[..1]);
    let next = world.whole(&list(1, &first.next)).await.unwrap();
    assert_eq!(
        (&next.listeners[..], next.next.as_str()),
        (&listed[1..], "")
    );
}

tg_testkit::on_both_buses!(
    what_agents_read_of_their_peers_is_bounded,
    rows_that_cannot_be_used_are_listed,
    what_is_thrown_away_is_not_waited_for,
    what_was_too_large_is_over,
    a_thread_has_one_message_at_a_time,
    what_listeners_have_is_bounded,
    what_is_given_up_stops,
    a_message_goes_along_its_chain,
    faults_say_nothing_of_their_cause,
    threads_end_and_are_shown_to_few,
    a_console_talks,
);
