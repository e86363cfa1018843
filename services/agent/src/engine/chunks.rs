//! The chunks of a dialog, as functions of what was decided: the same row always gives the same chunks.

use serde_json::{Map, Value};
use tg_provenance::{Event, Reason, Session};
use tg_schemas::msg::{AgentResponse, ChatUsage, LoopRecord};
use tg_schemas::vocabulary::RETRIEVAL_GRAPH;
use tg_schemas::{Error, Reply, rdf};

use super::decision::{Decision, Explained, Taken, Usage};

/// A piece of a thought, under the id of its message.
pub fn thought(message: String, piece: &str, ends: bool) -> AgentResponse {
    AgentResponse {
        message_type: "thought".to_owned(),
        content: piece.to_owned(),
        end_of_message: ends,
        message_id: message,
        ..AgentResponse::default()
    }
}

/// Each tool chosen: name and arguments as JSON.
pub fn actions(session: &Session, step: u32, decision: &Decision) -> Vec<AgentResponse> {
    match decision.apart() {
        apart if apart.is_empty() => vec![action(session, (step, 0), decision)],
        apart => (0..)
            .zip(&apart)
            .map(|(nth, one)| action(session, (step, nth), one))
            .collect(),
    }
}

fn action(session: &Session, (step, nth): (u32, u32), decision: &Decision) -> AgentResponse {
    let (name, arguments) = decision.action();
    let quoted = Value::from(&*name);
    let args = match &decision.taken {
        Taken::Action { arguments, .. } => arguments.clone(),
        _ => Map::new(),
    };
    AgentResponse {
        message_type: "action".to_owned(),
        content: format!("{{\"name\": {quoted}, \"arguments\": {arguments}}}"),
        end_of_message: true,
        message_id: session.call(step, nth),
        call_id: session.call(step, nth),
        tool_name: name.into_owned(),
        args,
        ..AgentResponse::default()
    }
}

/// The user is asked whether a tool may be used: its name, its arguments, and until when, as JSON.
pub fn confirm(
    session: &Session,
    (step, nth): (u32, u32),
    decision: &Decision,
    until_ms: i64,
) -> AgentResponse {
    let (name, arguments) = decision.action();
    let name = Value::from(&*name);
    AgentResponse {
        message_type: "confirm".to_owned(),
        content: format!(
            "{{\"tool\": {name}, \"arguments\": {arguments}, \"until-ms\": {until_ms}}}"
        ),
        end_of_message: true,
        message_id: session.confirmation(step, nth),
        ..AgentResponse::default()
    }
}

/// What the tool returned.
pub fn observation(
    session: &Session,
    (step, nth): (u32, u32),
    decision: &Decision,
    text: &str,
) -> AgentResponse {
    AgentResponse {
        message_type: "observation".to_owned(),
        content: text.to_owned(),
        end_of_message: true,
        message_id: session.observation_of(step, nth),
        call_id: session.call(step, nth),
        tool_name: decision.action_name().into_owned(),
        ..AgentResponse::default()
    }
}

/// A piece of the answer, under the id of its message.
pub fn answer(message: String, piece: &str) -> AgentResponse {
    AgentResponse {
        message_type: "answer".to_owned(),
        content: piece.to_owned(),
        message_id: message,
        ..AgentResponse::default()
    }
}

/// The end of a dialog, with what the whole run used.
fn ended(session: &Session, message: String, text: &str, spent: Spent<'_>) -> AgentResponse {
    let known = |count: i64| (count > 0).then_some(count);
    let total = spent.total;
    AgentResponse {
        end_of_message: true,
        end_of_dialog: true,
        in_token: known(total.in_token),
        out_token: known(total.out_token),
        model: (!total.model.is_empty()).then(|| total.model.clone()),
        trace: session.iri().to_owned(),
        usage: spent.usage(),
        cost: total.cost.answer(spent.rate),
        calls: total.calls.clone(),
        ..answer(message, text)
    }
}

/// What a run used, as its end reports it.
#[derive(Debug, Clone, Copy)]
pub struct Spent<'a> {
    /// All of it.
    pub total: &'a Usage,
    /// Euros for a dollar; 0: not set.
    pub rate: f64,
}

impl Spent<'_> {
    fn usage(&self) -> Option<ChatUsage> {
        let count = |count: i64| count.max(0);
        let (input, output) = (count(self.total.in_token), count(self.total.out_token));
        let total = input.saturating_add(output);
        (total > 0).then(|| ChatUsage {
            input,
            output,
            total,
            cache_read: count(self.total.cache_read),
            cache_write: count(self.total.cache_write),
            ..ChatUsage::default()
        })
    }
}

/// The end of a dialog with an answer. `text` is the answer unless it was streamed.
pub fn last(
    session: &Session,
    message: String,
    text: &str,
    spent: Spent<'_>,
    decision: &Decision,
) -> AgentResponse {
    AgentResponse {
        citations: decision.citations.clone(),
        refused: decision.refused,
        finish_reason: "stop".to_owned(),
        ..ended(session, message, text, spent)
    }
}

/// The end of a dialog that was stopped, with the best that there was.
pub fn stopped(
    session: &Session,
    reason: Reason,
    text: &str,
    spent: Spent<'_>,
    window: Vec<LoopRecord>,
) -> AgentResponse {
    AgentResponse {
        finish_reason: reason.as_str().replace('-', "_"),
        stopped: true,
        loop_window: window,
        ..ended(session, session.conclusion(), text, spent)
    }
}

/// An entry of the trace, shown to the asker.
pub fn explain(event: &Event) -> AgentResponse {
    explained(event.clone())
}

/// The same of an entry of which nothing else is made.
pub fn explained(event: Event) -> AgentResponse {
    AgentResponse {
        message_type: "explain".to_owned(),
        explain_id: Some(event.id),
        explain_graph: Some(RETRIEVAL_GRAPH.to_owned()),
        explain_triples: event.triples,
        ..AgentResponse::default()
    }
}

/// An entry of a tool's own trace, passed on.
pub fn relayed(entry: &Explained) -> AgentResponse {
    explained(Event {
        id: entry.id.clone(),
        triples: entry.triples.clone(),
    })
}

/// What a part without triples takes as JSON, and each triple, with all fields and without empty ones, in bytes: a buffer that grows
/// is copied each time.
const PART: usize = 512;
const TRIPLE: usize = 400;
const LEAN_TRIPLE: usize = 220;

/// A part as JSON; with `lean` its triples have no empty fields.
pub fn written(part: &AgentResponse, lean: bool) -> String {
    let triple = match lean {
        true => LEAN_TRIPLE,
        false => TRIPLE,
    };
    let size = PART + part.content.len() + triple * part.explain_triples.len();
    let mut text = Vec::with_capacity(size);
    let mut write = || serde_json::to_writer(&mut text, part);
    let written = match lean {
        true => rdf::lean(write),
        false => write(),
    };
    let text = written.ok().and_then(|()| String::from_utf8(text).ok());
    text.unwrap_or_else(|| "{}".to_owned())
}

/// A whole part, as it was noted.
pub fn part(json: &str) -> AgentResponse {
    serde_json::from_slice(json.as_bytes()).unwrap_or_default()
}

/// The end of a dialog without an answer. `spent`: `None` of one that was never begun.
pub fn failure(error: Error, spent: Option<Spent<'_>>) -> AgentResponse {
    AgentResponse {
        finish_reason: "error".to_owned(),
        usage: spent.and_then(|spent| spent.usage()),
        cost: spent.and_then(|spent| spent.total.cost.answer(spent.rate)),
        calls: spent.map_or_else(Vec::new, |spent| spent.total.calls.clone()),
        ..AgentResponse::failure(error)
    }
}

/// The pieces of a thought, as they were sent.
pub fn thoughts(message: &str, decision: &Decision) -> Vec<AgentResponse> {
    let ends = decision.thought.len().saturating_sub(1);
    decision
        .thought
        .iter()
        .enumerate()
        .map(|(at, piece)| thought(message.to_owned(), piece, at == ends))
        .collect()
}
