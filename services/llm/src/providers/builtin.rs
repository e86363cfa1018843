//! The extractive reader as a provider: it is in this process, and asks nobody.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use tg_reader::{NAME, READABLE, Shape, count, pieces, reply};
use tg_schemas::msg::ModelInfo;

use crate::error::LlmError;
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatStream, Completion, Format};

/// The extractive reader.
#[derive(Debug, Clone, Copy, Default)]
pub struct Builtin;

#[async_trait]
impl ChatModel for Builtin {
    fn provider(&self) -> &'static str {
        "builtin"
    }

    fn default_model(&self) -> &str {
        NAME
    }

    async fn chat(&self, request: &ChatRequest) -> Result<ChatStream, LlmError> {
        if request.has_pictures() {
            return Err(LlmError::ReadsNoPictures);
        }
        if request.prompt.len() > READABLE {
            return Err(LlmError::TooLong(None));
        }
        let shape = match &request.format {
            Format::Text => Shape::Text,
            Format::Json => Shape::Json,
            Format::Schema(schema) => Shape::Schema(schema),
        };
        let text = reply(&request.prompt, shape);
        let done = ChatEvent::Done(Completion {
            model: NAME.to_owned(),
            in_token: Some(count(&request.system) + count(&request.prompt)),
            out_token: Some(count(&text)),
            ..Completion::default()
        });
        let pieces = if request.streaming {
            pieces(&text)
        } else {
            vec![text]
        };
        let deltas = pieces.into_iter().map(ChatEvent::Delta);
        Ok(stream::iter(deltas.chain([done]).map(Ok)).boxed())
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(vec![ModelInfo {
            id: NAME.to_owned(),
            owned_by: Some("threadgraph".to_owned()),
            description: Some("quotes what it is given; configure a provider for more".to_owned()),
            ..ModelInfo::default()
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_streams_in_pieces_and_says_what_it_is() {
        let request = ChatRequest {
            prompt: "The Lantern was lit in 1802 by the keeper. When was the Lantern lit?"
                .to_owned(),
            model: Some("gpt-9".to_owned()),
            streaming: true,
            ..ChatRequest::default()
        };
        let events: Vec<_> = Builtin.chat(&request).await.unwrap().collect().await;
        let text: String = events
            .iter()
            .filter_map(|event| match event {
                Ok(ChatEvent::Delta(piece)) => Some(piece.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "The Lantern was lit in 1802 by the keeper.");
        assert!(events.len() > 3);
        let Some(Ok(ChatEvent::Done(done))) = events.last() else {
            panic!("the end is missing");
        };
        assert_eq!(done.model, NAME);
        assert_eq!((done.in_token, done.out_token), (Some(14), Some(9)));
    }
}
