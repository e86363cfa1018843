//! What a reasoning model thinks, in each dialect and in the text: told apart from the answer, streamed and whole.

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use futures::{StreamExt, stream};
use tg_provider_http::{HttpError, Secret};
use tg_testkit::model::{Reply, Rule, ScriptedModel};

use super::reading::{Dialect, events_of, lines_of};
use super::{Anthropic, Ollama, OpenAi, anthropic, ollama, openai};
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatStream};

/// The thought, the answer and whether the end came.
async fn heard(mut chat: ChatStream) -> (String, String, Result<(), LlmError>) {
    let (mut thought, mut text) = (String::new(), String::new());
    loop {
        match chat.next().await.expect("an end") {
            Ok(ChatEvent::Thinking(more)) => thought += &more,
            Ok(ChatEvent::Delta(more)) => text += &more,
            Ok(ChatEvent::Done(_)) => return (thought, text, Ok(())),
            Err(error) => return (thought, text, Err(error)),
        }
    }
}

fn told(thought: &str, text: &str) -> (String, String, Result<(), LlmError>) {
    (thought.to_owned(), text.to_owned(), Ok(()))
}

fn streamed(said: &str, lines: bool, dialect: impl Dialect) -> ChatStream {
    let pieces: Vec<Result<Bytes, HttpError>> = said
        .as_bytes()
        .chunks(11)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    match lines {
        true => lines_of(stream::iter(pieces), dialect),
        false => events_of(stream::iter(pieces), dialect),
    }
}

#[test]
fn each_dialect_tells_what_it_thinks() {
    let chunk = |delta: &str| format!("data: {{\"choices\": [{{\"delta\": {delta}}}]}}\n\n");
    for name in ["reasoning_content", "reasoning"] {
        let said = [
            chunk(&format!("{{\"content\": null, \"{name}\": \"Action: \"}}")),
            chunk(&format!("{{\"content\": \"\", \"{name}\": \"add\"}}")),
            chunk(&format!("{{\"content\": \"y\", \"{name}\": \"!\"}}")),
            chunk(&format!(
                "{{\"content\": \"es\", \"{name}\": {{\"x\": 1}}}}"
            )),
            "data: [DONE]\n\n".to_owned(),
        ];
        let chat = streamed(&said.concat(), false, openai::Answer::new("m"));
        assert_eq!(block_on(heard(chat)), told("Action: add!", "yes"), "{name}");
    }
    let delta = |delta: &str| {
        format!("data: {{\"type\": \"content_block_delta\", \"delta\": {delta}}}\n\n")
    };
    let said = [
        delta("{\"type\": \"thinking_delta\", \"thinking\": \"Action: \"}"),
        delta("{\"type\": \"thinking_delta\", \"thinking\": \"add\"}"),
        delta("{\"type\": \"signature_delta\", \"signature\": \"c2ln\"}"),
        delta("{\"type\": \"text_delta\", \"text\": \"yes\"}"),
        "data: {\"type\": \"message_stop\"}\n\n".to_owned(),
    ];
    let chat = streamed(&said.concat(), false, anthropic::Answer::new("m"));
    assert_eq!(block_on(heard(chat)), told("Action: add", "yes"));
    let said = "{\"message\": {\"content\": \"\", \"thinking\": \"Action: \"}}\n\
                {\"message\": {\"content\": \"\", \"thinking\": \"add\"}}\n\
                {\"message\": {\"content\": \"yes\"}}\n{\"done\": true}\n";
    let chat = streamed(said, true, ollama::Answer::default());
    assert_eq!(block_on(heard(chat)), told("Action: add", "yes"));
}

/// Whatever the dialect, and wherever the pieces are cut.
#[tokio::test]
async fn a_thought_in_the_text_is_no_part_of_the_answer() {
    let reply = "<think>Let me see.\nAction: add\n</think>\n\nyes";
    for size in [1, 3, 100] {
        let chars: Vec<char> = reply.chars().collect();
        let pieces = chars
            .chunks(size)
            .map(|piece| piece.iter().collect::<String>());
        let rules = vec![Rule::always(Reply::pieces(pieces))];
        let server = ScriptedModel::start(rules).await.unwrap();
        let key = Secret::new("k");
        let models: [Arc<dyn ChatModel>; 3] = [
            Arc::new(OpenAi::new(&server.url(), None, "m").unwrap()),
            Arc::new(Anthropic::new(&server.root(), key, "m").unwrap()),
            Arc::new(Ollama::new(&server.root(), "m", None).unwrap()),
        ];
        for model in models {
            for streaming in [true, false] {
                let request = ChatRequest {
                    prompt: "hello".to_owned(),
                    streaming,
                    ..ChatRequest::default()
                };
                let chat = model.chat(&request).await.unwrap();
                let told = told("Let me see.\nAction: add\n", "yes");
                assert_eq!(heard(chat).await, told, "{} {size}", model.provider());
            }
        }
    }
}
