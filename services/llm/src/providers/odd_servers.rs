//! Servers of the OpenAI dialect as they are reported to be: what each answers, and what is made of it.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_provider_http::{Outage, Secret};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{Anthropic, Ollama, OpenAi};
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatModel, ChatRequest, Completion, Dialog, Format};

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// An answer: status, type, and the pieces of its body.
type Scripted = (u16, &'static str, Vec<Vec<u8>>);

/// A server that gives one answer after the other; each body it was sent.
struct Odd {
    url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Odd {
    async fn start(answers: Vec<Scripted>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (seen, answers) = (asked.clone(), Arc::new(Mutex::new(VecDeque::from(answers))));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let next = || answers.lock().pop_front();
                serve(stream, &seen, next).await;
            }
        });
        Self { url, asked }
    }

    fn model(&self) -> OpenAi {
        OpenAi::new(&self.url, None, "m").unwrap()
    }
}

/// One request a connection.
async fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<Value>>,
    next: impl FnOnce() -> Option<Scripted>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        match line.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            _ if line.trim().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    seen.lock()
        .push(serde_json::from_slice(&body).unwrap_or(Value::Null));
    let (status, kind, pieces) = next()?;
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    for piece in pieces {
        stream.write_all(&piece).await.ok()?;
        stream.flush().await.ok()?;
    }
    stream.shutdown().await.ok()
}

fn whole(body: &Value) -> Scripted {
    (200, JSON, vec![body.to_string().into_bytes()])
}

fn refusal(status: u16, body: &Value) -> Scripted {
    (status, JSON, vec![body.to_string().into_bytes()])
}

fn says(text: &str) -> Value {
    json!({"model": "m", "choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
}

fn stream(body: &str) -> Scripted {
    (200, EVENTS, vec![body.as_bytes().to_vec()])
}

fn request(streaming: bool) -> ChatRequest {
    ChatRequest {
        system: "be brief".to_owned(),
        prompt: "hello".to_owned(),
        temperature: Some(0.3),
        streaming,
        ..ChatRequest::default()
    }
}

/// What is made of an answer: thought, text and end.
async fn told(
    model: &dyn ChatModel,
    request: &ChatRequest,
) -> Result<(String, String, Completion), LlmError> {
    let mut chat = model.chat(request).await?;
    let (mut thought, mut text) = (String::new(), String::new());
    while let Some(event) = chat.next().await {
        match event? {
            ChatEvent::Thinking(more) => thought += &more,
            ChatEvent::Delta(more) => text += &more,
            ChatEvent::Done(completion) => return Ok((thought, text, completion)),
        }
    }
    panic!("an answer has an end");
}

async fn once(answer: Scripted, streaming: bool) -> Result<(String, String), LlmError> {
    let server = Odd::start(vec![answer]).await;
    let (thought, text, _) = told(&server.model(), &request(streaming)).await?;
    Ok((thought, text))
}

fn answered(thought: &str, text: &str) -> Result<(String, String), LlmError> {
    Ok((thought.to_owned(), text.to_owned()))
}

const RATE: LlmError = LlmError::RateLimited {
    retry_after: None,
    status: Some(429),
};

/// It says 200 and an error, whole or as the only event, asked for pieces or not.
#[tokio::test]
async fn an_error_is_never_an_empty_answer() {
    let rate = json!({"error": {"message": "slow down", "code": 429}, "user_id": "u"});
    let long = json!({"object": "error", "message": "maximum context length is 4096 tokens", "type": "BadRequestError", "code": 400});
    for (error, expected) in [(rate, RATE), (long, LlmError::TooLong(Some(400)))] {
        for streaming in [true, false] {
            assert_eq!(
                once(whole(&error), streaming).await,
                Err(expected.clone()),
                "{error}"
            );
            let events = format!("data: {error}\n\ndata: [DONE]\n\n");
            assert_eq!(
                once(stream(&events), streaming).await,
                Err(expected.clone()),
                "{error}"
            );
            let named = format!(": x\n\nevent: error\ndata: {error}\n\n");
            assert_eq!(
                once(stream(&named), streaming).await,
                Err(expected.clone()),
                "{error}"
            );
        }
    }
    let field =
        "error: {\"code\": 500, \"message\": \"slot unavailable\", \"type\": \"server_error\"}\n\n";
    let failing = LlmError::Unavailable(Outage::Status(500));
    assert_eq!(once(stream(field), true).await, Err(failing));
    for nothing in ["data: [DONE]\n\n", ": ping\n\n", ""] {
        assert_eq!(
            once(stream(nothing), true).await,
            Err(LlmError::BrokenOff),
            "{nothing:?}"
        );
    }
    let withheld =
        json!({"choices": [{"delta": {"content": ""}, "finish_reason": "content_filter"}]});
    let events = format!("data: {withheld}\n\ndata: [DONE]\n\n");
    assert_eq!(once(stream(&events), true).await, Err(LlmError::Withheld));
    let lost = json!({"choices": [{"delta": {"content": ""}, "finish_reason": "stop", "native_finish_reason": "network_error"}]});
    let events = format!("data: {lost}\n\ndata: [DONE]\n\n");
    assert_eq!(
        once(stream(&events), true).await,
        Err(LlmError::Interrupted)
    );
    for nothing in [json!({"choices": null}), json!({"choices": []}), json!({})] {
        assert_eq!(
            once(whole(&nothing), false).await,
            Err(LlmError::Malformed),
            "{nothing}"
        );
    }
}

/// What came before the error is passed on.
#[tokio::test]
async fn an_error_after_some_text_ends_the_answer() {
    for error in [
        json!({"error": {"code": 502, "message": "upstream"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "upstream"}}]}),
    ] {
        let events = format!(
            "data: {{\"choices\": [{{\"delta\": {{\"content\": \"half\"}}}}]}}\n\ndata: {error}\n\n"
        );
        let server = Odd::start(vec![stream(&events)]).await;
        let mut chat = server.model().chat(&request(true)).await.unwrap();
        assert_eq!(
            chat.next().await,
            Some(Ok(ChatEvent::Delta("half".to_owned())))
        );
        let failing = LlmError::Unavailable(Outage::Status(502));
        assert_eq!(chat.next().await, Some(Err(failing)), "{error}");
    }
}

#[tokio::test]
async fn content_is_read_in_every_form() {
    for (message, thought, text) in [
        (json!({"content": "yes"}), "", "yes"),
        (
            json!({"content": null, "reasoning_content": "hm", "tool_calls": null}),
            "hm",
            "",
        ),
        (
            json!({"content": [{"type": "text", "text": "y"}, {"type": "text", "text": "es"}]}),
            "",
            "yes",
        ),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]}),
            "hm",
            "yes",
        ),
        (json!({"content": ["y", "es"]}), "", "yes"),
        (
            json!({"content": null, "refusal": "I cannot."}),
            "",
            "I cannot.",
        ),
        (json!({"content": "hm\n</think>\n\nyes"}), "hm\n", "yes"),
        (
            json!({"content": "<think>hm</think>yes", "reasoning": {"effort": 1}}),
            "hm",
            "yes",
        ),
    ] {
        let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": null, "error": null});
        assert_eq!(
            once(whole(&body), false).await,
            answered(thought, text),
            "{message}"
        );
    }
    // As an older dialect has it.
    let older = json!({"choices": [{"text": "yes", "finish_reason": "stop"}]});
    assert_eq!(once(whole(&older), false).await, answered("", "yes"));
}

/// Line ends, comments, fields without a space, no end, usage at the end, nothing in a piece; wherever the body is cut.
#[tokio::test]
async fn streams_are_read_as_servers_write_them() {
    let piece = |text: &str| json!({"model": "m", "choices": [{"delta": {"content": text}, "finish_reason": null}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": null});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}});
    let role = json!({"choices": [{"delta": {"role": "assistant", "content": null}}]});
    let empty = json!({"choices": [{"delta": null, "finish_reason": ""}]});
    let filters = json!({"choices": [], "prompt_filter_results": []});
    let (one, two) = (piece("Grüße "), piece("✓"));
    for body in [
        format!(
            "data: {role}\n\ndata: {one}\n\ndata: {two}\n\ndata: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n"
        ),
        format!(
            "data:{role}\r\n\r\n: keep-alive\r\n\r\ndata:{one}\r\n\r\ndata:{two}\r\n\r\ndata:{end}\r\n\r\ndata:{usage}\r\n\r\n"
        ),
        format!(
            "data: {filters}\n\ndata: {one}\n\ndata: {empty}\n\ndata: {two}\n\ndata: {usage}\n\ndata: {end}\n\n"
        ),
        format!("data: {one}\ndata: {two}\ndata: {usage}\ndata: {end}"),
        format!(
            "\n\nid: 1\nevent: message\ndata: {one}\n\ndata:\n\ndata: {two}\n\ndata: {usage}\n\ndata: [DONE]"
        ),
        format!("{one}\n{two}\n{usage}\n{end}\n"),
    ] {
        for size in [1, 7, body.len()] {
            let pieces = body.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            let server = Odd::start(vec![(200, EVENTS, pieces)]).await;
            let (_, text, completion) = told(&server.model(), &request(true)).await.unwrap();
            assert_eq!(text, "Grüße ✓", "{body}");
            assert_eq!(
                (completion.in_token, completion.out_token),
                (Some(5), Some(7)),
                "{body}"
            );
        }
    }
}

/// Some servers stream whatever is asked for, others never do.
#[tokio::test]
async fn an_answer_of_the_other_kind_is_read() {
    assert_eq!(once(whole(&says("yes")), true).await, answered("", "yes"));
    let events = "data: {\"choices\": [{\"delta\": {\"content\": \"yes\"}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
    assert_eq!(once(stream(events), false).await, answered("", "yes"));
    let both = format!("{}data: [DONE]\n\n", says("yes"));
    for both in [both.clone(), both.replace("data:", "\n\ndata:")] {
        assert_eq!(once(stream(&both), false).await, answered("", "yes"));
    }
    // Blank lines while the model is busy.
    let late = vec![
        b"\n\n".to_vec(),
        b" \n".to_vec(),
        says("yes").to_string().into_bytes(),
    ];
    for streaming in [true, false] {
        assert_eq!(
            once((200, JSON, late.clone()), streaming).await,
            answered("", "yes")
        );
    }
    let page = (200, "text/html", vec![b"<html>Sign in</html>".to_vec()]);
    for streaming in [true, false] {
        assert_eq!(
            once(page.clone(), streaming).await,
            Err(LlmError::Malformed)
        );
    }
}

/// What is refused is left out, one member after the other, and from then on.
#[tokio::test]
async fn a_refused_member_is_left_out_and_remembered() {
    let unknown = json!({"object": "error", "type": "invalid_request_error", "message": {"detail": [
        {"type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"], "msg": "Extra inputs are not permitted", "input": true}]}});
    let tokens = json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "code": "unsupported_parameter"}});
    let role = json!({"object": "error", "message": "System role not supported", "type": "BadRequestError", "code": 400});
    let format = json!({"error": "'response_format.type' must be 'json_schema' or 'text'"});
    let schema = json!({"error": {"message": "This response_format type is unavailable now", "type": "invalid_request_error"}});
    let events = "data: {\"choices\": [{\"delta\": {\"content\": \"yes\"}}]}\n\ndata: [DONE]\n\n";
    let server = Odd::start(vec![
        refusal(422, &unknown),
        refusal(400, &tokens),
        refusal(400, &role),
        refusal(400, &schema),
        refusal(400, &format),
        stream(events),
        stream(events),
    ])
    .await;
    let model = server.model();
    let turn = |role: &str, content: &str| tg_schemas::msg::ChatTurn {
        role: role.to_owned(),
        content: content.to_owned(),
        ..Default::default()
    };
    let asked = ChatRequest {
        format: Format::Schema(json!({"type": "object"}).as_object().unwrap().clone()),
        dialog: Some(Arc::new(Dialog {
            turns: vec![turn("system", "be brief"), turn("user", "hello")],
            ..Dialog::default()
        })),
        max_tokens: Some(9),
        ..request(true)
    };
    for _ in 0..2 {
        assert_eq!(told(&model, &asked).await.unwrap().1, "yes");
    }
    let bodies = server.asked.lock();
    assert_eq!(bodies.len(), 7, "the second question is asked once");
    assert_eq!(bodies[4]["response_format"], json!({"type": "json_object"}));
    for body in &bodies[5..] {
        assert_eq!(
            body["messages"],
            json!([{"role": "user", "content": "be brief\n\nhello"}])
        );
        assert_eq!(body["max_completion_tokens"], 9);
        for name in ["stream_options", "max_tokens", "response_format"] {
            assert!(body.get(name).is_none(), "{name}");
        }
        assert_eq!(body["temperature"], 0.3);
    }
}

/// A failure of one answer, or of one schema, says nothing of the next.
#[tokio::test]
async fn what_one_question_is_refused_for_is_not_remembered() {
    let once = json!({"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed", "failed_generation": "temperature"}});
    let server = Odd::start(vec![
        refusal(400, &once),
        whole(&says("{}")),
        whole(&says("{}")),
    ])
    .await;
    let model = server.model();
    let asked = ChatRequest {
        format: Format::Json,
        ..request(false)
    };
    for _ in 0..2 {
        assert_eq!(told(&model, &asked).await.unwrap().1, "{}");
    }
    let sent: Vec<bool> = server
        .asked
        .lock()
        .iter()
        .map(|body| body.get("response_format").is_some())
        .collect();
    assert_eq!(sent, [true, false, true]);
}

/// A server that refuses whatever it is asked is asked a few times only.
#[tokio::test]
async fn a_refusal_that_stays_is_told() {
    let always = json!({"error": {"message": "stream_options, top_p, temperature and response_format are wrong"}});
    let server = Odd::start(vec![refusal(400, &always); 12]).await;
    let asked = ChatRequest {
        format: Format::Json,
        ..request(true)
    };
    let error = told(&server.model(), &asked).await.unwrap_err();
    assert_eq!(error, LlmError::BadRequest(Some(400)));
    assert_eq!(server.asked.lock().len(), 4);
}

#[tokio::test]
async fn calls_are_read_in_every_form() {
    let call = |arguments: Value| json!({"id": "a", "type": "function", "function": {"name": "add", "arguments": arguments}});
    for message in [
        json!({"content": null, "tool_calls": [call(json!("{\"a\":1}"))]}),
        json!({"content": "", "tool_calls": [call(json!({"a": 1}))]}),
        json!({"content": null, "function_call": {"name": "add", "arguments": "{\"a\":1}"}}),
    ] {
        let body = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
        let server = Odd::start(vec![whole(&body)]).await;
        let (_, _, completion) = told(&server.model(), &request(false)).await.unwrap();
        let calls = completion.tool_calls;
        assert_eq!(calls.len(), 1, "{message}");
        assert_eq!(
            (calls[0].name.as_str(), calls[0].arguments.as_str()),
            ("add", r#"{"a":1}"#)
        );
    }
    // Text and calls as choices of their own.
    let other =
        json!({"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}});
    let body = json!({"choices": [
        {"message": {"role": "assistant", "content": "I look."}, "finish_reason": "tool_calls"},
        {"message": {"tool_calls": [call(json!("{}"))]}, "finish_reason": "tool_calls"},
        {"message": {"tool_calls": [other]}, "finish_reason": "tool_calls"},
    ]});
    let server = Odd::start(vec![whole(&body)]).await;
    let (_, text, completion) = told(&server.model(), &request(false)).await.unwrap();
    let names = completion.tool_calls.iter().map(|call| call.name.as_str());
    let names: Vec<_> = names.collect();
    assert_eq!((text.as_str(), names), ("I look.", vec!["add", "now"]));
    // All in one stream under the same number.
    let piece = |id: &str, city: &str| {
        json!({"choices": [{"delta": {"tool_calls": [
        {"index": 0, "id": id, "function": {"name": "weather", "arguments": format!("{{\"city\":\"{city}\"}}")}}]}}]})
    };
    let events = format!(
        "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
        piece("a", "Oslo"),
        piece("b", "Rome")
    );
    let server = Odd::start(vec![stream(&events)]).await;
    let (_, _, completion) = told(&server.model(), &request(true)).await.unwrap();
    let arguments: Vec<_> = completion
        .tool_calls
        .iter()
        .map(|call| call.arguments.as_str())
        .collect();
    assert_eq!(arguments, [r#"{"city":"Oslo"}"#, r#"{"city":"Rome"}"#]);
}

/// The other dialects, behind proxies that say 200 whatever happened.
#[tokio::test]
async fn an_error_is_no_answer_in_other_dialects_either() {
    let anthropic = |server: &Odd| Anthropic::new(&server.url, Secret::new("k"), "m").unwrap();
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let busy = LlmError::RateLimited {
        retry_after: None,
        status: None,
    };
    let server = Odd::start(vec![whole(&overloaded)]).await;
    let error = told(&anthropic(&server), &request(false)).await;
    assert_eq!(error.unwrap_err(), busy);
    let events = format!("event: error\ndata: {overloaded}\n\n");
    let server = Odd::start(vec![stream(&events)]).await;
    let error = told(&anthropic(&server), &request(true)).await;
    assert_eq!(error.unwrap_err(), busy);
    let refused = json!({"type": "message", "content": [], "stop_reason": "refusal"});
    let server = Odd::start(vec![whole(&refused)]).await;
    let error = told(&anthropic(&server), &request(false)).await;
    assert_eq!(error.unwrap_err(), LlmError::Withheld);
    let events = "data: {\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"refusal\"}}\n\ndata: {\"type\": \"message_stop\"}\n\n";
    let server = Odd::start(vec![stream(events)]).await;
    let error = told(&anthropic(&server), &request(true)).await;
    assert_eq!(error.unwrap_err(), LlmError::Withheld);
    for (body, expected) in [
        (json!({}), LlmError::Malformed),
        (
            json!({"error": "input length exceeds the context length"}),
            LlmError::TooLong(None),
        ),
    ] {
        let server = Odd::start(vec![whole(&body)]).await;
        let ollama = Ollama::new(&server.url, "m", None).unwrap();
        let error = told(&ollama, &request(false)).await;
        assert_eq!(error.unwrap_err(), expected, "{body}");
    }
}

#[tokio::test]
async fn models_are_listed_in_every_form() {
    let one = json!({"id": "a", "object": "model"});
    for listed in [
        json!([one]),
        json!({"data": [one]}),
        json!({"models": [one]}),
    ] {
        let server = Odd::start(vec![whole(&listed)]).await;
        let models = server.model().list_models().await.unwrap();
        assert_eq!(models[0].id, "a", "{listed}");
    }
}

/// Mistral and DeepSeek refuse turns of chats that others take.
#[tokio::test]
async fn a_chat_that_began_with_another_model_is_written_as_its_server_has_it() {
    let ids = json!({"object": "error", "type": "invalid_function_call", "code": "3280",
        "message": "Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9."});
    let order = json!({"object": "error", "type": "invalid_request_message_order", "code": "3230",
        "message": "Unexpected role 'user' after role 'tool'"});
    let thought = json!({"error": {"code": "invalid_request_error",
        "message": "The `reasoning_content` in the thinking mode must be passed back to the API."}});
    let server = Odd::start(vec![
        refusal(400, &ids),
        refusal(400, &order),
        refusal(400, &thought),
        whole(&says("yes")),
        whole(&says("yes")),
    ])
    .await;
    let model = server.model();
    let turn = |role: &str, call: Option<&str>| tg_schemas::msg::ChatTurn {
        role: role.to_owned(),
        content: "text".to_owned(),
        tool_call_id: call.map(str::to_owned),
        ..Default::default()
    };
    let call = tg_schemas::msg::ChatToolCall {
        id: "call_x".to_owned(),
        name: "add".to_owned(),
        arguments: "{}".to_owned(),
    };
    let called = tg_schemas::msg::ChatTurn {
        tool_calls: vec![call],
        ..turn("assistant", None)
    };
    let asked = ChatRequest {
        dialog: Some(Arc::new(Dialog {
            turns: vec![
                turn("user", None),
                called,
                turn("tool", Some("call_x")),
                turn("user", None),
            ],
            ..Dialog::default()
        })),
        ..request(false)
    };
    for _ in 0..2 {
        assert_eq!(told(&model, &asked).await.unwrap().1, "yes");
    }
    let bodies = server.asked.lock();
    assert_eq!(bodies.len(), 5, "the second question is asked once");
    for body in &bodies[3..] {
        let turns = &body["messages"];
        let of = turns[1]["tool_calls"][0]["id"].as_str();
        assert_eq!(of, Some("call00000"));
        assert_eq!(turns[2]["tool_call_id"], "call00000");
        let word = json!({"role": "assistant", "content": "OK.", "reasoning_content": " "});
        assert_eq!(
            (&turns[3], &turns[1]["reasoning_content"]),
            (&word, &json!(" "))
        );
    }
}
