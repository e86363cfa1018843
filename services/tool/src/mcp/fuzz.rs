//! Rows that name servers of tools, and what these servers answer.

use rmcp::model::CallToolResult;
use tg_testkit::fuzz::run;

use super::row::Server;
use super::session::read;

#[test]
fn rows_of_servers() {
    let seeds: [&[u8]; 2] = [
        br#"{"url": "https://x.example/mcp", "remote-name": "t", "auth-token": "s"}"#,
        br#"{"url": "http://", "auth-token": ""}"#,
    ];
    run("rows of servers", &seeds, |bytes| {
        if let Ok(server) = Server::read("k", &String::from_utf8_lossy(bytes)) {
            assert!(server.url.starts_with("http"));
        }
    });
}

#[test]
fn answers_of_tools() {
    let seeds: [&[u8]; 3] = [
        br#"{"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "Zg==", "mimeType": "image/png"}], "isError": false}"#,
        br#"{"content": [{"type": "resource", "resource": {"uri": "urn:x", "text": "b"}}, {"type": "resource_link", "uri": "u", "name": "n"}]}"#,
        br#"{"content": [], "structuredContent": {"a": [1, null]}, "isError": true}"#,
    ];
    run("answers of tools", &seeds, |bytes| {
        if let Ok(result) = serde_json::from_slice::<CallToolResult>(bytes) {
            let _ = read(result);
        }
    });
}
