//! Against a small MCP server on a socket, spoken byte by byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tg_schemas::{Error, ErrorCode};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;

#[derive(Default)]
struct Fake {
    opened: AtomicUsize,
    calls: Mutex<Vec<Value>>,
    authorization: Mutex<Option<String>>,
    hanging: Notify,
    cancelled: Notify,
}

async fn serve() -> (String, Arc<Fake>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let fake = Arc::new(Fake::default());
    let served = fake.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let fake = served.clone();
            tokio::spawn(async move { fake.connection(socket).await });
        }
    });
    (url, fake)
}

impl Fake {
    async fn connection(&self, socket: TcpStream) {
        let mut socket = BufReader::new(socket);
        while let Some((method, body)) = self.request(&mut socket).await {
            let answer = match method.as_str() {
                "POST" => self.post(&serde_json::from_slice(&body).unwrap()).await,
                "DELETE" => Some("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()),
                _ => {
                    Some("HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned())
                }
            };
            let Some(answer) = answer else { return };
            if socket.get_mut().write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    async fn request(&self, socket: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
        let mut line = String::new();
        if socket.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let method = line.split(' ').next()?.to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            socket.read_line(&mut header).await.ok()?;
            let Some((name, value)) = header.trim().split_once(": ") else {
                break;
            };
            match name.to_lowercase().as_str() {
                "content-length" => length = value.parse().ok()?,
                "authorization" => *self.authorization.lock() = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await.ok()?;
        Some((method, body))
    }

    async fn post(&self, message: &Value) -> Option<String> {
        let reply = |result: Value| {
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
            Some(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s1\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            ))
        };
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                self.opened.fetch_add(1, Ordering::SeqCst);
                reply(json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fake", "version": "1"},
                }))
            }
            "tools/call" => {
                self.calls.lock().push(message["params"].clone());
                let text = |text: &str| json!([{"type": "text", "text": text}]);
                match message["params"]["name"].as_str().unwrap_or_default() {
                    "fail" => reply(json!({"content": text("no such thing"), "isError": true})),
                    "object" => reply(json!({"content": [], "structuredContent": {"n": 1}})),
                    "picture" => reply(json!({"content": [
                        {"type": "text", "text": "see"},
                        {"type": "image", "data": "AA==", "mimeType": "image/png"},
                    ]})),
                    "hang" => {
                        self.hanging.notify_one();
                        std::future::pending().await
                    }
                    _ => reply(json!({"content": text("found")})),
                }
            }
            method => {
                if method == "notifications/cancelled" {
                    self.cancelled.notify_one();
                }
                Some("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned())
            }
        }
    }
}

fn tool(url: &str, name: &str) -> Server {
    let row = json!({"url": url, "remote-name": name, "auth-token": "s3cret"});
    Server::read("key", &row.to_string()).unwrap()
}

async fn call(servers: &Servers, server: &Server) -> Result<ToolResponse, Error> {
    let arguments = Map::from_iter([("q".to_owned(), json!("x"))]);
    Ok(servers.call("default", server, arguments, "run/1").await?)
}

#[tokio::test]
async fn a_session_is_used_again_and_results_are_read() {
    let (url, fake) = serve().await;
    let servers = Servers::new(&Options::default());
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
    let servers = Servers::new(&Options::default());
    for workspace in ["a", "b", "a"] {
        let server = tool(&url, "find");
        let call = servers.call(workspace, &server, Map::new(), "");
        call.await.unwrap();
    }
    assert_eq!(fake.opened.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (url, fake) = serve().await;
    let servers = Servers::new(&Options::default());
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
    let servers = Servers::new(&Options::default());
    let server = tool(&format!("http://{address}/secret-path"), "find");
    let error = call(&servers, &server).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Tool);
    assert_eq!(error.message, "the tool's server cannot be reached");
    assert!(
        servers.sessions.iter().next().is_none(),
        "nothing broken is kept"
    );
}
