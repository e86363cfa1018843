//! Bodies of requests as anybody may write them, frames of imports, and errors as foreign processors word them.

use serde_json::Value;
use tg_schemas::{Error, Reply};
use tg_testkit::fuzz::run;

use super::rdf::media::{Accept, GRAPHS, RESULTS, essence};
use super::rdf::syntax;
use super::scrub::{scrub, scrub_for};
use super::translate::bulk::{BulkKind, Record};
use super::translate::{
    About, Body, Fields, Translate, agent, collection, completion, config, embeddings, flow,
    generic, iam, image, knowledge, librarian, load, passthrough, prompt, rag, reranker, rows,
    sparql, structured, tool, triples, vectors,
};

/// Reads a body as this kind's question, and as its answer in the form of the bus.
fn both<T: Translate>(body: &Body, about: &About) {
    let _ = T::question(&Fields::new(body), about);
    let Ok(answer) = serde_json::from_value::<T::Answer>(Value::Object(body.clone())) else {
        return;
    };
    let _ = T::is_aside(&answer, about);
    match answer.error().cloned() {
        Some(error) => drop(T::failure(&scrub(error), answer)),
        None => drop(T::part(answer, about)),
    }
}

type Translator = fn(&Body, &About);

/// The translators, each with an operation.
const ALL: &[(&str, Translator)] = &[
    ("", both::<agent::Agent>),
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
    ("", both::<structured::NlpQuery>),
    ("", both::<structured::StructuredQuery>),
    ("", both::<structured::StructuredDiag>),
    ("", both::<tool::Tool>),
    ("", both::<triples::TriplesQuery>),
    ("", both::<vectors::GraphEmbeddings>),
    ("", both::<vectors::DocumentEmbeddings>),
    ("", both::<vectors::KeywordIndex>),
    ("", both::<vectors::RowEmbeddings>),
];

fn object(bytes: &[u8]) -> Option<Body> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(body)) => Some(body),
        _ => None,
    }
}

#[test]
fn bodies_of_requests() {
    let seeds: [&[u8]; 7] = [
        br#"{"question": "q", "state": null, "group": ["a"], "history": [{"thought": "t", "arguments": {"a": 1}}], "streaming": true}"#,
        br#"{"query": "q", "limit": "3", "entity-limit": 1e3, "edge-score-limit": -1, "text": "aGVsbG8=", "charset": "latin-1"}"#,
        br#"{"keys": [{"type": "a", "key": "b"}], "values": [{"type": "a", "key": "b", "value": "c"}], "type": "x"}"#,
        br#"{"s": {"t": "i", "i": "urn:a"}, "p": {"v": "urn:b", "e": true}, "o": {"t": "t", "tr": {"s": {"t": "l", "v": "1"}}}, "g": "*"}"#,
        br#"{"document-metadata": {"id": "d", "time": 1, "metadata": [{"s": {"t": "b", "d": "x"}}], "tags": ["a"]}, "content": "Zg=="}"#,
        br#"{"vector": [0.5, 1e400, null], "vectors": [[1]], "texts": ["a"], "id": "x", "variables": {"a": "{}"}, "total-size": 5}"#,
        br#"{"triples": {"metadata": {"id": "m"}, "triples": []}, "graph-embeddings": {"entities": [{"vector": [1]}]}, "library-blob": {"data": "Zg==", "offset": 18446744073709551615, "total": -1}}"#,
    ];
    run("bodies of requests", &seeds, |bytes| {
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
            translate(&body, &about);
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
    run("frames of imports", &seeds, |bytes| {
        let Some(body) = object(bytes) else {
            return;
        };
        for kind in BulkKind::ALL {
            if let Ok(record) = Record::read(kind, &body) {
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
    run("errors of others", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
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
