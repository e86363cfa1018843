//! Every dialect against the scripted model, over real sockets.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tg_provider_http::{Cause, Outage, Secret};
use tg_schemas::ErrorCode;
use tg_schemas::limits::MODEL_NAME;
use tg_schemas::msg::{ChatTool, ChatTurn};
use tg_testkit::model::{End, Reply, Rule, ScriptedModel};
use tokio_util::sync::CancellationToken;

use super::reading::Dialect;
use super::{Anthropic, Ollama, OpenAi, anthropic, ollama, openai};
use crate::completer::Completer;
use crate::engine::router::pauses::Policy;
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatModel, ChatRequest, Completion, Dialog, Format};

const BOUND: Duration = Duration::from_secs(60);
const KEY: &str = "sk-very-secret";

fn providers(server: &ScriptedModel) -> Vec<Arc<dyn ChatModel>> {
    let key = Secret::new(KEY);
    vec![
        Arc::new(OpenAi::new(&server.url(), Some(key.clone()), "m").unwrap()),
        Arc::new(Anthropic::new(&server.root(), key, "m").unwrap()),
        Arc::new(Ollama::new(&server.root(), "m", Some(4096)).unwrap()),
    ]
}

fn completer(model: &Arc<dyn ChatModel>) -> Completer {
    let policy = Policy {
        retries: 2,
        base: Duration::from_millis(1),
        most: Duration::from_secs(2),
        asked: None,
    };
    Completer::single(model.clone(), policy)
}

fn ask(streaming: bool) -> ChatRequest {
    ChatRequest {
        system: "be brief".to_owned(),
        prompt: "hello there".to_owned(),
        temperature: Some(0.25),
        streaming,
        ..ChatRequest::default()
    }
}

async fn run(
    model: &Arc<dyn ChatModel>,
    request: &ChatRequest,
) -> Result<(Vec<String>, Completion), (Vec<String>, LlmError)> {
    let mut pieces = Vec::new();
    let cancel = CancellationToken::new();
    let mut events = match completer(model).open(request, BOUND, &cancel).await {
        Ok(events) => events,
        Err(error) => return Err((pieces, error)),
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(ChatEvent::Delta(piece)) => pieces.push(piece),
            Ok(ChatEvent::Thinking(_)) => {}
            Ok(ChatEvent::Done(completion)) => return Ok((pieces, completion)),
            Err(error) => return Err((pieces, error)),
        }
    }
    panic!("the answer has no end");
}

#[tokio::test]
async fn every_dialect_answers_streamed_and_whole_with_usage() {
    let reply = Reply::pieces(["Grüße, ", "\n", "world ✓"]);
    let server = ScriptedModel::start(vec![Rule::always(reply)])
        .await
        .unwrap();
    for model in providers(&server) {
        for streaming in [true, false] {
            let (pieces, completion) = run(&model, &ask(streaming)).await.unwrap();
            assert_eq!(pieces.concat(), "Grüße, \nworld ✓", "{}", model.provider());
            assert_eq!(pieces.len(), if streaming { 3 } else { 1 });
            let expected = Completion {
                model: "m".to_owned(),
                in_token: Some(5),
                out_token: Some(7),
                truncated: false,
                counts: completion.counts,
                nanodollars: None,
                characters: 0,
                backend: String::new(),
                attempts: 1,
                tool_calls: Vec::new(),
            };
            assert_eq!(completion, expected, "{} {streaming}", model.provider());
        }
    }
    for call in server.calls() {
        let body = &call.body;
        let temperature = body
            .get("temperature")
            .unwrap_or(&body["options"]["temperature"]);
        assert_eq!(temperature, &json!(0.25));
        assert!(call.finished);
    }
    let calls = server.calls();
    assert_eq!(
        calls[0].authorization.as_deref(),
        Some("Bearer sk-very-secret")
    );
    assert_eq!(calls[2].authorization.as_deref(), Some(KEY));
    assert_eq!(calls[4].body["options"]["num_ctx"], 4096);
}

#[tokio::test]
async fn a_schema_reaches_every_provider() {
    let reply = Reply::pieces([r#"{"a":"#, "1}"]);
    let server = ScriptedModel::start(vec![Rule::always(reply)])
        .await
        .unwrap();
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let schema = schema.as_object().unwrap().clone();
    for model in providers(&server) {
        for streaming in [true, false] {
            let request = ChatRequest {
                format: Format::Schema(schema.clone()),
                max_tokens: Some(9),
                ..ask(streaming)
            };
            let (pieces, _) = run(&model, &request).await.unwrap();
            assert_eq!(pieces.concat(), r#"{"a":1}"#, "{}", model.provider());
        }
    }
    let calls = server.calls();
    let sent = json!(schema);
    assert_eq!(
        calls[0].body["response_format"]["json_schema"]["schema"],
        sent
    );
    assert_eq!(calls[2].body["tools"][0]["input_schema"], sent);
    assert_eq!(calls[4].body["format"], sent);
    // So does the most that they write.
    assert_eq!(calls[0].body["max_tokens"], 9);
    assert_eq!(calls[2].body["max_tokens"], 9);
    assert_eq!(calls[4].body["options"]["num_predict"], 9);
}

/// The model that an answer names.
fn named(mut answer: impl Dialect, said: &Value) -> String {
    answer.read(&said.to_string()).unwrap();
    answer.completion().model
}

#[test]
fn an_answer_keeps_the_asked_name_where_the_provider_sends_one_that_is_too_long() {
    for length in [MODEL_NAME, MODEL_NAME + 1] {
        let name = "n".repeat(length);
        let expected = |asked: &str| match length {
            MODEL_NAME => name.clone(),
            _ => asked.to_owned(),
        };
        let piece = json!({"model": name, "choices": [{"delta": {"content": "x"}}]});
        let end = json!({"model": name, "choices": [], "usage": {}});
        for said in [piece, end] {
            assert_eq!(named(openai::Answer::new("m"), &said), expected("m"));
        }
        let start = json!({"type": "message_start", "message": {"model": name}});
        assert_eq!(named(anthropic::Answer::new("m"), &start), expected("m"));
        let line = json!({"model": name, "message": {"content": "x"}});
        assert_eq!(named(ollama::Answer::default(), &line), expected(""));
    }
}

/// A schema is a forced call of a tool there, which would leave out the tools of the chat.
#[tokio::test]
async fn anthropic_refuses_a_schema_where_a_tool_may_be_called_and_others_are_sent_both() {
    let server = ScriptedModel::start(vec![Rule::always(Reply::text("{}"))])
        .await
        .unwrap();
    let schema = json!({"type": "object", "properties": {}});
    let request = |choice: Option<&str>| ChatRequest {
        format: Format::Schema(schema.as_object().unwrap().clone()),
        dialog: Some(Arc::new(Dialog {
            turns: vec![ChatTurn {
                role: "user".to_owned(),
                content: "go".to_owned(),
                ..ChatTurn::default()
            }],
            tools: vec![ChatTool {
                name: "add".to_owned(),
                ..ChatTool::default()
            }],
            tool_choice: choice.map(str::to_owned),
            ..Dialog::default()
        })),
        ..ask(false)
    };
    let models = providers(&server);
    for choice in [None, Some("auto"), Some("add")] {
        let (_, error) = run(&models[1], &request(choice)).await.unwrap_err();
        assert_eq!(error, LlmError::SchemaAndTools, "{choice:?}");
    }
    assert_eq!(server.count(), 0);
    let told = tg_schemas::Error::from(LlmError::SchemaAndTools);
    assert_eq!(told.code(), ErrorCode::BadRequest);
    let says = |word: &str| told.message.contains(word);
    assert!(says("response_format") && says("tools"), "{told:?}");
    run(&models[1], &request(Some("none"))).await.unwrap();
    run(&models[0], &request(None)).await.unwrap();
    let calls = server.calls();
    assert_eq!(calls[0].body["tool_choice"]["name"], "answer");
    assert_eq!(calls[1].body["tools"][0]["function"]["name"], "add");
    assert_eq!(calls[1].body["response_format"]["type"], "json_schema");
}

#[tokio::test]
async fn models_are_listed() {
    let server = ScriptedModel::start(Vec::new()).await.unwrap();
    for model in providers(&server) {
        let models = model.list_models().await.unwrap();
        let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!(ids, ["scripted", "scripted-large"], "{}", model.provider());
    }
}

#[tokio::test]
async fn too_many_requests_are_retried_after_the_pause_asked_for() {
    let server = ScriptedModel::start(Vec::new()).await.unwrap();
    for model in providers(&server) {
        server.set_rules(vec![
            Rule::always(Reply::rate_limited(1)).times(1),
            Rule::always(Reply::text("ok")),
        ]);
        let before = server.count();
        let began = std::time::Instant::now();
        let (pieces, _) = run(&model, &ask(true)).await.unwrap();
        assert_eq!(pieces, ["ok"]);
        assert_eq!(server.count() - before, 2);
        assert!(
            began.elapsed() >= Duration::from_secs(1),
            "Retry-After is honoured"
        );
    }
}

#[tokio::test]
async fn refusals_are_typed_bounded_and_tell_no_secret() {
    let secret = r#"{"error":{"message":"key sk-leak at db.internal:5432 refused","code":"x"}}"#;
    let server = ScriptedModel::start(Vec::new()).await.unwrap();
    let cases = [
        (401, LlmError::Auth(Some(401)), 1),
        (404, LlmError::UnknownModel(Some(404)), 1),
        (400, LlmError::BadRequest(Some(400)), 1),
        (500, LlmError::Unavailable(Outage::Status(500)), 3),
        (
            429,
            LlmError::RateLimited {
                retry_after: None,
                status: Some(429),
            },
            3,
        ),
    ];
    for model in providers(&server) {
        for (status, expected, calls) in &cases {
            server.set_rules(vec![Rule::always(Reply::status(*status, secret))]);
            let before = server.count();
            let (_, error) = run(&model, &ask(true)).await.unwrap_err();
            assert_eq!(&error, expected, "{} {status}", model.provider());
            assert_eq!(server.count() - before, *calls, "{status}");
            let shown = format!("{error:?} {:?}", tg_schemas::Error::from(error.clone()));
            for word in ["leak", "internal:", "127.0.0.1", KEY, "http"] {
                assert!(!shown.contains(word), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn a_break_after_the_first_piece_is_told_and_not_repeated() {
    let reply = Reply::pieces(["half "]).ending(End::Disconnect);
    let server = ScriptedModel::start(vec![Rule::always(reply)])
        .await
        .unwrap();
    for model in providers(&server) {
        let before = server.count();
        let (pieces, error) = run(&model, &ask(true)).await.unwrap_err();
        assert_eq!(pieces, ["half "]);
        assert_eq!(error, LlmError::BrokenOff, "{}", model.provider());
        assert_eq!(server.count() - before, 1);
    }
}

#[tokio::test]
async fn dropping_or_cancelling_closes_the_providers_socket() {
    let hang = Reply::pieces(["one "]).ending(End::Hang);
    let server = ScriptedModel::start(Vec::new()).await.unwrap();
    let mut closed = 0;
    for model in providers(&server) {
        server.set_rules(vec![Rule::always(hang.clone())]);
        let cancel = CancellationToken::new();
        let mut events = completer(&model)
            .open(&ask(true), BOUND, &cancel)
            .await
            .unwrap();
        assert_eq!(
            events.next().await,
            Some(Ok(ChatEvent::Delta("one ".into())))
        );
        drop(events);
        closed += 1;
        assert!(
            server.wait_closed(closed, BOUND).await,
            "drop, {}",
            model.provider()
        );

        let mut events = completer(&model)
            .open(&ask(true), BOUND, &cancel)
            .await
            .unwrap();
        assert!(events.next().await.is_some());
        cancel.cancel();
        assert_eq!(events.next().await, Some(Err(LlmError::Cancelled)));
        assert_eq!(events.next().await, None);
        closed += 1;
        assert!(
            server.wait_closed(closed, BOUND).await,
            "cancel, {}",
            model.provider()
        );

        server.set_rules(vec![Rule::always(Reply::Silence)]);
        let cancel = CancellationToken::new();
        let calls = server.count();
        let opening = completer(&model);
        let request = ask(false);
        let opening = opening.open(&request, BOUND, &cancel);
        let cancelling = async {
            assert!(server.wait_calls(calls + 1, BOUND).await);
            cancel.cancel();
        };
        let (opened, ()) = tokio::join!(opening, cancelling);
        assert_eq!(opened.err(), Some(LlmError::Cancelled));
        closed += 1;
        assert!(
            server.wait_closed(closed, BOUND).await,
            "silence, {}",
            model.provider()
        );
    }
}

#[tokio::test]
async fn the_deadline_ends_a_hanging_answer() {
    let hang = Reply::pieces(["one "]).ending(End::Hang);
    let server = ScriptedModel::start(vec![Rule::always(hang)])
        .await
        .unwrap();
    let model = providers(&server).remove(0);
    let cancel = CancellationToken::new();
    // On a busy machine the answer needs a moment to be begun before that.
    let left = Duration::from_secs(3);
    let mut events = completer(&model)
        .open(&ask(true), left, &cancel)
        .await
        .unwrap();
    assert!(matches!(events.next().await, Some(Ok(ChatEvent::Delta(_)))));
    assert_eq!(events.next().await, Some(Err(LlmError::Timeout)));
    assert!(server.wait_closed(1, BOUND).await);
}

#[tokio::test]
async fn a_model_that_refuses_a_temperature_is_asked_without() {
    let body = r#"{"error":{"message":"Unsupported value: 'temperature'","param":"temperature"}}"#;
    let server = ScriptedModel::start(vec![
        Rule::always(Reply::status(400, body)).times(1),
        Rule::always(Reply::text("ok")),
    ])
    .await
    .unwrap();
    let model = providers(&server).remove(0);
    for _ in 0..2 {
        let (pieces, _) = run(&model, &ask(false)).await.unwrap();
        assert_eq!(pieces, ["ok"]);
    }
    let calls = server.calls();
    assert_eq!(calls.len(), 3);
    assert!(calls[0].body.get("temperature").is_some());
    assert!(calls[1].body.get("temperature").is_none());
    assert!(calls[2].body.get("temperature").is_none(), "remembered");
}

#[tokio::test]
async fn nobody_listening_is_unavailable() {
    let server = ScriptedModel::start(Vec::new()).await.unwrap();
    let model = providers(&server).remove(0);
    drop(server);
    let gone = OpenAi::new("http://127.0.0.1:9", None, "m").unwrap();
    let gone: Arc<dyn ChatModel> = Arc::new(gone);
    let (_, error) = run(&gone, &ask(true)).await.unwrap_err();
    let cause = Outage::Unreachable(Cause::Refused);
    assert_eq!(error, LlmError::Unavailable(cause));
    drop(model);
}

#[tokio::test]
async fn an_ollama_is_found_where_it_answers_and_only_then() {
    let server = ScriptedModel::start(Vec::new()).await.unwrap();
    let found = super::models_at(&server.root(), BOUND).await;
    assert_eq!(
        found,
        Some(vec!["scripted".to_owned(), "scripted-large".to_owned()])
    );
    let nobody = super::models_at("http://127.0.0.1:9", BOUND).await;
    assert_eq!(nobody, None);
    // One that takes the connection and says nothing is not waited for.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", silent.local_addr().unwrap());
    let soon = Duration::from_millis(50);
    assert_eq!(super::models_at(&at, soon).await, None);
}
