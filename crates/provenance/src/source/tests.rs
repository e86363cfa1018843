//! Where facts come from: documents, pages, chunks and quoted triples.

use super::*;
use crate::{chunk_id, subgraph_id};
use tg_schemas::vocabulary::rdf;

fn making() -> Making<'static> {
    Making {
        component: "a b/c",
        version: "1.0.0",
        started_at: "2026-08-01T09:00:00Z",
    }
}

fn objects(triples: &[Triple], subject: &str, predicate: &str) -> Vec<Term> {
    triples
        .iter()
        .filter(|t| t.s == Some(Term::iri(subject)) && t.p == Some(Term::iri(predicate)))
        .filter_map(|t| t.o.clone())
        .collect()
}

fn the_iri(terms: &[Term]) -> &str {
    match terms {
        [Term::Iri(iri)] => iri,
        other => panic!("one IRI, not {other:?}"),
    }
}

#[test]
fn a_document_is_described_in_the_default_graph_and_is_the_root_of_its_sources() {
    let mine = Triple::new(Term::iri("urn:d"), Term::iri("urn:p"), Term::literal("x"));
    let all = document(&DocumentFacts {
        id: "urn:d",
        title: "Bridges",
        kind: "application/pdf",
        metadata: std::slice::from_ref(&mine),
    });
    let (triples, source): (Vec<_>, Vec<_>) = all.into_iter().partition(|t| t.g.is_none());
    assert!(source.iter().all(|t| t.g.as_deref() == Some(SOURCE_GRAPH)));
    assert_eq!(
        objects(&source, "urn:d", rdf::TYPE),
        [Term::iri(prov::ENTITY), Term::iri(tg::DOCUMENT_CLASS)]
    );
    for (predicate, text) in [
        (rdfs::LABEL, "Bridges"),
        (dcterms::TITLE, "Bridges"),
        (dcterms::FORMAT, "application/pdf"),
    ] {
        assert_eq!(objects(&source, "urn:d", predicate), [Term::literal(text)]);
    }
    assert_eq!(
        objects(&triples, "urn:d", rdf::TYPE),
        [Term::iri(prov::ENTITY), Term::iri(tg::DOCUMENT_CLASS)]
    );
    for predicate in [dc::TITLE, rdfs::LABEL] {
        assert_eq!(
            objects(&triples, "urn:d", predicate),
            [Term::literal("Bridges")]
        );
    }
    assert_eq!(triples.last(), Some(&mine));
    let bare = document(&DocumentFacts {
        id: "urn:d",
        ..DocumentFacts::default()
    });
    assert_eq!(bare.len(), 4, "only its classes, in both graphs");
}

#[test]
fn chunks_of_a_page_share_their_activity() {
    let ids = [
        chunk_id("urn:page:1", "one", 0),
        chunk_id("urn:page:1", "two", 0),
    ];
    let [first, second] = [0, 1].map(|n: usize| {
        let facts = PartFacts {
            label: Some("Chunk"),
            chunk_index: Some(n as u64 + 1),
            char_offset: Some(0),
            char_length: Some(3),
            chunk_size: Some(2000),
            chunk_overlap: Some(100),
            ..PartFacts::new(&ids[n], PartKind::Chunk, "urn:page:1")
        };
        part(&facts, &making())
    });
    assert!(first.iter().all(|t| t.g.as_deref() == Some(SOURCE_GRAPH)));
    let activity = objects(&first, &ids[0], prov::WAS_GENERATED_BY);
    assert_eq!(activity, objects(&second, &ids[1], prov::WAS_GENERATED_BY));
    let activity = the_iri(&activity);
    assert_eq!(
        objects(&first, activity, tg::CHUNK_SIZE),
        [Term::literal("2000")]
    );
    assert_eq!(
        the_iri(&objects(&first, activity, prov::USED)),
        "urn:page:1"
    );
    let agent = objects(&first, activity, prov::WAS_ASSOCIATED_WITH);
    assert_eq!(the_iri(&agent), "https://trustgraph.ai/agent/a%20b%2Fc");
    assert_eq!(
        objects(&first, the_iri(&agent), rdfs::LABEL),
        [Term::literal("a b/c")]
    );
    assert_eq!(
        objects(&first, &ids[0], tg::CHUNK_INDEX),
        [Term::literal("1")]
    );
    assert_eq!(
        the_iri(&objects(&first, &ids[0], prov::WAS_DERIVED_FROM)),
        "urn:page:1"
    );
}

#[test]
fn a_subgraph_quotes_its_facts() {
    let fact = Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), Term::literal("o"));
    let id = subgraph_id("urn:chunk:1", "kg-extract-definitions");
    let extraction = Extraction {
        id: &id,
        chunk: "urn:chunk:1",
        making: making(),
        llm_model: Some("m"),
        ontology: None,
        prompt_version: Some("v"),
    };
    let triples = extracted(&extraction, vec![fact.clone()]);
    assert_eq!(triples[0], fact);
    assert_eq!(
        objects(&triples, &id, tg::CONTAINS),
        [Term::Quoted(Box::new(fact))]
    );
    assert_eq!(
        the_iri(&objects(&triples, &id, prov::WAS_DERIVED_FROM)),
        "urn:chunk:1"
    );
    let activity = objects(&triples, &id, prov::WAS_GENERATED_BY);
    assert_eq!(
        objects(&triples, the_iri(&activity), tg::LLM_MODEL),
        [Term::literal("m")]
    );
    assert!(objects(&triples, the_iri(&activity), tg::ONTOLOGY).is_empty());
}
