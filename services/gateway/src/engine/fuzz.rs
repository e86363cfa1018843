//! Bodies of requests as anybody may write them, frames of imports, and errors as foreign processors word them.

use std::path::Path;

use serde_json::Value;
use tg_schemas::{Error, Reply};
use tg_testkit::fuzz::{Sayings, door, run};

use super::compat::agents::Definition;
use super::compat::chat::reply::Chat;
use super::compat::completions::reply::Completions;
use super::compat::dialect::{Asked, Dialect};
use super::compat::embeddings as vectors_of_texts;
use super::compat::messages::reply::Messages;
use super::compat::messages::request;
use super::compat::responses::reply::Responses;
use super::mcp::called;
use super::mcp::completion as completed;
use super::mcp::confirm;
use super::mcp::message::Message;
use super::mcp::revision::{Header, Headers, Revision};
use super::mcp::told;
use super::mcp::tools::TOOLS;
use super::rdf::media::{Accept, GRAPHS, RESULTS, essence};
use super::rdf::syntax;
use super::scrub::{scrub, scrub_for};
use super::secret_texts::without_secrets;
use super::translate::bulk::{BulkKind, Record};
use super::translate::{
    About, Body, Fields, Translate, agent, audit, chat, collection, completion, config, embeddings,
    flow, generic, iam, image, knowledge, librarian, load, operations, passthrough, prompt, rag,
    reranker, rows, sparql, structured, threads, tool, traces, triples, usage, vectors, violations,
};

/// Reads a body as this kind's question, and as its answer in the form of the bus.
fn both<T: Translate>(body: &Body, about: &About, sayings: &Sayings<'_>) {
    let _ = sayings.of(T::question(&Fields::new(body), about));
    let Ok(answer) = serde_json::from_value::<T::Answer>(Value::Object(body.clone())) else {
        return;
    };
    let _ = T::is_aside(&answer, about);
    match answer.error().cloned() {
        Some(error) => {
            let error = scrub(error);
            sayings.say(&error);
            drop(T::failure(&error, answer));
        }
        None => drop(T::part(answer, about)),
    }
}

type Translator = fn(&Body, &About, &Sayings<'_>);

/// The translators, each with an operation.
const ALL: &[(&str, Translator)] = &[
    ("", both::<agent::Agent>),
    ("list-events", both::<audit::Audit>),
    ("", both::<chat::Chat>),
    ("update-collection", both::<collection::Collection>),
    ("", both::<completion::Completion>),
    ("getvalues-all-ws", both::<config::Config>),
    ("", both::<embeddings::Embeddings>),
    ("start-flow", both::<flow::Flow>),
    ("", both::<generic::Generic>),
    ("", both::<generic::Raw>),
    ("create-user", both::<iam::Iam>),
    ("resolve-effective-permissions", both::<iam::Iam>),
    ("", both::<image::ImageToText>),
    ("put-kg-core", both::<knowledge::Knowledge>),
    ("get-kg-core", both::<knowledge::Knowledge>),
    ("add-document", both::<librarian::Librarian>),
    ("begin-upload", both::<librarian::Librarian>),
    ("list-documents", both::<librarian::Librarian>),
    ("", both::<load::TextLoad>),
    ("", both::<load::DocumentLoad>),
    ("", both::<passthrough::Passthrough>),
    ("", both::<prompt::Prompt>),
    ("", both::<rag::GraphRag>),
    ("", both::<rag::DocumentRag>),
    ("", both::<reranker::Reranker>),
    ("", both::<rows::Rows>),
    ("", both::<sparql::Sparql>),
    ("chat", both::<operations::Operations>),
    ("", both::<structured::NlpQuery>),
    ("", both::<structured::StructuredQuery>),
    ("", both::<structured::StructuredDiag>),
    ("send-message", both::<threads::Threads>),
    ("", both::<tool::Tool>),
    ("list-ended-runs", both::<traces::Traces>),
    ("", both::<triples::TriplesQuery>),
    ("list-usage", both::<usage::Usage>),
    ("", both::<vectors::GraphEmbeddings>),
    ("", both::<vectors::DocumentEmbeddings>),
    ("", both::<vectors::KeywordIndex>),
    ("", both::<vectors::RowEmbeddings>),
    ("list-violations", both::<violations::Violations>),
    ("replay-violations", both::<violations::Violations>),
];

fn object(bytes: &[u8]) -> Option<Body> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(body)) => Some(body),
        _ => None,
    }
}

#[test]
fn every_translator_is_fed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/translate");
    let fed = include_str!("fuzz.rs");
    let mut found = 0;
    for file in std::fs::read_dir(folder).expect("the folder of the translators") {
        let path = file.expect("a file").path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source");
        let own = |line: &str| Some(line.strip_prefix("impl Translate for ")?.to_owned());
        for name in text.lines().filter_map(own) {
            let name = name.trim_end_matches(" {");
            assert!(fed.contains(&format!("::{name}>)")), "{name} is not fed");
            found += 1;
        }
    }
    assert!(found > 30, "only {found} translators are found");
}

#[test]
fn bodies_of_requests() {
    let seeds: [&[u8]; 9] = [
        br#"{"question": "q", "state": null, "group": ["a"], "history": [{"thought": "t", "arguments": {"a": 1}}], "streaming": true}"#,
        br#"{"query": "q", "limit": "3", "entity-limit": 1e3, "edge-score-limit": -1, "text": "aGVsbG8=", "charset": "latin-1"}"#,
        br#"{"keys": [{"type": "a", "key": "b"}], "values": [{"type": "a", "key": "b", "value": "c"}], "type": "x"}"#,
        br#"{"s": {"t": "i", "i": "urn:a"}, "p": {"v": "urn:b", "e": true}, "o": {"t": "t", "tr": {"s": {"t": "l", "v": "1"}}}, "g": "*"}"#,
        br#"{"document-metadata": {"id": "d", "time": 1, "metadata": [{"s": {"t": "b", "d": "x"}}], "tags": ["a"]}, "content": "Zg=="}"#,
        br#"{"vector": [0.5, 1e400, null], "vectors": [[1]], "texts": ["a"], "id": "x", "variables": {"a": "{}"}, "total-size": 5}"#,
        br#"{"triples": {"metadata": {"id": "m"}, "triples": []}, "graph-embeddings": {"entities": [{"vector": [1]}]}, "library-blob": {"data": "Zg==", "offset": 18446744073709551615, "total": -1}}"#,
        br#"{"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "name": "n", "arguments": "{}"}]}], "tools": [{"name": "n", "parameters": {"a": {}}}], "max_tokens": 0, "stop": ["a"], "schema": {}, "temperature": "0.5"}"#,
        br#"{"content": "c", "tool_calls": [{"name": "n"}], "usage": {"prompt_tokens": 1}, "health": [{"model": "m"}], "route": {"backends": [{}]}, "error": {"type": "t", "message": "m"}, "failure": "f", "retry_after": -1}"#,
    ];
    door("bodies of requests", &seeds, |bytes, sayings| {
        let Some(body) = object(bytes) else {
            return;
        };
        for (operation, translate) in ALL {
            let about = About {
                operation: (*operation).to_owned(),
                actor: "a".to_owned(),
                flow: "f".to_owned(),
                whole: bytes.len().is_multiple_of(2),
                ..About::default()
            };
            translate(&body, &about, sayings);
        }
    });
}

/// As a message, as the arguments of each tool, and as the answer to it.
#[test]
fn messages_of_the_model_context_protocol() {
    let seeds: [&[u8]; 8] = [
        br#"{"jsonrpc": "2.0", "id": 2, "method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "summarise_document"}, "argument": {"name": "document_id", "value": "urn"}}}"#,
        br#"{"jsonrpc": "2.0", "id": "confirm r m", "result": {"action": "accept", "content": {"allow": true}}}"#,
        br#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask_agent", "arguments": {"question": "q"}, "_meta": {"progressToken": "t"}}}"#,
        br#"{"jsonrpc": "2.0", "id": "a", "method": "server/discover", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}"#,
        br#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}"#,
        br#"{"query": "q", "limit": 10, "flow": "f", "collection": "c", "document_id": "urn:d", "offset": 9223372036854775807, "text": "t", "title": "t", "kind": "text/html"}"#,
        br#"{"response": [{"s": {"t": "i", "i": "urn:a"}, "p": {"t": "i", "i": "urn:b"}, "o": {"t": "t", "tr": {}}, "g": ""}], "answer": "a", "citations": [{"n": 1, "page": 2}], "content": "w6Q="}"#,
        br#"{"query-type": "select", "variables": ["a", 1], "bindings": [{"values": [null, {"t": "b", "d": "x"}]}], "document-metadatas": [1, {"id": "d"}], "error": {"type": 1, "message": "m"}}"#,
    ];
    door(
        "messages of the model context protocol",
        &seeds,
        |bytes, sayings| {
            let Some(body) = object(bytes) else {
                return;
            };
            for tool in TOOLS {
                let asked = called::Asked::read(tool, &body, ("f", "c"));
                let offset = sayings.of(asked).map_or(1, |asked| asked.offset);
                drop(told::result(tool, &body, ("d", offset)));
            }
            let version = Header::Text("2026-07-28".to_owned());
            let headers = Headers {
                version,
                ..Headers::default()
            };
            match Message::read(body) {
                Err(fault) => sayings.say(fault.body()),
                Ok(message) => {
                    if let Err(fault) = Revision::of(&headers, &message) {
                        sayings.say(fault.body());
                    }
                    match message {
                        Message::Request(request) => {
                            if let Err(fault) = completed::source(&request) {
                                sayings.say(fault.body());
                            }
                        }
                        Message::Reply {
                            id: Some(id),
                            result: Some(result),
                        } => drop(confirm::answer(&id, &result)),
                        _ => {}
                    }
                }
            }
        },
    );
}

#[test]
fn bodies_of_chats() {
    let seeds: [&[u8]; 10] = [
        br#"{"model": "m", "system": [{"type": "text", "text": "s"}], "max_tokens": 9, "thinking": {"type": "enabled"}, "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "2"}], "is_error": true}]}], "tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "any"}}"#,
        br#"{"model": "agent/m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": "2"}], "instructions": "i", "text": {"format": {"type": "json_schema", "schema": {}}}, "previous_response_id": null}"#,
        br#"{"model": "p/m/3", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 3}"#,
        br#"{"model": "m", "messages": [{"role": "user", "content": "q"}], "stream": true, "stream_options": {"include_usage": true}, "max_completion_tokens": 9, "stop": "END"}"#,
        br#"{"model": "m", "messages": [{"role": "developer", "content": [{"type": "text", "text": "a"}]}, {"role": "function", "name": "f", "tool_call_id": "c", "content": null}], "temperature": 1e400, "top_p": "1"}"#,
        br#"{"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}]}], "max_tokens": -1, "stop": ["a", 1]}"#,
        br#"{"model": "m", "messages": [{"role": "tool"}], "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}], "tool_choice": {"type": "function", "function": {"name": "add"}}}"#,
        br#"{"model": "m", "messages": [{"role": "system"}], "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}, "tool_choice": "required"}"#,
        br#"{"model": "m", "prompt": ["Once"], "stop": ["."], "n": 1, "echo": false, "suffix": null, "stream_options": {"include_usage": true}}"#,
        br#"{"model": "m", "messages": [{"role": "assistant", "function_call": {"name": "add", "arguments": "{"}}, {"role": "function", "name": "add"}], "functions": [{"name": "add"}], "function_call": {"name": "add"}}"#,
    ];
    door("bodies of chats", &seeds, |bytes, sayings| {
        let Some(body) = object(bytes) else {
            return;
        };
        let read: [Option<Asked>; 4] = [
            sayings.of(Chat::read(&body)).map(|(asked, _)| asked),
            sayings.of(Completions::read(&body)).map(|(asked, _)| asked),
            sayings.of(Messages::read(&body)).map(|(asked, _)| asked),
            sayings.of(Responses::read(&body)).map(|(asked, _)| asked),
        ];
        for asked in read.into_iter().flatten() {
            assert!(!asked.model.is_empty());
            // A flow is asked with what was read of it.
            let about = About::default();
            let _ = sayings.of(chat::Chat::question(&Fields::new(&asked.body), &about));
            let question = sayings.of(Definition::default().question(&asked.body));
            if let Some(question) = question {
                let _ = sayings.of(agent::Agent::question(&Fields::new(&question), &about));
            }
        }
        let _ = sayings.of(request::tokens(&body));
        if let Some(asked) = sayings.of(vectors_of_texts::Asked::read(&body)) {
            drop(asked.answer(&body));
        }
    });
}

#[test]
fn frames_of_imports() {
    let seeds: [&[u8]; 5] = [
        br#"{"metadata": {"id": "m", "collection": "c", "metadata": []}, "triples": [{"s": {"t": "i", "i": "a"}, "p": {"t": "i", "i": "b"}, "o": {"t": "l", "v": "c"}}]}"#,
        br#"{"metadata": {"id": "m"}, "entities": [{"entity": {"t": "i", "i": "a"}, "vector": [0.1, -1e9], "chunk_id": "c"}], "model": "x"}"#,
        br#"{"metadata": {"id": "m"}, "chunks": [{"chunk-id": "c", "vectors": [[1, 2], []]}]}"#,
        br#"{"metadata": {"id": "m"}, "entities": [{"entity": {"v": "a", "e": true}, "context": "b"}]}"#,
        br#"{"metadata": {"id": "m"}, "schema_name": "s", "values": [{"a": "1", "b": null}], "confidence": 0.5}"#,
    ];
    door("frames of imports", &seeds, |bytes, sayings| {
        let Some(body) = object(bytes) else {
            return;
        };
        for kind in BulkKind::ALL {
            if let Some(record) = sayings.of(Record::read(kind, &body)) {
                let items = record.items();
                let parts = record.split();
                assert_eq!(parts.iter().map(Record::items).sum::<usize>(), items);
            }
        }
    });
}

#[test]
fn errors_of_others() {
    let seeds: [&[u8]; 3] = [
        b"HTTPConnectionPool(host='h', port=11434): Max retries exceeded with url: /api?key=sk-0123456789",
        b"request:tg:agent:w:f \xe2\x80\x94 amqp://u:p@10.0.0.1/%2f [::1]:5672 /etc/passwd C:\\x\\y",
        b"'a' \"b\" (c) Bearer eyJhbGciOi.x.y",
    ];
    door("errors of others", &seeds, |bytes, sayings| {
        let text = String::from_utf8_lossy(bytes);
        // What follows whatever stands before it is no secret of who reads the error.
        let inside = format!("{text} amqp://u:hunter2@127.0.0.1:5672/%2f failed, see /tmp/x");
        sayings.say(scrub(Error::typed("internal-error", inside)));
        for kind in ["bad-request", "internal-error", &text] {
            for operator in [false, true] {
                let shown = scrub_for(Error::typed(kind, text.as_ref()), operator);
                assert!(shown.message.len() <= 4 * 1024);
            }
        }
    });
}

#[test]
fn graphs_of_the_graph_store() {
    let seeds: [&[u8]; 4] = [
        b"@prefix e: <http://e/> . e:a e:b \"c\"@en--rtl, 1.5e3, true, [ e:d ( 1 2 ) ] .",
        b"<urn:a> <urn:b> <<( <urn:c> <urn:d> _:x )>> .",
        b"<urn:a> <urn:b> \"\\u00e9\\n\"^^<urn:t> .\n_:a <urn:b> _:c .",
        b"BASE <http://e/> PREFIX : <#> :a a :b ; :c 'x' {| :d :e |} .",
    ];
    run("graphs of the graph store", &seeds, |bytes| {
        for kind in ["text/turtle", "application/n-triples"] {
            if let Some(format) = syntax::of_body(kind) {
                let _ = syntax::triples(bytes, format, "http://e/g");
            }
        }
    });
}

#[test]
fn what_readers_of_answers_accept() {
    let seeds: [&[u8]; 3] = [
        b"text/turtle;q=0.5, application/*;level=1;q=0.2, */*;q=0.1",
        b"application/sparql-results+json; charset=\"utf-8\" ; Q=1.000",
        b",;q=nan, */ , /*;q=-1, text/csv;q=1e-9",
    ];
    run("what readers of answers accept", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let accept = Accept::read(text.split('\n'));
        let _ = (accept.best(RESULTS), accept.best(GRAPHS), essence(&text));
    });
}

/// Values of configuration and texts of tools, also such as are masked already.
#[test]
fn texts_with_secrets() {
    let seeds: [&[u8]; 5] = [
        b"Authorization: Bearer abcdefghijklmnop0123456789, key sk-proj-0123456789abcdefghijklmnop",
        br#"{"headers": [{"name": "X-Api-Key", "value": "0123456789abcdef"}], "url": "https://u:p@host/x?token=abc"}"#,
        b"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        b"PASSWORD='hunter2' --api-key=0123456789 https://hooks.slack.com/services/T0/B0/abc",
        "ghp_\u{fc}\u{1f600}= \"\\\"\" aws_secret_access_key : ".as_bytes(),
    ];
    run("texts with secrets", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Some(masked) = without_secrets(&text) {
            let _ = without_secrets(&masked);
        }
    });
}
