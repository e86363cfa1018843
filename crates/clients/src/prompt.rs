//! The prompt service: a template with variables becomes a text, or a JSON value, that a model writes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use tg_mesh::{Answer, Cx};
use tg_schemas::msg::{
    ChatCompletionResponse, ChatTool, ModelSettings, PromptRequest, PromptResponse,
    TextCompletionRequest, TextCompletionResponse,
};
use tg_schemas::processors::shared;
use tg_schemas::{Error, ErrorCode, Reply, Topic};

use crate::caller::Caller;
use crate::native::{self, Native};
use crate::rendering::{ReadyPrompts, Renderer};

/// The prompt service of the flow.
#[derive(Clone)]
pub struct Prompts {
    caller: Caller<PromptRequest, PromptResponse>,
    thinking: bool,
    settings: Option<ModelSettings>,
    renderer: Option<Renderer>,
    native: Option<Native>,
}

/// What model calls took, where the model reported it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// Input tokens.
    pub in_token: Option<i64>,
    /// Output tokens.
    pub out_token: Option<i64>,
    /// Of the input tokens, what the provider had kept.
    pub cache_read: Option<i64>,
    /// Tokens that the provider keeps from now on.
    pub cache_write: Option<i64>,
    /// Billionths of a dollar that providers say it cost.
    pub nanodollars: Option<u64>,
    /// Model that answered last.
    pub model: Option<String>,
    /// Its backend, where there are several.
    pub backend: Option<String>,
    /// How often backends were asked.
    pub attempts: Option<i64>,
    /// How long it took, where somebody measured it; never added up.
    pub duration_ms: Option<u64>,
}

/// A piece of what the model writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// Text; of a prompt that was made for JSON, the JSON text.
    pub text: String,
    /// What a reasoning model thinks, where it is wanted; no part of the text.
    pub thinking: String,
    /// Whether it is JSON.
    pub json: bool,
    /// Items of a JSON array that could not be used.
    pub dropped: usize,
    /// Where none could be used: how the model's reply begins.
    pub unusable: String,
    /// What it took.
    pub spent: Spent,
}

impl Prompts {
    /// The prompt service that the flow names. Without one every question fails with `not-implemented`.
    pub fn of_flow(cx: &Cx) -> Self {
        Self {
            // The model may answer itself: its parts read as those of the prompt service.
            caller: Caller::of_flow(cx, shared::PROMPT).forwarded(),
            thinking: false,
            settings: None,
            renderer: None,
            native: None,
        }
    }

    /// Prompts for text are rendered here, where that is all that the prompt service would do for them: the model is asked at
    /// once. Its parts are read as those that it sends when the prompt service passes the question on.
    pub fn rendered_here(mut self, cx: &Cx, ready: &ReadyPrompts) -> Self {
        self.renderer = Renderer::of_flow(cx, ready);
        self
    }

    /// Prompts that are rendered here offer the model these tools by the means of its API. What it calls is read as if it had
    /// written that in the form of the agent's prompt.
    pub fn calling(mut self, cx: &Cx, tools: Vec<ChatTool>) -> Self {
        self.native = Native::of_flow(cx, tools);
        self
    }

    /// Each answer may take as long, whatever is left of the message's own deadline.
    pub fn patient(mut self, patience: Duration) -> Self {
        self.caller = self.caller.patient(patience);
        self
    }

    /// What a reasoning model thinks is wanted as well.
    pub fn with_thinking(mut self) -> Self {
        self.thinking = true;
        self
    }

    /// Which model answers, and how; `None`: as the flow says.
    pub fn with_settings(mut self, settings: Option<ModelSettings>) -> Self {
        self.settings = settings;
        self
    }

    /// Questions are known by this id: one that is asked again is the same question.
    pub fn known_as(mut self, id: String) -> Self {
        self.caller = self.caller.known_as(id);
        self
    }

    /// Asks by a template, whose variables are JSON texts; nothing is sent before the first piece is awaited.
    ///
    /// # Errors
    /// When the flow has no prompt service.
    pub fn stream(
        &self,
        template: &str,
        terms: BTreeMap<String, String>,
        streaming: bool,
    ) -> Result<Pieces, Error> {
        self.ask(template, Cow::Owned(terms), streaming)
    }

    /// The same with variables that the caller goes on with: they are copied only where the prompt service is asked.
    ///
    /// # Errors
    /// As [`Prompts::stream`].
    pub fn stream_of(
        &self,
        template: &str,
        terms: &BTreeMap<String, String>,
        streaming: bool,
    ) -> Result<Pieces, Error> {
        self.ask(template, Cow::Borrowed(terms), streaming)
    }

    fn ask(
        &self,
        template: &str,
        terms: Cow<'_, BTreeMap<String, String>>,
        streaming: bool,
    ) -> Result<Pieces, Error> {
        let renderer = self.renderer.as_ref();
        let rendered = renderer.and_then(|one| Some((&one.model, one.render(template, &terms)?)));
        let answer = match rendered {
            Some((model, rendered)) => {
                let question = TextCompletionRequest {
                    streaming,
                    thinking: self.thinking,
                    settings: self.settings.clone(),
                    ..rendered
                };
                match self.chat(model, &question) {
                    Some(answer) => Asked::Chat(answer, native::Reply::default()),
                    None => Asked::Model(self.caller.ask_on(model, &question)),
                }
            }
            None => Asked::Service(self.caller.ask(&PromptRequest {
                id: template.to_owned(),
                terms: terms.into_owned(),
                streaming,
                thinking: self.thinking,
                settings: self.settings.clone(),
            })?),
        };
        Ok(Pieces {
            answer,
            spent: Spent::default(),
        })
    }

    /// The answer to a question as a chat with tools, where it can be asked so.
    fn chat(
        &self,
        model: &Topic,
        question: &TextCompletionRequest,
    ) -> Option<Answer<ChatCompletionResponse>> {
        let native = self.native.as_ref()?;
        let chat = native.chat(model, question)?;
        Some(self.caller.ask_on(&native.topic, &chat))
    }

    /// Asks by a template and reads to the end; what the pieces took is added up.
    ///
    /// # Errors
    /// How the question failed; a provider's error where the answer is empty.
    pub async fn whole(
        &self,
        template: &str,
        terms: BTreeMap<String, String>,
    ) -> Result<Piece, Error> {
        let mut pieces = self.stream(template, terms, false)?;
        let mut whole = Piece::default();
        while let Some(piece) = pieces.next().await? {
            whole.text.push_str(&piece.text);
            whole.json |= piece.json;
            whole.dropped += piece.dropped;
            whole.unusable.push_str(&piece.unusable);
        }
        whole.spent = pieces.spent();
        if !whole.json && whole.text.trim().is_empty() {
            let text = "the model gave an empty answer";
            return Err(Error::new(ErrorCode::Provider, text));
        }
        Ok(whole)
    }
}

/// Who was asked.
enum Asked {
    Service(Answer<PromptResponse>),
    Model(Answer<TextCompletionResponse>),
    Chat(Answer<ChatCompletionResponse>, native::Reply),
}

impl Asked {
    async fn next(&mut self) -> Option<Result<PromptResponse, Error>> {
        match self {
            Self::Service(answer) => answer.next().await,
            Self::Model(answer) => Some(answer.next().await?.map(passed_on)),
            Self::Chat(answer, reply) => loop {
                match answer.next().await? {
                    Err(error) => return Some(Err(error)),
                    Ok(part) => {
                        if let Some(part) = reply.part(part) {
                            return Some(Ok(part));
                        }
                    }
                }
            },
        }
    }
}

/// A part of the model's answer as the prompt service passes it on.
fn passed_on(part: TextCompletionResponse) -> PromptResponse {
    PromptResponse {
        error: part.error,
        text: part.response,
        thinking: part.thinking,
        end_of_stream: part.end_of_stream,
        in_token: part.in_token,
        out_token: part.out_token,
        model: part.model,
        cache_read: part.cache_read,
        cost: part.cost,
        cache_write: part.cache_write,
        backend: part.backend,
        attempts: part.attempts,
        ..PromptResponse::default()
    }
}

/// What the model writes, piece by piece. Dropping it ends the question.
pub struct Pieces {
    answer: Asked,
    spent: Spent,
}

impl Pieces {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn next(&mut self) -> Result<Option<Piece>, Error> {
        let Some(part) = self.answer.next().await else {
            return Ok(None);
        };
        let piece = Piece::of(part?)?;
        self.spent.add(&piece.spent);
        Ok(Some(piece))
    }

    /// What it took so far.
    pub fn spent(&self) -> Spent {
        self.spent.clone()
    }
}

impl Piece {
    fn of(part: PromptResponse) -> Result<Self, Error> {
        if let Some(error) = part.error() {
            return Err(error.clone());
        }
        let json = part.text.is_empty() && !part.object.is_empty();
        Ok(Self {
            text: if json { part.object } else { part.text },
            json,
            thinking: part.thinking,
            dropped: usize::try_from(part.dropped).unwrap_or_default(),
            unusable: part.unusable,
            spent: Spent {
                in_token: part.in_token,
                out_token: part.out_token,
                cache_read: part.cache_read,
                cache_write: part.cache_write,
                nanodollars: part.cost.and_then(nanodollars),
                model: part.model,
                backend: part.backend,
                attempts: part.attempts,
                duration_ms: None,
            },
        })
    }
}

/// Dollars in billionths, where they are an amount.
fn nanodollars(dollars: f64) -> Option<u64> {
    (0.0..=1e6).contains(&dollars).then(|| {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within bounds, and not negative"
        )]
        let nano = (dollars * 1e9).round() as u64;
        nano
    })
}

impl Spent {
    /// Adds another piece, or another question.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.in_token = sum(self.in_token, other.in_token);
        self.out_token = sum(self.out_token, other.out_token);
        self.cache_read = sum(self.cache_read, other.cache_read);
        self.cache_write = sum(self.cache_write, other.cache_write);
        self.nanodollars = match (self.nanodollars, other.nanodollars) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.attempts = sum(self.attempts, other.attempts);
        if other.model.is_some() {
            self.model.clone_from(&other.model);
            self.backend.clone_from(&other.backend);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_text_or_json_or_an_error() {
        let text = PromptResponse {
            text: "t".into(),
            object: "{}".into(),
            ..PromptResponse::default()
        };
        let piece = Piece::of(text).unwrap();
        assert_eq!((piece.text.as_str(), piece.json), ("t", false));
        let object = PromptResponse {
            object: "[1]".into(),
            dropped: 2,
            ..PromptResponse::default()
        };
        let piece = Piece::of(object).unwrap();
        assert_eq!(
            (piece.text.as_str(), piece.json, piece.dropped),
            ("[1]", true, 2)
        );
        let failed = PromptResponse {
            error: Some(Error::typed("llm-error", "no")),
            ..PromptResponse::default()
        };
        assert_eq!(Piece::of(failed).unwrap_err().message, "no");
    }

    #[test]
    fn what_was_told_is_added_up() {
        let mut all = Spent::default();
        all.add(&Spent {
            in_token: Some(2),
            ..Spent::default()
        });
        all.add(&Spent {
            in_token: Some(3),
            model: Some("m".into()),
            ..Spent::default()
        });
        assert_eq!((all.in_token, all.out_token), (Some(5), None));
        assert_eq!(all.model.as_deref(), Some("m"));
    }
}
