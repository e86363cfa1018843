//! The examples as they are shipped: a listener in Rust and one in Python, as programs over RabbitMQ, in one chain.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tg_mesh::{Ask, Deadline};
use tg_schemas::msg::{ThreadMessage, ThreadsRequest, ThreadsResponse};
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

fn python(program: &str) -> Command {
    let mut python = Command::new(root().join(".cache/venv/bin/python3"));
    python.arg(root().join(program));
    python
}

/// A system that knows these listeners.
async fn system(place: &Place, names: &[&str]) -> TestFlow {
    let config = Config::new();
    config.put("flow", "default", "{}");
    let row = r#"{"description": "An example.", "types": {"textinput": {"type": "object"}}}"#;
    for name in names {
        config.put("listener", name, row);
    }
    let host = |mesh: &_| processors(mesh, Options::default());
    TestFlow::start(place, config, &[], host).await
}

/// The pieces and the messages that a text for a listener leads to.
async fn sent(flow: &TestFlow, to: &str, text: &str) -> (String, Vec<ThreadMessage>) {
    let workspace = WorkspaceId::new("default").unwrap();
    let topic = Topic::workspace(Class::Request, "threads", &workspace);
    let request = ThreadsRequest {
        operation: "send-message".to_owned(),
        flow: "default".to_owned(),
        to: to.to_owned(),
        r#type: "textinput".to_owned(),
        payload: json!({ "text": text }).to_string(),
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
    (said, messages)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rust_listener_and_a_python_listener_make_an_answer() {
    let place = Place::rabbitmq().await;
    let Place::RabbitMq(broker) = &place else {
        panic!("a broker");
    };
    let flow = system(&place, &["greeter", "shouter"]).await;
    let _greeter = run(Command::new(greeter()), broker).await;
    let _shouter = run(python("examples/shouter.py"), broker).await;
    let (said, messages) = sent(&flow, "greeter", "Ada").await;
    assert_eq!(said, "Hello, Ada");
    let told: Vec<_> = messages
        .iter()
        .map(|one| (one.from.as_str(), one.payload["text"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("greeter", "HELLO, ADA")]);
}

/// A listener in Python that takes long reports that it is at work: its message goes to no other process of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_python_listener_begins_a_message_once() {
    let place = Place::rabbitmq().await;
    let Place::RabbitMq(broker) = &place else {
        panic!("a broker");
    };
    let flow = system(&place, &["slow"]).await;
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let slow = || {
        let mut slow = python("tests/integration/clients/slow.py");
        slow.env("BEGUN", &begun);
        slow
    };
    let _both = (run(slow(), broker).await, run(slow(), broker).await);
    // Where a machine is so late that the message is sent again before the first sign of life, another one shows it.
    let mut once = false;
    for text in ["one", "two", "three", "four", "five"] {
        let (_, messages) = sent(&flow, "slow", text).await;
        let answers: Vec<_> = messages.iter().map(|one| &one.payload["text"]).collect();
        assert_eq!(answers, [&json!(text.to_uppercase())]);
        let begun = std::fs::read_to_string(&begun).unwrap();
        once = begun.lines().filter(|line| *line == text).count() == 1;
        if once {
            break;
        }
    }
    assert!(once, "each message was begun again");
}
