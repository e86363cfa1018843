//! A question with values comes in; the model's reply goes out in the shape that the prompt promises.

use async_trait::async_trait;
use tg_clients::rendering::ReadyPrompts;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{ModelSettings, PromptRequest, PromptResponse, TextCompletionRequest};
use tg_schemas::processors::shared::TEXT_COMPLETION;
use tg_templates::{Kind, Prompt};

use crate::engine::shape::{self, Misshapen};
use crate::error::PromptError;
use crate::options::Options;

/// Longest part of a bad reply that the model is shown again, in characters.
const SHOWN_AGAIN: usize = 16 << 10;

/// Serves `request` of both processors.
pub(crate) struct PromptHandler {
    ready: ReadyPrompts,
}

impl PromptHandler {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            ready: ReadyPrompts::new(options.workspaces),
        }
    }
}

#[async_trait]
impl RequestHandler<PromptRequest, PromptResponse> for PromptHandler {
    async fn serve(
        &self,
        cx: Cx,
        question: PromptRequest,
        out: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        let set = self.ready.get(&cx);
        let prompt = set.render(&question.id, &question.terms)?;
        // The model may take long: what the prompt was made of is not held meanwhile.
        drop(question.terms);
        if prompt.kind == Kind::Text && cx.forwards() {
            let ask = TextCompletionRequest {
                thinking: question.thinking,
                settings: question.settings,
                ..ask(&prompt, question.streaming)
            };
            cx.forward(TEXT_COMPLETION, &ask, out).await
        } else {
            let wishes = (question.thinking, question.settings);
            match prompt.kind == Kind::Text && question.streaming {
                true => relay(&cx, &prompt, wishes, out).await,
                false => whole(&cx, &prompt, wishes, out).await,
            }
        }
    }
}

/// Whether what the model thinks is wanted, and what is said of the model.
type Wishes = (bool, Option<ModelSettings>);

fn ask(prompt: &Prompt<'_>, streaming: bool) -> TextCompletionRequest {
    let schema = prompt.enforceable().cloned();
    TextCompletionRequest {
        system: prompt.system.clone(),
        prompt: prompt.text.clone(),
        streaming,
        response_format: schema.is_some().then(|| "json".to_owned()),
        schema,
        ..TextCompletionRequest::default()
    }
}

/// Passes pieces on as they come.
async fn relay(
    cx: &Cx,
    prompt: &Prompt<'_>,
    (thinking, settings): Wishes,
    mut out: Responder<PromptResponse>,
) -> Result<(), Error> {
    let ask = TextCompletionRequest {
        thinking,
        settings,
        ..ask(prompt, true)
    };
    let mut answer = cx.ask(TEXT_COMPLETION, &ask)?;
    while let Some(part) = answer.next().await {
        let part = part?;
        if let Some(error) = part.error {
            return Err(error);
        }
        if part.response.is_empty() && part.thinking.is_empty() && !part.end_of_stream {
            continue;
        }
        out.send(PromptResponse {
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
        })
        .await?;
    }
    match out.ended() {
        true => Ok(()),
        false => Err(PromptError::BrokenOff.into()),
    }
}

/// Characters of a reply that is of no use, for who looks into it.
const UNUSABLE: usize = 200;

/// Waits for the whole reply and answers once, in the promised shape.
async fn whole(
    cx: &Cx,
    prompt: &Prompt<'_>,
    (thinking, settings): Wishes,
    mut out: Responder<PromptResponse>,
) -> Result<(), Error> {
    let mut spent = Spent::default();
    let first = TextCompletionRequest {
        thinking: thinking && prompt.kind == Kind::Text,
        settings: settings.clone(),
        ..ask(prompt, false)
    };
    let text = complete(cx, &first, &mut spent).await?;
    let reply = match shaped(prompt, &text) {
        Ok(reply) => reply,
        Err(fault) => {
            let again = TextCompletionRequest {
                prompt: repair(&prompt.text, &text, &fault),
                settings,
                ..ask(prompt, false)
            };
            let text = complete(cx, &again, &mut spent).await?;
            match shaped(prompt, &text) {
                Ok(reply) => reply,
                // Of many lines some may always be bad; none good is an empty list, not a failure, but
                // whoever asks can see that something was dropped.
                Err(fault) if prompt.kind == Kind::Jsonl => {
                    tracing::warn!(%fault, "no line of the answer was usable");
                    PromptResponse {
                        dropped: text.lines().filter(|line| !line.trim().is_empty()).count() as i64,
                        unusable: on_one_line(text.trim(), UNUSABLE),
                        ..object("[]".to_owned())
                    }
                }
                Err(fault) => return Err(PromptError::from(fault).into()),
            }
        }
    };
    if prompt.kind == Kind::Text && reply.text.trim().is_empty() {
        return Err(PromptError::Empty.into());
    }
    out.send(PromptResponse {
        end_of_stream: true,
        in_token: spent.in_token,
        out_token: spent.out_token,
        model: spent.model,
        thinking: spent.thinking,
        cache_read: spent.cache_read,
        cost: spent.cost,
        cache_write: spent.cache_write,
        backend: spent.backend,
        attempts: spent.attempts,
        ..reply
    })
    .await
}

/// What the model calls of one prompt cost together.
#[derive(Default)]
struct Spent {
    in_token: Option<i64>,
    out_token: Option<i64>,
    model: Option<String>,
    cache_read: Option<i64>,
    cache_write: Option<i64>,
    /// Dollars; nothing where a provider of one of them did not say.
    cost: Option<f64>,
    /// What it thought, where that is wanted.
    thinking: String,
    backend: Option<String>,
    attempts: Option<i64>,
}

async fn complete(
    cx: &Cx,
    request: &TextCompletionRequest,
    spent: &mut Spent,
) -> Result<String, Error> {
    let mut answer = cx.ask(TEXT_COMPLETION, request)?;
    let mut text = String::new();
    while let Some(part) = answer.next().await {
        let part = part?;
        if let Some(error) = part.error {
            return Err(error);
        }
        text += &part.response;
        spent.thinking += &part.thinking;
        add(&mut spent.in_token, part.in_token);
        add(&mut spent.out_token, part.out_token);
        add(&mut spent.cache_read, part.cache_read);
        add(&mut spent.cache_write, part.cache_write);
        add(&mut spent.attempts, part.attempts);
        if let Some(more) = part.cost {
            spent.cost = Some(spent.cost.unwrap_or(0.0) + more);
        }
        spent.model = part.model.or(spent.model.take());
        spent.backend = part.backend.or(spent.backend.take());
    }
    Ok(text)
}

fn add(sum: &mut Option<i64>, more: Option<i64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}

fn shaped(prompt: &Prompt<'_>, text: &str) -> Result<PromptResponse, Misshapen> {
    Ok(match prompt.kind {
        Kind::Text => PromptResponse {
            text: text.to_owned(),
            ..PromptResponse::default()
        },
        Kind::Json => object(shape::json(text, prompt.schema)?.to_string()),
        Kind::Jsonl => {
            let lines = shape::json_lines(text, prompt.schema)?;
            PromptResponse {
                dropped: lines.dropped as i64,
                ..object(serde_json::Value::Array(lines.values).to_string())
            }
        }
    })
}

fn object(object: String) -> PromptResponse {
    PromptResponse {
        object,
        ..PromptResponse::default()
    }
}

/// The prompt for a second try after a reply of the wrong shape.
fn repair(prompt: &str, reply: &str, fault: &Misshapen) -> String {
    let reply: String = reply.chars().take(SHOWN_AGAIN).collect();
    format!(
        "{prompt}\n\nYour last reply to this was:\n\n{reply}\n\nIt cannot be used: {fault}. \
         Reply again with the JSON only, nothing before or after it."
    )
}

/// The beginning of a text as one line: it stands in errors and logs.
fn on_one_line(text: &str, characters: usize) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(characters).map(shown).collect()
}
