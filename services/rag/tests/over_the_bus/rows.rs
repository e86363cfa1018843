//! Questions over rows, descriptions of data, and the reranker by itself.

use tg_schemas::Error;
use tg_schemas::msg::*;
use tg_testkit::place::Place;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{Script, World};

fn script() -> Script {
    Script {
        prompts: [
            ("schema-selection", r#"["orders"]"#.to_owned()),
            (
                "graphql-generation",
                r#"{"query": "query($least: Int) { orders { total } }", "variables": {"least": 3}}"#
                    .to_owned(),
            ),
            ("diagnose-csv", r#"{"format": {"type": "csv"}, "mappings": []}"#.to_owned()),
        ]
        .into(),
        rows: r#"{"orders": [{"total": 5}]}"#.into(),
        ..Script::default()
    }
}

async fn a_question_becomes_a_query_with_typed_variables_and_is_answered(place: Place) {
    let world = World::start(&place, false, script()).await;
    let ask = QuestionToStructuredQueryRequest {
        question: "Which orders are large?".into(),
        max_results: 7,
    };
    let found: Vec<QuestionToStructuredQueryResponse> = world.ask("nlp-query", &ask).await;
    let query = &found[0];
    assert_eq!(
        query.graphql_query,
        "query($least: Int) { orders(limit: 7) { total } }"
    );
    assert_eq!(query.variables["least"], serde_json::json!(3));
    assert_eq!(query.detected_schemas, ["orders"]);
    assert_eq!(query.confidence, 0.8);
    let ask = StructuredQueryRequest {
        question: "Which orders are large?".into(),
        collection: String::new(),
    };
    let found: Vec<StructuredQueryResponse> = world.ask("structured-query", &ask).await;
    assert_eq!(found[0].data, r#"{"orders": [{"total": 5}]}"#);
    assert_eq!(found[0].errors, ["odd (path: [orders])"]);
    world.script.lock().failing = vec!["rows"];
    let found: Vec<StructuredQueryResponse> = world.ask("structured-query", &ask).await;
    assert_eq!(
        found[0].error.as_ref().unwrap().kind,
        "structured-query-error"
    );
}

async fn data_is_diagnosed_and_faults_have_their_types(place: Place) {
    let world = World::start(&place, false, script()).await;
    let ask = |operation: &str, sample: &str| StructuredDataDiagnosisRequest {
        operation: operation.into(),
        sample: sample.into(),
        ..StructuredDataDiagnosisRequest::default()
    };
    let answer = async |ask: StructuredDataDiagnosisRequest| {
        let found: Vec<StructuredDataDiagnosisResponse> = world.ask("structured-diag", &ask).await;
        found.into_iter().next().unwrap()
    };
    let found = answer(ask("detect-type", "a;b\n1;2")).await;
    assert_eq!(
        (found.detected_type.as_str(), found.confidence),
        ("csv", 0.8)
    );
    assert!(found.metadata["csv_options"].contains("\"delimiter\":\";\""));
    let found = answer(ask("diagnose", "a;b\n1;2")).await;
    assert_eq!(found.operation, "diagnose");
    assert!(found.descriptor.contains("mappings"));
    let found = answer(ask("schema-selection", "a;b\n1;2")).await;
    assert_eq!(found.schema_matches, ["orders"]);
    let kind = |found: StructuredDataDiagnosisResponse| -> String {
        found
            .error
            .map(|error: Error| error.kind)
            .unwrap_or_default()
    };
    assert_eq!(kind(answer(ask("no-such", "x")).await), "bad-operation");
    assert_eq!(kind(answer(ask("detect-type", " ")).await), "bad-request");
    assert_eq!(
        kind(answer(ask("generate-descriptor", "x")).await),
        "bad-request"
    );
    let unknown = StructuredDataDiagnosisRequest {
        r#type: "csv".into(),
        schema_name: "no such".into(),
        ..ask("generate-descriptor", "x")
    };
    assert_eq!(kind(answer(unknown).await), "not-found");
}

async fn texts_are_ranked_by_words_and_meaning(place: Place) {
    let world = World::start(&place, false, script()).await;
    let document = |id: &str, text: &str| RerankerDocument {
        document_id: id.into(),
        document_text: text.into(),
    };
    let ask = RerankerRequest {
        queries: vec![RerankerQuery {
            query_id: "q".into(),
            query_text: "lights of the coast".into(),
        }],
        documents: vec![
            document("bridge", "A bridge"),
            document("tower", "The lighthouse"),
            document("none", "Nothing"),
        ],
        limit: 2,
        ..RerankerRequest::default()
    };
    let found: Vec<RerankerResponse> = world.ask("reranker", &ask).await;
    let ids: Vec<_> = found[0]
        .results
        .iter()
        .map(|r| r.document_id.as_str())
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], "tower");
    assert_eq!(found[0].results[0].query_id, "q");
    let too_many = RerankerRequest {
        queries: vec![RerankerQuery::default(); 51],
        ..ask
    };
    let found: Vec<RerankerResponse> = world.ask("reranker", &too_many).await;
    assert_eq!(found[0].error.as_ref().unwrap().kind, "too-large");
}

/// A server that puts the last of three texts first. It answers as long as the test takes.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/rerank", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
            let body = r#"[{"index":2,"score":0.9},{"index":0,"score":0.1}]"#;
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length:";
            let answer = format!("{head} {}\r\n\r\n{body}", body.len());
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    url
}

/// It is asked at a private address only where the operator allows that, and with no credential that is not listed.
async fn a_service_of_the_workspace_ranks(place: Place) {
    let document = |id: &str| RerankerDocument {
        document_id: id.into(),
        document_text: format!("text of {id}"),
    };
    let ask = RerankerRequest {
        queries: vec![RerankerQuery {
            query_id: "q".into(),
            query_text: "first".into(),
        }],
        documents: vec![document("first"), document("second"), document("third")],
        limit: 2,
        settings: Some(ModelSettings {
            service: Some(ModelService {
                provider: "tei".into(),
                url: server().await,
                ..ModelService::default()
            }),
            model: "order-1".into(),
            ..ModelSettings::default()
        }),
    };
    let options = tg_rag::Options {
        private_addresses: true,
        ..tg_rag::Options::default()
    };
    let near = World::with(&place.another().await, false, script(), options).await;
    let found: Vec<RerankerResponse> = near.ask("reranker", &ask).await;
    let results = found[0].results.iter();
    let ids: Vec<_> = results.map(|one| one.document_id.as_str()).collect();
    assert_eq!(ids, ["third", "first"]);
    // It counts for who asked, and a budget may refuse it.
    let calls = |operation: &str| {
        let asked = near.ledger.asked.lock();
        let asked = asked.iter().filter(|ask| ask.operation == operation);
        asked.flat_map(|ask| ask.calls.clone()).collect::<Vec<_>>()
    };
    let hosted = async || near.flow.mesh.presence().hosted("agent-manager");
    near.flow.until(hosted).await;
    let before = calls("settle-call").len();
    let found: Vec<RerankerResponse> = near.ask("reranker", &ask).await;
    assert_eq!(found[0].error, None);
    near.flow
        .until(async || calls("settle-call").len() > before)
        .await;
    let counted = calls("settle-call").pop().unwrap();
    // Three texts of 13 or 14 characters, each with a query of five.
    assert_eq!((counted.model.as_str(), counted.in_token), ("order-1", 13));
    near.script.lock().failing = vec!["budget"];
    let found: Vec<RerankerResponse> = near.ask("reranker", &ask).await;
    assert_eq!(found[0].error.as_ref().unwrap().kind, "busy");
    near.script.lock().failing = Vec::new();
    let mut named = ask.clone();
    let settings = named.settings.as_mut().unwrap();
    settings.service.as_mut().unwrap().credential = "env:PATH".into();
    let found: Vec<RerankerResponse> = near.ask("reranker", &named).await;
    assert_eq!(found[0].error.as_ref().unwrap().kind, "bad-request");
    let far = World::start(&place, false, script()).await;
    let found: Vec<RerankerResponse> = far.ask("reranker", &ask).await;
    assert_eq!(found[0].error.as_ref().unwrap().kind, "bad-request");
}

tg_testkit::on_both_buses!(
    a_service_of_the_workspace_ranks,
    a_question_becomes_a_query_with_typed_variables_and_is_answered,
    data_is_diagnosed_and_faults_have_their_types,
    texts_are_ranked_by_words_and_meaning,
);
