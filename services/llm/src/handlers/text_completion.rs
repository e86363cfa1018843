//! A question to a language model comes in: to the completer, and back what the model writes, with a record of what it
//! cost.

use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use tg_mesh::{Cx, RequestHandler, Responder, warn_of};
use tg_provider_http::within;
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse, Usage};
use tg_schemas::processors::shared;
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use crate::error::LlmError;
use crate::model::{ChatEvent, ChatRequest, ChatStream, Completion, Format};
use crate::provider_client::{self, ProviderClient};

/// Temperature of flows as they come.
const USUAL_TEMPERATURE: &str = "0.3";
/// Pieces that are sent together have up to this many bytes.
const TOGETHER: usize = 256;
/// Pieces that follow the one sent last within this time are gathered for as long; the first of an answer
/// and those of a model that writes slower are never kept waiting.
const PACE: Duration = Duration::from_millis(1);

/// Serves `request` of both processors.
pub(crate) struct TextCompletion {
    pub(crate) provider_client: ProviderClient,
}

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for TextCompletion {
    async fn serve(
        &self,
        cx: Cx,
        question: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        match question.operation.as_str() {
            "completion" | "" => self.answer(&cx, question, &mut out).await,
            "list-models" => out.send(self.list_models(&cx).await?).await,
            "which-model" => out.send(self.which_model(&cx)).await,
            "status" => out.send(self.status(&cx).await?).await,
            _ => Err(LlmError::Operation.into()),
        }
    }
}

impl TextCompletion {
    /// Whether the provider answers and has the model, in a sentence for the doctor.
    async fn status(&self, cx: &Cx) -> Result<TextCompletionResponse, Error> {
        let model = cx.parameter("model");
        let looked = self
            .provider_client
            .look(model, cx.deadline.left(), &cx.cancel);
        let told = looked.await;
        let told = told.map_err(|told| Error::new(ErrorCode::Provider, told))?;
        Ok(TextCompletionResponse {
            response: told,
            end_of_stream: true,
            ..TextCompletionResponse::default()
        })
    }

    /// The models of the provider.
    async fn list_models(&self, cx: &Cx) -> Result<TextCompletionResponse, Error> {
        let provider_client = &self.provider_client;
        let within = within(cx.deadline.left());
        let listing = provider_client.client.list_models(within, &cx.cancel);
        let models = listing
            .await
            .map_err(|error| provider_client::failed(provider_client, cx, None, error));
        Ok(TextCompletionResponse {
            models: models?,
            end_of_stream: true,
            ..TextCompletionResponse::default()
        })
    }

    /// Which model would answer now: who keeps replies wants to know whose they would be.
    fn which_model(&self, cx: &Cx) -> TextCompletionResponse {
        let model = self.provider_client.client.model();
        let name = cx.parameter("model").unwrap_or(model.default_model());
        let mut told = format!("{}/{name}", model.provider());
        // At another temperature it is another reply; at that of flows as they come the name says it.
        let temperature = cx.parameter("temperature");
        if let Some(temperature) = temperature.filter(|one| *one != USUAL_TEMPERATURE) {
            told = format!("{told} at {temperature}");
        }
        TextCompletionResponse {
            model: Some(told),
            end_of_stream: true,
            ..TextCompletionResponse::default()
        }
    }

    /// Completes a text and records what that cost, also where it failed.
    async fn answer(
        &self,
        cx: &Cx,
        question: TextCompletionRequest,
        out: &mut Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        let request = request(cx, question)?;
        let began = Instant::now();
        let done = self.complete(cx, &request, out).await;
        let usage = self.usage(cx, &request, began, &done);
        metrics::histogram!(
            "tg_text_completion_duration_seconds",
            "processor" => label(&cx.scope.processor)
        )
        .record(began.elapsed().as_secs_f64());
        if let Err(error) = cx.record(shared::USAGE, &usage).await {
            warn_of!(cx, %error.message, "usage record not written");
        }
        done.map(drop)
    }

    async fn complete(
        &self,
        cx: &Cx,
        request: &ChatRequest,
        out: &mut Responder<TextCompletionResponse>,
    ) -> Result<Completion, Error> {
        let left = within(cx.deadline.left());
        let model = request.model.as_deref();
        let failed = |error| provider_client::failed(&self.provider_client, cx, model, error);
        let opening = self.provider_client.client.open(request, left, &cx.cancel);
        let mut events = opening.await.map_err(failed)?;
        let mut text = String::new();
        let mut sent: Option<Instant> = None;
        while let Some(event) = events.next().await {
            let mut done = None;
            match event.map_err(failed)? {
                ChatEvent::Delta(piece) => text += &piece,
                ChatEvent::Done(completion) => done = Some(completion),
            }
            if request.streaming {
                if let (Some(sent), None) = (sent, &done) {
                    match gather(&mut events, &mut text, sent + PACE).await {
                        Ok(end) => done = end,
                        Err(error) => {
                            // What came before the fault is passed on before it.
                            if !text.is_empty() {
                                out.send(piece(text)).await?;
                            }
                            return Err(failed(error));
                        }
                    }
                }
                if !text.is_empty() && done.is_none() {
                    out.send(piece(std::mem::take(&mut text))).await?;
                    sent = Some(Instant::now());
                }
            }
            if let Some(completion) = done {
                if completion.truncated {
                    tracing::info!(model = completion.model, "answer cut at the length limit");
                }
                provider_client::note(true);
                out.send(end(text, &completion)).await?;
                return Ok(completion);
            }
        }
        Err(failed(LlmError::BrokenOff))
    }

    fn usage(
        &self,
        cx: &Cx,
        request: &ChatRequest,
        began: Instant,
        done: &Result<Completion, Error>,
    ) -> Usage {
        let asked = request.model.as_deref();
        let (completion, outcome) = match done {
            Ok(completion) => (completion.clone(), "ok".to_owned()),
            Err(error) => {
                let model = asked.unwrap_or(self.provider_client.client.model().default_model());
                let completion = Completion {
                    model: model.to_owned(),
                    ..Completion::default()
                };
                (completion, error.kind.clone())
            }
        };
        let count = |name: &'static str, tokens: Option<i64>| {
            let tokens = tokens.unwrap_or(0).max(0) as u64;
            metrics::counter!(name, "processor" => cx.scope.processor.clone()).increment(tokens);
        };
        count("tg_input_tokens_total", completion.in_token);
        count("tg_output_tokens_total", completion.out_token);
        Usage {
            id: cx.id.to_string(),
            processor: cx.scope.processor.clone(),
            model: completion.model,
            in_token: completion.in_token.unwrap_or(0),
            out_token: completion.out_token.unwrap_or(0),
            duration_ms: began.elapsed().as_millis() as i64,
            outcome,
        }
    }
}

/// Adds pieces that are there already or come until then; the end, if it is among them.
async fn gather(
    events: &mut ChatStream,
    text: &mut String,
    until: Instant,
) -> Result<Option<Completion>, LlmError> {
    while text.len() < TOGETHER {
        let next = match events.next().now_or_never() {
            Some(next) => next,
            None if Instant::now() >= until => break,
            None => match tokio::time::timeout_at(until, events.next()).await {
                Ok(next) => next,
                Err(_) => break,
            },
        };
        match next {
            Some(Ok(ChatEvent::Delta(piece))) => *text += &piece,
            Some(Ok(ChatEvent::Done(completion))) => return Ok(Some(completion)),
            Some(Err(error)) => return Err(error),
            None => return Err(LlmError::BrokenOff),
        }
    }
    Ok(None)
}

fn request(cx: &Cx, question: TextCompletionRequest) -> Result<ChatRequest, LlmError> {
    let temperature = match cx.parameter("temperature") {
        None => None,
        Some(text) => Some(temperature(text)?),
    };
    let format = match (question.response_format.as_deref(), question.schema) {
        (Some("json"), Some(schema)) => Format::Schema(schema),
        (Some("json"), None) => Format::Json,
        (None | Some("" | "text"), _) => Format::Text,
        _ => return Err(LlmError::ResponseFormat),
    };
    Ok(ChatRequest {
        system: question.system,
        prompt: question.prompt,
        model: cx.parameter("model").map(str::to_owned),
        temperature,
        format,
        streaming: question.streaming,
    })
}

fn temperature(text: &str) -> Result<f64, LlmError> {
    let number = text.trim().parse().ok();
    number
        .filter(|number| (0.0..=10.0).contains(number))
        .ok_or(LlmError::Temperature)
}

fn label(processor: &str) -> &'static str {
    match processor {
        "text-completion-rag" => "text-completion-rag",
        _ => "text-completion",
    }
}

fn piece(text: String) -> TextCompletionResponse {
    TextCompletionResponse {
        response: text,
        ..TextCompletionResponse::default()
    }
}

fn end(text: String, completion: &Completion) -> TextCompletionResponse {
    TextCompletionResponse {
        response: text,
        in_token: Some(completion.in_token.unwrap_or(0)),
        out_token: Some(completion.out_token.unwrap_or(0)),
        model: Some(completion.model.clone()),
        end_of_stream: true,
        ..TextCompletionResponse::default()
    }
}
