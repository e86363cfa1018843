//! Traces made by hand, as they are shown.

use super::super::entity::{PROV, TG};
use super::*;
use tg_schemas::Triple;

const ROOT: &str = "urn:trustgraph:agent:1";

fn tg(name: &str) -> Term {
    Term::iri(format!("{TG}{name}"))
}

fn entity(iri: &str, class: &str, said: &[(Term, Term)]) -> Entity {
    let kind = Term::iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type");
    let mut triples = vec![Triple::new(Term::iri(iri), kind, tg(class))];
    for (predicate, object) in said {
        triples.push(Triple::new(
            Term::iri(iri),
            predicate.clone(),
            object.clone(),
        ));
    }
    Entity::read(iri, &triples).expect("an entity")
}

fn trace(entities: Vec<Entity>, links: &[(&str, &str)], root: &str) -> Trace {
    let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (below, above) in links {
        let below = (*below).to_owned();
        children.entry((*above).to_owned()).or_default().push(below);
    }
    let entities = entities
        .into_iter()
        .map(|entity| (entity.iri.clone(), entity));
    Trace::new(root, entities.collect(), children)
}

fn view<'a>(
    trace: &'a Trace,
    texts: &'a BTreeMap<String, String>,
    none: &'a BTreeMap<String, String>,
    sources: &'a BTreeMap<String, Vec<String>>,
) -> View<'a> {
    View {
        trace,
        texts,
        labels: none,
        sources,
        max_text: 100,
    }
}

#[test]
fn an_agent_trace_shows_tool_observation_and_answer() {
    let entities = vec![
        entity(
            ROOT,
            "Question",
            &[
                (tg("query"), Term::literal("Why?")),
                (
                    Term::iri(format!("{PROV}startedAtTime")),
                    Term::literal("2026"),
                ),
            ],
        ),
        entity(
            "urn:i1",
            "Analysis",
            &[
                (tg("action"), Term::literal("calculator")),
                (tg("arguments"), Term::literal("{\"x\": 1}")),
            ],
        ),
        entity(
            "urn:o1",
            "Observation",
            &[(tg("document"), Term::iri("urn:d1"))],
        ),
        entity(
            "urn:f",
            "Conclusion",
            &[(tg("document"), Term::iri("urn:d2"))],
        ),
    ];
    let links = [("urn:i1", ROOT), ("urn:o1", "urn:i1"), ("urn:f", "urn:o1")];
    let trace = trace(entities, &links, ROOT);
    let texts = BTreeMap::from([("urn:d2".to_owned(), "Line 1\nLine 2".to_owned())]);
    let (none, sources) = (BTreeMap::new(), BTreeMap::new());
    let view = view(&trace, &texts, &none, &sources);
    let text = view.text();
    for part in [
        "=== Agent Session: urn:trustgraph:agent:1 ===",
        "Question: Why?",
        "Time: 2026",
        "--- Analysis ---\n  Action: calculator\n  Arguments:\n    {\n      \"x\": 1",
        "--- Observation ---\nDocument: urn:d1",
        "--- Conclusion ---\nAnswer:\n  Line 1\n  Line 2",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let json = view.json();
    assert_eq!(json["session_id"], ROOT);
    assert_eq!(json["steps"][0]["type"], "analysis");
    assert_eq!(json["steps"][2]["content"], "Line 1\nLine 2");
}

#[test]
fn a_graph_trace_shows_selected_edges() {
    let root = "urn:trustgraph:question:1";
    let quoted = Term::Quoted(Box::new(Triple::new(
        Term::iri("urn:bridge"),
        Term::iri("urn:built"),
        Term::literal("1429"),
    )));
    let entities = vec![
        entity(root, "Question", &[(tg("query"), Term::literal("When?"))]),
        entity(
            "urn:fo",
            "Focus",
            &[(tg("selectedEdge"), Term::iri("urn:e0"))],
        ),
        entity(
            "urn:e0",
            "EdgeSelection",
            &[
                (tg("edge"), quoted),
                (tg("concept"), Term::literal("date")),
                (tg("score"), Term::literal("0.93")),
            ],
        ),
    ];
    let trace = trace(entities, &[("urn:fo", root)], root);
    let (texts, sources) = (
        BTreeMap::new(),
        BTreeMap::from([("urn:e0".to_owned(), vec!["Chunk 1 -> Page 2".to_owned()])]),
    );
    let labels = BTreeMap::from([("urn:bridge".to_owned(), "Old Bridge".to_owned())]);
    let view = view(&trace, &texts, &labels, &sources);
    let text = view.text();
    assert!(
        text.contains("  1. (Old Bridge, urn:built, 1429)"),
        "{text}"
    );
    assert!(text.contains("Concept: date  Score: 0.93"));
    assert!(text.contains("Source: Chunk 1 -> Page 2"));
    assert_eq!(view.json()["focus"]["selected_edges"][0]["score"], 0.93);
}

#[test]
fn a_document_trace_shows_chunks_by_the_numbers_they_are_cited_by() {
    let root = "urn:trustgraph:docrag:1";
    let chunk = |number: usize| format!("urn:trustgraph:prov:chunk:1:{number}");
    let selected = |number: usize| (tg("selectedChunk"), Term::Iri(chunk(number)));
    let selection = |number: usize| {
        let said = [
            (tg("document"), Term::Iri(format!("urn:chunk:{number}"))),
            (tg("score"), Term::literal("0.5")),
        ];
        entity(&chunk(number), "ChunkSelection", &said)
    };
    let cites = [(tg("cites"), Term::Iri(chunk(1)))];
    let entities = vec![
        entity(root, "Question", &[]),
        entity("urn:fo", "Focus", &[selected(1), selected(0)]),
        selection(0),
        selection(1),
        entity("urn:s", "Synthesis", &cites),
    ];
    let trace = trace(entities, &[("urn:fo", root), ("urn:s", "urn:fo")], root);
    let way = vec!["urn:chunk:1 -> Page 2".to_owned()];
    let (texts, sources) = (BTreeMap::new(), BTreeMap::from([(chunk(1), way)]));
    let text = view(&trace, &texts, &texts, &sources).text();
    for part in [
        "--- Focus (Chunk Selection) ---\nSelected 2 chunks:",
        "  1. urn:chunk:0\n     Score: 0.5\n  2. urn:chunk:1\n",
        "     Source: urn:chunk:1 -> Page 2",
        "Cites: [2]",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn a_question_without_steps_says_so() {
    let trace = trace(vec![entity(ROOT, "Question", &[])], &[], ROOT);
    let (texts, sources) = (BTreeMap::new(), BTreeMap::new());
    assert!(
        view(&trace, &texts, &texts, &sources)
            .text()
            .contains("No trace steps")
    );
}
