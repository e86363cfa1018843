//! Queries that clients and models write: SPARQL over a graph and GraphQL over tables, each run to its end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tg_graph::formats::{Format, read};
use tg_graph::{Batch, CollectionKey, EmbeddedGraph, Graphs, Limits, SparqlAsk};
use tg_rows::graphql::{Query, build};
use tg_rows::store::sqlite::SqliteRows;
use tg_testkit::fuzz::run;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// Time that a query is given: what takes longer has not ended when it was told to.
const TIME: Duration = Duration::from_millis(200);

fn runtime() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("a runtime")
}

#[test]
fn queries_of_sparql() {
    let seeds: [&[u8]; 6] = [
        b"PREFIX : <urn:a#> SELECT DISTINCT ?s (COUNT(*) AS ?n) WHERE { ?s :p+/^:q|!(:r) ?o . FILTER(REGEX(STR(?o), \"^a.*b$\")) } GROUP BY ?s HAVING(?n > 1) ORDER BY DESC(?s) LIMIT 3 OFFSET 1",
        b"CONSTRUCT { ?s <urn:p> [ <urn:q> ( 1 2.5 true \"x\"@en ) ] } WHERE { GRAPH ?g { ?s ?p ?o } OPTIONAL { ?o ?x ?y } MINUS { ?s a ?z } }",
        b"ASK { << <urn:a> <urn:b> <urn:c> >> ?p ?o . VALUES (?p ?o) { (<urn:d> UNDEF) } }",
        b"SELECT * { { SELECT (CONCAT(?a, ?a) AS ?b) { BIND(\"\\u00fc\\n\" AS ?a) } } UNION { ?s ?p '''x''' } FILTER NOT EXISTS { ?s ?p 1e3 } }",
        b"DESCRIBE <urn:a> FROM NAMED <urn:g> # comment\n",
        b"SELECT (REPLACE(?o, \"(a+)+\", \"$1\") AS ?r) (SUBSTR(?o, -1, 1e9) AS ?t) { ?s ?p ?o }",
    ];
    let runtime = runtime();
    let graph = EmbeddedGraph::in_memory(Limits::default()).expect("a graph");
    let key = CollectionKey::new("w", "c");
    let data: &[u8] =
        b"<urn:a> <urn:p> <urn:b>, \"aaaaaaaaaaaaaaaaaaaaaaaa!\", 1 . <urn:b> <urn:q> <urn:a> .";
    let quads = read(data, Format::Turtle, None, "x").expect("a format");
    let quads = quads.collect::<Result<Vec<_>, _>>().expect("quads");
    let written = runtime.block_on(graph.write(&key, Batch::insert(quads)));
    written.expect("written");
    run("queries of SPARQL", &seeds, |bytes| {
        let ask = SparqlAsk {
            user: None,
            query: String::from_utf8_lossy(bytes).into_owned(),
            graphs: Graphs::default(),
            limit: Some(100),
            batch: 10,
            time: TIME,
            cancel: CancellationToken::new(),
        };
        runtime.block_on(async {
            if let Ok(mut answer) = graph.sparql(&key, ask).await {
                while let Ok(Some(_)) = answer.next().await {}
            }
        });
    });
}

#[test]
fn queries_of_graphql() {
    let table = r#"{"name": "t", "fields": [{"name": "id", "type": "integer", "primary_key": true},
        {"name": "name", "type": "string", "indexed": true}, {"name": "due", "type": "date"}]}"#;
    let seeds: [&[u8]; 5] = [
        br#"{ t(where: {id: {gt: 1}, name: {contains: "a", not: null}}, order_by: "id", direction: DESC, limit: 5) { id name } }"#,
        b"query Q($a: Int = 3, $w: TFilter) { t(limit: $a, where: $w) { ...f @include(if: true) } } fragment f on TType { id: id due }",
        b"{ __schema { types { name fields { name type { ofType { name } } } } } }",
        b"{ a: t { id } b: t(offset: -1, limit: 99999999999) { __typename } # no\n }",
        "{ t(where: {name: {in: [\"\\u00fc\", \"\"\"x\"\"\", \"ü\"]}}) { name } }".as_bytes(),
    ];
    let runtime = runtime();
    let built = build([("t", table)]).expect("a schema");
    let store = Arc::new(SqliteRows::in_memory().expect("a store"));
    let variables = Map::from_iter([("a".to_owned(), Value::from(2))]);
    run("queries of GraphQL", &seeds, |bytes| {
        let query = Query {
            text: String::from_utf8_lossy(bytes).into_owned(),
            variables: variables.clone(),
            operation: None,
        };
        let outcome = built.run(store.clone(), CollectionKey::new("w", "c"), query);
        let _ = runtime.block_on(outcome);
    });
}
