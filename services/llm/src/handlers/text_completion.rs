//! A question to a language model comes in: to the completer, and back what the model writes, with a record of what it
//! cost.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use tg_clients::model_calls::ModelCalls;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_provider_http::within;
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::counting::Counting;
use super::wishes::{are_named, temperature_of};
use super::written::Written;
use super::{Rooms, usage};
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
/// Turns that other tasks get first: a piece that is on its way comes with one of them. To wait by the clock for so short a time wakes
/// a thread twice, which sleeps until the next timer.
const TURNS: usize = 2;

/// Serves `request` of both processors.
pub(crate) struct TextCompletion {
    pub(crate) provider_client: ProviderClient,
    pub(crate) rooms: Arc<Rooms>,
    pub(crate) calls: ModelCalls,
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
        let thinks = question.thinking;
        let mut request = request(cx, question)?;
        if request.service.is_none() {
            self.rooms.check(cx, &self.provider_client, &mut request)?;
        }
        let asked = request.model.as_deref();
        let began = Instant::now();
        let client = &self.provider_client;
        let mut counting = Counting::begin(&self.calls, cx, client, &request).await?;
        let completing = self.complete(cx, (&request, thinks), out, &mut counting);
        let done = completing.await;
        if let Err(error) = &done {
            counting.failed(error).await;
        }
        metrics::histogram!(
            "tg_text_completion_duration_seconds",
            "processor" => label(&cx.scope.processor)
        )
        .record(began.elapsed().as_secs_f64());
        usage::record(cx, &self.provider_client, asked, began, &done).await;
        done.map(drop)
    }

    async fn complete(
        &self,
        cx: &Cx,
        (request, thinks): (&ChatRequest, bool),
        out: &mut Responder<TextCompletionResponse>,
        counting: &mut Counting,
    ) -> Result<Completion, Error> {
        let left = within(cx.deadline.left());
        let model = request.model.as_deref();
        let failed = |error| match request.service {
            None => provider_client::failed(&self.provider_client, cx, model, error),
            // Nothing of the provider of the flow.
            Some(_) => Error::from(error),
        };
        let opening = self.provider_client.client.open(request, left, &cx.cancel);
        let mut events = opening.await.map_err(failed)?;
        let mut written = Written::default();
        let (mut sent, mut characters): (Option<Instant>, usize) = (None, 0);
        while let Some(event) = events.next().await {
            let mut done = None;
            let event = event.map_err(failed)?;
            let added = match event {
                ChatEvent::Delta(piece) => written.add(&piece),
                ChatEvent::Thinking(piece) => written.think(&piece, thinks),
                ChatEvent::Done(completion) => {
                    done = Some(completion);
                    Ok(())
                }
            };
            counting.heard(written.characters);
            added.map_err(failed)?;
            if request.streaming {
                if let (Some(sent), None) = (sent, &done) {
                    let gathered = gather(&mut events, &mut written, thinks, sent + PACE).await;
                    counting.heard(written.characters);
                    match gathered {
                        Ok(end) => done = end,
                        Err(error) => {
                            // What came before the fault is passed on before it.
                            if !written.is_empty() {
                                out.send(piece(&mut written)).await?;
                            }
                            return Err(failed(error));
                        }
                    }
                }
                if !written.is_empty() && done.is_none() {
                    characters += written.text.chars().count();
                    out.send(piece(&mut written)).await?;
                    sent = Some(Instant::now());
                }
            }
            if let Some(mut completion) = done {
                let last = written.text.chars().count();
                completion.characters = written.thought + characters + last;
                if completion.truncated {
                    tracing::info!(model = completion.model, "answer cut at the length limit");
                }
                if request.service.is_none() {
                    provider_client::note(true);
                }
                counting.answered(&completion).await;
                out.send(end(&mut written, &completion)).await?;
                return Ok(completion);
            }
        }
        Err(failed(LlmError::BrokenOff))
    }
}

/// Adds pieces that are there already or come until then; the end, if it is among them.
async fn gather(
    events: &mut ChatStream,
    written: &mut Written,
    thinks: bool,
    until: Instant,
) -> Result<Option<Completion>, LlmError> {
    while written.text.len() + written.thinking.len() < TOGETHER {
        let next = match events.next().now_or_never() {
            Some(next) => next,
            None if Instant::now() >= until => break,
            None => match next_until(events, until).await {
                Some(next) => next,
                None => break,
            },
        };
        match next {
            Some(Ok(ChatEvent::Delta(piece))) => written.add(&piece)?,
            Some(Ok(ChatEvent::Thinking(piece))) => written.think(&piece, thinks)?,
            Some(Ok(ChatEvent::Done(completion))) => return Ok(Some(completion)),
            Some(Err(error)) => return Err(error),
            None => return Err(LlmError::BrokenOff),
        }
    }
    Ok(None)
}

/// The next event, if it comes until then.
async fn next_until(
    events: &mut ChatStream,
    until: Instant,
) -> Option<Option<Result<ChatEvent, LlmError>>> {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
        if let Some(next) = events.next().now_or_never() {
            return Some(next);
        }
    }
    tokio::time::timeout_at(until, events.next()).await.ok()
}

fn request(cx: &Cx, question: TextCompletionRequest) -> Result<ChatRequest, LlmError> {
    let own = question.settings.unwrap_or_default();
    are_named(Some(&own.model), &own.models)?;
    let temperature = temperature_of(own.temperature, cx.parameter("temperature"))?;
    let model = Some(own.model).filter(|model| !model.is_empty());
    let format = match (question.response_format.as_deref(), question.schema) {
        (Some("json"), Some(schema)) => Format::Schema(schema),
        (Some("json"), None) => Format::Json,
        (None | Some("" | "text"), _) => Format::Text,
        _ => return Err(LlmError::ResponseFormat),
    };
    Ok(ChatRequest {
        system: question.system,
        prompt: question.prompt,
        model: model.or_else(|| cx.parameter("model").map(str::to_owned)),
        temperature,
        // None at all is no wish.
        max_tokens: own.max_tokens.filter(|most| *most > 0),
        fallbacks: own.models,
        service: own.service,
        format,
        streaming: question.streaming,
        workspace: cx.workspace().to_owned(),
        place: cx.place(),
        ..ChatRequest::default()
    })
}

fn label(processor: &str) -> &'static str {
    match processor {
        "text-completion-rag" => "text-completion-rag",
        _ => "text-completion",
    }
}

fn piece(written: &mut Written) -> TextCompletionResponse {
    TextCompletionResponse {
        response: written.take(),
        thinking: std::mem::take(&mut written.thinking),
        ..TextCompletionResponse::default()
    }
}

fn end(written: &mut Written, completion: &Completion) -> TextCompletionResponse {
    TextCompletionResponse {
        response: written.take(),
        thinking: std::mem::take(&mut written.thinking),
        in_token: Some(completion.in_token.unwrap_or(0)),
        out_token: Some(completion.written()),
        model: Some(completion.model.clone()),
        cache_read: completion.counts.cache_read,
        cost: completion.dollars(),
        cache_write: completion.counts.cache_write,
        backend: completion.backend(),
        attempts: completion.attempts(),
        end_of_stream: true,
        ..TextCompletionResponse::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::stream;
    use tg_schemas::limits;

    use super::*;

    /// Pieces without an end: what is gathered is bounded, and whoever lets the stream go has closed it.
    #[tokio::test]
    async fn a_model_that_goes_on_is_hung_up_on() {
        let open = Arc::new(());
        let held = open.clone();
        let endless = stream::repeat_with(move || {
            let _ = &held;
            Ok(ChatEvent::Delta("x".repeat(TOGETHER)))
        });
        let (mut events, mut written): (ChatStream, _) = (endless.boxed(), Written::default());
        let mut bytes = 0;
        let error = loop {
            match gather(&mut events, &mut written, false, Instant::now() + PACE).await {
                Ok(None) => bytes += written.take().len(),
                Ok(Some(_)) => panic!("an end"),
                Err(error) => break error,
            }
        };
        assert_eq!(error, LlmError::LongAnswer);
        assert_eq!(bytes, limits::MODEL_TEXT / TOGETHER * TOGETHER);
        drop(events);
        assert_eq!(Arc::strong_count(&open), 1);
        let told = tg_schemas::Error::from(error);
        assert_eq!(told.code(), ErrorCode::TooLarge);
        assert_eq!(
            told.message,
            "the answer of the model is longer than 15 MiB"
        );
    }
}
