//! A trace of the agent in the graph as the messages that its run streamed: thoughts, actions, observations and the answer, in their
//! order. What was streamed in pieces is whole here, and of plans only what is an entity.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::entity::{Entity, Kind};
use super::fetch::{TraceLocation, texts, trace};
use crate::args::InCollection;
use crate::client::{Result, Socket};
use crate::session::Session;

/// The messages of the run with this IRI.
///
/// # Errors
/// There is no such trace, or it cannot be asked for.
pub(crate) async fn messages(
    session: &Session,
    socket: &mut Socket,
    place: &InCollection,
    iri: &str,
) -> Result<Vec<Value>> {
    let place = TraceLocation::from(place);
    let trace = trace(session, socket, &place, iri).await?;
    let documents = trace.entities();
    let documents = documents.filter_map(|entity| entity.text("document"));
    let texts = texts(socket, documents.collect()).await?;
    let all = trace.question().into_iter();
    let all = all.chain(trace.steps().into_iter().map(|step| step.entity));
    Ok(all.flat_map(|entity| told(entity, &texts)).collect())
}

fn told(entity: &Entity, texts: &BTreeMap<String, String>) -> Vec<Value> {
    let message = |kind: &str, content: String| json!({"message_type": kind, "message_id": entity.iri, "content": content, "end_of_message": true});
    let document = entity.text("document");
    let text = document.and_then(|id| texts.get(&id).cloned());
    let text = text.unwrap_or_default();
    let action = || {
        let arguments = entity.text("arguments").unwrap_or_default();
        let arguments: Value = serde_json::from_slice(arguments.as_bytes()).unwrap_or_default();
        let called = json!({"name": entity.text("action"), "arguments": arguments});
        message("action", called.to_string())
    };
    match entity.kind {
        Kind::Question => {
            vec![json!({"message_type": "explain", "explain_id": entity.iri,
                "goal": entity.text("query")})]
        }
        Kind::Thought => vec![message("thought", text)],
        Kind::Analysis => vec![action()],
        Kind::StepResult => vec![action(), message("observation", text)],
        Kind::Observation => vec![message("observation", text)],
        Kind::Synthesis | Kind::Conclusion => {
            let error = entity.text("toolError").map(|why| message("error", why));
            let answer = message("answer", text);
            std::iter::once(answer).chain(error).collect()
        }
        _ => Vec::new(),
    }
}
