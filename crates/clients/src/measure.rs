//! What services of a flow would do, asked before they do it. No model is asked for it.

use std::collections::BTreeMap;
use std::time::Duration;

use tg_mesh::{Cx, Mesh};
use tg_schemas::msg::{MeasureRequest, MeasureResponse, PromptRequest};
use tg_schemas::processors::{Role, TopicScope, processor, shared};
use tg_schemas::{Class, Error, FlowId, Topic, WorkspaceId};

use crate::caller::Caller;

/// What the names of the specs begin with.
const MEASURE: &str = "measure-";

/// Topic on which a processor of a flow says what it would do; `None` for one that does not say.
pub fn topic(workspace: &WorkspaceId, flow: &FlowId, id: &str) -> Option<Topic> {
    let known = processor(id)?;
    let spec = known.specs.iter().find(|spec| {
        spec.place == TopicScope::Own && spec.role == Role::Serves && spec.name.starts_with(MEASURE)
    })?;
    Some(Topic::flow(Class::Request, spec.name, workspace, flow))
}

/// What it would do, asked on this process's own account for a workspace of a generation.
///
/// # Errors
/// How the question failed.
pub async fn asked(
    mesh: &Mesh,
    topic: Topic,
    (workspace, generation): (&WorkspaceId, i64),
    ask: &MeasureRequest,
    within: Duration,
) -> Result<MeasureResponse, Error> {
    Caller::of_process(mesh, topic)
        .in_generation(workspace, generation)
        .at_most(within)
        .last(ask)
        .await
}

/// Tokens of a prompt that the flow's prompt service renders.
///
/// # Errors
/// How the question failed.
pub async fn prompt(
    cx: &Cx,
    template: &str,
    terms: BTreeMap<String, String>,
) -> Result<i64, Error> {
    let request = PromptRequest {
        id: template.to_owned(),
        terms,
        ..PromptRequest::default()
    };
    let asking = Caller::of_flow(cx, shared::PROMPT_MEASURE);
    Ok(asking.last(&request).await?.prompt_tokens)
}

/// What the flow's agent would ask a model first about questions.
///
/// # Errors
/// How the question failed.
pub async fn agent(cx: &Cx, ask: &MeasureRequest) -> Result<MeasureResponse, Error> {
    Caller::of_flow(cx, shared::AGENT_MEASURE).last(ask).await
}
