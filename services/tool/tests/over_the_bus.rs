//! The processor as others meet it: a call over a bus, an MCP server over HTTP behind it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tg_mesh::{Ask, Deadline};
use tg_schemas::msg::{ToolRequest, ToolResponse};
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::bus::within;
use tg_testkit::config::Config;
use tg_testkit::flow::{TestFlow, Wiring, topic};
use tg_testkit::mcp::{MUCH, McpServer};
use tg_testkit::place::Place;

const WIRING: &[Wiring] = &[("mcp-tool", &[("request", Class::Request, "mcp-tool")])];
/// The tools of the server that the workspace has, each under a name of its own.
const TOOLS: [&str; 5] = ["find", "fail", "object", "hang", "much"];
/// A deadline that passes while a tool does nothing.
const SHORT: Duration = Duration::from_millis(1_500);

struct System {
    flow: TestFlow,
    server: Arc<McpServer>,
}

impl System {
    async fn start(place: &Place) -> Self {
        let server = McpServer::start().await.unwrap();
        let config = Config::new();
        for name in TOOLS {
            let row = json!({"url": server.url(), "remote-name": name, "auth-token": "s3cret"});
            config.put("mcp", &format!("my {name}"), &row.to_string());
        }
        let host = |mesh: &_| tg_tool::processors(mesh, tg_tool::Options::default());
        Self {
            flow: TestFlow::start(place, config, WIRING, host).await,
            server,
        }
    }

    async fn call(&self, name: &str, parameters: &str) -> Result<ToolResponse, Error> {
        let answer: ToolResponse = self.flow.ask("mcp-tool", &ask(name, parameters)).await?;
        match answer.error {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }
}

fn ask(name: &str, parameters: &str) -> ToolRequest {
    ToolRequest {
        name: name.to_owned(),
        parameters: parameters.to_owned(),
    }
}

async fn a_tool_answers_in_text_or_with_an_object(place: Place) {
    let system = System::start(&place).await;
    let found = system.call("my find", r#"{"q": "x"}"#).await.unwrap();
    assert_eq!((found.text.as_str(), found.object.as_str()), ("found", ""));
    let object = system.call("my object", "").await.unwrap();
    assert_eq!(object.object, r#"{"n":1}"#);
    let calls = system.server.calls.lock().clone();
    assert_eq!(calls[0]["name"], "find");
    assert_eq!(calls[0]["arguments"], json!({"q": "x"}));
    assert!(
        calls[0]["_meta"]["threadgraph/call"].is_string(),
        "{}",
        calls[0]
    );
    let said = system.server.authorization.lock().clone();
    assert_eq!(said.as_deref(), Some("Bearer s3cret"));
    assert_eq!(
        system.server.opened.load(Ordering::SeqCst),
        1,
        "one session"
    );
    // What is built in needs no server.
    let sum = system
        .call("builtin:calculator", r#"{"expression": "6 * 7"}"#)
        .await;
    assert_eq!(sum.unwrap().text, "42");
}

async fn what_went_wrong_is_told_in_the_words_of_whose_it_is(place: Place) {
    let system = System::start(&place).await;
    let failed = system.call("my fail", "{}").await.unwrap_err();
    let told = (failed.code(), failed.message.as_str());
    assert_eq!(told, (ErrorCode::Tool, "no such thing"));
    // By its name in the workspace only, whatever the server calls it.
    let unknown = system.call("find", "{}").await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::NotFound);
    assert!(unknown.message.contains("'find'"), "{unknown}");
    let wrong = system.call("my find", "[1]").await.unwrap_err();
    assert_eq!(wrong.code(), ErrorCode::BadRequest);
    assert!(wrong.message.starts_with("parameters: "), "{wrong}");
    assert_eq!(system.server.calls.lock().len(), 1, "the failed one");
    for error in [failed, unknown, wrong] {
        let text = error.to_string();
        assert!(
            !text.contains("127.0.0.1") && !text.contains("s3cret"),
            "{text}"
        );
    }
}

async fn a_slow_tool_ends_with_who_asked_for_it(place: Place) {
    let system = System::start(&place).await;
    let to = topic(Class::Request, "mcp-tool");
    let call = ask("my hang", "{}");
    let options = system.flow.options();
    let given_up = options.cancel.clone();
    let answer = system.flow.mesh.ask::<_, ToolResponse>(&to, &call, options);
    let answer = tokio::spawn(answer.last());
    within(system.server.hanging.notified()).await;
    given_up.cancel();
    within(system.server.cancelled.notified()).await;
    assert!(within(answer).await.unwrap().is_err());

    // A deadline ends it, too.
    let options = Ask {
        deadline: Some(Deadline::after(SHORT)),
        ..system.flow.options()
    };
    let answer = system.flow.mesh.ask::<_, ToolResponse>(&to, &call, options);
    let late = match within(answer.last()).await {
        Ok(answer) => answer.error.unwrap(),
        Err(error) => error,
    };
    assert_eq!(late.code(), ErrorCode::Timeout, "{late}");
    within(system.server.cancelled.notified()).await;
    // The session is as good as before.
    let found = system.call("my find", "{}").await.unwrap();
    assert_eq!(found.text, "found");
    assert_eq!(system.server.opened.load(Ordering::SeqCst), 1);
}

async fn what_a_tool_says_too_much_is_left_out_and_said_to_be(place: Place) {
    let system = System::start(&place).await;
    let much = system.call("my much", "{}").await.unwrap();
    assert!(much.text.len() < MUCH, "{}", much.text.len());
    assert!(much.text.starts_with("mmm") && much.text.ends_with("[shortened]"));
}

tg_testkit::on_both_buses!(
    a_tool_answers_in_text_or_with_an_object,
    what_went_wrong_is_told_in_the_words_of_whose_it_is,
    a_slow_tool_ends_with_who_asked_for_it,
    what_a_tool_says_too_much_is_left_out_and_said_to_be,
);
