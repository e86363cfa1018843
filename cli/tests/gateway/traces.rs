//! The trace commands against a small graph.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_schemas::{Term, Triple};

use crate::fake::{Fake, Say};

const TG: &str = "https://trustgraph.ai/ns/";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const FROM: &str = "http://www.w3.org/ns/prov#wasDerivedFrom";
const STARTED: &str = "http://www.w3.org/ns/prov#startedAtTime";
const SESSION: &str = "urn:trustgraph:agent:7d0c";

fn says(graph: &mut Vec<Triple>, s: &str, facts: &[(&str, Term)]) {
    for (predicate, object) in facts {
        let predicate = match predicate.strip_prefix("tg:") {
            Some(name) => format!("{TG}{name}"),
            None => (*predicate).to_owned(),
        };
        let triple = Triple::new(Term::iri(s), Term::Iri(predicate), object.clone());
        graph.push(triple.in_graph("urn:graph:retrieval"));
    }
}

fn graph() -> Vec<Triple> {
    let class = |name: &str| (TYPE, Term::iri(format!("{TG}{name}")));
    let from = |iri: &str| (FROM, Term::iri(iri));
    let mut graph = Vec::new();
    let (i1, o1) = (format!("{SESSION}/i1"), format!("{SESSION}/i1/observation"));
    says(
        &mut graph,
        SESSION,
        &[
            class("Question"),
            class("AgentQuestion"),
            ("tg:query", Term::literal("Which is oldest?")),
            (STARTED, Term::literal("2026-08-01T09:00:00Z")),
        ],
    );
    says(
        &mut graph,
        &i1,
        &[
            class("Analysis"),
            ("tg:action", Term::literal("graph")),
            from(SESSION),
            ("tg:arguments", Term::literal("{\"query\": \"x\"}")),
        ],
    );
    says(
        &mut graph,
        &o1,
        &[
            class("Observation"),
            from(&i1),
            ("tg:document", Term::iri(&o1)),
        ],
    );
    says(
        &mut graph,
        &format!("{SESSION}/final"),
        &[
            class("Conclusion"),
            from(&o1),
            ("tg:document", Term::iri(format!("{SESSION}/answer"))),
        ],
    );
    // A question that this session asked, and a newer one of its own.
    says(
        &mut graph,
        "urn:trustgraph:question:e51a",
        &[
            class("Question"),
            ("tg:query", Term::literal("below")),
            from(&i1),
            (STARTED, Term::literal("2026-08-01T09:00:01Z")),
        ],
    );
    says(
        &mut graph,
        "urn:trustgraph:agent:9",
        &[
            class("Question"),
            ("tg:query", Term::literal("Newer?")),
            (STARTED, Term::literal("2026-08-02T09:00:00Z")),
        ],
    );
    graph
}

fn answer(graph: &[Triple], request: &Value) -> Value {
    let bound = |key: &str| request.get(key).and_then(Term::from_api);
    let (s, p, o) = (bound("s"), bound("p"), bound("o"));
    let fits = |want: &Option<Term>, have: &Option<Term>| want.is_none() || want == have;
    let found = graph
        .iter()
        .filter(|triple| fits(&s, &triple.s) && fits(&p, &triple.p) && fits(&o, &triple.o))
        .filter(|triple| {
            request
                .get("g")
                .is_none_or(|g| g.as_str() == triple.g.as_deref())
        });
    let limit = request["limit"].as_u64().unwrap_or(0) as usize;
    found.take(limit).map(Triple::to_api).collect()
}

async fn fake() -> Fake {
    let graph = graph();
    Fake::socket(move |frame| {
        let request = &frame["request"];
        let body = match frame["service"].as_str() {
            Some("triples") => json!({"response": answer(&graph, request)}),
            Some("librarian") if request["document-id"] == format!("{SESSION}/answer") => {
                json!({"content": STANDARD.encode("The old bridge.\nBuilt 1429.")})
            }
            _ => json!({"error": {"type": "not-found", "message": "no such document"}}),
        };
        vec![Say::Last(body)]
    })
    .await
}

#[tokio::test]
async fn a_trace_is_shown_to_its_end() {
    let fake = fake().await;
    let printed = fake.tg(&["show-explain-trace", SESSION]).await.printed();
    for part in [
        "=== Agent Session: urn:trustgraph:agent:7d0c ===",
        "Question: Which is oldest?",
        "Action: graph",
        "GraphRAG Question",
        "--- Observation ---\nDocument: urn:trustgraph:agent:7d0c/i1/observation",
        "Answer:\n  The old bridge.\n  Built 1429.",
    ] {
        assert!(printed.contains(part), "{part} in\n{printed}");
    }
    let printed = fake
        .tg(&["show-explain-trace", SESSION, "--json"])
        .await
        .printed();
    let trace: Value = serde_json::from_str(&printed).expect("JSON");
    let types: Vec<&str> = trace["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|step| step["type"].as_str())
        .collect();
    assert_eq!(types, ["analysis", "question", "observation", "conclusion"]);
}

#[tokio::test]
async fn a_trace_that_is_not_there_is_not_found() {
    let error = fake()
        .await
        .tg(&["show-explain-trace", "urn:nothing"])
        .await
        .error();
    assert_eq!(error.exit_code(), 3);
}

#[tokio::test]
async fn sessions_are_listed_newest_first_without_those_below_others() {
    let fake = fake().await;
    let printed = fake
        .tg(&["list-explain-traces", "--format", "json"])
        .await
        .printed();
    let sessions: Value = serde_json::from_str(&printed).expect("JSON");
    let questions: Vec<&str> = sessions
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|session| session["question"].as_str())
        .collect();
    assert_eq!(questions, ["Newer?", "Which is oldest?"]);
    let printed = fake
        .tg(&["list-explain-traces", "--limit", "1"])
        .await
        .printed();
    assert!(printed.contains("Newer?") && !printed.contains("oldest"));
}
