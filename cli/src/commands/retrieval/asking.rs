//! A question to one of those of a flow who answer questions, streamed, with what stands below the answer.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::answered::Answered;
use crate::args::InCollection;
use crate::client::{Call, Error, Result, Socket};
use crate::fields::{embedded, text};
use crate::session::Session;

/// Who answers questions, in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum With {
    Agent,
    DocumentRag,
    GraphRag,
}

/// A question and what was said before it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Question<'a> {
    pub(super) text: &'a str,
    /// The id of the conversation; empty where there is none.
    pub(super) conversation: &'a str,
    /// What was said before, in words for a model; empty where nothing was.
    pub(super) before: &'a str,
}

/// An answer that is over.
pub(super) struct FinishedAnswer {
    pub(super) answer: String,
    /// The last part that carried a piece of it.
    pub(super) last: Value,
    pub(super) answered: Answered,
}

impl With {
    /// The named one, else the first that the flow has.
    pub(super) async fn chosen(
        named: Option<Self>,
        socket: &mut Socket,
        flow: &str,
    ) -> Result<Self> {
        if let Some(with) = named {
            return Ok(with);
        }
        let request = json!({"operation": "get-flow", "flow-id": flow});
        let reply = socket.ask(&Call::global("flow", request)).await;
        let reply = match reply {
            Ok(reply) => reply,
            // Who may ask need not be allowed to look; where the flow is not there the question says so.
            Err(Error::Service { .. }) => return Ok(Self::Agent),
            Err(error) => return Err(error),
        };
        Self::of(&embedded(&reply, "flow")).ok_or_else(|| {
            Error::Missing(format!(
                "flow {flow} answers no questions: it has no agent, no document-rag and no graph-rag"
            ))
        })
    }

    pub(super) fn service(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::DocumentRag => "document-rag",
            Self::GraphRag => "graph-rag",
        }
    }

    /// Asks, prints the pieces as they come, and the citations below them.
    pub(super) async fn ask(
        self,
        session: &mut Session,
        socket: &mut Socket,
        place: &InCollection,
        question: Question<'_>,
    ) -> Result<FinishedAnswer> {
        let request = self.request(question, &place.collection);
        let call = Call::in_flow(&place.flow.flow_id, self.service(), request);
        let mut replies = socket.start(&call).await?;
        let (mut answer, mut last) = (String::new(), Value::Null);
        while let Some(reply) = replies.next().await? {
            if let Some(piece) = self.piece(&reply) {
                session.out.piece_if_text(&piece)?;
                answer.push_str(&piece);
                last = reply;
            }
        }
        let answered = Answered::read(&last);
        if !session.out.is_json() {
            session.out.line("")?;
            if let Some(told) = answered.below() {
                session.out.line(told)?;
            }
        }
        Ok(FinishedAnswer {
            answer,
            last,
            answered,
        })
    }

    fn request(self, question: Question<'_>, collection: &str) -> Value {
        let key = match self {
            Self::Agent => "question",
            Self::DocumentRag | Self::GraphRag => "query",
        };
        let mut request = json!({key: question.text, "collection": collection, "streaming": true});
        // The others answer each question by itself.
        if self == Self::Agent && !question.conversation.is_empty() {
            request["conversation_id"] = json!(question.conversation);
            request["framing"] = json!(question.before);
        }
        request
    }

    /// The piece of the answer that a part carries; none if it carries something else.
    fn piece(self, part: &Value) -> Option<String> {
        let kind = text(part, "message_type");
        match (self, kind.as_str()) {
            (Self::Agent, "answer" | "final-answer") => Some(text(part, "content")),
            (Self::Agent, _) | (_, "explain") => None,
            _ => Some(text(part, "response")),
        }
    }

    /// The first that a flow has.
    fn of(flow: &Value) -> Option<Self> {
        let interfaces = flow.get("interfaces")?.as_object()?;
        let all = Self::value_variants().iter().copied();
        all.into_iter()
            .find(|with| interfaces.contains_key(with.service()))
    }
}

impl FinishedAnswer {
    /// The answer as one JSON document.
    pub(super) fn to_json(&self, with: With) -> Value {
        let mut shown = json!({
            "answer": self.answer,
            "with": with.service(),
            "in_token": self.last.get("in_token"),
            "out_token": self.last.get("out_token"),
            "model": self.last.get("model"),
        });
        self.answered.add_to(&mut shown);
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_decides_who_answers() {
        let of = |names: &[&str]| {
            let all = names.iter().map(|name| ((*name).to_owned(), json!({})));
            With::of(&json!({"interfaces": Value::Object(all.collect())}))
        };
        assert_eq!(
            of(&["graph-rag", "document-rag", "agent"]),
            Some(With::Agent)
        );
        assert_eq!(of(&["graph-rag", "document-rag"]), Some(With::DocumentRag));
        assert_eq!(of(&["graph-rag", "triples"]), Some(With::GraphRag));
        assert_eq!(of(&["triples"]), None);
    }

    #[test]
    fn pieces_of_the_answer_are_told_from_the_rest() {
        let answer = json!({"message_type": "answer", "content": "It is"});
        assert_eq!(With::Agent.piece(&answer).as_deref(), Some("It is"));
        let thought = json!({"message_type": "thought", "content": "hm"});
        assert_eq!(With::Agent.piece(&thought), None);
        let chunk = json!({"message_type": "chunk", "response": "It is"});
        assert_eq!(With::GraphRag.piece(&chunk).as_deref(), Some("It is"));
        assert_eq!(
            With::DocumentRag.piece(&json!({"message_type": "explain"})),
            None
        );
    }

    #[test]
    fn only_the_agent_is_told_what_was_said_before() {
        let alone = Question {
            text: "why?",
            ..Question::default()
        };
        let request = json!({"question": "why?", "collection": "docs", "streaming": true});
        assert_eq!(With::Agent.request(alone, "docs"), request);
        let later = Question {
            text: "why?",
            conversation: "c",
            before: "said",
        };
        let request = json!({"question": "why?", "collection": "docs", "streaming": true,
            "conversation_id": "c", "framing": "said"});
        assert_eq!(With::Agent.request(later, "docs"), request);
        let request = json!({"query": "why?", "collection": "docs", "streaming": true});
        assert_eq!(With::DocumentRag.request(later, "docs"), request);
    }
}
