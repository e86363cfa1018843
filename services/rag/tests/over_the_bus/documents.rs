//! DocumentRAG over fakes of the searches and of the library.

use tg_schemas::msg::{Citation, DocumentRagQuery, DocumentRagResponse};
use tg_schemas::vocabulary::tg;
use tg_schemas::{Term, Triple};
use tg_testkit::place::Place;

use crate::world::{Script, World, summed};

const CHUNKS: [(&str, &str); 4] = [
    (
        "urn:chunk:1",
        "The Old Bridge was built in 1429 by Anna Reed.",
    ),
    ("urn:chunk:2", "The Lantern is a lighthouse near Ham."),
    ("urn:chunk:3", "Ham has a market on Mondays."),
    ("urn:chunk:4", "The market of Ham sells fish and bread."),
];

fn script(answer: &str) -> Script {
    Script {
        prompts: [
            ("extract-concepts", "Old Bridge".to_owned()),
            ("document-prompt", answer.to_owned()),
        ]
        .into(),
        chunks: CHUNKS.to_vec(),
        words: vec!["urn:chunk:4", "urn:chunk:gone"],
        ..Script::default()
    }
}

fn question(streaming: bool) -> DocumentRagQuery {
    DocumentRagQuery {
        query: "When was the Old Bridge built?".into(),
        doc_limit: 3,
        streaming,
        ..DocumentRagQuery::default()
    }
}

fn source(s: &str, p: &str, o: &str) -> Triple {
    let triple = Triple::new(Term::iri(s), Term::iri(p), Term::iri(o));
    triple.in_graph("urn:graph:source")
}

fn provenance() -> Vec<Triple> {
    let derived = "http://www.w3.org/ns/prov#wasDerivedFrom";
    let title = "http://purl.org/dc/elements/1.1/title";
    let title =
        |doc: &str, text: &str| Triple::new(Term::iri(doc), Term::iri(title), Term::literal(text));
    vec![
        source("urn:chunk:1", derived, "urn:doc:1"),
        title("urn:doc:1", "Bridges of Ham"),
        source("urn:chunk:2", derived, "urn:doc:2"),
        title("urn:doc:2", "Lights"),
    ]
}

async fn a_streamed_answer_cites_what_was_retrieved_and_names_its_documents(place: Place) {
    let mut script = script("Built in 1429 [1]. Perhaps [9]. No more.");
    script.graph = provenance();
    let world = World::start(&place, true, script).await;
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &question(true)).await;
    let kinds: Vec<&str> = frames
        .iter()
        .map(|frame| frame.message_type.as_str())
        .collect();
    assert_eq!(&kinds[..4], ["explain"; 4]);
    assert_eq!(kinds.last(), Some(&"end"));
    assert_eq!(kinds[kinds.len() - 2], "explain");
    let last_piece = &frames[frames.len() - 3];
    assert!(last_piece.end_of_stream && !last_piece.end_of_session);
    let text: String = frames
        .iter()
        .filter_map(|frame| frame.response.clone())
        .collect();
    assert_eq!(text, "Built in 1429 [1]. Perhaps. No more.");
    let end = frames.last().unwrap();
    assert!(end.end_of_session && end.response.is_none());
    assert_eq!((end.in_token, end.out_token), (Some(20), Some(4)));
    let trace = || frames.iter().flat_map(|frame| &frame.explain_triples);
    assert_eq!(
        (
            summed(trace(), tg::IN_TOKEN),
            summed(trace(), tg::OUT_TOKEN)
        ),
        (20, 4)
    );
    let sources: Vec<_> = end
        .sources
        .iter()
        .map(|s| (s.uri.as_str(), s.title.as_str()))
        .collect();
    assert_eq!(
        sources,
        [("urn:doc:1", "Bridges of Ham")],
        "only of what is cited"
    );

    let documents = world.prompts.asked.lock().last().unwrap().terms["documents"].clone();
    let documents: Vec<String> = serde_json::from_str(&documents).unwrap();
    assert_eq!(documents.len(), 3);
    assert_eq!(
        documents[0], CHUNKS[0].1,
        "the reranker puts first what fits"
    );
    // Two look-ups by meaning, one by words, one for all texts, one for vectors of the look-ups and one for the
    // reranker's.
    let count = |what: &str| world.counts.of(what);
    assert_eq!(
        (count("document-embeddings"), count("keyword-index")),
        (2, 1)
    );
    let trace = frames[0].explain_id.clone().unwrap();
    let cited = Citation {
        n: 1,
        document: "urn:doc:1".into(),
        title: "Bridges of Ham".into(),
        page: 0,
        chunk: "urn:chunk:1".into(),
        text: CHUNKS[0].1.into(),
        cites: trace.replace("docrag:", "prov:chunk:") + ":0",
    };
    assert_eq!(end.citations, [cited]);
    assert_eq!((end.trace.as_str(), end.refused), (trace.as_str(), false));
    assert_eq!(
        (count("librarian"), count("embeddings"), count("prompt")),
        (1, 2, 2)
    );
    let end = "urn:trustgraph:docrag:";
    world
        .stored(|triple| match &triple.s {
            Some(Term::Iri(iri)) => iri.starts_with(end) && iri.ends_with("/synthesis"),
            _ => false,
        })
        .await;
    assert_eq!(world.store.count(), 2);
}

async fn both_searches_count_and_each_alone_when_asked(place: Place) {
    let world = World::start(&place, true, script("Yes [1].")).await;
    let asked = |mode: &str| DocumentRagQuery {
        retrieval_mode: mode.into(),
        doc_limit: 10,
        ..question(false)
    };
    let mut seen = Vec::new();
    for mode in ["", "vector", "keyword"] {
        let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &asked(mode)).await;
        assert_eq!(frames.len(), 1, "one frame");
        assert!(frames[0].message_type.is_empty() && frames[0].end_of_session);
        let documents = world.prompts.asked.lock().last().unwrap().terms["documents"].clone();
        let documents: Vec<String> = serde_json::from_str(&documents).unwrap();
        seen.push(documents.len());
        let searched = (mode != "keyword").then(|| "fake".to_owned());
        assert_eq!(
            frames[0].embeddings_model, searched,
            "whose vectors were searched"
        );
    }
    // The keyword index knows one chunk that has a text.
    assert_eq!(seen, [4, 4, 1]);
    world.script.lock().failing = vec!["keyword-index"];
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &asked("")).await;
    assert_eq!(frames[0].error, None);
    let told = "the keyword index did not answer: searched by meaning only";
    assert_eq!(frames[0].warnings, [told]);
    // Vectors of another model are refused each time: that is told, and not answered by words.
    world.script.lock().failing = Vec::new();
    world.script.lock().refusing = vec!["document-embeddings"];
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &asked("")).await;
    let error = frames[0].error.clone().unwrap();
    assert!(error.message.contains("another model"), "{error:?}");
    assert!(frames[0].end_of_session);
    // The model had been asked before.
    assert_eq!(
        (frames[0].in_token, frames[0].out_token),
        (Some(10), Some(2))
    );
    world.script.lock().refusing = Vec::new();
    world.script.lock().failing = vec!["keyword-index", "embeddings"];
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &asked("")).await;
    let error = frames[0].error.clone().unwrap();
    assert_eq!(error.kind, "document-rag-error");
    assert!(frames[0].end_of_session);
}

async fn a_question_is_asked_in_the_model_of_the_vectors_that_serve(place: Place) {
    let world = World::start(&place, true, script("Yes [1].")).await;
    let asked = question(false);
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &asked).await;
    assert_eq!(frames[0].embeddings_model.as_deref(), Some("fake"));
    let usual = world.counts.of("embeddings");
    {
        let mut script = world.script.lock();
        (script.held, script.served) = ("former", vec!["former"]);
    }
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &asked).await;
    assert_eq!(frames[0].error, None);
    assert_eq!(frames[0].embeddings_model.as_deref(), Some("former"));
    assert_eq!(world.counts.of("embeddings"), 2 * usual + 1, "once more");
    // Nobody serves it any more: both are named, and nothing is answered by words.
    world.script.lock().served = Vec::new();
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &asked).await;
    let error = frames[0].error.clone().unwrap();
    for part in ["'former'", "'fake'", "does not serve any more"] {
        assert!(error.message.contains(part), "{error:?}");
    }
    // The collection is switched over.
    world.script.lock().held = "";
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &asked).await;
    assert_eq!(frames[0].embeddings_model.as_deref(), Some("fake"));
}

async fn without_a_reranker_the_answer_says_what_decided(place: Place) {
    let world = World::without_reranker(&place, script("Yes [1].")).await;
    for (diversity, told) in [
        (
            "none",
            "the reranker did not answer: the order of the searches decided",
        ),
        (
            "mmr",
            "the reranker did not answer: words decided which chunks fit",
        ),
    ] {
        let ask = DocumentRagQuery {
            rerank_diversity_mode: diversity.into(),
            ..question(true)
        };
        let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &ask).await;
        let (last, before) = frames.split_last().unwrap();
        assert_eq!(
            (&last.error, last.warnings.as_slice()),
            (&None, [told.to_owned()].as_slice())
        );
        assert!(before.iter().all(|frame| frame.warnings.is_empty()));
    }
}

async fn a_library_that_answers_one_by_one_and_knows_the_documents_is_enough(place: Place) {
    let mut script = script("Built in 1429 [1].");
    script.old_library = true;
    let world = World::start(&place, true, script).await;
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &question(false)).await;
    let whole = &frames[0];
    assert_eq!(whole.response.as_deref(), Some("Built in 1429 [1]."));
    let sources: Vec<_> = whole
        .sources
        .iter()
        .map(|s| (s.uri.as_str(), s.title.as_str()))
        .collect();
    assert_eq!(sources, [("urn:doc:library", "Harbours")]);
}

async fn without_chunks_the_answer_says_so_and_cites_nothing(place: Place) {
    let mut script = script("never said");
    script.chunks = Vec::new();
    let world = World::start(&place, true, script).await;
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &question(true)).await;
    let text: String = frames
        .iter()
        .filter_map(|frame| frame.response.clone())
        .collect();
    assert_eq!(
        text,
        "The documents of this collection hold nothing that answers this question."
    );
    assert!(frames.last().unwrap().sources.is_empty());
    assert!(frames.last().unwrap().refused);
    assert_eq!(world.counts.of("prompt"), 1);
}

async fn a_refusal_has_no_number_and_no_source_whatever_the_passages_say(place: Place) {
    for said in [
        "The passages do not answer this question.",
        "The passages do not answer this question [1].",
        "Das steht nirgends [0].",
    ] {
        let mut script = script(said);
        script.chunks = vec![(
            "urn:chunk:1",
            "These passages do not answer the question when the Old Bridge was built.",
        )];
        script.graph = provenance();
        let world = World::start(&place.another().await, true, script).await;
        let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &question(false)).await;
        let whole = &frames[0];
        let text = whole.response.as_deref().unwrap();
        assert!(!text.contains('['), "{text}");
        assert!(whole.refused && whole.citations.is_empty() && whole.sources.is_empty());
        let refused = Term::iri(tg_schemas::vocabulary::tg::REFUSED);
        let flags = whole.explain_triples.iter();
        let flags: Vec<_> = flags
            .filter(|triple| triple.p.as_ref() == Some(&refused))
            .collect();
        assert_eq!(flags.len(), 1, "the synthesis says so: {said}");
        assert_eq!(flags[0].o, Some(Term::literal("true")));
    }
}

/// The model reads them so, and the reranker; what is cited is the chunk alone.
async fn passages_are_read_below_where_they_stand(place: Place) {
    let mut script = script("Built in 1429 [1].");
    script.contexts = vec![
        ("urn:chunk:1", "Guide > Bridges\n| name | year |"),
        ("urn:chunk:gone", "Guide"),
    ];
    let world = World::start(&place, true, script).await;
    let frames: Vec<DocumentRagResponse> = world.ask("document-rag", &question(true)).await;
    let documents = world.prompts.asked.lock().last().unwrap().terms["documents"].clone();
    let documents: Vec<String> = serde_json::from_str(&documents).unwrap();
    let first = format!(
        "(Guide > Bridges; columns: | name | year |)\n{}",
        CHUNKS[0].1
    );
    assert_eq!(documents[0], first);
    assert!(!documents[1].starts_with('('), "{documents:?}");
    assert_eq!(frames.last().unwrap().citations[0].text, CHUNKS[0].1);
}

tg_testkit::on_both_buses!(
    without_a_reranker_the_answer_says_what_decided,
    passages_are_read_below_where_they_stand,
    a_streamed_answer_cites_what_was_retrieved_and_names_its_documents,
    both_searches_count_and_each_alone_when_asked,
    a_question_is_asked_in_the_model_of_the_vectors_that_serve,
    a_library_that_answers_one_by_one_and_knows_the_documents_is_enough,
    without_chunks_the_answer_says_so_and_cites_nothing,
    a_refusal_has_no_number_and_no_source_whatever_the_passages_say,
);
