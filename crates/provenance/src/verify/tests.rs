//! A run with a question below it, whole and tampered with.

use super::*;
use crate::*;
use tg_schemas::vocabulary::{RETRIEVAL_GRAPH, rdfs};

const RUN: &str = "urn:trustgraph:agent:7d0c";

fn facts<'a>(question: &'a str, parent: Option<&'a str>) -> SessionFacts<'a> {
    SessionFacts {
        question,
        started_at: "2026-08-01T09:00:00.120000Z",
        parent,
    }
}

/// What GraphRAG leaves behind below a step.
fn sub_trace(parent: &str) -> Vec<Event> {
    let names = Retrieval::graph("11aa");
    let edge = SelectedEdge {
        edge: Triple::new(
            Term::iri("urn:a"),
            Term::iri("urn:b"),
            Term::Blank("x".into()),
        ),
        concept: "bridge".into(),
        score: 0.5,
    };
    let mut chain = Chain::default();
    let synthesis = Synthesis {
        focused: true,
        stored: true,
        cites: &[Numbered {
            selection: Some(names.selection(0)),
            chunk: Some("urn:chunk:1".into()),
        }],
        refused: false,
        usage: Usage::default(),
    };
    vec![
        chain.link(asked(&names, &facts("Which?", Some(parent)))),
        chain.link(grounded(&names, &["bridge".into()], &Usage::default())),
        chain.link(explored_graph(&names, 3, &[Term::iri("urn:a")])),
        chain.link(focused_on_edges(&names, &[edge])),
        chain.link_text(synthesised(&names, &synthesis), Some("sub answer")),
    ]
}

/// A run of one step and an answer, in the order of its chain.
fn run() -> Vec<Event> {
    let id = Session::new("7d0c");
    let mut chain = Chain::default();
    let mut events = vec![chain.link(session(&id, &facts("Which bridge?", None)))];
    let chosen = Analysis {
        step: 1,
        nth: None,
        after: None,
        action: "knowledge-query",
        arguments: "{}",
        candidates: &["knowledge-query".to_owned()],
        usage: Usage::default(),
        has_thought: true,
    };
    events.push(chain.link(analysis(&id, &chosen)));
    let reflected = thought(&id, 1, &id.iteration(1), true);
    events.push(chain.link_text(reflected, Some("I think.")));
    let below = sub_trace(&id.iteration(1));
    let last = below.last().unwrap();
    let joined = hash_of(&last.id, &last.triples).unwrap().to_owned();
    let seen = Observation {
        step: 1,
        nth: 0,
        sub_trace: Some(&last.id),
        duration_ms: Some(3),
        usage: Usage::default(),
        error: None,
        stored: true,
    };
    let seen = chain.join(observation(&id, &seen), Some("sub answer"), Some(&joined));
    let reflected = chain.link_text(thought(&id, 2, &id.conclusion(), true), Some("So."));
    let end = Conclusion {
        reason: Reason::FinalAnswer,
        answered: true,
        derived_from: &id.observation(1),
        usage: Usage::default(),
        stored: true,
        thought_of: Some(2),
        error: None,
        cites: &[Numbered::default()],
        refused: false,
    };
    let end = chain.link_text(conclusion(&id, &end), Some("It is."));
    events.extend(below);
    events.extend([seen, reflected, end]);
    events
}

fn triples(events: &[Event]) -> Vec<Triple> {
    let all = events.iter().flat_map(|event| event.triples.clone());
    all.collect()
}

fn library() -> BTreeMap<String, String> {
    let id = Session::new("7d0c");
    let text = |id: String, text: &str| (id, text.to_owned());
    BTreeMap::from([
        text(id.thought(1), "I think."),
        text(id.thought(2), "So."),
        text(id.observation(1), "sub answer"),
        text(id.answer_document(), "It is."),
        text(Retrieval::graph("11aa").answer_document(), "sub answer"),
    ])
}

fn verified(said: Vec<Triple>) -> Result<Option<Whole>, Broken> {
    let stored: Stored = said.into_iter().collect();
    stored.verify(RUN, &Texts::Known(&library()), None)
}

fn broken(said: Vec<Triple>) -> (String, LinkError) {
    let broken = verified(said).expect_err("a broken link");
    (broken.entity, broken.fault)
}

#[test]
fn a_chain_holds_in_any_order_and_said_twice() {
    let events = run();
    let head = hash_of(&format!("{RUN}/final"), &triples(&events[10..]))
        .unwrap()
        .to_owned();
    let mut said = triples(&events);
    said.reverse();
    said.extend(triples(&events[..4]));
    let whole = verified(said.clone()).unwrap().unwrap();
    let expected = Whole {
        entities: 11,
        texts: 5,
        unread: 0,
        head: head.clone(),
    };
    assert_eq!(whole, expected);
    let stored: Stored = said.into_iter().collect();
    assert_eq!(stored.roots(), [RUN]);
    assert_eq!(stored.documents(), library().into_keys().collect());
    let unread = stored.verify(RUN, &Texts::Unknown, Some(&head)).unwrap();
    assert_eq!(unread.unwrap().unread, 5);
    let other = stored.verify(RUN, &Texts::Unknown, Some("0")).unwrap_err();
    assert_eq!(
        (other.entity, other.fault),
        (format!("{RUN}/final"), LinkError::NotAsSigned)
    );
    // Below the run there is a chain of its own.
    let below = stored.verify("urn:trustgraph:question:11aa", &Texts::Unknown, None);
    assert_eq!(below.unwrap().unwrap().entities, 5);
}

#[test]
fn every_statement_that_is_changed_taken_out_or_added_is_found() {
    let whole = triples(&run());
    for at in 0..whole.len() {
        let mut less = whole.clone();
        let taken = less.remove(at);
        assert!(verified(less).is_err(), "{taken:?}");
        let mut other = whole.clone();
        other[at].o = Some(Term::literal("another"));
        assert!(verified(other).is_err(), "{taken:?}");
    }
    for event in run() {
        let more = Triple::new(
            Term::iri(&*event.id),
            Term::iri(rdfs::COMMENT),
            Term::literal("x"),
        );
        let mut added = whole.clone();
        added.push(more.in_graph(RETRIEVAL_GRAPH));
        assert_eq!(broken(added), (event.id, LinkError::Changed));
    }
}

#[test]
fn an_entity_that_is_put_in_is_found_though_its_hash_fits() {
    let events = run();
    let first = hash_of(RUN, &events[0].triples).unwrap();
    let seen = Observation {
        step: 2,
        nth: 0,
        sub_trace: None,
        duration_ms: None,
        usage: Usage::default(),
        error: None,
        stored: false,
    };
    let planted = observation(&Session::new("7d0c"), &seen);
    let planted = Chain::after(first).link(planted);
    let mut said = triples(&events);
    said.extend(planted.triples.clone());
    assert_eq!(broken(said), (planted.id, LinkError::Changed));
}

#[test]
fn who_claims_the_hash_of_an_entity_from_outside_of_the_trace_changes_nothing() {
    let said = triples(&run());
    let of_hashes = said.iter().filter(|one| is(&one.p, tg::ENTITY_HASH));
    // Names that come before and after all others.
    let claims = of_hashes.flat_map(|one| {
        let claim = |id: &str| Triple {
            s: Some(Term::iri(id)),
            ..one.clone()
        };
        [claim("urn:a"), claim("urn:z")]
    });
    let claimed: Vec<Triple> = claims.chain(said.iter().cloned()).collect();
    assert!(claimed.len() > said.len() + 6);
    assert_eq!(verified(claimed), verified(said));
}

#[test]
fn an_entity_that_is_gone_is_named() {
    let events = run();
    for (at, event) in events.iter().enumerate() {
        let mut less = events.clone();
        less.remove(at);
        assert_eq!(
            broken(triples(&less)),
            (event.id.clone(), LinkError::Missing)
        );
        let stored: Stored = triples(&less).into_iter().collect();
        assert!(stored.has(RUN));
        assert_eq!(stored.roots(), [RUN], "without {}", event.id);
    }
}

#[test]
fn an_entity_with_a_new_hash_is_named_and_the_end_by_its_head_alone() {
    let events = run();
    let head = hash_of(&format!("{RUN}/final"), &triples(&events))
        .unwrap()
        .to_owned();
    for (at, event) in events.iter().enumerate() {
        // Whoever does this knows the rules: the hash fits what is said now.
        let mut said = event.triples.clone();
        said.retain(|triple| !is(&triple.p, tg::ENTITY_HASH));
        let more = Triple::new(
            Term::iri(&*event.id),
            Term::iri(rdfs::COMMENT),
            Term::literal("x"),
        );
        said.push(more.in_graph(RETRIEVAL_GRAPH));
        let hash = entity_hash(&event.id, &said);
        let hash = Triple::new(
            Term::iri(&*event.id),
            Term::iri(tg::ENTITY_HASH),
            Term::literal(hash),
        );
        said.push(hash.in_graph(RETRIEVAL_GRAPH));
        let mut other = events.clone();
        other[at].triples = said;
        let last = at == events.len() - 1;
        match last {
            false => assert_eq!(
                broken(triples(&other)),
                (event.id.clone(), LinkError::Replaced)
            ),
            true => {
                assert!(
                    verified(triples(&other)).is_ok(),
                    "nothing comes after the end"
                );
                let stored: Stored = triples(&other).into_iter().collect();
                let broken = stored
                    .verify(RUN, &Texts::Unknown, Some(&head))
                    .unwrap_err();
                assert_eq!(
                    (broken.entity, broken.fault),
                    (event.id.clone(), LinkError::NotAsSigned)
                );
            }
        }
    }
}

#[test]
fn texts_are_compared() {
    let stored: Stored = triples(&run()).into_iter().collect();
    for id in library().keys() {
        let mut texts = library();
        texts.insert(id.clone(), "another".into());
        let broken = stored.verify(RUN, &Texts::Known(&texts), None).unwrap_err();
        assert_eq!(broken.fault, LinkError::TextChanged, "{id}");
        texts.remove(id);
        let broken = stored.verify(RUN, &Texts::Known(&texts), None).unwrap_err();
        assert_eq!(broken.fault, LinkError::TextMissing, "{id}");
    }
}

#[test]
fn two_that_are_swapped_and_traces_without_hashes() {
    let mut events = run();
    let (a, b) = (2, 9);
    let swapped = |event: &Event, id: &str| {
        let mut said = event.triples.clone();
        for triple in &mut said {
            triple.s = Some(Term::iri(id));
        }
        said
    };
    let ids = [events[a].id.clone(), events[b].id.clone()];
    let (first, second) = (swapped(&events[b], &ids[0]), swapped(&events[a], &ids[1]));
    events[a].triples = first;
    events[b].triples = second;
    let (entity, fault) = broken(triples(&events));
    assert!(ids.contains(&entity), "{entity}");
    assert_eq!(fault, LinkError::Changed);
    let mut bare = triples(&run());
    bare.retain(|triple| !is(&triple.p, tg::ENTITY_HASH));
    assert_eq!(verified(bare.clone()), Ok(None));
    // Who has taken all hashes out is found by the signed head.
    let stored: Stored = bare.into_iter().collect();
    assert!(stored.verify(RUN, &Texts::Unknown, Some("0")).is_err());
}
