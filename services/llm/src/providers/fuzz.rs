//! Streams and failures as providers may write them, or whoever stands where they should.

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use futures::{StreamExt, stream};
use tg_provider_http::{HttpError, Refusal};
use tg_schemas::msg::{ChatTool, ModelInfo};
use tg_testkit::fuzz::run;

use super::calls::MOST_CALLS;
use super::failure::{Failure, in_stream, told};
use super::reading::{Dialect, events_of, lines_of};
use super::{anthropic, listed, ollama, openai};
use crate::model::{ChatEvent, ChatRequest, Dialog};

/// The answer in pieces, cut anywhere, read to its end.
fn read<D: Dialect>(bytes: &[u8], lines: bool, dialect: D) {
    // Few pieces of a long text: the reader of events looks at the whole of an open one again with each of them.
    let size = (bytes.len() / 64).max(bytes.len() % 61 + 1);
    let pieces: Vec<Result<Bytes, HttpError>> = bytes
        .chunks(size)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    let mut chat = match lines {
        true => lines_of(stream::iter(pieces), dialect),
        false => events_of(stream::iter(pieces), dialect),
    };
    let mut ended = false;
    while let Some(event) = block_on(chat.next()) {
        assert!(!ended, "nothing follows the end");
        if let Ok(ChatEvent::Done(completion)) = &event {
            let calls = &completion.tool_calls;
            assert!(calls.len() <= MOST_CALLS);
            assert!(
                calls
                    .iter()
                    .all(|call| !call.id.is_empty() && !call.name.is_empty())
            );
        }
        ended = !matches!(event, Ok(ChatEvent::Delta(_) | ChatEvent::Thinking(_)));
    }
    assert!(ended, "an answer has an end");
}

#[test]
fn streams_of_providers() {
    let seeds: [&[u8]; 7] = [
        b"data: {\"choices\": [{\"delta\": {\"content\": \"a\"}, \"finish_reason\": null}], \"model\": \"m\"}\n\ndata: [DONE]\n\n",
        b": ping\r\nevent: x\rdata: {\"error\": {\"code\": \"rate_limit_exceeded\", \"message\": 3}}\n\n",
        b"event: message_start\ndata: {\"type\": \"message_start\", \"message\": {\"model\": \"m\", \"usage\": {\"input_tokens\": 1}}}\n\n",
        b"data: {\"type\": \"content_block_delta\", \"delta\": {\"text\": \"\\ud83d\\ude00\"}}\n\ndata: {\"type\": \"message_stop\"}\n\n",
        b"{\"message\": {\"content\": \"a\"}, \"done\": false}\n{\"done\": true, \"done_reason\": \"length\", \"eval_count\": 9}\n",
        b"\xef\xbb\xbf\xef\xbb\xbfdata: {}\n\n",
        b"\xef\xbb\xbfid: 1\nretry: 99999999999999999999\ndata:\ndata: {}\n\n\n",
    ];
    run("streams of providers", &seeds, |bytes| {
        read(bytes, false, openai::Answer::new("m"));
        read(bytes, false, anthropic::Answer::new("m"));
        read(bytes, true, ollama::Answer::default());
    });
}

#[test]
fn calls_of_tools_in_pieces() {
    let seeds: [&[u8]; 7] = [
        b"data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"id\": \"c\", \"function\": {\"name\": \"add\", \"arguments\": \"\"}}]}}]}\n\ndata: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"function\": {\"arguments\": \"{\\\"a\\\": 1}\"}}]}, \"finish_reason\": \"tool_calls\"}]}\n\ndata: [DONE]\n\n",
        b"data: {\"choices\": [{\"delta\": {\"content\": null, \"tool_calls\": [{\"index\": 18446744073709551615, \"function\": {\"name\": null, \"arguments\": [1]}}, {\"id\": \"\"}]}, \"finish_reason\": \"stop\"}]}\n\n",
        b"data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": \"0\", \"id\": 1, \"function\": {\"name\": \"add\", \"arguments\": \"{}\"}}]}}, {\"delta\": {\"tool_calls\": [{\"id\": \"\", \"function\": {\"name\": \"add\", \"arguments\": {\"a\": 1}}}]}}]}\n\ndata: [DONE]\n\n",
        b"data: {\"type\": \"content_block_start\", \"index\": 1, \"content_block\": {\"type\": \"tool_use\", \"id\": \"t\", \"name\": \"add\", \"input\": {}}}\n\n",
        b"data: {\"type\": \"content_block_delta\", \"index\": 1, \"delta\": {\"partial_json\": \"{\\\"a\\\": 1}\"}}\n\ndata: {\"type\": \"message_stop\"}\n\n",
        b"{\"message\": {\"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": \"add\", \"arguments\": {\"a\": 1}}}]}, \"done\": false}\n",
        b"{\"message\": {\"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": \"now\"}}, {}]}, \"done\": true}\n",
    ];
    let dialog = Dialog {
        tools: vec![ChatTool::default()],
        ..Dialog::default()
    };
    let request = ChatRequest {
        dialog: Some(Arc::new(dialog)),
        ..ChatRequest::default()
    };
    run("calls of tools in pieces", &seeds, |bytes| {
        read(bytes, false, openai::Answer::new("m"));
        read(bytes, false, anthropic::Answer::new("m").of(&request));
        read(bytes, true, ollama::Answer::default());
    });
}

#[test]
fn failures_of_providers() {
    let seeds: [&[u8]; 3] = [
        br#"{"error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "temperature"}}"#,
        br#"{"error": "model not found"}"#,
        b"<html>502</html>",
    ];
    run("failures of providers", &seeds, |bytes| {
        for status in [400, 403, 429, 529] {
            let refusal = Refusal {
                status,
                body: bytes.to_vec(),
                retry_after: None,
            };
            let _ = Failure::from(HttpError::Refused(refusal));
        }
        if let Ok(value) = serde_json::from_slice(bytes) {
            let _ = (in_stream(&value), told(&value));
        }
    });
}

#[test]
fn lists_of_models() {
    let seeds: [&[u8]; 4] = [
        br#"{"data": [{"id": "a", "owned_by": "b", "created": 1700000000, "context_length": 9223372036854775807}]}"#,
        br#"{"data": [{"id": "c", "display_name": "C", "type": "model"}], "has_more": false}"#,
        br#"{"models": [{"name": "d:7b", "details": {"family": "e", "parameter_size": "7B", "quantization_level": null}}]}"#,
        br#"{"data": {"id": 1e400}, "models": [[]]}"#,
    ];
    run("lists of models", &seeds, |bytes| {
        let named = |models: Vec<ModelInfo>| {
            assert!(models.iter().all(|model| model.id.len() <= bytes.len()));
        };
        let read = serde_json::from_slice(bytes).ok();
        let _ = read.map(|listed| listed::models(&listed).map(named));
        let _ =
            serde_json::from_slice(bytes).map(|listed: anthropic::Listed| named(listed.models()));
        let _ = serde_json::from_slice(bytes).map(|listed: ollama::Listed| named(listed.models()));
    });
}
