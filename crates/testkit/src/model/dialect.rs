//! The wire shapes of the providers: reading a request, writing an answer. Knows no sockets.

use serde_json::{Value, json};

use super::CALL;

/// A provider's way of speaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `/v1/chat/completions`, server-sent events.
    OpenAi,
    /// `/v1/messages`, named server-sent events.
    Anthropic,
    /// `/api/chat`, one JSON object a line.
    Ollama,
}

/// Bytes of a token, about.
const BYTES: usize = 4;

/// What the caller asked, independent of the dialect.
pub(crate) struct Asked {
    counts_tokens: bool,
    pub(crate) prompt: String,
    pub(crate) model: String,
    pub(crate) streaming: bool,
    pub(crate) with_usage: bool,
    pub(crate) tool: Option<String>,
}

impl Asked {
    /// Counts tokens as the product does beforehand, or estimates them.
    fn tokens(&self, text: &str) -> usize {
        match self.counts_tokens {
            true => usize::try_from(tg_tokens::count(text)).unwrap_or(usize::MAX),
            false => text.len().div_ceil(BYTES),
        }
    }
}

/// What the assistant says in OpenAI's dialect, and why it ends there.
fn said(text: &str) -> (Value, &'static str) {
    let call = text.strip_prefix(CALL);
    let Some(call) = call.and_then(|call| serde_json::from_str::<Value>(call).ok()) else {
        return (json!({"content": text}), "stop");
    };
    let function = json!({"name": call["name"], "arguments": call["arguments"].to_string()});
    let call = json!({"index": 0, "id": "call_0", "type": "function", "function": function});
    (json!({"content": null, "tool_calls": [call]}), "tool_calls")
}

impl Dialect {
    pub(crate) fn read(self, body: &Value, counts_tokens: bool) -> Asked {
        let mut parts = Vec::new();
        if let Some(system) = body.get("system").and_then(Value::as_str) {
            parts.push(system.to_owned());
        }
        for message in body["messages"].as_array().into_iter().flatten() {
            match &message["content"] {
                Value::String(text) => parts.push(text.clone()),
                Value::Array(blocks) => parts.extend(
                    blocks
                        .iter()
                        .filter_map(|block| block["text"].as_str())
                        .map(str::to_owned),
                ),
                _ => {}
            }
        }
        let default_stream = self == Self::Ollama;
        Asked {
            counts_tokens,
            prompt: parts.join("\n\n"),
            model: body["model"].as_str().unwrap_or("scripted").to_owned(),
            streaming: body["stream"].as_bool().unwrap_or(default_stream),
            with_usage: body["stream_options"]["include_usage"]
                .as_bool()
                .unwrap_or(false),
            tool: body["tool_choice"]["name"].as_str().map(str::to_owned),
        }
    }

    pub(crate) fn content_type(self, streaming: bool) -> &'static str {
        match (self, streaming) {
            (Self::Ollama, true) => "application/x-ndjson",
            (_, true) => "text/event-stream",
            (_, false) => "application/json",
        }
    }

    /// The whole answer at once.
    pub(crate) fn whole(self, asked: &Asked, text: &str) -> Value {
        let (input, output) = (asked.tokens(&asked.prompt), asked.tokens(text));
        match self {
            Self::OpenAi => {
                let (mut message, finish) = said(text);
                message["role"] = json!("assistant");
                json!({
                    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked.model,
                    "choices": [{"index": 0, "finish_reason": finish, "message": message}],
                    "usage": {
                        "prompt_tokens": input, "completion_tokens": output,
                        "total_tokens": input + output,
                    },
                })
            }
            Self::Anthropic => {
                let block = match &asked.tool {
                    Some(tool) => json!({
                        "type": "tool_use", "id": "t1", "name": tool,
                        "input": serde_json::from_str::<Value>(text).unwrap_or(Value::Null),
                    }),
                    None => json!({"type": "text", "text": text}),
                };
                json!({
                    "id": "msg_1", "type": "message", "role": "assistant", "model": asked.model,
                    "content": [block], "stop_reason": "end_turn",
                    "usage": {"input_tokens": input, "output_tokens": output},
                })
            }
            Self::Ollama => json!({
                "model": asked.model, "message": {"role": "assistant", "content": text},
                "done": true, "done_reason": "stop",
                "prompt_eval_count": input, "eval_count": output,
            }),
        }
    }

    /// What comes before the first piece.
    pub(crate) fn opening(self, asked: &Asked) -> String {
        match self {
            Self::OpenAi => openai_event(&openai_chunk(
                asked,
                json!({"role": "assistant"}),
                Value::Null,
            )),
            Self::Anthropic => {
                let start = json!({
                    "type": "message_start",
                    "message": {
                        "model": asked.model,
                        "usage": {"input_tokens": asked.tokens(&asked.prompt), "output_tokens": 0},
                    },
                });
                let kind = if asked.tool.is_some() {
                    "tool_use"
                } else {
                    "text"
                };
                let block = json!({
                    "type": "content_block_start", "index": 0, "content_block": {"type": kind},
                });
                anthropic_event(&start)
                    + &anthropic_event(&block)
                    + "event: ping\ndata: {\"type\":\"ping\"}\n\n"
            }
            Self::Ollama => String::new(),
        }
    }

    /// One piece.
    pub(crate) fn piece(self, asked: &Asked, text: &str) -> String {
        match self {
            Self::OpenAi => openai_event(&openai_chunk(asked, said(text).0, Value::Null)),
            Self::Anthropic => {
                let delta = if asked.tool.is_some() {
                    json!({"type": "input_json_delta", "partial_json": text})
                } else {
                    json!({"type": "text_delta", "text": text})
                };
                anthropic_event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
            }
            Self::Ollama => line(&json!({
                "model": asked.model, "message": {"role": "assistant", "content": text},
                "done": false,
            })),
        }
    }

    /// What comes after the last piece.
    pub(crate) fn closing(self, asked: &Asked, text: &str) -> String {
        let (input, output) = (asked.tokens(&asked.prompt), asked.tokens(text));
        match self {
            Self::OpenAi => {
                let mut end = openai_event(&openai_chunk(asked, json!({}), json!(said(text).1)));
                if asked.with_usage {
                    let mut chunk = openai_chunk(asked, json!({}), Value::Null);
                    chunk["choices"] = json!([]);
                    chunk["usage"] = json!({
                        "prompt_tokens": input, "completion_tokens": output,
                        "total_tokens": input + output,
                    });
                    end += &openai_event(&chunk);
                }
                end + "data: [DONE]\n\n"
            }
            Self::Anthropic => {
                let delta = json!({
                    "type": "message_delta", "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": output},
                });
                anthropic_event(&json!({"type": "content_block_stop", "index": 0}))
                    + &anthropic_event(&delta)
                    + &anthropic_event(&json!({"type": "message_stop"}))
            }
            Self::Ollama => line(&json!({
                "model": asked.model, "message": {"role": "assistant", "content": ""},
                "done": true, "done_reason": "stop",
                "prompt_eval_count": input, "eval_count": output,
            })),
        }
    }
}

fn openai_chunk(asked: &Asked, delta: Value, finish: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": asked.model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

fn openai_event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn anthropic_event(event: &Value) -> String {
    format!(
        "event: {}\ndata: {event}\n\n",
        event["type"].as_str().unwrap_or_default()
    )
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}
