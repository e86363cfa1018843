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
    Servers::new(&mesh, &Options::default())
}

fn tool(url: &str, name: &str) -> Server {
    let row = json!({"url": url, "remote-name": name, "auth-token": "s3cret"});
    Server::read("key", &row.to_string()).unwrap()
}

async fn call(servers: &Servers, server: &Server) -> Result<ToolResponse, Error> {
    let arguments = Map::from_iter([("q".to_owned(), json!("x"))]);
    let call = servers.call("default", ("key", server), arguments, ("run/1", false));
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

#[tokio::test]
async fn workspaces_share_no_session() {
    let (url, fake) = serve().await;
    let servers = servers().await;
    for workspace in ["a", "b", "a"] {
        let server = tool(&url, "find");
        let call = servers.call(workspace, ("key", &server), Map::new(), ("", false));
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
    tokio::time::timeout(Duration::from_secs(10), fake.cancelled.notified())
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
