//! Rows that name servers of tools, and what these servers answer.

use rmcp::model::{CallToolResult, ListToolsResult};
use tg_testkit::fuzz::run;

use super::content::read;
use super::listing::Listing;
use super::row::Server;

#[test]
fn rows_of_servers() {
    let seeds: [&[u8]; 4] = [
        br#"{"url": "http://x", "user-tokens": true}"#,
        br#"{"server": "files", "remote-name": "t"}"#,
        br#"{"url": "https://x.example/mcp", "remote-name": "t", "auth-token": "s"}"#,
        br#"{"url": "http://", "auth-token": ""}"#,
    ];
    run("rows of servers", &seeds, |bytes| {
        if let Ok(server) = Server::read("k", &String::from_utf8_lossy(bytes)) {
            assert!(server.url().is_none_or(|url| url.starts_with("http")));
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
            let answer = read(result, true);
            for picture in answer.into_iter().flat_map(|answer| answer.pictures) {
                assert!(picture.at >= 0);
            }
        }
    });
}

#[test]
fn lists_of_tools() {
    let seeds: [&[u8]; 2] = [
        br#"{"tools": [{"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}"#,
        br#"{"tools": [{"name": "b", "title": "B", "description": "d", "inputSchema": {}}], "nextCursor": "2"}"#,
    ];
    run("lists of tools", &seeds, |bytes| {
        if let Ok(page) = serde_json::from_slice::<ListToolsResult>(bytes) {
            let mut listing = Listing::default();
            listing.add(page.tools);
            let (tools, _) = listing.told();
            assert!(tools.iter().all(|tool| !tool.name.is_empty()));
        }
    });
}
