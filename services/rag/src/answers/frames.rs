//! The frames of an answer, in both kinds. Pure.
//!
//! Streamed: an explain frame as each entry of the trace is known, pieces of the answer, the last of them
//! with `end_of_stream`, then one closing frame with `end_of_session`. Not streamed: one frame with
//! everything, the trace included.

use tg_provenance::Event;
use tg_schemas::msg::{Citation, DocumentRagResponse, GraphRagResponse, Source};
use tg_schemas::vocabulary::RETRIEVAL_GRAPH;
use tg_schemas::{Error, Reply};

use crate::ask::Spent;

/// What the end of an answer reports.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// What all model calls took.
    pub spent: Spent,
    /// Documents behind what is cited.
    pub sources: Vec<Source>,
    /// Model whose vectors were searched, if any were.
    pub embeddings: Option<String>,
    /// What the numbers in the answer name.
    pub citations: Vec<Citation>,
    /// The answer is that there is none.
    pub refused: bool,
    /// What the trace is named by.
    pub trace: String,
    /// What it had to do without, a sentence each.
    pub warnings: Vec<String>,
}

/// Makes frames.
pub trait Frames: Reply {
    /// An entry of the trace.
    fn explain(event: &Event) -> Self;
    /// A piece of the answer.
    fn piece(text: String, last: bool) -> Self;
    /// The end of a streamed answer.
    fn closing(end: End) -> Self;
    /// The whole answer, with its trace.
    fn whole(text: String, trace: &[Event], end: End) -> Self;
    /// The end of an answer that failed, with what models took before.
    fn failed(error: Error, spent: Spent) -> Self;
}

impl Frames for GraphRagResponse {
    fn explain(event: &Event) -> Self {
        Self {
            message_type: "explain".to_owned(),
            explain_id: Some(event.id.clone()),
            explain_graph: Some(RETRIEVAL_GRAPH.to_owned()),
            explain_triples: event.triples.clone(),
            ..Self::default()
        }
    }

    fn piece(text: String, last: bool) -> Self {
        Self {
            message_type: "chunk".to_owned(),
            response: text,
            end_of_stream: last,
            ..Self::default()
        }
    }

    fn closing(end: End) -> Self {
        Self {
            message_type: "chunk".to_owned(),
            end_of_session: true,
            in_token: end.spent.in_token,
            out_token: end.spent.out_token,
            model: end.spent.model,
            sources: end.sources,
            embeddings_model: end.embeddings,
            citations: end.citations,
            refused: end.refused,
            trace: end.trace,
            warnings: end.warnings,
            ..Self::default()
        }
    }

    fn whole(text: String, trace: &[Event], end: End) -> Self {
        Self {
            response: text,
            end_of_stream: true,
            explain_id: trace.first().map(|event| event.id.clone()),
            explain_graph: Some(RETRIEVAL_GRAPH.to_owned()),
            explain_triples: trace.iter().flat_map(|e| e.triples.clone()).collect(),
            ..Self::closing(end)
        }
    }

    fn failed(error: Error, spent: Spent) -> Self {
        Self {
            in_token: spent.in_token,
            out_token: spent.out_token,
            model: spent.model,
            ..Self::failure(error)
        }
    }
}

impl Frames for DocumentRagResponse {
    fn explain(event: &Event) -> Self {
        Self {
            message_type: "explain".to_owned(),
            explain_id: Some(event.id.clone()),
            explain_graph: Some(RETRIEVAL_GRAPH.to_owned()),
            explain_triples: event.triples.clone(),
            ..Self::default()
        }
    }

    fn piece(text: String, last: bool) -> Self {
        Self {
            message_type: "chunk".to_owned(),
            response: Some(text),
            end_of_stream: last,
            ..Self::default()
        }
    }

    fn closing(end: End) -> Self {
        Self {
            message_type: "end".to_owned(),
            end_of_session: true,
            in_token: end.spent.in_token,
            out_token: end.spent.out_token,
            model: end.spent.model,
            sources: end.sources,
            embeddings_model: end.embeddings,
            citations: end.citations,
            refused: end.refused,
            trace: end.trace,
            warnings: end.warnings,
            ..Self::default()
        }
    }

    fn whole(text: String, trace: &[Event], end: End) -> Self {
        Self {
            // Clients of the reference expect no type here.
            message_type: String::new(),
            response: Some(text),
            end_of_stream: true,
            explain_id: trace.first().map(|event| event.id.clone()),
            explain_graph: Some(RETRIEVAL_GRAPH.to_owned()),
            explain_triples: trace.iter().flat_map(|e| e.triples.clone()).collect(),
            ..Self::closing(end)
        }
    }

    fn failed(error: Error, spent: Spent) -> Self {
        Self {
            in_token: spent.in_token,
            out_token: spent.out_token,
            model: spent.model,
            ..Self::failure(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_ends() {
        let event = Event {
            id: "urn:e".into(),
            triples: Vec::new(),
        };
        assert!(!GraphRagResponse::explain(&event).is_last());
        assert!(!GraphRagResponse::piece("x".into(), true).is_last());
        assert!(GraphRagResponse::closing(End::default()).is_last());
        let whole =
            GraphRagResponse::whole("x".into(), std::slice::from_ref(&event), End::default());
        assert!(whole.is_last() && whole.end_of_stream && whole.message_type == "chunk");
        assert!(!DocumentRagResponse::piece("x".into(), true).is_last());
        let closing = DocumentRagResponse::closing(End::default());
        assert!(closing.is_last() && closing.response.is_none() && closing.message_type == "end");
        let whole = DocumentRagResponse::whole("x".into(), &[event], End::default());
        assert!(whole.is_last() && whole.end_of_stream && whole.message_type.is_empty());
    }
}
