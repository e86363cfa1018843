//! The model that serves when no provider is configured: an extractive reader without weights.
//!
//! It follows the contracts of our prompts. In the agent's dialog it picks a tool by the question, reads what
//! the tool returned and answers by quoting the best matching facts or sentences; what the graph does not
//! answer it asks the documents, if there is a tool for that. From texts it extracts
//! definitions, simple relationships, rows and ontology facts by the patterns of plain sentences. Questions
//! about given facts or passages it answers by quoting them with their numbers, or says that they do not
//! answer. It is deterministic and never adds a fact of its own. It is a start, not a language model, and its
//! name says so.

mod answer;
mod arithmetic;
mod asking;
mod choice;
mod concepts;
mod contract;
mod definition;
mod extract;
mod grammar;
mod json;
mod languages;
mod lexicon;
mod observation;
mod ontology;
mod parts;
mod passages;
mod plan;
mod prose;
mod queries;
mod question;
mod quoting;
mod react;
mod reading;
mod rows;
mod synthesis;
mod tables;
mod tools;
mod wanted;
mod words;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use tg_schemas::msg::ModelInfo;

use crate::error::LlmError;
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatStream, Completion, Format};

/// What the reader calls itself, whatever model a flow names.
pub const NAME: &str = "builtin (extractive, not a language model)";

/// Longest prompt it reads, in bytes.
const READABLE: usize = 4 << 20;

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
        let text = reply(request);
        let done = ChatEvent::Done(Completion {
            model: NAME.to_owned(),
            in_token: Some(words::count(&request.system) + words::count(&request.prompt)),
            out_token: Some(words::count(&text)),
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

/// The reply to a request, as one text.
fn reply(request: &ChatRequest) -> String {
    match &request.format {
        Format::Schema(schema) => return json::instance(schema, &request.prompt),
        Format::Json => return "{}".to_owned(),
        Format::Text => {}
    }
    if let Some(reply) = contract::reply(&request.prompt) {
        return reply;
    }
    if let Some(prompt) = react::Prompt::read(&request.prompt) {
        return match contract::knowledge(&prompt.question) {
            Some(lines) => react::Step::answer("The text itself says it.", lines).render(),
            None => plan::next(&prompt).render(),
        };
    }
    let text = passages::answer(&request.prompt);
    if react::wants_grammar(&request.prompt) {
        // Somebody else's agent template: at least the form is right.
        return react::Step::answer("I quote what the text says.", text).render();
    }
    text
}

/// Cuts a text into pieces that end after whitespace, a few words each.
fn pieces(text: &str) -> Vec<String> {
    const LEAST: usize = 12;
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        piece.push(c);
        let boundary = c.is_whitespace() && chars.peek().is_some_and(|next| !next.is_whitespace());
        if boundary && piece.len() >= LEAST {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests;
