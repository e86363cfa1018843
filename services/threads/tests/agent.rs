//! The flow's agent as a listener: it is asked by its own interface, on a thread of its own.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tg_mesh::{Responder, answer_on};
use tg_schemas::msg::{AgentRequest, AgentResponse, ThreadsRequest};
use tg_schemas::{Class, Subscription, Topic};
use tg_testkit::place::Place;

use crate::world::{World, console, ids, send};

/// The trace of its run names its thread and that of whoever called it (D.4, rule 6).
async fn the_flows_agent_gets_its_threads_for_the_trace(place: Place) {
    let mut world = World::start(&place, &[]).await;
    let asked: Arc<Mutex<Vec<AgentRequest>>> = Arc::default();
    let keeps = asked.clone();
    let answer = move |got: AgentRequest, mut out: Responder<AgentResponse>| {
        keeps.lock().push(got);
        async move {
            let last = AgentResponse {
                message_type: "answer".to_owned(),
                content: "Ada.".to_owned(),
                end_of_message: true,
                end_of_dialog: true,
                ..AgentResponse::default()
            };
            out.send(last).await
        }
    };
    let (workspace, flow) = ids();
    let topic = Topic::flow(Class::Request, "agent", &workspace, &flow);
    let of = Subscription::service(topic, "agent");
    let listening = answer_on(&world.flow.mesh, of, answer).await;
    world.listening.push(listening.unwrap());
    let by_console = ThreadsRequest {
        streaming: false,
        ..console("agent", "Who?", "")
    };
    let by_console = world.whole(&by_console).await.unwrap();
    assert_eq!(by_console.messages[0].payload["output"], "Ada.");
    let direct = ThreadsRequest {
        r#type: "agentrequest".to_owned(),
        payload: json!({"question": "Who?"}).to_string(),
        ..send("agent", "")
    };
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

tg_testkit::on_both_buses!(the_flows_agent_gets_its_threads_for_the_trace);
