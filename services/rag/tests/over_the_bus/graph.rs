//! GraphRAG over a store of ours and over one that only knows patterns.

use tg_schemas::msg::{GraphRagQuery, GraphRagResponse};
use tg_schemas::vocabulary::tg;
use tg_schemas::{Term, Triple};
use tg_testkit::place::Place;

use crate::world::{Script, World, summed};

const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const DERIVED: &str = "http://www.w3.org/ns/prov#wasDerivedFrom";
const TITLE: &str = "http://purl.org/dc/elements/1.1/title";

fn ns(name: &str) -> String {
    format!("https://trustgraph.ai/ns/{name}")
}

fn fact(s: &str, p: &str, o: Term) -> Triple {
    Triple::new(Term::iri(s), Term::iri(p), o)
}

fn year(value: &str) -> Term {
    Term::Literal {
        value: value.into(),
        datatype: "http://www.w3.org/2001/XMLSchema#gYear".into(),
        language: String::new(),
    }
}

/// A bridge whose builder is two hops away, a source for its year, and old traces that must not be read.
fn bridges() -> Vec<Triple> {
    let built = fact("urn:x:bridge", "urn:p:built", year("1429"));
    let source = |s: &str, p: &str, o: Term| fact(s, p, o).in_graph("urn:graph:source");
    vec![
        built.clone(),
        fact("urn:x:bridge", LABEL, Term::literal("Old Bridge")),
        fact("urn:x:bridge", "urn:p:designer", Term::iri("urn:x:anna")),
        fact("urn:x:anna", LABEL, Term::literal("Anna Reed")),
        fact("urn:x:anna", "urn:p:born", Term::literal("Ham")),
        fact("urn:x:bridge", "urn:p:trap", Term::literal("old trace"))
            .in_graph("urn:graph:retrieval"),
        source("urn:sub", &ns("contains"), Term::Quoted(Box::new(built))),
        source("urn:sub", DERIVED, Term::iri("urn:chunk:1")),
        source("urn:chunk:1", TYPE, Term::iri(ns("Chunk"))),
        source("urn:chunk:1", DERIVED, Term::iri("urn:doc:1")),
        fact("urn:doc:1", TYPE, Term::iri(ns("Document"))),
        fact("urn:doc:1", TITLE, Term::literal("Bridges of Ham")),
    ]
}

fn script() -> Script {
    Script {
        prompts: [
            (
                "extract-concepts",
                "Old Bridge\nyear of building".to_owned(),
            ),
            (
                "kg-synthesis",
                "The Old Bridge was built in 1429 [1]. It is fine [77].".to_owned(),
            ),
        ]
        .into(),
        entities: vec!["urn:x:bridge"],
        graph: bridges(),
        ..Script::default()
    }
}

fn question(streaming: bool) -> GraphRagQuery {
    GraphRagQuery {
        query: "When was the Old Bridge built?".into(),
        streaming,
        ..GraphRagQuery::default()
    }
}

fn kinds(frames: &[GraphRagResponse]) -> Vec<String> {
    let name = |frame: &GraphRagResponse| match &frame.explain_id {
        Some(id) if frame.message_type == "explain" => {
            let parts: Vec<&str> = id.split(':').collect();
            parts[parts.len() - 2].to_owned()
        }
        _ if frame.end_of_session => "end".to_owned(),
        _ if frame.end_of_stream => "last".to_owned(),
        _ => frame.message_type.clone(),
    };
    let mut names: Vec<String> = frames.iter().map(name).collect();
    names.dedup();
    names
}

async fn a_streamed_answer_has_its_frames_in_order_and_a_bounded_number_of_questions(place: Place) {
    let world = World::start(&place, true, script()).await;
    let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(true)).await;
    assert_eq!(
        kinds(&frames),
        [
            "question",
            "grounding",
            "exploration",
            "focus",
            "chunk",
            "last",
            "synthesis",
            "end"
        ]
    );
    let text: String = frames.iter().map(|frame| frame.response.as_str()).collect();
    assert_eq!(text, "The Old Bridge was built in 1429 [1]. It is fine.");
    let end = frames.last().unwrap();
    assert_eq!((end.in_token, end.out_token), (Some(20), Some(4)));
    // Its trace says the same.
    let trace = || frames.iter().flat_map(|frame| &frame.explain_triples);
    assert_eq!(
        (
            summed(trace(), tg::IN_TOKEN),
            summed(trace(), tg::OUT_TOKEN)
        ),
        (20, 4)
    );
    assert_eq!(end.model.as_deref(), Some("fake-model"));
    let sources: Vec<_> = end
        .sources
        .iter()
        .map(|s| (s.uri.as_str(), s.title.as_str()))
        .collect();
    assert_eq!(sources, [("urn:doc:1", "Bridges of Ham")]);
    assert!(frames.iter().all(|frame| frame.error.is_none()));

    // What the model was given: typed facts by their names, nothing of old traces.
    let prompted = world.prompts.asked.lock().clone();
    let knowledge = &prompted.last().unwrap().terms["knowledge"];
    assert!(
        knowledge.starts_with(r#"[{"s":"Old Bridge","p":"built","o":"1429"}"#),
        "{knowledge}"
    );
    assert!(
        knowledge.contains("Anna Reed") && knowledge.contains("Ham"),
        "{knowledge}"
    );
    assert!(!knowledge.contains("trace"), "{knowledge}");

    // concepts and synthesis; three look-ups at once; the reranker's two hops ask for vectors.
    assert_eq!(world.counts.of("prompt"), 2);
    assert_eq!(world.counts.of("graph-embeddings"), 3);
    assert_eq!(world.counts.of("embeddings"), 3);
    assert_eq!(
        (world.counts.of("neighbours"), world.counts.of("sources")),
        (2, 1)
    );
    // The words behind what is cited.
    assert_eq!(world.counts.of("librarian"), 1);
    let [cited] = end.citations.as_slice() else {
        panic!("one citation, not {:?}", end.citations);
    };
    assert_eq!((cited.n, cited.page), (1, 0));
    assert_eq!(
        (cited.document.as_str(), cited.chunk.as_str()),
        ("urn:doc:1", "urn:chunk:1")
    );
    // Its text is not in the library.
    assert_eq!(cited.text, "Old Bridge built 1429");
    assert!(end.trace.starts_with("urn:trustgraph:question:") && !end.refused);
    // The last record is confirmed before the last frame; it may be read a moment later.
    let synthesis = frames
        .iter()
        .rev()
        .find_map(|frame| frame.explain_id.clone())
        .unwrap();
    world
        .stored(|triple| triple.s == Some(Term::iri(synthesis.as_str())))
        .await;
    assert_eq!(world.store.count(), 2);
    assert_eq!(world.saved_texts(1).await, [text]);
    let told: usize = frames.iter().map(|frame| frame.explain_triples.len()).sum();
    let stored = world.store.all();
    assert_eq!(stored.iter().flat_map(|one| &one.triples).count(), told);
}

async fn a_fact_comes_with_the_sentence_that_it_was_read_from(place: Place) {
    let sentence = "The Old Bridge was built in 1429 by Anna Reed.";
    let mut script = script();
    script.chunks = vec![(
        "urn:chunk:1",
        "Ham is small. The Old Bridge was built in 1429 by Anna Reed. It is of stone.",
    )];
    let world = World::start(&place, true, script).await;
    let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(false)).await;
    let prompted = world.prompts.asked.lock().clone();
    let knowledge = &prompted.last().unwrap().terms["knowledge"];
    let read = format!(r#"[{{"s":"Old Bridge","p":"built","o":"1429","read":"{sentence}"}}"#);
    assert!(knowledge.starts_with(&read), "{knowledge}");
    assert_eq!(knowledge.matches("\"read\"").count(), 1, "{knowledge}");
    let [cited] = frames[0].citations.as_slice() else {
        panic!("one citation, not {:?}", frames[0].citations);
    };
    assert_eq!(cited.text, sentence);
    // The text is looked up once, for the model and for the citation.
    assert_eq!(world.counts.of("librarian"), 1);
}

async fn the_number_of_questions_is_bounded_whatever_the_size_of_the_graph(place: Place) {
    for size in [10, 2_000] {
        let mut script = script();
        script.graph.extend((0..size).map(|at| {
            let other = format!("urn:x:n{at}");
            fact("urn:x:bridge", "urn:p:near", Term::iri(other))
        }));
        let world = World::start(&place.another().await, true, script).await;
        let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(false)).await;
        assert_eq!(frames.len(), 1);
        let synthesis = ns("Synthesis");
        world
            .stored(|triple| triple.o == Some(Term::iri(synthesis.as_str())))
            .await;
        // 2 prompts, 1 look-up text and 3 look-ups, 2 hops with vectors for the scores, sources, words, library, trace.
        let told = world.counts.all() + world.store.count();
        assert!(told <= 2 + 4 + 2 * 2 + 1 + 1 + 1 + 2, "{size}: {told}");
        let knowledge = world.prompts.asked.lock().last().unwrap().terms["knowledge"].clone();
        assert!(
            knowledge.contains("1429"),
            "what fits is found among many: {knowledge}"
        );
    }
}

async fn an_unstreamed_answer_is_one_frame_with_its_trace(place: Place) {
    let world = World::start(&place, true, script()).await;
    let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(false)).await;
    let [whole] = frames.as_slice() else {
        panic!("one frame, not {}", frames.len());
    };
    assert_eq!(
        whole.response,
        "The Old Bridge was built in 1429 [1]. It is fine."
    );
    assert!(whole.end_of_stream && whole.end_of_session);
    assert_eq!(whole.sources.len(), 1);
    assert_eq!(whole.warnings, [""; 0], "nothing was missing");
    let cites = ns("cites");
    let is_cite = |triple: &&Triple| triple.p == Some(Term::iri(cites.as_str()));
    // The answer does, and its citation.
    assert_eq!(whole.explain_triples.iter().filter(is_cite).count(), 2);

    // What is told of a question that is asked again is one chain: the answer that is kept, or another attempt under
    // another name.
    let to = tg_testkit::flow::topic(tg_schemas::Class::Request, "graph-rag");
    let mut told = vec![whole.clone()];
    for _ in 0..2 {
        let options = tg_mesh::Ask {
            id: Some("7".into()),
            ..world.flow.options()
        };
        let answer = world
            .flow
            .mesh
            .ask::<_, GraphRagResponse>(&to, &question(false), options);
        told.push(answer.last().await.unwrap());
    }
    assert_ne!(told[1].explain_id, whole.explain_id);
    for frame in &told {
        let chained: tg_provenance::Stored = frame.explain_triples.iter().cloned().collect();
        let root = frame.explain_id.as_deref().unwrap();
        let checked = chained.verify(root, &tg_provenance::Texts::Unknown, None);
        let checked = checked.expect("a chain that holds").expect("a chain");
        assert_eq!((checked.entities, checked.unread), (5, 1));
    }
    // Of two attempts everything together is two chains.
    let all = told.iter().flat_map(|frame| &frame.explain_triples);
    let all: tg_provenance::Stored = all.cloned().collect();
    for root in told.iter().filter_map(|frame| frame.explain_id.as_deref()) {
        let checked = all.verify(root, &tg_provenance::Texts::Unknown, None);
        assert!(matches!(checked, Ok(Some(_))), "{checked:?}");
    }
}

async fn without_knowledge_the_answer_says_so_and_the_model_is_not_asked(place: Place) {
    let mut script = script();
    script.entities = Vec::new();
    let world = World::start(&place, true, script).await;
    let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(true)).await;
    let text: String = frames.iter().map(|frame| frame.response.as_str()).collect();
    assert_eq!(
        text,
        "The knowledge graph holds nothing that answers this question."
    );
    assert!(frames.last().unwrap().sources.is_empty());
    assert_eq!(world.counts.of("prompt"), 1);
    assert_eq!(kinds(&frames).last().map(String::as_str), Some("end"));
}

async fn a_refusal_has_no_number_and_no_source_whatever_the_facts_say(place: Place) {
    for said in [
        "The facts do not answer this question.",
        "The facts do not answer this question [1].",
        "Das steht nirgends [0].",
    ] {
        let mut script = script();
        script.prompts.insert("kg-synthesis", said.to_owned());
        let world = World::start(&place.another().await, true, script).await;
        let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(false)).await;
        let whole = &frames[0];
        assert!(whole.error.is_none(), "{whole:?}");
        assert!(!whole.response.contains('['), "{}", whole.response);
        assert!(whole.refused && whole.citations.is_empty() && whole.sources.is_empty());
        let refused = Term::iri(tg_schemas::vocabulary::tg::REFUSED);
        let flags = whole.explain_triples.iter();
        let flags: Vec<_> = flags
            .filter(|triple| triple.p.as_ref() == Some(&refused))
            .collect();
        assert_eq!(flags.len(), 1, "the synthesis says so: {said}");
        assert_eq!(flags[0].o, Some(Term::literal("true")));
        // The model was asked: it had facts.
        assert_eq!(world.counts.of("prompt"), 2);
    }
}

async fn seeds_replace_what_would_be_looked_up(place: Place) {
    let world = World::start(&place, true, script()).await;
    let ask = GraphRagQuery {
        graph_seeds: vec!["urn:x:anna".into()],
        max_path_length: 1,
        ..question(false)
    };
    let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &ask).await;
    assert!(frames[0].error.is_none());
    assert_eq!(world.counts.of("prompt"), 1, "no concepts are asked for");
    assert_eq!(world.counts.of("graph-embeddings"), 0);
    let knowledge = world.prompts.asked.lock().last().unwrap().terms["knowledge"].clone();
    assert!(
        knowledge.contains("Ham") && !knowledge.contains("1429"),
        "{knowledge}"
    );
    let both = GraphRagQuery {
        grounding_seeds: vec!["x".into()],
        ..ask
    };
    let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &both).await;
    let error = frames[0].error.clone().unwrap();
    assert!(error.message.contains("mutually exclusive"));
}

async fn every_error_is_final_and_typed(place: Place) {
    let mut broken = script();
    broken.failing = vec!["graph-embeddings"];
    let world = World::start(&place, true, broken).await;
    for streaming in [true, false] {
        let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(streaming)).await;
        let last = frames.last().unwrap();
        assert_eq!(last.error.as_ref().unwrap().kind, "graph-rag-error");
        assert!(last.end_of_session && last.end_of_stream);
        assert_eq!(last.message_type, "chunk");
        // The model had been asked before.
        assert_eq!((last.in_token, last.out_token), (Some(10), Some(2)));
        assert_eq!(
            frames.iter().filter(|frame| frame.error.is_some()).count(),
            1
        );
    }
}

async fn what_an_answer_goes_without_is_said_with_it(place: Place) {
    let mut broken = script();
    broken.failing = vec!["sources"];
    let world = World::without_reranker(&place, broken).await;
    for streaming in [true, false] {
        let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(streaming)).await;
        let (last, before) = frames.split_last().unwrap();
        assert_eq!(last.error, None);
        assert_eq!(
            last.warnings,
            [
                "the reranker did not answer: words decided which facts fit",
                "the sources of the facts could not be read: the answer names none",
            ]
        );
        assert!(last.sources.is_empty());
        assert!(before.iter().all(|frame| frame.warnings.is_empty()));
    }
}

async fn a_store_of_patterns_serves_too(place: Place) {
    let world = World::start(&place, false, script()).await;
    let frames: Vec<GraphRagResponse> = world.ask("graph-rag", &question(false)).await;
    assert_eq!(frames[0].error, None);
    let knowledge = world.prompts.asked.lock().last().unwrap().terms["knowledge"].clone();
    assert!(
        knowledge.contains(r#"{"s":"Old Bridge","p":"built","o":"1429"}"#),
        "{knowledge}"
    );
    assert!(
        knowledge.contains("Anna Reed") && !knowledge.contains("trace"),
        "{knowledge}"
    );
    let sources: Vec<_> = frames[0].sources.iter().map(|s| s.title.as_str()).collect();
    assert_eq!(sources, ["Bridges of Ham"]);
    assert!(world.counts.of("triples") > 5);
}

async fn who_hangs_up_stops_the_model(place: Place) {
    let mut script = script();
    script.hanging = "kg-synthesis";
    let world = World::start(&place, true, script).await;
    let to = tg_testkit::flow::topic(tg_schemas::Class::Request, "graph-rag");
    let options = world.flow.options();
    let mut answer = world
        .flow
        .mesh
        .ask::<_, GraphRagResponse>(&to, &question(true), options);
    loop {
        let frame = answer.next().await.unwrap().unwrap();
        if frame.message_type == "chunk" {
            break;
        }
    }
    drop(answer);
    let stopped = tokio::time::timeout(tg_testkit::flow::SOON, world.prompts.cancelled.notified());
    stopped.await.expect("the model is told");
}

tg_testkit::on_both_buses!(
    a_fact_comes_with_the_sentence_that_it_was_read_from,
    what_an_answer_goes_without_is_said_with_it,
    a_streamed_answer_has_its_frames_in_order_and_a_bounded_number_of_questions,
    the_number_of_questions_is_bounded_whatever_the_size_of_the_graph,
    an_unstreamed_answer_is_one_frame_with_its_trace,
    without_knowledge_the_answer_says_so_and_the_model_is_not_asked,
    a_refusal_has_no_number_and_no_source_whatever_the_facts_say,
    seeds_replace_what_would_be_looked_up,
    every_error_is_final_and_typed,
    a_store_of_patterns_serves_too,
    who_hangs_up_stops_the_model,
);
