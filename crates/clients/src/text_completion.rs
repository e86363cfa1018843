//! The text completion of a flow: which model would reply now, and how it stands with its provider.

use std::time::Duration;

use tg_mesh::{Cx, Mesh};
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::processors::shared;
use tg_schemas::{Error, Topic};

use crate::caller::Caller;
use crate::flow_records;
use crate::neighbours::Neighbours;

/// How long the question may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The operation that asks which model would reply.
const WHICH_MODEL: &str = "which-model";

/// Topic of the text completion that a prompt processor of this flow asks; `None` when nobody can tell, as with foreign
/// services.
pub fn behind(cx: &Cx, prompt: &str) -> Option<Topic> {
    let row = flow_records::processor(cx.config(), cx.workspace(), cx.flow(), prompt)?;
    let topic = Topic::parse(row.topics.get(shared::TEXT_COMPLETION.name)?).ok()?;
    Neighbours::of(&cx.mesh).say_how_they_are().then_some(topic)
}

/// The model behind a text completion; empty if it does not say.
///
/// # Errors
/// How the question failed.
pub async fn which_model(cx: &Cx, topic: &Topic) -> Result<String, Error> {
    let ask = TextCompletionRequest {
        operation: WHICH_MODEL.to_owned(),
        ..TextCompletionRequest::default()
    };
    let answer = asking(cx, topic).patient(TIMEOUT).last(&ask).await?;
    Ok(answer.model.unwrap_or_default())
}

/// The model behind a text completion, asked on this process's own account; empty if it does not say.
///
/// # Errors
/// How the question failed.
pub async fn model_of(mesh: &Mesh, topic: &Topic, within: Duration) -> Result<String, Error> {
    let asking: Caller<TextCompletionRequest, TextCompletionResponse> =
        Caller::of_process(mesh, topic.clone()).at_most(within);
    let ask = TextCompletionRequest {
        operation: WHICH_MODEL.to_owned(),
        ..TextCompletionRequest::default()
    };
    Ok(asking.last(&ask).await?.model.unwrap_or_default())
}

/// How it stands with the provider behind a text completion, in a sentence.
///
/// # Errors
/// What is wrong with it, or how the question failed.
pub async fn status(mesh: &Mesh, topic: &Topic, within: Duration) -> Result<String, Error> {
    let asking: Caller<TextCompletionRequest, TextCompletionResponse> =
        Caller::of_process(mesh, topic.clone()).at_most(within);
    // A foreign service knows no such operation, and lists its models.
    let operation = match asking.neighbours().say_how_they_are() {
        true => "status",
        false => "list-models",
    };
    let ask = TextCompletionRequest {
        operation: operation.to_owned(),
        ..TextCompletionRequest::default()
    };
    let answer = asking.last(&ask).await?;
    Ok(match answer.response.is_empty() {
        true => "a model provider is configured".to_owned(),
        false => answer.response,
    })
}

fn asking(cx: &Cx, topic: &Topic) -> Caller<TextCompletionRequest, TextCompletionResponse> {
    Caller::within(cx, Ok(topic.clone()))
}
