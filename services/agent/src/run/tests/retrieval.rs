//! Tools that ask retrieval and rows, with the services played by the test.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tg_mesh::{Cx, Processor};
use tg_schemas::msg::*;
use tg_schemas::processors;
use tg_schemas::vocabulary::tg;
use tg_schemas::{Class, Error, ErrorCode, Reply, Term, Triple};
use tg_testkit::fakes::{Embeddings, Played};
use tg_testkit::place::Place;

use super::budgets::used as used_of;
use super::replayed::{asks, run as run_recorded, same_again};
use super::world::{Say, World, ask_for, question, rows, shown, topic, values};
use crate::engine::usage::Scope;

fn bridge() -> Citation {
    Citation {
        n: 1,
        document: "urn:doc".into(),
        title: "Bridges".into(),
        page: 3,
        chunk: "urn:chunk".into(),
        text: "The oldest is the Old Bridge.".into(),
        cites: "urn:edge".into(),
    }
}

fn entry(id: &str) -> Vec<Triple> {
    let triple = Triple::new(Term::iri(id), Term::iri("urn:p"), Term::literal("x"));
    vec![triple.in_graph("urn:graph:retrieval")]
}

fn graph_rag() -> Arc<Played<GraphRagQuery, GraphRagResponse>> {
    Played::new(|_, ask: GraphRagQuery| {
        assert_eq!(
            (ask.query.as_str(), ask.collection.as_str()),
            ("Which?", "bridges")
        );
        assert!(ask.parent_uri.ends_with("/i1"), "{}", ask.parent_uri);
        let explained = ["urn:question", "urn:synthesis"].map(|id| GraphRagResponse {
            message_type: "explain".into(),
            explain_id: Some(id.into()),
            explain_triples: entry(id),
            ..GraphRagResponse::default()
        });
        let pieces = ["The Old ", "Bridge [1]."].map(|piece| GraphRagResponse {
            message_type: "chunk".into(),
            response: piece.into(),
            ..GraphRagResponse::default()
        });
        let end = GraphRagResponse {
            end_of_session: true,
            citations: vec![bridge()],
            in_token: Some(7),
            sources: vec![Source {
                uri: "urn:doc".into(),
                title: "Bridges".into(),
            }],
            ..GraphRagResponse::default()
        };
        Ok([&explained[..], &pieces[..], &[end]].concat())
    })
}

fn document_rag() -> Arc<Played<DocumentRagQuery, DocumentRagResponse>> {
    Played::new(|_, _| {
        Ok(DocumentRagResponse {
            response: Some("From documents.".into()),
            end_of_session: true,
            in_token: Some(5),
            ..DocumentRagResponse::default()
        })
    })
}

fn structured_query() -> Arc<Played<StructuredQueryRequest, StructuredQueryResponse>> {
    Played::new(|_, _| {
        Ok(StructuredQueryResponse {
            data: "{\"n\": 1}".into(),
            ..StructuredQueryResponse::default()
        })
    })
}

fn row_embeddings() -> Arc<Played<RowEmbeddingsRequest, RowEmbeddingsResponse>> {
    Played::new(|_, ask: RowEmbeddingsRequest| {
        assert_eq!((ask.schema_name.as_str(), ask.limit), ("people", 3));
        Ok(RowEmbeddingsResponse {
            matches: vec![RowIndexMatch {
                index_name: "name".into(),
                index_value: vec!["Ann".into()],
                score: 0.5,
                ..RowIndexMatch::default()
            }],
            ..RowEmbeddingsResponse::default()
        })
    })
}

/// The chunks of a run that uses one tool, and the run's surroundings.
async fn used(place: &Place, tool: Value, call: &'static str) -> (World, Vec<AgentResponse>) {
    used_saying(place, tool, call, "Final Answer: done").await
}

async fn used_saying(
    place: &Place,
    tool: Value,
    call: &'static str,
    answer: &'static str,
) -> (World, Vec<AgentResponse>) {
    let script = [Say::Text(call), Say::Text(answer)];
    let services = [
        ("graph-rag", "graph-rag"),
        ("document-rag", "document-rag"),
        ("structured-query", "structured-query"),
        ("embeddings", "embeddings"),
        ("row-embeddings-query", "row-embeddings"),
    ];
    let more = vec![
        Processor::new(processors::graph_rag::PROCESSOR)
            .serves(processors::graph_rag::REQUEST, graph_rag()),
        Processor::new(processors::document_rag::PROCESSOR)
            .serves(processors::document_rag::REQUEST, document_rag()),
        Processor::new(processors::structured_query::PROCESSOR)
            .serves(processors::structured_query::REQUEST, structured_query()),
        Processor::new(processors::embeddings::PROCESSOR).serves(
            processors::embeddings::REQUEST,
            Embeddings::new("", |_| vec![1.0]),
        ),
        Processor::new(processors::row_embeddings_query::PROCESSOR)
            .serves(processors::row_embeddings_query::REQUEST, row_embeddings()),
    ];
    let rows = rows();
    for (processor, base) in services {
        let request = topic(Class::Request, base).to_string();
        ask_for(&rows, &format!("{processor}-request"), processor, &request);
    }
    rows.put("tool", "t", &tool.to_string());
    let world = World::among(place, script, rows, more).await;
    world
        .attached(&[
            "graph-rag",
            "document-rag",
            "structured-query",
            "embeddings",
            "row-embeddings-query",
        ])
        .await;
    let chunks = world.run(&question("q", false)).await;
    (world, chunks)
}

fn observation(chunks: &[AgentResponse]) -> &str {
    let seen = chunks
        .iter()
        .find(|chunk| chunk.message_type == "observation");
    &seen.expect("an observation").content
}

async fn knowledge_is_asked_for_and_its_trace_stands_before_the_observation(place: Place) {
    let tool = json!({"name": "know", "type": "knowledge-query", "collection": "bridges"});
    let call = "Action: know\nArgs: {\"question\": \"Which?\"}";
    let (world, chunks) = used(&place.another().await, tool, call).await;
    let expected = "The Old Bridge [1].\n\nSources:\n- Bridges (urn:doc)";
    assert_eq!(observation(&chunks), expected);
    let explained: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| chunk.explain_id.as_deref())
        .collect();
    let at = |id: &str| {
        explained
            .iter()
            .position(|known| known.ends_with(id))
            .unwrap()
    };
    assert!(at("/i1") < at("urn:question") && at("urn:question") < at("urn:synthesis"));
    assert!(at("urn:synthesis") < at("/i1/observation"));
    let seen = chunks
        .iter()
        .position(|c| c.message_type == "observation")
        .unwrap();
    let last = chunks
        .iter()
        .position(|c| c.explain_id.as_deref() == Some("urn:synthesis"));
    assert!(last.unwrap() < seen);
    world.ended().await;
    let derived = "http://www.w3.org/ns/prov#wasDerivedFrom";
    let synthesis = "urn:synthesis".to_owned();
    let stored = world
        .trace(|all| values(all, derived).contains(&synthesis))
        .await;
    // What the tool itself stores is not stored again.
    assert!(
        !stored
            .iter()
            .any(|triple| triple.s == Some(Term::iri("urn:question")))
    );
    let end = chunks.last().unwrap();
    assert_eq!(end.in_token, Some(207), "the tool's own calls count");
    // The tool's own entities are the place for them: the run's do not say them again.
    assert_eq!(values(&shown(&chunks), tg::IN_TOKEN), ["100", "100"]);
}

/// GraphRAG fails after it had asked a model.
fn lost() -> Arc<Played<GraphRagQuery, GraphRagResponse>> {
    Played::new(|_, _| {
        Ok(GraphRagResponse {
            in_token: Some(7),
            out_token: Some(2),
            ..GraphRagResponse::failure(Error::new(ErrorCode::Internal, "the graph is away"))
        })
    })
}

async fn what_models_took_counts_of_a_tool_that_failed(place: Place) {
    let rows = rows();
    let request = topic(Class::Request, "graph-rag").to_string();
    ask_for(&rows, "graph-rag-request", "graph-rag", &request);
    rows.put(
        "tool",
        "t",
        &json!({"name": "know", "type": "knowledge-query"}).to_string(),
    );
    let rag = processors::graph_rag::PROCESSOR;
    let more = vec![Processor::new(rag).serves(processors::graph_rag::REQUEST, lost())];
    let script = [
        Say::Text("Action: know\nArgs: {\"question\": \"Which?\"}"),
        Say::Text("Final Answer: done"),
    ];
    let world = World::among(&place, script, rows, more).await;
    world.attached(&["graph-rag"]).await;
    let heard = run_recorded(&world, question("q", false), asks("q", false)).await;
    assert!(observation(&heard).contains("the graph is away"));
    let end = heard.last().unwrap();
    assert_eq!((end.in_token, end.out_token), (Some(207), Some(22)));
    same_again(&world, "q", &heard).await;
}

/// What is likely by the characters of question and answer binds the run, in tokens and in money; the answer shows none of it.
async fn a_tool_whose_provider_reports_no_tokens_uses_the_budget_up(place: Place) {
    let rows = rows();
    let request = topic(Class::Request, "document-rag").to_string();
    ask_for(&rows, "document-rag-request", "document-rag", &request);
    let tool = json!({"name": "know", "type": "document-query"});
    rows.put("tool", "t", &tool.to_string());
    rows.put("agent", "budget", r#"{"tokens": 900}"#);
    let price = r#"{"input_price": 0.001, "output_price": 0.001}"#;
    rows.put("token-cost", "scripted", price);
    let silent: Arc<Played<DocumentRagQuery, DocumentRagResponse>> = Played::new(|_, _| {
        Ok(DocumentRagResponse {
            response: Some("x".repeat(4_000)),
            end_of_session: true,
            ..DocumentRagResponse::default()
        })
    });
    let rag = processors::document_rag::PROCESSOR;
    let more = vec![Processor::new(rag).serves(processors::document_rag::REQUEST, silent)];
    let script = [
        Say::Text("Action: know\nArgs: {\"question\": \"Which?\"}"),
        Say::Text("Final Answer: done"),
    ];
    let world = World::among(&place, script, rows, more).await;
    world.attached(&["document-rag"]).await;
    let chunks = world.run(&question("q", false)).await;
    let end = chunks.last().unwrap();
    // Of the model 110, and a fourth of the characters.
    let why = "Stopped by its budget (tokens): 1112 of 900 tokens";
    assert!(end.content.starts_with(why), "{}", end.content);
    assert_eq!((world.calls(), end.in_token), (1, Some(100)));
    let tools = used_of(&world, Scope::Tool).await;
    assert_eq!(tools, [("know".to_owned(), [0, 1, 1002, 1002])]);
}

/// What GraphRAG asked died over it, twice. Its answer is kept for some seconds, so it is asked another question each time.
async fn a_tool_that_broke_off_is_called_anew_and_each_call_counts_once(place: Place) {
    let rows = rows();
    let request = topic(Class::Request, "graph-rag").to_string();
    ask_for(&rows, "graph-rag-request", "graph-rag", &request);
    let tool = json!({"name": "know", "type": "knowledge-query"});
    rows.put("tool", "t", &tool.to_string());
    let left = AtomicUsize::new(2);
    let rag: Arc<Played<GraphRagQuery, GraphRagResponse>> = Played::new(move |_: &Cx, _| {
        let breaks_off = left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok();
        let answer = match breaks_off {
            true => GraphRagResponse::failure(Error::new(ErrorCode::Interrupted, "by a kill")),
            false => GraphRagResponse {
                response: "The Old Bridge.".into(),
                end_of_session: true,
                ..GraphRagResponse::default()
            },
        };
        Ok(GraphRagResponse {
            in_token: Some(7),
            out_token: Some(2),
            ..answer
        })
    });
    let served = Processor::new(processors::graph_rag::PROCESSOR)
        .serves(processors::graph_rag::REQUEST, rag.clone());
    let script = [
        Say::Text("Action: know\nArgs: {\"question\": \"Which?\"}"),
        Say::Text("Final Answer: done"),
    ];
    let world = World::among(&place, script, rows, vec![served]).await;
    world.attached(&["graph-rag"]).await;
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(observation(&chunks), "The Old Bridge.");
    let end = chunks.last().unwrap();
    assert_eq!((end.in_token, end.out_token), (Some(221), Some(26)));
    let ids = rag.ids.lock().clone();
    let different: BTreeSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (3, 3), "{ids:?}");
}

async fn an_answer_names_what_its_tools_cite_and_a_refusal_nothing(place: Place) {
    let tool = || json!({"name": "know", "type": "knowledge-query", "collection": "bridges"});
    let call = "Action: know\nArgs: {\"question\": \"Which?\"}";
    let said = |chunks: &[AgentResponse]| {
        let pieces = chunks.iter().filter(|chunk| chunk.message_type == "answer");
        pieces
            .map(|chunk| chunk.content.clone())
            .collect::<String>()
    };
    let answer = "Final Answer: It is the Old Bridge [1]. So they say [4].";
    let (world, chunks) = used_saying(&place.another().await, tool(), call, answer).await;
    assert_eq!(said(&chunks), "It is the Old Bridge [1]. So they say.");
    let end = chunks.last().unwrap();
    assert_eq!(end.citations, [bridge()]);
    assert!(end.trace.starts_with("urn:trustgraph:agent:") && !end.refused);
    world.ended().await;
    let cites = tg_schemas::vocabulary::tg::CITES;
    let stored = world
        .trace(|all| values(all, cites).contains(&"urn:edge".to_owned()))
        .await;
    let chunk = values(&stored, tg_schemas::vocabulary::tg::DOCUMENT);
    assert!(chunk.contains(&"urn:chunk".to_owned()), "{chunk:?}");

    let answer = "Final Answer: The passages do not say which bridge is the oldest [1].";
    let (_, chunks) = used_saying(&place.another().await, tool(), call, answer).await;
    assert_eq!(
        said(&chunks),
        "The passages do not say which bridge is the oldest."
    );
    let end = chunks.last().unwrap();
    assert!(end.refused && end.citations.is_empty());
}

async fn documents_and_rows_are_asked_too(place: Place) {
    let ask = "Action: t\nArgs: {\"question\": \"Which?\"}";
    let tool = |kind: &str| json!({"name": "t", "type": kind});
    let (_, chunks) = used(&place.another().await, tool("document-query"), ask).await;
    assert_eq!(observation(&chunks), "From documents.");
    // It left no trace.
    assert!(values(&shown(&chunks), tg::IN_TOKEN).contains(&"5".to_owned()));
    let (_, chunks) = used(&place.another().await, tool("structured-query"), ask).await;
    assert_eq!(observation(&chunks), "{\n  \"n\": 1\n}");
    let search = json!({
        "name": "t", "type": "row-embeddings-query", "schema-name": "people", "limit": 3,
    });
    let (_, chunks) = used(
        &place.another().await,
        search,
        "Action: t\nArgs: {\"query\": \"Ann\"}",
    )
    .await;
    assert_eq!(
        observation(&chunks),
        "Matching records:\n- name: Ann (score: 0.500)"
    );
}

tg_testkit::on_both_buses!(
    knowledge_is_asked_for_and_its_trace_stands_before_the_observation,
    documents_and_rows_are_asked_too,
    an_answer_names_what_its_tools_cite_and_a_refusal_nothing,
    what_models_took_counts_of_a_tool_that_failed,
    a_tool_whose_provider_reports_no_tokens_uses_the_budget_up,
    a_tool_that_broke_off_is_called_anew_and_each_call_counts_once,
);
