//! A tool is a service of its own, behind a queue of the workspace.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tg_mesh::Processor;
use tg_schemas::msg::{ToolServiceRequest, ToolServiceResponse};
use tg_schemas::processors::{ProcessorSpec, Serves, Spec};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::bus::within;
use tg_testkit::config::Config;
use tg_testkit::fakes::{Play, Played};
use tg_testkit::place::Place;

use super::delegated::observed;
use super::replayed;
use super::world::{Say, World, question, rows};

const SERVICE: Spec<Serves<ToolServiceRequest, ToolServiceResponse>> =
    Spec::pair("request", "response");
const QUEUE: &str = "request:tg:tool-joke:default";
const END: &str = "Final Answer: done";
const LLAMAS: &str = "Action: joke\nArgs: {\"about\": \"llamas\"}";
/// Between two pieces of what it says.
const PACE: Duration = Duration::from_millis(20);
/// Longer than a question waits for a process by itself.
const AWAY: Duration = Duration::from_millis(1500);

type Service = Arc<Played<ToolServiceRequest, ToolServiceResponse>>;

fn config(more: Value) -> Config {
    let config = rows();
    let row = |kind: &str, key: &str, row: Value| config.put(kind, key, &row.to_string());
    row(
        "tool-service",
        "jokes",
        json!({"request-queue": QUEUE, "response-queue": "response:tg:tool-joke:default",
            "config-params": [{"name": "style", "required": true}, "length"]}),
    );
    let mut tool = json!({"name": "joke", "type": "tool-service", "service": "jokes", "style": "pun", "other": 1,
        "description": "Tells one.", "arguments": [{"name": "about", "type": "string"}]});
    let more = more.as_object().unwrap().clone();
    tool.as_object_mut().unwrap().extend(more);
    row("tool", "joke", tool);
    let topics = json!({"topics": {"request": QUEUE}, "parameters": {}, "epoch": 1});
    row("processor:joker", "default", topics);
    config
}

/// Tells what it is asked about in pieces, fails, or says nothing.
fn joker() -> Service {
    let part = |text: &str, end: bool| ToolServiceResponse {
        response: text.to_owned(),
        end_of_stream: end,
        ..ToolServiceResponse::default()
    };
    Played::new(move |_, ask: ToolServiceRequest| {
        let arguments: Value = serde_json::from_str(&ask.arguments).expect("JSON");
        match arguments["about"].as_str().expect("what it is about") {
            "nothing" => Ok(Play::of(Vec::new()).hanging()),
            "taxes" => Err(Error::new(ErrorCode::Tool, "there is none about taxes")),
            "later" => {
                let mut failed = part("", true);
                failed.error = Some(Error::new(ErrorCode::Tool, "it forgot the end"));
                Ok(Play::of(vec![part("So a horse", false), failed]).paced(PACE))
            }
            about => {
                let parts = ["A pun ", "about ", about].map(|text| part(text, false));
                let parts = [&parts[..], &[part(".", true)]].concat();
                Ok(Play::of(parts).paced(PACE))
            }
        }
    })
}

async fn world(place: &Place, more: Value, about: &[&'static str]) -> (World, Service) {
    let calls = about.iter().map(|call| Say::Text(call));
    let script: Vec<Say> = calls.chain([Say::Text(END)]).collect();
    let service = joker();
    let joker = Processor::new(ProcessorSpec::unlisted("joker")).serves(SERVICE, service.clone());
    let world = World::among(place, script, config(more), vec![joker]).await;
    world.attached(&["joker"]).await;
    (world, service)
}

async fn a_service_answers_in_pieces_or_with_an_error(place: Place) {
    let about = [
        LLAMAS,
        "Action: joke\nArgs: {\"about\": \"taxes\"}",
        "Action: joke\nArgs: {\"about\": \"later\"}",
        "Action: joke\nArgs: {}",
    ];
    let (world, service) = world(&place, json!({"length": 3}), &about).await;
    let ask = replayed::asks("jokes", false);
    let chunks = replayed::run(&world, question("q", true), ask).await;
    let seen = observed(&chunks);
    assert_eq!(seen[0], "A pun about llamas.");
    for (seen, told) in seen[1..].iter().zip([
        "there is none about taxes",
        "it forgot the end",
        "argument 'about' is required",
    ]) {
        assert!(seen.contains(told), "{seen}");
        assert!(!seen.contains("horse"), "{seen}");
    }
    let asked = service.asked.lock().clone();
    assert_eq!(asked.len(), 3);
    // What its row names, and nothing else of the tool's.
    let config: Value = serde_json::from_str(&asked[0].config).unwrap();
    assert_eq!(config, json!({"style": "pun", "length": 3}));
    let given: Value = serde_json::from_str(&asked[0].arguments).unwrap();
    assert_eq!(given, json!({"about": "llamas"}));
    let offered = world.asked.lock()[0]["tools"].to_string();
    assert!(offered.contains("Tells one."), "{offered}");
    replayed::same_again(&world, "jokes", &chunks).await;
    assert_eq!(service.asked.lock().len(), 3);
}

/// Nobody serves it when it is called; its process is there later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_whose_process_comes_back_is_called_again_over_a_broker() {
    let place = Place::rabbitmq().await;
    let script = [Say::Text(LLAMAS), Say::Text(END)];
    let rows = config(json!({"idempotent": true}));
    let world = World::among(&place, script, rows, Vec::new()).await;
    let service = joker();
    let joker = Processor::new(ProcessorSpec::unlisted("joker")).serves(SERVICE, service.clone());
    let back = async {
        tokio::time::sleep(AWAY).await;
        world.mesh.host(joker).await.unwrap();
    };
    let asked = question("q", true);
    let (chunks, ()) = tokio::join!(world.run(&asked), back);
    assert_eq!(observed(&chunks), ["A pun about llamas."]);
    assert_eq!(service.asked.lock().len(), 1);
}

/// Whether a call took effect that nobody answered is not known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_must_not_be_called_twice_is_called_once_over_a_broker() {
    let place = Place::rabbitmq().await;
    let script = [Say::Text(LLAMAS), Say::Text(END)];
    let world = World::among(&place, script, config(json!({})), Vec::new()).await;
    let chunks = world.run(&question("q", true)).await;
    let seen = observed(&chunks);
    assert!(seen[0].contains("no process serves this"), "{seen:?}");
    assert!(chunks.iter().any(|chunk| chunk.content.contains("done")));
}

async fn a_service_that_says_nothing_is_given_up_and_told(place: Place) {
    let about = ["Action: joke\nArgs: {\"about\": \"nothing\"}"];
    let (world, service) = world(&place, json!({"timeout": 1}), &about).await;
    let chunks = world.run(&question("q", true)).await;
    let seen = observed(&chunks);
    assert_eq!(seen.len(), 1);
    assert!(seen[0].starts_with("Error: "), "{seen:?}");
    assert!(chunks.iter().any(|chunk| chunk.content.contains("done")));
    within(service.cancelled.notified()).await;
}

tg_testkit::on_both_buses!(
    a_service_answers_in_pieces_or_with_an_error,
    a_service_that_says_nothing_is_given_up_and_told,
);
