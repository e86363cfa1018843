//! The traces of GraphRAG and DocumentRAG, as readers of traces look for them.

use super::*;
use tg_schemas::vocabulary::{RETRIEVAL_GRAPH, rdf};

fn objects(event: &Event, subject: &str, predicate: &str) -> Vec<String> {
    let about = |triple: &&Triple| {
        triple.s == Some(Term::iri(subject)) && triple.p == Some(Term::iri(predicate))
    };
    let text = |triple: &Triple| match triple.o.clone().unwrap() {
        Term::Iri(iri) => iri,
        Term::Literal { value, .. } => value,
        Term::Quoted(inner) => format!("{:?}", inner.g),
        Term::Blank(id) => id,
    };
    event.triples.iter().filter(about).map(text).collect()
}

fn edge(object: &str) -> SelectedEdge {
    let (s, p) = (Term::iri("http://e/s"), Term::iri("http://e/p"));
    SelectedEdge {
        edge: Triple::new(s, p, Term::literal(object)).in_graph("urn:user"),
        concept: "bridge".into(),
        score: 0.93,
    }
}

#[test]
fn names_are_what_readers_look_for() {
    let graph = Retrieval::graph("e51a");
    assert_eq!(graph.question(), "urn:trustgraph:question:e51a");
    assert_eq!(graph.focus(), "urn:trustgraph:prov:focus:e51a");
    assert_eq!(graph.selection(3), "urn:trustgraph:prov:edge:e51a:3");
    assert_eq!(graph.answer_document(), "urn:trustgraph:synthesis:e51a");
    let documents = Retrieval::documents("e51a");
    assert_eq!(documents.question(), "urn:trustgraph:docrag:e51a");
    assert_eq!(
        documents.grounding(),
        "urn:trustgraph:docrag:e51a/grounding"
    );
    assert_eq!(documents.selection(0), "urn:trustgraph:prov:chunk:e51a:0");
    assert_eq!(
        documents.answer_document(),
        "urn:trustgraph:docrag:e51a/answer"
    );
    // Readers tell kinds of traces apart by words in the name.
    for names in [graph, documents] {
        assert!(!names.question().contains("agent"));
    }
    assert_eq!(retrieval_id("w", "f", "r"), retrieval_id("w", "f", "r"));
    assert_ne!(retrieval_id("w", "fr", ""), retrieval_id("w", "f", "r"));
}

#[test]
fn each_step_follows_from_the_one_before() {
    let names = Retrieval::graph("1");
    let facts = SessionFacts {
        question: "Which?",
        started_at: "2026-01-01T00:00:00.000000Z",
        parent: Some("urn:trustgraph:agent:7/i1"),
    };
    let events = [
        asked(&names, &facts),
        grounded(&names, &["a".into(), "b".into()], &Usage::default()),
        explored_graph(&names, 40, &[Term::iri("http://e/s")]),
        focused_on_edges(&names, &[edge("x"), edge("y")]),
        synthesised(
            &names,
            &Synthesis {
                focused: true,
                stored: true,
                cites: &[Numbered {
                    selection: Some(names.selection(1)),
                    chunk: Some("urn:chunk:7".into()),
                }],
                refused: false,
                usage: Usage::default(),
            },
        ),
    ];
    let mut before = "urn:trustgraph:agent:7/i1".to_owned();
    for event in &events {
        assert_eq!(
            objects(event, &event.id, prov::WAS_DERIVED_FROM),
            [before.clone()]
        );
        before.clone_from(&event.id);
        let in_trace = |triple: &Triple| triple.g.as_deref() == Some(RETRIEVAL_GRAPH);
        assert!(event.triples.iter().all(in_trace));
    }
    assert_eq!(objects(&events[2], &events[2].id, tg::EDGE_COUNT), ["40"]);
    let focus = &events[3];
    let chosen = objects(focus, &focus.id, tg::SELECTED_EDGE);
    assert_eq!(chosen, [names.selection(0), names.selection(1)]);
    assert_eq!(objects(focus, &chosen[0], rdf::TYPE), [tg::EDGE_SELECTION]);
    assert_eq!(objects(focus, &chosen[0], tg::SCORE), ["0.93"]);
    // A fact is quoted without the graph it stands in, as its source quotes it.
    assert_eq!(objects(focus, &chosen[0], tg::EDGE), ["None"]);
    assert_eq!(
        objects(&events[4], &events[4].id, tg::CITES),
        [names.selection(1)]
    );
    let cited = objects(&events[4], &events[4].id, tg::CITATION);
    assert_eq!(cited, ["urn:trustgraph:prov:citation:1:1"]);
    assert_eq!(objects(&events[4], &cited[0], tg::CITATION_NUMBER), ["1"]);
    assert_eq!(
        objects(&events[4], &cited[0], tg::CITES),
        [names.selection(1)]
    );
    assert_eq!(
        objects(&events[4], &cited[0], tg::DOCUMENT),
        ["urn:chunk:7"]
    );
    assert!(objects(&events[4], &events[4].id, tg::REFUSED).is_empty());
}

#[test]
fn the_answer_from_documents_is_found_below_the_exploration() {
    let names = Retrieval::documents("1");
    let chunk = SelectedChunk {
        chunk: "urn:chunk:1".into(),
        score: 1.0,
    };
    let focus = focused_on_chunks(&names, &[chunk]);
    assert_eq!(
        objects(&focus, &names.selection(0), tg::DOCUMENT),
        ["urn:chunk:1"]
    );
    assert_eq!(objects(&focus, &names.selection(0), tg::SCORE), ["1"]);
    let end = |focused| {
        let facts = Synthesis {
            focused,
            stored: false,
            cites: &[],
            refused: true,
            usage: Usage::default(),
        };
        let event = synthesised(&names, &facts);
        assert_eq!(objects(&event, &event.id, tg::REFUSED), ["true"]);
        objects(&event, &event.id, prov::WAS_DERIVED_FROM)
    };
    assert_eq!(end(true), [names.focus(), names.exploration()]);
    assert_eq!(end(false), [names.exploration()]);
}
