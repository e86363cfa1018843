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

use super::world::{Say, World, question};

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
async fn observed(tool: &'static str, arguments: Value) -> String {
    let text = format!("Action: {tool}\nArgs: {arguments}");
    let world = World::new([Say::Text(text.leak()), Say::Text("Final Answer: done")]).await;
    let request = "request:tg:sparql:default:default";
    let mut row: Value =
        serde_json::from_str(&world.config.get("processor:agent-manager", "default")).unwrap();
    row["topics"]["sparql-request"] = request.into();
    let flow = json!({"topics": {"request": request}, "parameters": {}, "epoch": 1});
    let sparql = Processor::new(processors::sparql_query::PROCESSOR)
        .serves(processors::sparql_query::REQUEST, Arc::new(Sparql::new()));
    world.mesh.host(sparql).await.unwrap();
    world
        .config
        .put(&world.mesh, "processor:sparql-query", "default", &flow)
        .await;
    for name in ["graph_about", "graph_pattern", "graph_sparql"] {
        world
            .config
            .put(
                &world.mesh,
                "tool-native",
                name,
                &json!({"description": "d"}),
            )
            .await;
    }
    world
        .config
        .put(&world.mesh, "processor:agent-manager", "default", &row)
        .await;
    world.attached(&["sparql-query", "agent-manager"]).await;
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

#[tokio::test]
async fn things_are_found_by_name_and_told_in_both_directions() {
    let told = observed("graph_about", json!({"name": "old bridge"})).await;
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

#[tokio::test]
async fn a_name_that_is_not_there_is_told() {
    let told = observed("graph_about", json!({"name": "\" } nothing"})).await;
    assert_eq!(told, "The graph has nothing named '\" } nothing'.");
}

#[tokio::test]
async fn patterns_match_names_iris_and_texts() {
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
        let told = observed("graph_pattern", pattern).await;
        assert_eq!(sorted(&told), expected);
    }
}

#[tokio::test]
async fn queries_of_all_forms_are_run() {
    let ask = |query: &str| json!({"query": format!("PREFIX : <http://example.org/> {query}")});
    let select = observed("graph_sparql", ask("SELECT ?year { :old :builtIn ?year }")).await;
    assert_eq!(select, "year\n1429");
    let yes = observed("graph_sparql", ask("ASK { ?x :crosses :sell }")).await;
    assert_eq!(yes, "yes");
    let made = observed(
        "graph_sparql",
        ask("CONSTRUCT { ?x :over ?y } { ?x :crosses ?y }"),
    )
    .await;
    assert_eq!(
        made,
        "http://example.org/old | http://example.org/over | http://example.org/sell"
    );
    let fault = observed("graph_sparql", json!({"query": "SELECT"})).await;
    assert!(fault.starts_with("Error: "), "{fault}");
}
