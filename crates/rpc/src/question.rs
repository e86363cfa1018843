//! What a question is beside its message: compiled once, and not for each type of message.

use std::sync::Arc;

use bytes::Bytes;
use tg_bus::{Envelope, Handover, Target};
use tg_schemas::codec::ContentType;
use tg_schemas::{Class, Error, ErrorCode, Frame, Headers, Topic};
use tg_telemetry::{Span, SpanKind, attributes};

use crate::ask::Ask;
use crate::client::NewQuestion;
use crate::deadline::{Deadline, GAP, QUESTION, STREAM};
use crate::peer::Peer;

/// Questions deeper than this are a loop.
const MAX_DEPTH: u32 = 32;

impl Peer {
    /// Whether a question may be asked there, and so deep.
    pub(crate) fn may_ask(topic: &Topic, depth: u32) -> Result<(), Error> {
        if topic.class() != Class::Request {
            let text = "topic: is not a request topic";
            return Err(Error::new(ErrorCode::BadRequest, text));
        }
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorCode::Internal, "too many nested questions"));
        }
        Ok(())
    }

    /// A question whose message is written.
    pub(crate) fn written_question(
        &self,
        topic: &Topic,
        (body, handover): (Bytes, Handover),
        mut ask: Ask,
        kind: SpanKind,
    ) -> NewQuestion {
        let longest = if ask.streaming { STREAM } else { QUESTION };
        let deadline = ask.deadline.unwrap_or_else(|| Deadline::after(longest));
        let id: Arc<str> = ask
            .id
            .unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
            .into();
        let span = self.asking(kind, topic, &id, ask.traceparent.as_deref());
        span.lead(&mut ask.traceparent);
        let plain = !self.rules().framed;
        let headers = if plain {
            Headers {
                id: Some(id.to_string()),
                ..Headers::default()
            }
        } else {
            Headers {
                id: Some(id.to_string()),
                from: Some(self.inbox().to_owned()),
                reply_to: Some(self.inbox().to_owned()),
                frame: Some(Frame::Ask),
                deadline: Some(deadline.millis()),
                detach: ask.detach,
                forward: ask.forward,
                workspace: ask.workspace.map(Into::into),
                generation: ask.generation,
                epoch: ask.epoch,
                thread: ask.thread,
                parent: ask.parent.map(|parent| parent.to_string()),
                depth: (ask.depth > 0).then_some(ask.depth),
                user_id: ask.user_id,
                credential: ask.credential,
                user_context: ask.user_context,
                roles: ask.roles,
                counted: ask.counted,
                traceparent: ask.traceparent,
                request_id: ask.request_id,
                ..Headers::default()
            }
        };
        NewQuestion {
            id,
            target: Target::Topic(topic.clone()),
            question: Envelope {
                headers: Arc::new(headers),
                content_type: ContentType::Json,
                handover,
                body,
            },
            deadline,
            gap: GAP,
            cancel: ask.cancel,
            detach: ask.detach,
            taken_over: ask.taken_over,
            plain,
            span,
        }
    }

    /// The span of a question, by whose header its server belongs to it.
    fn asking(&self, kind: SpanKind, topic: &Topic, id: &str, traceparent: Option<&str>) -> Span {
        let mut span = self.tracer().child(kind, traceparent, || {
            let base = topic.name().split(':').next().unwrap_or_default();
            format!("ask {base}")
        });
        if span.is_recorded() {
            span.say(attributes::MESSAGING_OPERATION, "send");
            span.say(attributes::MESSAGING_DESTINATION, topic.name());
            span.say(attributes::MESSAGING_CONVERSATION, id);
        }
        span
    }
}
