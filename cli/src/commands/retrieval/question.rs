//! `tg ask`: a question to whoever of the flow answers best: its agent, its documents or its graph.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::answered::{Answered, missing_collection};
use crate::args::{InCollection, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::commands::llm::usage;
use crate::fields::{embedded, text};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg ask`.
#[derive(Debug, Args)]
pub struct AskQuestion {
    #[command(flatten)]
    place: InCollection,
    /// The question
    #[arg(required = true, value_name = "QUESTION")]
    question: Vec<String>,
    /// Who answers [default: the first of these that the flow has]
    #[arg(long, value_enum, value_name = "SERVICE")]
    with: Option<With>,
    /// Say how many tokens were used, on stderr
    #[arg(long)]
    show_usage: bool,
}

/// Who answers questions, in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum With {
    Agent,
    DocumentRag,
    GraphRag,
}

impl With {
    fn service(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::DocumentRag => "document-rag",
            Self::GraphRag => "graph-rag",
        }
    }

    fn request(self, question: &str, collection: &str) -> Value {
        let key = match self {
            Self::Agent => "question",
            Self::DocumentRag | Self::GraphRag => "query",
        };
        json!({key: question, "collection": collection, "streaming": true})
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

impl Command for AskQuestion {
    const NAME: &'static str = "ask";
    const ABOUT: &'static str = "Ask a question, and get an answer with its sources";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut socket = session.socket().await?;
        let flow = &self.place.flow.flow_id;
        let with = match self.with {
            Some(with) => with,
            None => chosen(&mut socket, flow).await?,
        };
        let request = with.request(&self.question.join(" "), &self.place.collection);
        let call = Call::in_flow(flow, with.service(), request);
        let mut replies = socket.start(&call).await?;
        let (mut answer, mut last) = (String::new(), Value::Null);
        while let Some(reply) = replies.next().await? {
            if let Some(piece) = with.piece(&reply) {
                session.out.piece_if_text(&piece)?;
                answer.push_str(&piece);
                last = reply;
            }
        }
        let answered = Answered::read(&last);
        if session.out.is_json() {
            let mut shown = json!({
                "answer": answer,
                "with": with.service(),
                "in_token": last.get("in_token"),
                "out_token": last.get("out_token"),
                "model": last.get("model"),
            });
            answered.add_to(&mut shown);
            session.out.json(&shown)?;
        } else {
            session.out.line("")?;
            if let Some(told) = answered.below() {
                session.out.line(told)?;
            }
        }
        answered.talk(&mut session.out, &self.place);
        let collection = &self.place.collection;
        if !answered.cites() && collection != "default" {
            missing_collection(&mut session.out, &mut socket, collection).await?;
        }
        socket.close().await;
        if self.show_usage {
            session.out.talk(usage(&last));
        }
        Ok(())
    }
}

/// Who of a flow answers.
async fn chosen(socket: &mut Socket, flow: &str) -> Result<With> {
    let request = json!({"operation": "get-flow", "flow-id": flow});
    let reply = socket.ask(&Call::global("flow", request)).await;
    let reply = match reply {
        Ok(reply) => reply,
        // Who may ask need not be allowed to look; where the flow is not there the question says so.
        Err(Error::Service { .. }) => return Ok(With::Agent),
        Err(error) => return Err(error),
    };
    With::of(&embedded(&reply, "flow")).ok_or_else(|| {
        Error::Missing(format!(
            "flow {flow} answers no questions: it has no agent, no document-rag and no graph-rag"
        ))
    })
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
        assert_eq!(
            With::Agent.request("why?", "docs"),
            json!({"question": "why?", "collection": "docs", "streaming": true})
        );
    }
}
