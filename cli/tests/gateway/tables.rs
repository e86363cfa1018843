//! Tables at a terminal of 80 columns: no line is longer, and nothing that is to be copied is cut.

use serde_json::{Value, json};

use crate::fake::{Fake, Say};

const COLUMNS: usize = 80;
const ID: &str = "urn:trustgraph:docrag:75d994d3-a5d1-4bf2-a5d0-2f3c0f6b9a11";

fn words() -> String {
    "what is said of it at some length "
        .repeat(6)
        .trim_end()
        .to_owned()
}

/// Commands over one REST request, and what is answered.
fn rest() -> Vec<(&'static [&'static str], Value)> {
    let (id, words) = (ID, words());
    let aside = json!([{"id": id, "flow-id": "default", "subscription": "graph-rag/request", "attempt": 3,
        "since": 1_700_000_000_000_i64, "detail": words}]);
    vec![
        (
            &["list-workspaces"],
            json!({"workspaces": [{"id": id, "name": words, "enabled": true, "created": "2026-01-01T00:00:00+00:00"}]}),
        ),
        (
            &["list-api-keys", "u"],
            json!({"api_keys": [{"id": id, "name": words, "prefix": "tg_abcd", "created": "2026-01-01T00:00:00+00:00",
                "expires": "2030-01-01T00:00:00+00:00"}]}),
        ),
        (
            &["whoami"],
            json!({"user": {"id": id, "username": "ann", "name": words, "roles": [words]}}),
        ),
        (
            &["list-collections"],
            json!({"collections": [{"collection": id, "name": words, "description": words, "tags": ["a", "b"]}]}),
        ),
        (&["dead-letters"], json!({"put-aside": aside})),
        (&["parked", "list"], json!({"put-aside": aside})),
        (
            &["list-requests"],
            json!({"requests": [{"id": id, "service": "agent", "flow": "default", "workspace": "acme", "seconds": 7}]}),
        ),
        (
            &["list-runs"],
            json!({"runs": [{"id": id, "state": "running", "flow": "default", "workspace": "acme", "user": id,
                "on-disconnect": "grace=30", "started-ms": 1}]}),
        ),
        (
            &["list-tasks"],
            json!({"tasks": [{"id": id, "kind": "delegate", "status": "failed", "agent": id, "session": id, "workspace": "acme",
                "user": id, "message": words, "error": words, "created-ms": 1}]}),
        ),
        (
            &["why"],
            json!({"flow": json!({"why": [{"subject": id, "state": "detached", "detail": words}]}).to_string(),
                "why": [{"subject": id, "state": "detached", "detail": words}]}),
        ),
        (
            &["stop-flow", "f"],
            json!({"receipt": {"queues": [{"subscription": id, "sent": 9, "answered": 6, "finished": 2, "parked": 1,
                "discarded": 0}],
                "queues-removed": 12, "exchanges-removed": 7}}),
        ),
        (
            &["show-token-costs"],
            json!({"values": [{"key": id, "value": "{\"input_price\": 0.1}"}]}),
        ),
        (
            &["show-mcp-tools"],
            json!({"values": [{"key": id, "value": json!({"remote-name": words, "url": id}).to_string()}]}),
        ),
        (
            &["list-mcp-tools", "m"],
            json!({"tools": [{"name": id, "description": words, "read-only": true, "schema": {}}]}),
        ),
        (
            &["show-tools"],
            json!({"values": [{"key": id, "value": json!({"name": "n", "type": "prompt", "description": words}).to_string()}]}),
        ),
        (
            &["show-library-processing"],
            json!({"processing-metadatas": [{"id": id, "document-id": id, "flow": "default", "collection": "default",
                "errors": [{"subject": id, "message": words}]}]}),
        ),
        (
            &["show-library-documents", "--long"],
            json!({"document-metadatas": [{"id": id, "title": words, "kind": "text/plain", "comments": words}]}),
        ),
        (
            &["invoke-rows-query", "{ lamps { id } }"],
            json!({"data": json!({"lamps": [{"about": words, "id": id}]}).to_string()}),
        ),
    ]
}

/// Commands over one request of the socket.
fn socket() -> Vec<(&'static [&'static str], Value)> {
    let (id, words) = (ID, words());
    vec![
        (
            &["invoke-reranker", "-q", "why", "a"],
            json!({"results": [{"query_id": words, "document_id": id, "score": 0.5}]}),
        ),
        (
            &["invoke-sparql-query", "SELECT * WHERE { ?s ?p ?o }"],
            json!({"query-type": "select", "variables": ["about", "entity"],
                "bindings": [{"values": [{"t": "l", "v": words}, {"t": "i", "i": id}]}]}),
        ),
    ]
}

fn check(line: &[&str], shown: &str) {
    for text in shown.lines() {
        assert!(text.chars().count() <= COLUMNS, "{line:?}:\n{shown}");
    }
    assert!(shown.contains(ID), "{line:?} cuts the id:\n{shown}");
}

#[tokio::test]
async fn no_line_is_wider_than_the_terminal_and_no_id_is_cut() {
    for (line, answer) in rest() {
        let fake = Fake::rest(move |_, _| (200, answer.clone())).await;
        check(line, &fake.tg_at(COLUMNS, line).await.printed());
    }
    for (line, answer) in socket() {
        let fake = Fake::socket(move |_| vec![Say::Last(answer.clone())]).await;
        check(line, &fake.tg_at(COLUMNS, line).await.printed());
    }
}

#[tokio::test]
async fn what_goes_elsewhere_is_as_wide_as_it_is() {
    let mut wide = 0;
    for (line, answer) in rest() {
        let fake = Fake::rest(move |_, _| (200, answer.clone())).await;
        let shown = fake.tg(line).await.printed();
        let widest = shown.lines().map(|line| line.chars().count()).max();
        wide += usize::from(widest > Some(COLUMNS));
        assert!(shown.contains(ID), "{line:?}:\n{shown}");
    }
    assert!(wide >= 10, "{wide}");
}
