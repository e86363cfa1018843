//! What goes with a chunk, and what others keep.

use std::collections::BTreeSet;

use oxigraph::model::vocab::xsd;
use proptest::prelude::*;
use tg_provenance::{
    Extraction, Making, PartFacts, PartKind, extracted, extraction_id, part, subgraph_id,
    vocabulary_labels,
};
use tg_schemas::Triple;

use super::*;
use crate::store::embedded::batch::Batch;
use crate::store::embedded::tests::open_again;
use crate::{Limits, convert};

const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";

fn making() -> Making<'static> {
    Making {
        component: "extractor",
        version: "1",
        started_at: "2026-01-01T00:00:00Z",
    }
}

fn iri(name: &str) -> tg_schemas::Term {
    tg_schemas::Term::iri(format!("urn:e:{name}"))
}

fn fact(s: &str, p: &str, o: &str) -> Triple {
    Triple::new(iri(s), iri(p), iri(o))
}

fn label(name: &str) -> Triple {
    let text = tg_schemas::Term::literal(name);
    Triple::new(iri(name), tg_schemas::Term::iri(LABEL), text)
}

/// All that chunker and extractor write for a chunk.
fn of_chunk(chunk: &str, facts: &[Triple]) -> Vec<Triple> {
    let place = PartFacts {
        chunk_index: Some(1),
        ..PartFacts::new(chunk, PartKind::Chunk, "urn:page:1")
    };
    let mut all = part(&place, &making());
    let id = subgraph_id(chunk, "extractor");
    let extraction = Extraction {
        id: &id,
        chunk,
        making: making(),
        llm_model: None,
        ontology: None,
        prompt_version: None,
    };
    for fact in facts {
        for term in [&fact.s, &fact.p, &fact.o] {
            if let Some(tg_schemas::Term::Iri(iri)) = term {
                all.push(label(iri.trim_start_matches("urn:e:")));
            }
        }
    }
    all.extend(extracted(&extraction, facts.to_vec()));
    all
}

fn key() -> CollectionKey {
    CollectionKey::new("w", "c")
}

async fn write(engine: &EmbeddedGraph, triples: &[Triple]) {
    let quads = triples
        .iter()
        .map(|triple| convert::quad("", triple).unwrap());
    engine.insert(&key(), quads.collect()).await.unwrap();
}

async fn all(engine: &EmbeddedGraph) -> BTreeSet<Triple> {
    let found = engine.find(&key(), Pattern::default(), None).await.unwrap();
    found.into_iter().collect()
}

async fn retract(engine: &EmbeddedGraph, parts: &[&str]) -> usize {
    let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
    let key = key();
    let gone = engine.retract(&key, &parts, Vec::new(), WriteKind::Direct);
    gone.await.unwrap()
}

/// What an extractor writes for a chunk under a fingerprint.
fn by(extractor: &'static str, fingerprint: &str, facts: &[Triple]) -> Vec<Triple> {
    let id = extraction_id("urn:chunk:1", extractor, fingerprint);
    let extraction = Extraction {
        id: &id,
        chunk: "urn:chunk:1",
        making: Making {
            component: extractor,
            ..making()
        },
        llm_model: None,
        ontology: None,
        prompt_version: None,
    };
    extracted(&extraction, facts.to_vec())
}

#[tokio::test]
async fn what_one_extractor_made_anew_goes_and_nothing_else() {
    let kept = [
        of_chunk("urn:chunk:1", &[]),
        by("b", "1", &[fact("mill", "near", "river")]),
        by(
            "a",
            "2",
            &[
                fact("bridge", "spans", "river"),
                fact("bridge", "near", "mill"),
            ],
        ),
    ];
    let kept: Vec<Triple> = kept.concat();
    let wanted = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    write(&wanted, &kept).await;
    let wanted = all(&wanted).await;
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    write(
        &engine,
        &by(
            "a",
            "1",
            &[
                fact("bridge", "spans", "river"),
                fact("bridge", "is", "old"),
            ],
        ),
    )
    .await;
    // As an earlier release named it.
    write(&engine, &by("a", "", &[fact("bridge", "is", "older")])).await;
    write(&engine, &kept).await;
    let supersede = async |processor: &str, gone: &[&str]| {
        let one = Superseded {
            processor: processor.to_owned(),
            kept: vec!["2".to_owned()],
            gone: gone.iter().map(|one| (*one).to_owned()).collect(),
            chunks: vec!["urn:chunk:1".to_owned()],
        };
        let (key, all) = (key(), [one]);
        let gone = engine.supersede(&key, &all, WriteKind::Direct);
        gone.await.unwrap()
    };
    // Named ones alone, and never one that stays.
    assert_eq!(supersede("a", &["0", "2"]).await, 0);
    assert_eq!(supersede("", &[]).await, 0);
    assert_eq!(supersede("c", &[]).await, 0);
    assert!(supersede("a", &["1"]).await > 0);
    assert!(supersede("a", &[]).await > 0);
    assert_eq!(all(&engine).await, wanted);
    assert_eq!(supersede("a", &[]).await, 0);
}

#[tokio::test]
async fn facts_and_labels_that_another_chunk_supports_stay() {
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    let mine = Triple::new(
        iri("towers"),
        iri("note"),
        tg_schemas::Term::literal("written by hand"),
    );
    let first = [
        fact("bridge", "spans", "river"),
        fact("bridge", "near", "towers"),
    ];
    let second = [
        fact("bridge", "spans", "river"),
        fact("mill", "near", "river"),
    ];
    let mut base = vocabulary_labels();
    base.push(mine);
    write(&engine, &base).await;
    write(&engine, &of_chunk("urn:chunk:2", &second)).await;
    write(&engine, &[label("towers")]).await;
    let without_first = all(&engine).await;
    write(&engine, &of_chunk("urn:chunk:1", &first)).await;
    let before = all(&engine).await;
    let gone = retract(&engine, &["urn:chunk:1"]).await;
    assert_eq!(
        all(&engine).await,
        without_first,
        "as if it had never been there"
    );
    assert_eq!(gone, before.len() - without_first.len());
    assert_eq!(
        retract(&engine, &["urn:chunk:1"]).await,
        0,
        "again changes nothing"
    );
    assert_eq!(retract(&engine, &["urn:chunk:none", "no iri"]).await, 0);
    retract(&engine, &["urn:chunk:2"]).await;
    let left = all(&engine).await;
    let base: BTreeSet<Triple> = base.into_iter().chain([label("towers")]).collect();
    assert_eq!(
        left.into_iter()
            .filter(|triple| triple.g.is_none())
            .collect::<BTreeSet<_>>(),
        base
    );
    assert!(all(&engine).await.iter().all(|triple| {
        !matches!(&triple.s, Some(tg_schemas::Term::Iri(iri)) if iri.starts_with("urn:chunk:"))
    }));
}

#[tokio::test]
async fn exact_triples_go_whatever_they_came_from() {
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    let triples = [fact("a", "b", "c"), fact("d", "e", "f")];
    write(&engine, &triples).await;
    let quads = vec![convert::quad("", &triples[0]).unwrap()];
    let gone = engine.retract(&key(), &[], quads, WriteKind::Direct).await;
    assert_eq!(gone.unwrap(), 1);
    assert_eq!(all(&engine).await, BTreeSet::from([triples[1].clone()]));
    let nowhere = CollectionKey::new("w", "nowhere");
    let parts = ["urn:chunk:1".to_owned()];
    let none = engine.retract(&nowhere, &parts, Vec::new(), WriteKind::Direct);
    assert_eq!(none.await.unwrap(), 0);
}

#[tokio::test]
async fn what_a_thing_has_once_is_replaced_in_the_source_graph() {
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    for number in [1, 7] {
        let page = PartFacts {
            page_number: Some(number),
            label: Some(if number == 1 { "Page 1" } else { "Page 7" }),
            ..PartFacts::new("urn:page:1", PartKind::Page, "urn:doc")
        };
        write(&engine, &part(&page, &making())).await;
    }
    let texts: Vec<Triple> = all(&engine).await.into_iter().collect();
    let said = |text: &str| {
        let text = tg_schemas::Term::literal(text);
        texts.iter().any(|triple| triple.o.as_ref() == Some(&text))
    };
    assert!(said("7") && said("Page 7") && !said("1.") && !said("Page 1"));
    assert_eq!(texts.len(), 7 + 6 + 2 - 1 + 1 - 1);
}

fn quads(triples: &[Triple]) -> Vec<Quad> {
    let quads = triples.iter().map(|triple| convert::quad("", triple));
    quads.map(Result::unwrap).collect()
}

async fn load(engine: &EmbeddedGraph, triples: &[Triple]) {
    let batch = Batch::load(quads(triples));
    engine.write(&key(), batch).await.unwrap();
}

/// The facts and labels there are, without vocabulary.
async fn facts(engine: &EmbeddedGraph) -> BTreeSet<Triple> {
    let ours = |triple: &Triple| matches!(&triple.s, Some(tg_schemas::Term::Iri(iri)) if iri.starts_with("urn:e:"));
    let found = all(engine).await.into_iter();
    found.filter(|one| one.g.is_none() && ours(one)).collect()
}

/// A prompt that goes back: exactly what it made before is there, as if the other had never been.
#[tokio::test]
async fn what_goes_back_leaves_what_it_made_first() {
    let (a, b) = (
        [
            fact("bridge", "spans", "river"),
            fact("bridge", "is", "old"),
        ],
        [
            fact("bridge", "spans", "river"),
            fact("bridge", "is", "new"),
        ],
    );
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    write(&engine, &of_chunk("urn:chunk:1", &[])).await;
    write(&engine, &by("a", "1", &a)).await;
    let first = all(&engine).await;
    for (facts, now, before) in [(&b, "2", "1"), (&a, "1", "2")] {
        write(&engine, &by("a", now, facts)).await;
        let one = Superseded {
            processor: "a".to_owned(),
            kept: vec![now.to_owned()],
            gone: vec![before.to_owned()],
            chunks: vec!["urn:chunk:1".to_owned()],
        };
        let (at, one) = (key(), [one]);
        for _ in 0..2 {
            let gone = engine.supersede(&at, &one, WriteKind::Direct);
            gone.await.unwrap();
        }
    }
    assert_eq!(all(&engine).await, first);
}

#[tokio::test]
async fn what_was_loaded_by_hand_stays_whichever_came_first() {
    let (before, after) = (fact("bridge", "is", "old"), fact("bridge", "near", "mill"));
    let found = [
        before.clone(),
        after.clone(),
        fact("bridge", "spans", "river"),
    ];
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    load(&engine, &[before.clone(), label("old")]).await;
    write(&engine, &of_chunk("urn:chunk:1", &found)).await;
    load(&engine, std::slice::from_ref(&after)).await;
    for _ in 0..2 {
        retract(&engine, &["urn:chunk:1"]).await;
        let left = facts(&engine).await;
        assert!(left.contains(&before) && left.contains(&after), "{left:?}");
        assert!(left.contains(&label("old")) && !left.contains(&found[2]));
        assert!(!left.contains(&label("river")), "{left:?}");
    }
    // Found once more, and made anew without them.
    write(&engine, &by("a", "1", &found)).await;
    let one = Superseded {
        processor: "a".to_owned(),
        kept: vec!["2".to_owned()],
        chunks: vec!["urn:chunk:1".to_owned()],
        ..Superseded::default()
    };
    let (at, one) = (key(), [one]);
    let superseded = engine.supersede(&at, &one, WriteKind::Direct);
    assert!(superseded.await.unwrap() > 0);
    let left = facts(&engine).await;
    assert!(left.contains(&before) && left.contains(&after) && !left.contains(&found[2]));
    // Taken out as itself it is forgotten: what is found of it later goes with where it was found.
    let itself = quads(std::slice::from_ref(&before));
    let gone = engine.retract(&at, &[], itself, WriteKind::Direct);
    assert_eq!(gone.await.unwrap(), 1);
    write(&engine, &of_chunk("urn:chunk:1", &found)).await;
    retract(&engine, &["urn:chunk:1"]).await;
    let left = facts(&engine).await;
    assert!(!left.contains(&before) && left.contains(&after), "{left:?}");
}

/// The store tells numbers in its own form, whatever form they were written in.
#[tokio::test]
async fn numbers_that_were_loaded_by_hand_stay() {
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    let weights = [
        ("12.50", xsd::DECIMAL),
        ("05", xsd::INT),
        ("1", xsd::BOOLEAN),
    ];
    let weights = weights.map(|(value, kind)| {
        let value = tg_schemas::Term::Literal {
            value: value.to_owned(),
            datatype: kind.as_str().to_owned(),
            language: String::new(),
        };
        Triple::new(iri("bridge"), iri(kind.as_str()), value)
    });
    load(&engine, &weights).await;
    write(&engine, &of_chunk("urn:chunk:1", &weights)).await;
    retract(&engine, &["urn:chunk:1"]).await;
    let left = facts(&engine).await;
    let label = Some(tg_schemas::Term::iri(LABEL));
    let weighed = left.iter().filter(|fact| fact.p != label);
    assert_eq!(weighed.count(), weights.len(), "{left:?}");
    let at = key();
    let gone = engine.retract(&at, &[], quads(&weights), WriteKind::Direct);
    assert_eq!(gone.await.unwrap(), weights.len());
    write(&engine, &of_chunk("urn:chunk:1", &weights)).await;
    retract(&engine, &["urn:chunk:1"]).await;
    assert!(facts(&engine).await.is_empty());
}

/// An export that is loaded is no word of its own: its facts go with what they were found in.
#[tokio::test]
async fn what_is_loaded_with_where_it_was_found_goes_with_that() {
    let found = [fact("bridge", "spans", "river")];
    let (first, engine) = (
        EmbeddedGraph::in_memory(Limits::default()).unwrap(),
        EmbeddedGraph::in_memory(Limits::default()).unwrap(),
    );
    write(&first, &of_chunk("urn:chunk:1", &found)).await;
    // In no particular order, and in pieces.
    for one in all(&first).await {
        load(&engine, &[one]).await;
    }
    retract(&engine, &["urn:chunk:1"]).await;
    assert_eq!(facts(&engine).await, BTreeSet::new());
}

/// A fact of an export that an extraction found, too, is that one's alone once the export is gone, also after a restart;
/// while another export holds it, it stays loaded.
#[tokio::test]
async fn what_an_export_loaded_is_let_go_of_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph.db");
    let open = || open_again(&path, &Limits::default());
    let shared = fact("bridge", "spans", "river");
    let found = std::slice::from_ref(&shared);
    let marked = |engine: &EmbeddedGraph| {
        let entries = engine.shared.entries.lock();
        let dataset = entries.get(&key()).and_then(|entry| entry.loaded());
        dataset.unwrap().by_hand().has(&quads(found)[0])
    };
    let engine = open();
    for export in ["urn:chunk:1", "urn:chunk:2"] {
        load(&engine, &of_chunk(export, found)).await;
    }
    write(&engine, &of_chunk("urn:chunk:3", found)).await;
    retract(&engine, &["urn:chunk:1"]).await;
    assert!(marked(&engine), "the other export has it");
    retract(&engine, &["urn:chunk:2"]).await;
    assert!(facts(&engine).await.contains(&shared) && !marked(&engine));
    drop(engine);
    let engine = open();
    assert!(facts(&engine).await.contains(&shared) && !marked(&engine));
    retract(&engine, &["urn:chunk:3"]).await;
    assert_eq!(facts(&engine).await, BTreeSet::new(), "its labels neither");
}

/// The journal knows what was loaded, also when its past was merged, and what it takes is counted.
#[tokio::test]
async fn what_was_loaded_is_known_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph.db");
    let open = || open_again(&path, &Limits::default());
    let (mine, theirs) = (fact("bridge", "is", "old"), fact("mill", "is", "new"));
    let found = [mine.clone(), theirs.clone()];
    let engine = open();
    write(&engine, &of_chunk("urn:chunk:1", &found)).await;
    load(&engine, std::slice::from_ref(&mine)).await;
    drop(engine);
    let engine = open();
    let number = |n: usize| fact(&format!("s{n}"), "p", "o");
    let many: Vec<Triple> = (0..60_000).map(number).collect();
    load(&engine, &many).await;
    assert!(all(&engine).await.len() > many.len());
    engine.delete(&key(), quads(&many)).await.unwrap();
    load(&engine, &many[..10]).await;
    let merged = || {
        let entries = engine.shared.entries.lock();
        let held = entries.get(&key()).map(|entry| entry.held().quads);
        held.is_none_or(|held| held < 1_000)
    };
    while !merged() {
        engine.insert(&key(), quads(&many[..1])).await.unwrap();
        tokio::task::yield_now().await;
    }
    drop(engine);
    let engine = open();
    retract(&engine, &["urn:chunk:1"]).await;
    let left = facts(&engine).await;
    assert!(left.contains(&mine) && !left.contains(&theirs), "{left:?}");
    assert_eq!(left.len(), 1 + 3 + 10, "its labels stay with it: {left:?}");
    let texts = |left: &BTreeSet<Triple>| {
        let left: Vec<Triple> = left.iter().cloned().collect();
        Batch::load(quads(&left)).adds().bytes - Batch::insert(quads(&left)).adds().bytes
    };
    assert_eq!(texts(&left), left.len() as u64 * by_hand::MARK);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn taking_chunks_back_is_as_if_they_had_never_been(
        chunks in prop::collection::vec(prop::collection::vec((0..5_u8, 0..3_u8, 0..5_u8), 0..6), 1..6),
        gone in prop::collection::vec(any::<bool>(), 6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (engine, model) = (
                EmbeddedGraph::in_memory(Limits::default()).unwrap(),
                EmbeddedGraph::in_memory(Limits::default()).unwrap(),
            );
            let mut ids = Vec::new();
            for (n, facts) in chunks.iter().enumerate() {
                let facts: Vec<Triple> = facts
                    .iter()
                    .map(|(s, p, o)| fact(&format!("s{s}"), &format!("p{p}"), &format!("s{o}")))
                    .collect();
                let id = format!("urn:chunk:{n}");
                write(&engine, &of_chunk(&id, &facts)).await;
                if gone[n] {
                    ids.push(id);
                } else {
                    write(&model, &of_chunk(&id, &facts)).await;
                }
            }
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            retract(&engine, &ids).await;
            // The component itself is remembered.
            let agent = |triples: BTreeSet<Triple>| -> BTreeSet<Triple> {
                let of_agent = |triple: &Triple| matches!(&triple.s, Some(tg_schemas::Term::Iri(iri)) if iri.contains("/agent/"));
                triples.into_iter().filter(|triple| !of_agent(triple)).collect()
            };
            prop_assert_eq!(agent(all(&engine).await), agent(all(&model).await));
            Ok(())
        })?;
    }
}
