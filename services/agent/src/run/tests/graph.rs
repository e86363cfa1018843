//! The graph tools, with their queries run by a real engine.

use std::sync::Arc;

use async_trait::async_trait;
use oxigraph::io::RdfFormat;
use oxigraph::model::{NamedOrBlankNode, Term as OxTerm};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store as Graph;
use serde_json::{Value, json};
use tg_mesh::{Cx, Processor, RequestHandler, Responder};
use tg_schemas::msg::{SparqlBinding, SparqlQueryRequest, SparqlQueryResponse};
use tg_schemas::processors;
use tg_schemas::{Error, Term, Triple};
use tg_testkit::place::Place;

use super::world::{Say, World, ask_for, question, rows};

const DATA: &str = r#"
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:old rdfs:label "Old Bridge" ; :builtIn "1429" ; :crosses :sell ; a :Bridge .
:inn skos:prefLabel "The Old Bridge Inn" ; :near :old .
:sell rdfs:label "River Sell" .
:builtIn rdfs:label "built in" .
<urn:trustgraph:agent:x> rdfs:label "Agent Question about the old bridge" ; :mentions :old .
"#;

struct Sparql(Graph);

impl Sparql {
    fn new() -> Self {
        let graph = Graph::new().unwrap();
        graph.load_from_slice(RdfFormat::Turtle, DATA).unwrap();
        Self(graph)
    }
}

fn term(term: OxTerm) -> Term {
    match term {
        OxTerm::NamedNode(node) => Term::iri(node.as_str()),
        OxTerm::BlankNode(node) => Term::Blank(node.as_str().to_owned()),
        OxTerm::Literal(literal) => Term::literal(literal.value()),
        OxTerm::Triple(_) => Term::literal("quoted"),
    }
}

#[async_trait]
impl RequestHandler<SparqlQueryRequest, SparqlQueryResponse> for Sparql {
    async fn serve(
        &self,
        _: Cx,
        ask: SparqlQueryRequest,
        mut out: Responder<SparqlQueryResponse>,
    ) -> Result<(), Error> {
        assert_eq!(ask.collection, "default");
        let query = SparqlEvaluator::new()
            .parse_query(&ask.query)
            .map_err(|error| Error::typed("sparql-parse-error", error.to_string()))?;
        let mut response = SparqlQueryResponse::default();
        match query.on_store(&self.0).execute().unwrap() {
            QueryResults::Solutions(rows) => {
                response.query_type = "select".into();
                response.variables = rows
                    .variables()
                    .iter()
                    .map(|v| v.as_str().to_owned())
                    .collect();
                for row in rows {
                    let values = row
                        .unwrap()
                        .values()
                        .iter()
                        .map(|v| v.clone().map(term))
                        .collect();
                    response.bindings.push(SparqlBinding { values });
                }
            }
            QueryResults::Boolean(yes) => {
                response.query_type = "ask".into();
                response.ask_result = yes;
            }
            QueryResults::Graph(triples) => {
                response.query_type = "construct".into();
                for t in triples {
                    let t = t.unwrap();
                    let subject = match t.subject {
                        NamedOrBlankNode::NamedNode(node) => Term::iri(node.as_str()),
                        NamedOrBlankNode::BlankNode(node) => Term::Blank(node.as_str().to_owned()),
                    };
                    let predicate = Term::iri(t.predicate.as_str());
                    response
                        .triples
                        .push(Triple::new(subject, predicate, term(t.object)));
                }
            }
        }
        out.send(response).await
    }
}

/// What a tool of the graph returns.
async fn observed(place: &Place, tool: &'static str, arguments: Value) -> String {
    let text = format!("Action: {tool}\nArgs: {arguments}");
    let rows = rows();
    let request = "request:tg:sparql:default:default";
    ask_for(&rows, "sparql-request", "sparql-query", request);
    for name in ["graph_about", "graph_pattern", "graph_sparql"] {
        rows.put("tool-native", name, r#"{"description": "d"}"#);
    }
    let sparql = Processor::new(processors::sparql_query::PROCESSOR)
        .serves(processors::sparql_query::REQUEST, Arc::new(Sparql::new()));
    let script = [Say::Text(text.leak()), Say::Text("Final Answer: done")];
    let world = World::among(place, script, rows, vec![sparql]).await;
    world.attached(&["sparql-query"]).await;
    let chunks = world.run(&question("q", false)).await;
    let seen = chunks
        .iter()
        .find(|chunk| chunk.message_type == "observation");
    seen.expect("an observation").content.clone()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

async fn things_are_found_by_name_and_told_in_both_directions(place: Place) {
    let told = observed(
        &place.another().await,
        "graph_about",
        json!({"name": "old bridge"}),
    )
    .await;
    assert!(
        told.starts_with("Old Bridge <http://example.org/old>"),
        "{told}"
    );
    for line in [
        "Old Bridge | built in | 1429",
        "Old Bridge | crosses | River Sell",
        "The Old Bridge Inn <http://example.org/inn>",
    ] {
        assert!(told.lines().any(|known| known == line), "{line} in {told}");
    }
    assert!(told.contains(" | near | Old Bridge"), "{told}");
    assert!(
        !told.contains("Agent Question"),
        "no traces of questions: {told}"
    );
}

async fn a_name_that_is_not_there_is_told(place: Place) {
    let told = observed(
        &place.another().await,
        "graph_about",
        json!({"name": "\" } nothing"}),
    )
    .await;
    assert_eq!(told, "The graph has nothing named '\" } nothing'.");
}

async fn patterns_match_names_iris_and_texts(place: Place) {
    for (pattern, expected) in [
        (
            json!({"subject": "http://example.org/old", "predicate": "built in"}),
            vec!["Old Bridge | built in | 1429"],
        ),
        (
            json!({"subject": "OLD BRIDGE", "predicate": "crosses"}),
            vec!["Old Bridge | crosses | River Sell"],
        ),
        (
            json!({"object": "1429"}),
            vec!["Old Bridge | built in | 1429"],
        ),
        (
            json!({"predicate": "crosses", "object": "river sell"}),
            vec!["Old Bridge | crosses | River Sell"],
        ),
        (
            json!({"predicate": "http://example.org/none"}),
            vec!["No triples match."],
        ),
        (
            json!({}),
            vec!["Error: give at least one of 'subject', 'predicate' and 'object'"],
        ),
    ] {
        let told = observed(&place.another().await, "graph_pattern", pattern).await;
        assert_eq!(sorted(&told), expected);
    }
}

async fn queries_of_all_forms_are_run(place: Place) {
    let ask = |query: &str| json!({"query": format!("PREFIX : <http://example.org/> {query}")});
    let select = observed(
        &place.another().await,
        "graph_sparql",
        ask("SELECT ?year { :old :builtIn ?year }"),
    )
    .await;
    assert_eq!(select, "year\n1429");
    let yes = observed(
        &place.another().await,
        "graph_sparql",
        ask("ASK { ?x :crosses :sell }"),
    )
    .await;
    assert_eq!(yes, "yes");
    let made = observed(
        &place.another().await,
        "graph_sparql",
        ask("CONSTRUCT { ?x :over ?y } { ?x :crosses ?y }"),
    )
    .await;
    assert_eq!(
        made,
        "http://example.org/old | http://example.org/over | http://example.org/sell"
    );
    let fault = observed(
        &place.another().await,
        "graph_sparql",
        json!({"query": "SELECT"}),
    )
    .await;
    assert!(fault.starts_with("Error: "), "{fault}");
}

tg_testkit::on_both_buses!(
    things_are_found_by_name_and_told_in_both_directions,
    a_name_that_is_not_there_is_told,
    patterns_match_names_iris_and_texts,
    queries_of_all_forms_are_run,
);
