//! Calls of models as spans, over real sockets.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::telemetry::{Finished, Sampling, Spans, Tracer, Value};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::completer::Completer;
use crate::engine::router::pauses::Policy;
use crate::providers::{Builtin, Ollama, OpenAi};

const TOLD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const BOUND: Duration = Duration::from_secs(60);
const SECRET: &str = "nobody sees this";

fn tracer(to_providers: bool) -> (Tracer, Spans) {
    let sampling = Sampling {
        share: 1.0,
        to_providers,
    };
    Tracer::new(sampling, || 1)
}

fn said(span: &Finished, what: &str) -> Option<String> {
    let found = span.attributes.iter().find(|(name, _)| *name == what);
    found.map(|(_, value)| match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
    })
}

fn request(tracer: &Tracer) -> ChatRequest {
    ChatRequest {
        system: SECRET.to_owned(),
        prompt: SECRET.to_owned(),
        place: tracer.place(Some(TOLD)),
        ..ChatRequest::default()
    }
}

/// Asks to the end; failures are tried once more.
async fn ask(model: Arc<dyn ChatModel>, request: &ChatRequest) -> Result<(), LlmError> {
    let policy = Policy {
        retries: 1,
        base: Duration::from_millis(1),
        most: Duration::from_millis(1),
        asked: None,
    };
    let completer = Completer::single(model, policy);
    let cancel = CancellationToken::new();
    let mut events = completer.open(request, BOUND, &cancel).await?;
    while let Some(event) = events.next().await {
        event?;
    }
    Ok(())
}

#[tokio::test]
async fn a_call_is_a_span_with_its_model_and_its_tokens_and_without_its_texts() {
    let reply = Reply::pieces(["No", "body"]);
    let server = ScriptedModel::start(vec![Rule::always(reply)])
        .await
        .unwrap();
    let openai: Arc<dyn ChatModel> = Arc::new(OpenAi::new(&server.url(), None, "m").unwrap());
    let ollama: Arc<dyn ChatModel> = Arc::new(Ollama::new(&server.root(), "m", None).unwrap());
    for (model, streaming) in [(&openai, true), (&openai, false), (&ollama, true)] {
        let (tracer, mut spans) = tracer(false);
        let asked = ChatRequest {
            streaming,
            ..request(&tracer)
        };
        ask(model.clone(), &asked).await.unwrap();
        let [span] = spans.here(9).try_into().unwrap();
        assert_eq!(
            (span.name.as_str(), span.kind),
            ("chat m", SpanKind::Client)
        );
        let parent = span.parent.map(u64::from_be_bytes);
        assert_eq!(parent, Some(0x00f0_67aa_0ba9_02b7));
        let told = [
            ("gen_ai.provider.name", model.provider()),
            ("gen_ai.request.model", "m"),
            ("gen_ai.response.model", "m"),
        ];
        for (what, expected) in told {
            assert_eq!(said(&span, what).as_deref(), Some(expected), "{what}");
        }
        for tokens in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
            let number: i64 = said(&span, tokens).unwrap().parse().unwrap();
            assert!(number > 0, "{tokens}: {number}");
        }
        let shown = format!("{span:?}");
        assert!(
            !shown.contains(SECRET) && !shown.contains("body"),
            "{shown}"
        );
        assert!(!shown.contains("127.0.0.1"), "{shown}");
        assert_eq!(span.failed, None);
    }
    assert!(server.calls().iter().all(|call| call.traceparent.is_none()));
}

#[tokio::test]
async fn each_attempt_is_a_span_that_says_how_it_failed() {
    let server = ScriptedModel::start(vec![
        Rule::always(Reply::status(503, "nobody sees this")).times(1),
        Rule::always(Reply::status(401, "nobody sees this")),
    ])
    .await
    .unwrap();
    let model = Arc::new(OpenAi::new(&server.url(), None, "m").unwrap());
    let (tracer, mut spans) = tracer(false);
    let error = ask(model, &request(&tracer)).await.unwrap_err();
    let failed: Vec<_> = spans.here(9).iter().map(|span| span.failed).collect();
    assert_eq!(failed, [Some(error.code().as_str()); 2]);
}

#[tokio::test]
async fn a_provider_is_told_of_its_span_where_a_setting_says_so() {
    let server = ScriptedModel::start(vec![Rule::always(Reply::text("yes"))])
        .await
        .unwrap();
    let (tracer, mut spans) = tracer(true);
    let models: [Arc<dyn ChatModel>; 2] = [
        Arc::new(OpenAi::new(&server.url(), None, "m").unwrap()),
        Arc::new(Ollama::new(&server.root(), "m", None).unwrap()),
    ];
    for model in models {
        ask(model, &request(&tracer)).await.unwrap();
    }
    let told: Vec<_> = server
        .calls()
        .into_iter()
        .map(|call| call.traceparent)
        .collect();
    let spans: Vec<_> = spans
        .here(9)
        .iter()
        .map(|span| Some(span.context.to_string()))
        .collect();
    assert_eq!(told, spans);
    assert!(
        told.iter()
            .flatten()
            .all(|told| told[3..35] == TOLD[3..35] && told != TOLD)
    );
}

#[tokio::test]
async fn the_builtin_reader_is_no_call_of_another_server() {
    let (tracer, mut spans) = tracer(true);
    ask(Arc::new(Builtin), &request(&tracer)).await.unwrap();
    let span = spans.here(9).remove(0);
    assert_eq!(span.kind, SpanKind::Internal);
    assert_eq!(
        said(&span, "gen_ai.provider.name").as_deref(),
        Some("builtin")
    );
}

#[tokio::test]
async fn outside_of_a_trace_nothing_is_recorded() {
    let (_tracer, mut spans) = tracer(true);
    let server = ScriptedModel::start(vec![Rule::always(Reply::text("yes"))])
        .await
        .unwrap();
    let model = Arc::new(OpenAi::new(&server.url(), None, "m").unwrap());
    ask(model, &ChatRequest::default()).await.unwrap();
    assert_eq!(spans.here(9), []);
    assert_eq!(server.calls()[0].traceparent, None);
}

#[tokio::test]
async fn an_answer_that_nobody_reads_to_its_end_is_cancelled() {
    let reply = Reply::pieces(["one ", "two ", "three"]);
    let server = ScriptedModel::start(vec![Rule::always(reply)])
        .await
        .unwrap();
    let model = OpenAi::new(&server.url(), None, "m").unwrap();
    let (tracer, mut spans) = tracer(false);
    let asked = ChatRequest {
        streaming: true,
        ..request(&tracer)
    };
    let mut events = chat(&model, &asked, "near").await.unwrap();
    events.next().await.unwrap().unwrap();
    drop(events);
    let span = spans.here(9).remove(0);
    assert_eq!(span.failed, Some("cancelled"));
    assert_eq!(said(&span, "threadgraph.backend").as_deref(), Some("near"));
}
