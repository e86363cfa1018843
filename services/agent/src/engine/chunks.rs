//! The chunks of a dialog, as functions of what was decided: the same row always gives the same chunks.

use tg_provenance::{Event, Session};
use tg_schemas::msg::AgentResponse;
use tg_schemas::vocabulary::RETRIEVAL_GRAPH;
use tg_schemas::{Error, Reply};

use super::decision::{Decision, Explained, Usage};

/// A piece of a thought.
pub fn thought(session: &Session, step: u32, piece: &str, ends: bool) -> AgentResponse {
    AgentResponse {
        message_type: "thought".to_owned(),
        content: piece.to_owned(),
        end_of_message: ends,
        message_id: session.thought(step),
        ..AgentResponse::default()
    }
}

/// The tool chosen: name and arguments as JSON.
pub fn action(session: &Session, step: u32, decision: &Decision) -> AgentResponse {
    let (name, arguments) = decision.action();
    let name = serde_json::Value::from(name);
    AgentResponse {
        message_type: "action".to_owned(),
        content: format!("{{\"name\": {name}, \"arguments\": {arguments}}}"),
        end_of_message: true,
        message_id: session.iteration(step),
        ..AgentResponse::default()
    }
}

/// What the tool returned.
pub fn observation(session: &Session, step: u32, text: &str) -> AgentResponse {
    AgentResponse {
        message_type: "observation".to_owned(),
        content: text.to_owned(),
        end_of_message: true,
        message_id: session.observation(step),
        ..AgentResponse::default()
    }
}

/// A piece of the answer.
pub fn answer(session: &Session, piece: &str) -> AgentResponse {
    AgentResponse {
        message_type: "answer".to_owned(),
        content: piece.to_owned(),
        message_id: session.conclusion(),
        ..AgentResponse::default()
    }
}

/// The end of the dialog, with what the whole run used. `text` is the answer unless it was streamed.
pub fn last(session: &Session, text: &str, total: &Usage, decision: &Decision) -> AgentResponse {
    let known = |count: i64| (count > 0).then_some(count);
    AgentResponse {
        end_of_message: true,
        end_of_dialog: true,
        in_token: known(total.in_token),
        out_token: known(total.out_token),
        model: (!total.model.is_empty()).then(|| total.model.clone()),
        citations: decision.citations.clone(),
        refused: decision.refused,
        trace: session.iri().to_owned(),
        ..answer(session, text)
    }
}

/// An entry of the trace, shown to the asker.
pub fn explain(event: &Event) -> AgentResponse {
    AgentResponse {
        message_type: "explain".to_owned(),
        explain_id: Some(event.id.clone()),
        explain_graph: Some(RETRIEVAL_GRAPH.to_owned()),
        explain_triples: event.triples.clone(),
        ..AgentResponse::default()
    }
}

/// An entry of a tool's own trace, passed on.
pub fn relayed(entry: &Explained) -> AgentResponse {
    explain(&Event {
        id: entry.id.clone(),
        triples: entry.triples.clone(),
    })
}

/// The end of a dialog without an answer.
pub fn failure(error: Error) -> AgentResponse {
    AgentResponse::failure(error)
}

/// The pieces of a thought, as they were sent.
pub fn thoughts(session: &Session, step: u32, decision: &Decision) -> Vec<AgentResponse> {
    let ends = decision.thought.len().saturating_sub(1);
    decision
        .thought
        .iter()
        .enumerate()
        .map(|(at, piece)| thought(session, step, piece, at == ends))
        .collect()
}
