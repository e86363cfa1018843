//! A service of the flow is asked before and after a tool is used.

use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_mesh::{Cx, Processor, RequestHandler, Responder};
use tg_schemas::msg::{ToolHookRequest, ToolHookResponse};
use tg_schemas::processors::{ProcessorSpec, Serves, Spec};
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::bus::within;
use tg_testkit::config::Config;
use tg_testkit::place::Place;
use tg_testkit::process::root;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::delegated::{self, observed};
use super::supervised::give;
use super::world::{Say, World, ask_for, question, rows, topic};

const HOOK: Spec<Serves<ToolHookRequest, ToolHookResponse>> = Spec::pair("request", "response");
const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";
const END: &str = "Final Answer: done";

type Answers = dyn Fn(&ToolHookRequest) -> Result<ToolHookResponse, Error> + Send + Sync;

struct Hook {
    says: Box<Answers>,
    heard: Arc<Mutex<Vec<ToolHookRequest>>>,
}

#[async_trait]
impl RequestHandler<ToolHookRequest, ToolHookResponse> for Hook {
    async fn serve(
        &self,
        _: Cx,
        asked: ToolHookRequest,
        mut out: Responder<ToolHookResponse>,
    ) -> Result<(), Error> {
        self.heard.lock().push(asked.clone());
        let said = (self.says)(&asked)?;
        out.send(said).await
    }
}

fn say(decision: &str, given: Value, text: &str, reason: &str) -> ToolHookResponse {
    ToolHookResponse {
        decision: decision.into(),
        arguments: given.to_string(),
        text: text.into(),
        reason: reason.into(),
        ..ToolHookResponse::default()
    }
}

pub(super) type Heard = Arc<Mutex<Vec<ToolHookRequest>>>;

/// A world of these rows whose flow has a hook that says this.
pub(super) async fn world(
    place: &Place,
    rows: Config,
    script: Vec<Say>,
    says: impl Fn(&ToolHookRequest) -> Result<ToolHookResponse, Error> + Send + Sync + 'static,
) -> (World, Heard) {
    let heard = Heard::default();
    let hook = Hook {
        says: Box::new(says),
        heard: heard.clone(),
    };
    let request = topic(Class::Request, "tool-hook").to_string();
    ask_for(&rows, "tool-hook-request", "tool-hook", &request);
    let hook = Processor::new(ProcessorSpec::unlisted("tool-hook")).serves(HOOK, Arc::new(hook));
    let world = World::among(place, script, rows, vec![hook]).await;
    world.attached(&["tool-hook"]).await;
    (world, heard)
}

/// What the model saw of so many calls, what the tool was given, and what the hook heard.
async fn calls(
    place: &Place,
    count: usize,
    says: impl Fn(&ToolHookRequest) -> Result<ToolHookResponse, Error> + Send + Sync + 'static,
) -> (Vec<String>, Vec<String>, Vec<ToolHookRequest>) {
    let mut script: Vec<Say> = (0..count).map(|_| Say::Text(ADD)).collect();
    script.push(Say::Text(END));
    let (world, heard) = world(place, rows(), script, says).await;
    let chunks = world.run(&question("q", false)).await;
    let seen = observed(&chunks);
    let asked = world.tools.asked.lock();
    let given = asked.iter().map(|ask| ask.parameters.clone()).collect();
    let heard = heard.lock().clone();
    (seen, given, heard)
}

async fn a_hook_hears_of_calls_and_lets_them_be(place: Place) {
    let allow = |_: &ToolHookRequest| Ok(say("allow", json!({}), "", ""));
    let (seen, given, heard) = calls(&place, 1, allow).await;
    assert_eq!(seen, ["builtin:calculator says 4"]);
    assert_eq!(given, [r#"{"expression":"2+2"}"#]);
    let [before, after] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert_eq!(
        (before.when.as_str(), before.tool.as_str()),
        ("before", "calculator")
    );
    assert_eq!(before.arguments, r#"{"expression":"2+2"}"#);
    assert_eq!(
        (before.kind.as_str(), before.step, before.text.as_str()),
        ("calculator", 1, "")
    );
    assert_eq!(
        (after.when.as_str(), after.text.trim()),
        ("after", "builtin:calculator says 4")
    );
    assert_eq!(before.run, after.run);
}

async fn a_hook_denies_and_replaces(place: Place) {
    let says = |asked: &ToolHookRequest| {
        Ok(match (asked.step, asked.when.as_str()) {
            (1, "before") => say("deny", json!({}), "", "not today"),
            (2, "before") => say("replace", json!({"expression": "1+1"}), "", ""),
            (2, _) => say("replace", json!({}), "cleaned", ""),
            (3, "before") => say("allow", json!({}), "", ""),
            _ => say("deny", json!({}), "", "secret"),
        })
    };
    let (seen, given, heard) = calls(&place, 3, says).await;
    assert_eq!(
        seen,
        [
            "Error: 'calculator' was not used: not today",
            "cleaned",
            "Error: what 'calculator' returned is withheld: secret",
        ]
    );
    assert_eq!(
        given,
        [r#"{"expression":"1+1"}"#, r#"{"expression":"2+2"}"#]
    );
    assert_eq!(heard.len(), 5, "what is denied returns nothing");
    assert_eq!(heard[2].arguments, r#"{"expression":"1+1"}"#);
}

async fn a_hook_that_fails_denies(place: Place) {
    let says = |asked: &ToolHookRequest| match asked.step {
        1 => Err(Error::new(ErrorCode::Internal, "secret of the hook")),
        2 => Ok(say("maybe", json!({}), "", "")),
        3 => Ok(say("replace", json!({"other": 1}), "", "")),
        _ => Ok(say("replace", json!([]), "", "")),
    };
    let (seen, given, _) = calls(&place, 4, says).await;
    let told = "Error: 'calculator' was not used: the hook of the flow failed";
    assert_eq!(seen, [told; 4]);
    assert!(given.is_empty());
}

/// Work that is given to another agent is a call as any other: denied, it is not begun; withheld, what it found is not told.
async fn a_hook_decides_on_work_that_is_given_away(place: Place) {
    let says = |asked: &ToolHookRequest| {
        Ok(
            match (asked.tool.as_str(), asked.step, asked.when.as_str()) {
                ("delegate", 1, _) => say("deny", json!({}), "", "not today"),
                ("delegate", 2, "after") => say("replace", json!({}), "cleaned", ""),
                ("delegate", 3, "after") => say("deny", json!({}), "", "secret"),
                _ => say("allow", json!({}), "", ""),
            },
        )
    };
    let mut script: Vec<Say> = (0..3)
        .map(|n| {
            delegated::calls(
                "delegate",
                &json!({"agent_id": "b", "message": format!("{n}?")}),
            )
        })
        .collect();
    script.push(Say::Text(END));
    let (world, heard) = world(&place, delegated::agents(), script, says).await;
    for n in 1..3 {
        give(&world, &format!("{n}?"), [Say::Text("Final Answer: B")]);
    }
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(
        observed(&chunks),
        [
            "Error: 'delegate' was not used: not today",
            "cleaned",
            "Error: what 'delegate' returned is withheld: secret",
        ]
    );
    assert_eq!(world.calls(), 6, "four of its own, and two of the agent");
    assert_eq!(heard.lock().len(), 5);
    let last = chunks.last().unwrap();
    assert_eq!(last.in_token, Some(600), "what was withheld was used");
}

/// The example as it is shipped: a program in Python, over RabbitMQ.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_in_python_decides_over_a_broker() {
    let place = Place::rabbitmq().await;
    let Place::RabbitMq(broker) = &place else {
        panic!("a broker");
    };
    let rows = rows();
    let tool = json!({"name": "bills", "type": "mcp-tool", "mcp-tool": "card 4111-1111-1111-1234", "arguments": [
        {"name": "of", "type": "string"}, {"name": "limit", "type": "integer", "required": false}]});
    rows.put("tool", "bills", &tool.to_string());
    let request = topic(Class::Request, "tool-hook").to_string();
    ask_for(&rows, "tool-hook-request", "tool-hook", &request);
    let script = [
        "Action: bills\nArgs: {\"of\": \"Ann\", \"limit\": 1000}",
        "Action: bills\nArgs: {\"of\": \"/etc/passwd\"}",
        ADD,
        END,
    ];
    let world = World::among(&place, script.map(Say::Text), rows, Vec::new()).await;
    let mut hook = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("examples/hook.py"))
        .args([broker, "default", "default"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it runs: scripts/setup.sh test");
    let mut lines = BufReader::new(hook.stdout.take().unwrap()).lines();
    let line = within(lines.next_line()).await.unwrap();
    assert_eq!(line.as_deref(), Some("tool-hook listens"));
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(
        observed(&chunks),
        [
            "card **** **** **** 1234 says 4",
            "Error: 'bills' was not used: bills may not be asked for that",
            "builtin:calculator says 4",
        ]
    );
    let asked = world.tools.asked.lock();
    let given: Vec<Value> = asked
        .iter()
        .map(|ask| serde_json::from_str(&ask.parameters).unwrap())
        .collect();
    let expected = [
        json!({"of": "Ann", "limit": 100}),
        json!({"expression": "2+2"}),
    ];
    assert_eq!(given, expected);
}

tg_testkit::on_both_buses!(
    a_hook_hears_of_calls_and_lets_them_be,
    a_hook_denies_and_replaces,
    a_hook_that_fails_denies,
    a_hook_decides_on_work_that_is_given_away,
);
