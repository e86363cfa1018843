//! The flow's agent as a listener: it is asked by its own interface, on a thread of its own.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tg_bus::Consume;
use tg_mesh::{Ask, Deadline, Responder, answer_on};
use tg_schemas::msg::{
    AgentRequest, AgentResponse, ListenerMessage, ListenerResponse, ThreadMessage, ThreadsRequest,
    ThreadsResponse,
};
use tg_schemas::{Class, Subscription, Topic};
use tg_testkit::flow::SOON;
use tg_testkit::place::Place;
use tokio::sync::mpsc;

use crate::ids::Spy;
use crate::world::{World, console, forward, ids, respond, send, tool};

/// Where the flow's agent is asked.
fn topic() -> Topic {
    let (workspace, flow) = ids();
    Topic::flow(Class::Request, "agent", &workspace, &flow)
}

/// A part of the agent's answer.
fn part(kind: &str, content: &str) -> AgentResponse {
    AgentResponse {
        message_type: kind.to_owned(),
        content: content.to_owned(),
        end_of_message: true,
        ..AgentResponse::default()
    }
}

/// The flow's agent: it says these parts and then its answer. What it is asked is kept.
async fn agent(world: &mut World, parts: Vec<AgentResponse>) -> Arc<Mutex<Vec<AgentRequest>>> {
    let asked: Arc<Mutex<Vec<AgentRequest>>> = Arc::default();
    let keeps = asked.clone();
    let answer = move |got: AgentRequest, mut out: Responder<AgentResponse>| {
        keeps.lock().push(got);
        let parts = parts.clone();
        async move {
            for part in parts {
                out.send(part).await?;
            }
            let last = AgentResponse {
                end_of_dialog: true,
                ..part("answer", "Ada.")
            };
            out.send(last).await
        }
    };
    let of = Subscription::service(topic(), "agent");
    let listening = answer_on(&world.flow.mesh, of, answer).await;
    world.listening.push(listening.unwrap());
    asked
}

/// A message for the agent itself.
fn direct() -> ThreadsRequest {
    ThreadsRequest {
        r#type: "agentrequest".to_owned(),
        payload: json!({"question": "Who?"}).to_string(),
        ..send("agent", "")
    }
}

/// The ways in which somebody outside asks the agent: at the console, by a message, and by what `boss` forwards.
fn ways() -> [ThreadsRequest; 3] {
    let by_console = ThreadsRequest {
        streaming: false,
        ..console("agent", "Who?", "")
    };
    [by_console, direct(), send("boss", "Who?")]
}

/// A system whose listener `boss` forwards what comes from outside to the agent.
async fn with_boss(place: &Place) -> World {
    let mut world = World::start(place, &[("boss", tool("Asks the agent."))]).await;
    world
        .listen("boss", |got| match got.from_id.as_str() {
            "gateway" => ListenerResponse {
                forwards: vec![ListenerMessage {
                    to: "agent".to_owned(),
                    r#type: "agentrequest".to_owned(),
                    payload: [("question".to_owned(), json!("Who?"))]
                        .into_iter()
                        .collect(),
                }],
                ..forward("", "")
            },
            _ => respond("done"),
        })
        .await;
    world
}

/// The trace of its run names its thread and that of whoever called it (D.4, rule 6).
async fn the_flows_agent_gets_its_threads_for_the_trace(place: Place) {
    let mut world = World::start(&place, &[]).await;
    let asked = agent(&mut world, Vec::new()).await;
    let [by_console, direct, _] = ways();
    let by_console = world.whole(&by_console).await.unwrap();
    assert_eq!(by_console.messages[0].payload["output"], "Ada.");
    let direct = world.whole(&direct).await.unwrap();
    let asked = asked.lock().clone();
    let [routed, outside] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(routed.parent_thread, by_console.thread);
    assert!(!routed.thread.is_empty());
    assert_ne!(routed.thread, by_console.thread);
    assert_eq!(outside.thread, direct.thread);
    assert!(outside.parent_thread.is_empty());
}

/// Its tools may be for some roles only: those of whoever is outside come with the question, as when it is asked directly.
async fn the_flows_agent_gets_the_roles_of_whoever_is_outside(place: Place) {
    let mut world = with_boss(&place).await;
    let (seen, mut seeing) = mpsc::channel(64);
    let bus = world.flow.mesh.bus().clone();
    let of = Subscription::service(topic(), "agent");
    let spying = bus.consume(&of, Consume::prefetch(4), Arc::new(Spy(seen)));
    world.listening.push(spying.await.unwrap());
    let (workspace, _) = ids();
    let threads = Topic::workspace(Class::Request, "threads", &workspace);
    let mut known = HashSet::new();
    for (request, roles) in ways()
        .iter()
        .zip([Some("reader"), Some("reader writer"), None])
    {
        let ask = Ask {
            deadline: Some(Deadline::after(SOON)),
            user_id: Some("ann".to_owned()),
            roles: roles.map(str::to_owned),
            ..Ask::default()
        };
        let peer = &world.flow.mesh;
        let answer = peer.ask::<_, ThreadsResponse>(&threads, request, ask);
        let came = async {
            loop {
                let got = seeing.recv().await.expect("a message");
                // A question that nobody answers comes again.
                if known.insert(got.headers.id.clone()) {
                    return got.headers.roles.clone();
                }
            }
        };
        let came = tokio::select! {
            came = came => came,
            ended = answer.last() => panic!("{ended:?}"),
        };
        assert_eq!(came.as_deref(), roles, "{}", request.to);
    }
}

/// What the key of whoever is outside grants, the agent uses without asking first, where they asked it themselves: what a listener
/// makes of their message spends nothing of it.
async fn the_flows_agent_gets_what_a_key_grants(place: Place) {
    let mut world = with_boss(&place).await;
    let asked = agent(&mut world, Vec::new()).await;
    for way in ways() {
        let granting = ThreadsRequest {
            grant: vec!["pay".to_owned()],
            ..way.clone()
        };
        world.whole(&granting).await.unwrap();
        world.whole(&way).await.unwrap();
    }
    let asked = asked.lock().clone();
    let grants: Vec<_> = asked.iter().map(|one| one.grant.join(" ")).collect();
    assert_eq!(grants, ["pay", "", "pay", "", "", ""]);
}

/// Whether a message asks about the tool `pay`, on this thread, and how it is answered.
fn asks_to_pay(message: &ThreadMessage, thread: &str) {
    let said = (message.from.as_str(), message.r#type.as_str());
    assert_eq!(said, ("system", "confirm"), "{message:?}");
    assert_eq!(message.thread, thread);
    let payload = &message.payload;
    assert_eq!(payload["tool"], "pay");
    assert_eq!(payload["arguments"], json!({"bill": "7"}));
    assert_eq!(payload["message_id"], "urn:asked");
    assert_eq!(payload["until_ms"], 5);
    let run = payload["run"].as_str().unwrap();
    let text = payload["message"].as_str().unwrap();
    assert!(
        text.contains(r#"the tool pay, with {"bill":"7"}"#),
        "{text}"
    );
    let command = format!("tg confirm {run} yes --message-id urn:asked");
    assert!(text.contains(&command), "{text}");
}

/// A tool that asks first does so at the console, too, before the run goes on; whoever does not stream sees it with the answer.
async fn a_tool_that_asks_first_asks_whoever_is_outside(place: Place) {
    let mut world = with_boss(&place).await;
    let content = r#"{"tool": "pay", "arguments": {"bill": "7"}, "until-ms": 5}"#;
    let asking = AgentResponse {
        message_id: "urn:asked".to_owned(),
        ..part("confirm", content)
    };
    agent(&mut world, vec![part("thought", "hm"), asking]).await;
    let mut answer = world.ask(&console("agent", "Who?", ""), "ann");
    let (mut thread, mut said, mut messages) = (String::new(), String::new(), Vec::new());
    while let Some(part) = answer.next().await {
        let part = part.unwrap();
        if thread.is_empty() {
            thread.clone_from(&part.thread);
        }
        if messages.is_empty() {
            assert!(part.chunk.is_empty(), "it answers before it asks");
        }
        said.push_str(&part.chunk);
        messages.extend(part.messages);
    }
    assert_eq!(said, "Ada.");
    let [asks, answers] = messages.as_slice() else {
        panic!("{messages:?}");
    };
    asks_to_pay(asks, &thread);
    assert_eq!(answers.payload["output"], "Ada.");
    for way in ways() {
        let whole = world.whole(&way).await.unwrap();
        assert_eq!(whole.messages.len(), 2, "{whole:?}");
        asks_to_pay(&whole.messages[0], &whole.thread);
    }
}

tg_testkit::on_both_buses!(
    the_flows_agent_gets_its_threads_for_the_trace,
    the_flows_agent_gets_the_roles_of_whoever_is_outside,
    the_flows_agent_gets_what_a_key_grants,
    a_tool_that_asks_first_asks_whoever_is_outside,
);
