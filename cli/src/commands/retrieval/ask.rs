//! What both commands share: a stream of text, provenance events on stderr, the sources at the end.

use clap::Args;
use serde_json::{Value, json};

use super::answered::{Answered, must_exist};
use crate::args::{Asked, InCollection};
use crate::client::{Call, Result};
use crate::commands::explain::entity::Entity;
use crate::commands::graph::triples_of;
use crate::commands::llm::usage;
use crate::fields::{list, text};
use crate::session::Session;

/// Options of both.
#[derive(Debug, Args)]
pub(super) struct Ask {
    #[command(flatten)]
    pub(super) place: InCollection,
    #[command(flatten)]
    pub(super) question: Asked,
    /// Print the answer as a whole
    #[arg(long)]
    no_streaming: bool,
    /// Show provenance events, on stderr
    #[arg(short = 'x', long, conflicts_with = "no_streaming")]
    explainable: bool,
    /// Show provenance events of unknown kinds too
    #[arg(long)]
    debug: bool,
    /// Say how many tokens were used, on stderr
    #[arg(long)]
    show_usage: bool,
}

impl Ask {
    /// Asks; `options` are the fields that only one of the services has.
    pub(super) async fn run(
        &self,
        session: &mut Session,
        service: &'static str,
        options: Vec<(&'static str, Value)>,
    ) -> Result<()> {
        let mut request = json!({
            "query": self.question.id(),
            "collection": self.place.collection,
            "streaming": !self.no_streaming,
        });
        for (name, value) in options {
            request[name] = value;
        }
        let call = Call::in_flow(&self.place.flow.flow_id, service, request);
        let mut socket = session.socket().await?;
        must_exist(&mut socket, &self.place.collection).await?;
        let mut replies = socket.start(&call).await?;
        let (mut answer, mut last) = (String::new(), Value::Null);
        while let Some(reply) = replies.next().await? {
            if text(&reply, "message_type") == "explain" {
                self.explain(session, &reply)?;
                continue;
            }
            let piece = text(&reply, "response");
            if !session.out.is_json() {
                session.out.piece(&piece)?;
            }
            answer.push_str(&piece);
            last = reply;
        }
        let answered = Answered::read(&last);
        let sources = list(&last, "sources");
        if session.out.is_json() {
            let mut shown = json!({
                "response": answer,
                "sources": sources,
                "in_token": last.get("in_token"),
                "out_token": last.get("out_token"),
                "model": last.get("model"),
                "embeddings_model": last.get("embeddings_model"),
            });
            answered.add_to(&mut shown);
            session.out.json(&shown)?;
        } else {
            session.out.line("")?;
            if let Some(told) = answered.below().or_else(|| cited(sources)) {
                session.out.line(told)?;
            }
        }
        let out = &mut session.out;
        answered.end(out, &mut socket, &self.place).await;
        socket.close().await;
        if self.show_usage {
            session.out.talk(usage(&last));
        }
        Ok(())
    }

    fn explain(&self, session: &mut Session, reply: &Value) -> Result<()> {
        if !self.explainable {
            return Ok(());
        }
        let triples = triples_of(reply, "explain_triples");
        let entity = Entity::read(&text(reply, "explain_id"), &triples);
        if let Some(told) = entity.and_then(|entity| entity.event(self.debug)) {
            session.out.talk(format!("\n{told}"));
        }
        Ok(())
    }
}

/// The documents that the answer rests on.
fn cited(sources: &[Value]) -> Option<String> {
    let shown: Vec<_> = sources
        .iter()
        .map(
            |source| match (text(source, "title"), text(source, "uri")) {
                (title, uri) if title.is_empty() => format!("  {uri}"),
                (title, uri) => format!("  {title} ({uri})"),
            },
        )
        .collect();
    (!shown.is_empty()).then(|| format!("\nSources:\n{}", shown.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_shown_with_their_titles() {
        let sources = [
            json!({"uri": "urn:d", "title": "D"}),
            json!({"uri": "urn:e"}),
        ];
        assert_eq!(
            cited(&sources).as_deref(),
            Some("\nSources:\n  D (urn:d)\n  urn:e")
        );
        assert_eq!(cited(&[]), None);
    }
}
