//! Against a small MCP server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tg_schemas::{Error, ErrorCode};
use tg_testkit::mcp::McpServer;
use tokio::net::TcpListener;

use super::*;

async fn serve() -> (String, Arc<McpServer>) {
    let server = McpServer::start().await.unwrap();
    (server.url(), server)
}

async fn servers() -> Servers {
    let mesh = tg_testkit::place::host(tg_testkit::place::Place::embedded().connect().await).await;
    let options = Options {
        private_addresses: true,
        ..Options::default()
    };
    Servers::new(&mesh, &options)
}

fn tool(url: &str, name: &str) -> Server {
    let row = json!({"url": url, "remote-name": name, "auth-token": "s3cret"});
    Server::read("key", &row.to_string()).unwrap()
}

async fn call(servers: &Servers, server: &Server) -> Result<ToolResponse, Error> {
    let arguments = Map::from_iter([("q".to_owned(), json!("x"))]);
    let call = servers.call("default", ("key", server), arguments, ("run/1", false, 0));
    Ok(call.await?)
}

#[tokio::test]
async fn a_session_is_used_again_and_results_are_read() {
    let (url, fake) = serve().await;
    let servers = servers().await;
    let found = call(&servers, &tool(&url, "find")).await.unwrap();
    assert_eq!(found.text, "found");
    let object = call(&servers, &tool(&url, "object")).await.unwrap();
    assert_eq!(
        (object.text.as_str(), object.object.as_str()),
        ("", "{\"n\":1}")
    );
    let picture = call(&servers, &tool(&url, "picture")).await.unwrap();
    assert_eq!(picture.text, "see\n[image, image/png]");
    let error = call(&servers, &tool(&url, "fail")).await.unwrap_err();
    assert_eq!(
        (error.code(), error.message.as_str()),
        (ErrorCode::Tool, "no such thing")
    );
    assert_eq!(fake.opened.load(Ordering::SeqCst), 1);
    assert_eq!(fake.authorization.lock().as_deref(), Some("Bearer s3cret"));
    let calls = fake.calls.lock();
    assert_eq!(calls[0]["arguments"], json!({"q": "x"}));
    assert_eq!(calls[0]["_meta"]["threadgraph/call"], "run/1");
}

/// Pings of a proxy, progress, and what the server asks before it answers.
#[tokio::test]
async fn events_before_an_answer_are_passed_over() {
    let (url, fake) = serve().await;
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                          "params": {"progressToken": 1, "progress": 0.5}});
    let asks = json!({"jsonrpc": "2.0", "id": 77, "method": "ping"});
    let servers = servers().await;
    for (at, before) in [
        ": keep-alive\n\nevent: ping\ndata: 2026-01-02T03:04:05Z\n\n".to_owned(),
        "data: ping\n\ndata:\n\nid: 0\nretry: 5\n\n".to_owned(),
        "event: heartbeat\ndata: {\"alive\": true}\n\n".to_owned(),
        format!("event: message\ndata: {progress}\n\n"),
        format!("data: {asks}\r\n\r\n"),
    ]
    .into_iter()
    .enumerate()
    {
        *fake.before.lock() = Some(before);
        let server = tool(&url, "find");
        let (workspace, row) = (format!("w{at}"), ("key", &server));
        let found = servers
            .call(&workspace, row, Map::new(), ("", false, 0))
            .await;
        assert_eq!(found.unwrap().text, "found", "{at}");
    }
}

/// Servers whose last page names itself, and one that lists a tool without a schema.
#[tokio::test]
async fn lists_of_tools_are_read_as_servers_write_them() {
    let (url, fake) = serve().await;
    let whole = json!({"name": "find", "inputSchema": {"type": "object"}});
    let servers = servers().await;
    for (workspace, cursor, second) in [
        (
            "same",
            "0",
            json!({"name": "see", "inputSchema": {"type": "object"}}),
        ),
        ("empty", "", json!({"name": "see", "inputSchema": null})),
    ] {
        *fake.listed.lock() = vec![vec![whole.clone(), second]];
        *fake.next.lock() = Some(cursor.to_owned());
        let server = tool(&url, "find");
        let listed = servers.list(workspace, ("key", &server)).await.unwrap();
        let (tools, told) = listed.told();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            (names, told.as_str()),
            (vec!["find", "see"], ""),
            "{workspace}"
        );
    }
}

/// Many servers promise notices and have no stream to send them on.
#[tokio::test]
async fn a_list_of_a_server_at_an_address_holds_for_a_minute_whatever_it_promises() {
    let (url, fake) = serve().await;
    fake.promises.store(true, Ordering::SeqCst);
    let find = json!({"name": "find", "inputSchema": {"type": "object"}});
    *fake.listed.lock() = vec![vec![find]];
    let servers = servers().await;
    let server = tool(&url, "find");
    let lists = async || {
        let listed = servers.list("default", ("key", &server)).await;
        assert_eq!(listed.unwrap().told().0.len(), 1);
        fake.lists.load(Ordering::SeqCst)
    };
    assert_eq!((lists().await, lists().await), (1, 1));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    assert_eq!(lists().await, 2);
}

#[tokio::test]
async fn workspaces_share_no_session() {
    let (url, fake) = serve().await;
    let servers = servers().await;
    for workspace in ["a", "b", "a"] {
        let server = tool(&url, "find");
        let call = servers.call(workspace, ("key", &server), Map::new(), ("", false, 0));
        call.await.unwrap();
    }
    assert_eq!(fake.opened.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (url, fake) = serve().await;
    let servers = servers().await;
    let hang = tool(&url, "hang");
    let calling = call(&servers, &hang);
    tokio::select! {
        _ = calling => panic!("it hangs"),
        () = fake.hanging.notified() => {}
    }
    tokio::time::timeout(Duration::from_secs(60), fake.cancelled.notified())
        .await
        .expect("the server is told");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let servers = servers().await;
    let server = tool(&format!("http://{address}/secret-path"), "find");
    let error = call(&servers, &server).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Tool);
    assert_eq!(error.message, "the tool's server cannot be reached");
    assert!(
        servers.sessions.iter().next().is_none(),
        "nothing broken is kept"
    );
}
