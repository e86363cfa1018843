//! The examples as they are shipped: a listener in Rust and one in Python, as programs over RabbitMQ, in one chain.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tg_mesh::{Ask, Deadline};
use tg_schemas::msg::{ThreadsRequest, ThreadsResponse};
use tg_schemas::{Class, Topic, WorkspaceId};
use tg_testkit::config::Config;
use tg_testkit::flow::{SOON, TestFlow};
use tg_testkit::place::Place;
use tg_testkit::process::root;
use tg_threads_service::{Options, processors};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A program has started by then.
const STARTED: Duration = Duration::from_secs(60);

/// Runs a listener until it is dropped.
async fn run(mut program: Command, broker: &str) -> Child {
    let program = program.args([broker, "default", "default"]);
    let mut child = program
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it runs: scripts/setup.sh test");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(STARTED, lines.next_line()).await;
    let line = line.expect("it starts in time").unwrap().unwrap();
    assert!(line.ends_with(" listens"), "{line}");
    child
}

/// Cargo puts examples beside the tests of their package.
fn greeter() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap();
    built.join("examples/greeter")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rust_listener_and_a_python_listener_make_an_answer() {
    let place = Place::rabbitmq().await;
    let Place::RabbitMq(broker) = &place else {
        panic!("a broker");
    };
    let config = Config::new();
    config.put("flow", "default", "{}");
    let row = r#"{"description": "An example.", "types": {"textinput": {"type": "object"}}}"#;
    for name in ["greeter", "shouter"] {
        config.put("listener", name, row);
    }
    let host = |mesh: &_| processors(mesh, Options::default());
    let flow = TestFlow::start(&place, config, &[], host).await;
    let _greeter = run(Command::new(greeter()), broker).await;
    let mut python = Command::new(root().join(".cache/venv/bin/python3"));
    python.arg(root().join("examples/shouter.py"));
    let _shouter = run(python, broker).await;
    let workspace = WorkspaceId::new("default").unwrap();
    let topic = Topic::workspace(Class::Request, "threads", &workspace);
    let request = ThreadsRequest {
        operation: "send-message".to_owned(),
        flow: "default".to_owned(),
        to: "greeter".to_owned(),
        r#type: "textinput".to_owned(),
        payload: json!({"text": "Ada"}).to_string(),
        streaming: true,
        ..ThreadsRequest::default()
    };
    let ask = Ask {
        deadline: Some(Deadline::after(SOON)),
        ..Ask::default()
    };
    let mut answer = flow.mesh.ask::<_, ThreadsResponse>(&topic, &request, ask);
    let (mut said, mut messages) = (String::new(), Vec::new());
    while let Some(part) = answer.next().await {
        let part = part.unwrap();
        said.push_str(&part.chunk);
        messages.extend(part.messages);
    }
    assert_eq!(said, "Hello, Ada");
    let told: Vec<_> = messages
        .iter()
        .map(|one| (one.from.as_str(), one.payload["text"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("greeter", "HELLO, ADA")]);
}
