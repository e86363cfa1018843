//! A chat with a model comes in: to the completer, and back what the model writes, which tools it calls and what it
//! used; or a question about the backends of models, for which nobody is asked.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use tg_clients::model_calls::ModelCalls;
use tg_mesh::{Cx, RequestHandler, Responder, clock};
use tg_provider_http::within;
use tg_replies::may_be_calls;
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ChatToolCall, ChatTurn, ChatUsage,
};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::chat_pictures::{self, ChatPictures};
use super::counting::Counting;
use super::wishes::{are_named, temperature_of};
use super::written::Written;
use super::{Rooms, usage};
use crate::engine::repair::calls;
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatRequest, Completion, Dialog, Format};
use crate::provider_client::{self, ProviderClient};

/// Serves `chat-completion`.
pub(crate) struct ChatCompletion {
    pub(crate) provider_client: ProviderClient,
    pub(crate) rooms: Arc<Rooms>,
    pub(crate) pictures: ChatPictures,
    pub(crate) calls: ModelCalls,
}

#[async_trait]
impl RequestHandler<ChatCompletionRequest, ChatCompletionResponse> for ChatCompletion {
    async fn serve(
        &self,
        cx: Cx,
        question: ChatCompletionRequest,
        mut out: Responder<ChatCompletionResponse>,
    ) -> Result<(), Error> {
        are_named(question.model.as_deref(), &question.models)?;
        match question.operation.as_str() {
            "completion" | "" => self.answer(&cx, question, &mut out).await,
            "list-models" => {
                let models = self.list_models(&cx).await;
                out.send(models.unwrap_or_else(|error| refused(&cx, self, None, error)))
                    .await
            }
            "route" => out.send(self.route(&cx, question.model.as_deref())).await,
            "health" => out.send(self.health(&cx, &question.models)).await,
            _ => Err(LlmError::ChatOperation.into()),
        }
    }
}

impl ChatCompletion {
    async fn list_models(&self, cx: &Cx) -> Result<ChatCompletionResponse, LlmError> {
        let within = within(cx.deadline.left());
        let client = &self.provider_client.client;
        Ok(ChatCompletionResponse {
            models: client.list_models(within, &cx.cancel).await?,
            ..last()
        })
    }

    /// Whom a question for a model would go to now.
    fn route(&self, cx: &Cx, model: Option<&str>) -> ChatCompletionResponse {
        let model = model.or(cx.parameter("model"));
        let client = &self.provider_client.client;
        let clock = clock::now().timestamp();
        let route = client.router().explain(model, clock);
        ChatCompletionResponse {
            route: Some(route),
            ..last()
        }
    }

    /// How it stands with models. One provider has no list of them in the settings: there the flow's is meant where none is
    /// named.
    fn health(&self, cx: &Cx, asked: &[String]) -> ChatCompletionResponse {
        let router = self.provider_client.client.router();
        let of_flow = cx.parameter("model").filter(|_| router.is_alone());
        let health = match of_flow.filter(|_| asked.is_empty()) {
            Some(model) => router.health(&[model.to_owned()]),
            None => router.health(asked),
        };
        ChatCompletionResponse { health, ..last() }
    }

    /// Answers a chat and records what that cost, also where it failed.
    async fn answer(
        &self,
        cx: &Cx,
        question: ChatCompletionRequest,
        out: &mut Responder<ChatCompletionResponse>,
    ) -> Result<(), Error> {
        let mut request = match self.checked(cx, question) {
            Ok(request) => request,
            Err(error) => return out.send(refused(cx, self, None, error)).await,
        };
        if let Err(error) = self.rooms.check(cx, &self.provider_client, &mut request) {
            let asked = request.model.as_deref();
            return out.send(refused(cx, self, asked, error)).await;
        }
        let asked = request.model.clone();
        let asked = asked.as_deref();
        // Nothing is reserved while others have the memory for pictures. It is held until the answer ends.
        let mut room = match self.pictures.room(cx, &request).await {
            Ok(room) => room,
            Err(error) => return out.send(refused(cx, self, asked, error)).await,
        };
        let began = Instant::now();
        let client = &self.provider_client;
        let mut counting = match Counting::begin(&self.calls, cx, client, &request).await {
            Ok(counting) => counting,
            Err(error) if error.code() == ErrorCode::Busy => return out.send(spent(error)).await,
            Err(error) => return Err(error),
        };
        if let Some(room) = &mut room
            && let Err(error) = self.pictures.take(cx, &mut request, room).await
        {
            counting.unasked().await;
            return out.send(refused(cx, self, asked, error)).await;
        }
        let done = self.complete(cx, &request, out, &mut counting).await;
        metrics::histogram!(
            "tg_text_completion_duration_seconds",
            "processor" => "chat-completion"
        )
        .record(began.elapsed().as_secs_f64());
        match done {
            Ok(completion) => {
                // The task of the asker goes on first: on a bus in this process it waits for this thread.
                drop((request, room));
                tokio::task::yield_now().await;
                let done = Ok(completion);
                usage::record(cx, &self.provider_client, asked, began, &done).await;
                Ok(())
            }
            Err(Failed::Told(error)) => {
                let told = refused(cx, self, asked, error);
                let error = told.error.clone().unwrap_or_default();
                counting.failed(&error).await;
                let done = Err(error);
                usage::record(cx, &self.provider_client, asked, began, &done).await;
                out.send(told).await
            }
            Err(Failed::Unheard(error)) => {
                counting.failed(&error).await;
                let done = Err(error.clone());
                usage::record(cx, &self.provider_client, asked, began, &done).await;
                Err(error)
            }
        }
    }

    /// The question, once it is known to be one that can be asked. Its pictures are still where it names them.
    fn checked(&self, cx: &Cx, question: ChatCompletionRequest) -> Result<ChatRequest, LlmError> {
        let request = request(cx, question)?;
        let turns = request.dialog.iter().flat_map(|dialog| &dialog.turns);
        if chat_pictures::check(turns)? && self.provider_client.origin.is_none() {
            return Err(LlmError::ReadsNoPictures);
        }
        Ok(request)
    }

    async fn complete(
        &self,
        cx: &Cx,
        request: &ChatRequest,
        out: &mut Responder<ChatCompletionResponse>,
        counting: &mut Counting,
    ) -> Result<Completion, Failed> {
        let left = within(cx.deadline.left());
        let client = &self.provider_client.client;
        let mut events = client.open(request, left, &cx.cancel).await?;
        let mut written = Written::default();
        let tools = request.dialog.as_deref().map(|dialog| &dialog.tools);
        let tools = tools.map(Vec::as_slice).unwrap_or_default();
        let mut may_call = may_call(request);
        while let Some(event) = events.next().await {
            let event = event?;
            let added = match &event {
                ChatEvent::Delta(piece) => written.add(piece),
                ChatEvent::Thinking(piece) => written.think(piece, !request.streaming),
                ChatEvent::Done(_) => Ok(()),
            };
            counting.heard(written.characters);
            added?;
            match event {
                // What may be a call of a tool waits until that is known.
                ChatEvent::Delta(_) => {
                    if request.streaming && !(may_call && may_be_calls(&written.text)) {
                        may_call = false;
                        say(written.take(), out).await?;
                    }
                }
                ChatEvent::Thinking(piece) => {
                    if request.streaming {
                        think(piece, out).await?;
                    }
                }
                ChatEvent::Done(mut completion) => {
                    completion.characters = written.characters;
                    if may_call && completion.tool_calls.is_empty() {
                        completion.tool_calls = calls(&written.text, tools).unwrap_or_default();
                        if !completion.tool_calls.is_empty() {
                            written.text.clear();
                        }
                    }
                    if request.streaming && !written.text.is_empty() {
                        say(written.take(), out).await?;
                    }
                    provider_client::note(true);
                    let end = ChatCompletionResponse {
                        thinking: std::mem::take(&mut written.thinking),
                        ..end(written.take(), &completion)
                    };
                    counting.answered(&completion).await;
                    out.send(end).await.map_err(Failed::Unheard)?;
                    return Ok(completion);
                }
            }
        }
        Err(LlmError::BrokenOff.into())
    }
}

/// Whether what the model writes may be a call of a tool.
fn may_call(request: &ChatRequest) -> bool {
    let dialog = request.dialog.as_deref();
    request.format == Format::Text && dialog.is_some_and(Dialog::offers_tools)
}

/// Why there is no answer.
enum Failed {
    /// The model has none, which is told.
    Told(LlmError),
    /// Whoever asked is gone.
    Unheard(Error),
}

impl From<LlmError> for Failed {
    fn from(error: LlmError) -> Self {
        match error {
            LlmError::Cancelled => Self::Unheard(error.into()),
            error => Self::Told(error),
        }
    }
}

/// Sends a piece of the text.
async fn say(piece: String, out: &mut Responder<ChatCompletionResponse>) -> Result<(), Failed> {
    let part = ChatCompletionResponse {
        delta: piece,
        ..ChatCompletionResponse::default()
    };
    out.send(part).await.map_err(Failed::Unheard)
}

/// Sends a piece of what the model thinks.
async fn think(piece: String, out: &mut Responder<ChatCompletionResponse>) -> Result<(), Failed> {
    let part = ChatCompletionResponse {
        thinking: piece,
        ..ChatCompletionResponse::default()
    };
    out.send(part).await.map_err(Failed::Unheard)
}

fn last() -> ChatCompletionResponse {
    ChatCompletionResponse {
        end_of_stream: true,
        ..ChatCompletionResponse::default()
    }
}

/// A budget refuses the chat, as an answer.
fn spent(error: Error) -> ChatCompletionResponse {
    let pause = error.pause();
    ChatCompletionResponse {
        failure: Some("budget_exhausted".to_owned()),
        retry_after: pause.and_then(|pause| i64::try_from(pause).ok()),
        error: Some(error),
        ..last()
    }
}

/// A failure as an answer, with what its type does not say.
fn refused(
    cx: &Cx,
    of: &ChatCompletion,
    model: Option<&str>,
    error: LlmError,
) -> ChatCompletionResponse {
    let failure = match &error {
        LlmError::UnknownModel(_) => Some("model_not_found"),
        LlmError::TooLong(_) | LlmError::SmallWindow(_) => Some("context_window_too_small"),
        _ => None,
    };
    let pause = error.pause();
    let pause = pause.map(|pause| pause.as_secs_f64().ceil().max(1.0) as i64);
    let is_long = error == LlmError::LongAnswer;
    let mut told = provider_client::failed(&of.provider_client, cx, model, error);
    if is_long {
        // `TooLarge` would blame the chat.
        told = Error::new(ErrorCode::Provider, told.message);
    }
    ChatCompletionResponse {
        failure: failure.map(str::to_owned),
        retry_after: pause,
        error: Some(told),
        ..last()
    }
}

/// Whether the longest answer ends within a call: whoever makes it would leave out what was not written.
fn is_cut(completion: &Completion) -> bool {
    let is_whole = |call: &ChatToolCall| {
        serde_json::from_slice::<serde::de::IgnoredAny>(call.arguments.as_bytes()).is_ok()
    };
    completion.truncated && !completion.tool_calls.iter().all(is_whole)
}

fn end(text: String, completion: &Completion) -> ChatCompletionResponse {
    let tokens = completion.counts.tokens();
    let reason = match completion {
        _ if is_cut(completion) => "length",
        Completion { tool_calls, .. } if !tool_calls.is_empty() => "tool_calls",
        Completion {
            truncated: true, ..
        } => "length",
        _ => "stop",
    };
    let (input, written) = (completion.in_token.unwrap_or(0), completion.written());
    ChatCompletionResponse {
        content: text,
        tool_calls: completion.tool_calls.clone(),
        finish_reason: Some(reason.to_owned()),
        model: Some(completion.model.clone()),
        backend: completion.backend(),
        attempts: completion.attempts(),
        cost: completion.dollars(),
        usage: Some(ChatUsage {
            input,
            output: written,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            total: tokens.total.max(input.saturating_add(written)),
            estimated: completion.is_estimated(),
        }),
        ..last()
    }
}

/// Texts of one role, for models that read no turns.
fn joined<'a>(turns: impl Iterator<Item = &'a ChatTurn>) -> String {
    let texts: Vec<&str> = turns.map(|turn| turn.content.as_str()).collect();
    texts.join("\n\n")
}

fn request(cx: &Cx, question: ChatCompletionRequest) -> Result<ChatRequest, LlmError> {
    let roles = ["system", "user", "assistant", "tool"];
    let turns = question.messages;
    if turns.is_empty() || !turns.iter().all(|turn| roles.contains(&turn.role.as_str())) {
        return Err(LlmError::Turns);
    }
    let temperature = temperature_of(question.temperature, cx.parameter("temperature"))?;
    let format = match (question.response_format.as_deref(), question.schema) {
        (Some("json"), Some(schema)) => Format::Schema(schema),
        (Some("json"), None) => Format::Json,
        (None | Some("" | "text"), _) => Format::Text,
        _ => return Err(LlmError::ResponseFormat),
    };
    let of = |role: &'static str| turns.iter().filter(move |turn| turn.role == role);
    let model = question.model.filter(|model| !model.is_empty());
    Ok(ChatRequest {
        system: joined(of("system")),
        prompt: of("user")
            .next_back()
            .map(|turn| turn.content.clone())
            .unwrap_or_default(),
        model: model.or_else(|| cx.parameter("model").map(str::to_owned)),
        temperature,
        format,
        streaming: question.streaming,
        max_tokens: question.max_tokens,
        fallbacks: question.models,
        dialog: Some(Arc::new(Dialog {
            turns,
            pictures: Vec::new(),
            tools: question.tools,
            tool_choice: question.tool_choice,
            top_p: question.top_p,
            stop: question.stop,
        })),
        workspace: cx.workspace().to_owned(),
        place: cx.place(),
        ..ChatRequest::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_within_a_call_ends_for_its_length() {
        let reason = |arguments: &str, truncated: bool| {
            let call = ChatToolCall {
                id: "c".to_owned(),
                name: "add".to_owned(),
                arguments: arguments.to_owned(),
            };
            let completion = Completion {
                tool_calls: vec![call],
                truncated,
                ..Completion::default()
            };
            end(String::new(), &completion).finish_reason
        };
        let told = |word: &str| Some(word.to_owned());
        assert_eq!(reason("{\"a\": \"on", true), told("length"));
        assert_eq!(reason("{\"a\": 1}", true), told("tool_calls"));
        assert_eq!(reason("{\"a\": \"on", false), told("tool_calls"));
    }

    #[test]
    fn a_text_is_no_call_where_none_is_wanted() {
        let request = |choice: Option<&str>| ChatRequest {
            dialog: Some(Arc::new(Dialog {
                tools: vec![tg_schemas::msg::ChatTool::default()],
                tool_choice: choice.map(str::to_owned),
                ..Dialog::default()
            })),
            ..ChatRequest::default()
        };
        assert!(may_call(&request(None)) && may_call(&request(Some("auto"))));
        assert!(!may_call(&request(Some("none"))) && !may_call(&ChatRequest::default()));
    }
}
