//! The processor as others meet it: a call over a bus, an MCP server over HTTP behind it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tg_mesh::{Ask, Deadline};
use tg_schemas::msg::{ToolRequest, ToolResponse};
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::bus::within;
use tg_testkit::config::Config;
use tg_testkit::flow::{TestFlow, Wiring, topic};
use tg_testkit::mcp::{MUCH, McpServer};
use tg_testkit::place::Place;
use tokio::net::TcpListener;

const WIRING: &[Wiring] = &[("mcp-tool", &[("request", Class::Request, "mcp-tool")])];
/// The tools of the server that the workspace has, each under a name of its own.
const TOOLS: [&str; 5] = ["find", "fail", "object", "hang", "much"];
/// Addresses that are never asked.
const OF_LINK: [&str; 5] = [
    "169.254.169.254",
    "0xa9fea9fe",
    "[::ffff:169.254.169.254]",
    "[fe80::1]",
    "[fd00:ec2::254]",
];
/// A deadline that passes while a tool does nothing.
const SHORT: Duration = Duration::from_millis(1_500);

struct System {
    flow: TestFlow,
    server: Arc<McpServer>,
}

/// Servers of these tests are on this machine.
fn nearby() -> tg_tool::Options {
    tg_tool::Options {
        private_addresses: true,
        ..tg_tool::Options::default()
    }
}

impl System {
    async fn start(place: &Place) -> Self {
        Self::with(place, nearby()).await
    }

    async fn with(place: &Place, options: tg_tool::Options) -> Self {
        let server = McpServer::start().await.unwrap();
        let config = Config::new();
        for name in TOOLS {
            let row = json!({"url": server.url(), "remote-name": name, "auth-token": "s3cret"});
            config.put("mcp", &format!("my {name}"), &row.to_string());
        }
        let own = json!({"url": server.url(), "remote-name": "find", "user-tokens": true});
        config.put("mcp", "own", &own.to_string());
        for user in ["ann", "bob"] {
            let token = json!({ "auth-token": format!("of-{user}") });
            config.put("mcp-user-token", &format!("{user}/own"), &token.to_string());
        }
        let named = server.url().replace("127.0.0.1", "localhost");
        config.put(
            "mcp",
            "named",
            &json!({ "url": named, "remote-name": "find" }).to_string(),
        );
        for (at, address) in OF_LINK.iter().enumerate() {
            let row = json!({"url": format!("http://{address}/mcp")});
            config.put("mcp", &format!("link {at}"), &row.to_string());
        }
        let host = |mesh: &_| tg_tool::processors(mesh, options.clone());
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
        ..ToolRequest::default()
    }
}

async fn line_036_a_server_is_told_the_depth_of_what_it_asks(place: Place) {
    let system = System::start(&place).await;
    let asked = ToolRequest {
        caller_depth: 2,
        ..ask("my find", r#"{"q": "x"}"#)
    };
    let _: ToolResponse = system.flow.ask("mcp-tool", &asked).await.unwrap();
    system.call("my find", r#"{"q": "x"}"#).await.unwrap();
    let calls = system.server.calls.lock().clone();
    assert_eq!(calls[0]["_meta"]["threadgraph/caller-depth"], 2);
    assert!(calls[1]["_meta"]["threadgraph/caller-depth"].is_null());
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

/// As after a restart: whoever calls next does not notice.
async fn a_session_that_its_server_forgot_is_agreed_again(place: Place) {
    let system = System::start(&place).await;
    system.call("my find", "{}").await.unwrap();
    system.server.forgets.store(true, Ordering::SeqCst);
    let found = system.call("my find", "{}").await.unwrap();
    assert_eq!(found.text, "found");
    assert_eq!(system.server.opened.load(Ordering::SeqCst), 2);
    assert_eq!(system.server.count("find"), 2);
}

async fn what_a_tool_says_too_much_is_left_out_and_said_to_be(place: Place) {
    let system = System::start(&place).await;
    let much = system.call("my much", "{}").await.unwrap();
    assert!(much.text.len() < MUCH, "{}", much.text.len());
    assert!(much.text.starts_with("mmm") && much.text.ends_with("[shortened]"));
}

/// A small Wikipedia: its search, and the page `Tin Mine`.
async fn wikipedia() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/wiki", listener.local_addr().unwrap());
    let search = get(|Query(asked): Query<BTreeMap<String, String>>| async move {
        assert_eq!(asked["limit"], "2");
        let found = json!({"title": "Tin Mine", "description": "a mine",
            "excerpt": format!("about <span class=\"searchmatch\">{}</span>", asked["q"])});
        let pages = if asked["q"] == "tin & lead" {
            vec![found]
        } else {
            vec![]
        };
        Json(json!({ "pages": pages }))
    });
    let page = get(|Path(title): Path<String>| async move {
        match title.as_str() {
            "Tin_Mine" => Ok(Json(json!({"title": "Tin Mine", "extract": "It is deep.",
                "content_urls": {"desktop": {"page": "https://w.example/Tin_Mine"}}}))),
            _ => Err(StatusCode::NOT_FOUND),
        }
    });
    let routes = Router::new()
        .route("/wiki/w/rest.php/v1/search/page", search)
        .route("/wiki/api/rest_v1/page/summary/{title}", page);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

async fn wikipedia_is_searched_and_summed_up(place: Place) {
    let options = tg_tool::Options {
        wikipedia_url: wikipedia().await,
        ..nearby()
    };
    let system = System::with(&place, options).await;
    let call = async |name: &str, arguments: Value| {
        let name = format!("builtin:wikipedia_{name}");
        system.call(&name, &arguments.to_string()).await
    };
    let found = call("search", json!({"query": "tin & lead", "limit": 2})).await;
    assert_eq!(found.unwrap().text, "* Tin Mine: a mine - about tin & lead");
    let none = call("search", json!({"query": "gold", "limit": 2})).await;
    assert_eq!(none.unwrap().text, "no page was found for 'gold'");
    let page = call("summary", json!({"title": "Tin Mine"})).await;
    assert_eq!(
        page.unwrap().text,
        "Tin Mine\n\nIt is deep.\n\nSource: https://w.example/Tin_Mine"
    );
    for (arguments, told) in [
        (
            json!({"title": "Gold Mine"}),
            "there is no page 'Gold Mine'",
        ),
        (
            json!({"title": "../../etc"}),
            "there is no page '../../etc'",
        ),
        (json!({"title": " "}), "argument 'title' is required"),
        (json!({}), "argument 'title' is required"),
    ] {
        let error = call("summary", arguments).await.unwrap_err();
        assert_eq!(
            (error.code(), error.message.as_str()),
            (ErrorCode::Tool, told)
        );
    }
}

async fn private_addresses_are_asked_only_where_they_may_be(place: Place) {
    // As nobody allows them.
    let options = tg_tool::Options {
        wikipedia_url: wikipedia().await,
        ..tg_tool::Options::default()
    };
    let system = System::with(&place, options).await;
    let denied = "the tool's server is at a private address, which is not allowed here";
    let title = r#"{"title": "Tin Mine"}"#;
    for (name, arguments) in [("my find", "{}"), ("builtin:wikipedia_summary", title)] {
        let error = system.call(name, arguments).await.unwrap_err();
        assert_eq!(error.message, denied, "{name}");
    }
    // A name of a private address is none that can be reached.
    let error = system.call("named", "{}").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Tool, "{error}");
    assert_eq!(system.server.opened.load(Ordering::SeqCst), 0);
    assert!(system.server.calls.lock().is_empty());
}

async fn a_link_is_never_asked_and_private_networks_are_where_they_are_allowed(place: Place) {
    let options = tg_tool::Options {
        wikipedia_url: "http://169.254.169.254/".to_owned(),
        ..nearby()
    };
    let system = System::with(&place, options).await;
    let denied = "the tool's server is at a link-local or metadata address, which is never asked";
    let links = (0..OF_LINK.len()).map(|at| (format!("link {at}"), "{}"));
    let title = r#"{"title": "Tin Mine"}"#;
    for (name, arguments) in links.chain([("builtin:wikipedia_summary".to_owned(), title)]) {
        let error = within(system.call(&name, arguments)).await.unwrap_err();
        assert_eq!(
            (error.code(), &*error.message),
            (ErrorCode::Tool, denied),
            "{name}"
        );
    }
    // By an address of this machine, and by a name of one.
    for name in ["my find", "named"] {
        system.call(name, "{}").await.unwrap();
    }
}

/// Each user is known to the server by a token of their own, in a session of their own; who has none does not come in by
/// that of another.
async fn each_user_comes_with_their_own_token(place: Place) {
    let system = System::start(&place).await;
    let to = topic(Class::Request, "mcp-tool");
    let call = async |user: Option<&str>, asked: &ToolRequest| -> Result<ToolResponse, Error> {
        let options = Ask {
            user_id: user.map(str::to_owned),
            ..system.flow.options()
        };
        let answer = system.flow.mesh.ask::<_, ToolResponse>(&to, asked, options);
        within(answer.last()).await
    };
    let find = ask("own", r#"{"q": "x"}"#);
    let list = ToolRequest {
        operation: "list-tools".to_owned(),
        server: "own".to_owned(),
        ..ToolRequest::default()
    };
    for user in [None, Some(""), Some("eve"), Some("ann/own")] {
        for asked in [&find, &list] {
            let error = call(user, asked).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::Forbidden, "{user:?}: {error}");
        }
    }
    assert_eq!(system.server.opened.load(Ordering::SeqCst), 0);
    for (user, token) in [("ann", "of-ann"), ("bob", "of-bob"), ("ann", "of-ann")] {
        let found = call(Some(user), &find).await.unwrap();
        assert_eq!(found.text, "found");
        let said = system.server.authorization.lock().clone();
        assert_eq!(said, Some(format!("Bearer {token}")), "{user}");
    }
    assert_eq!(
        system.server.opened.load(Ordering::SeqCst),
        2,
        "a session each"
    );
}

tg_testkit::on_both_buses!(
    each_user_comes_with_their_own_token,
    a_link_is_never_asked_and_private_networks_are_where_they_are_allowed,
    wikipedia_is_searched_and_summed_up,
    private_addresses_are_asked_only_where_they_may_be,
    line_036_a_server_is_told_the_depth_of_what_it_asks,
    a_tool_answers_in_text_or_with_an_object,
    what_went_wrong_is_told_in_the_words_of_whose_it_is,
    a_slow_tool_ends_with_who_asked_for_it,
    a_session_that_its_server_forgot_is_agreed_again,
    what_a_tool_says_too_much_is_left_out_and_said_to_be,
);
