//! Feeds questions to a handler. The sink never waits: it checks the envelope and starts a handler task, or
//! refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

use tg_schemas::{Class, Error, ErrorCode, Frame, Headers, Subscription, Topic};

use crate::consume_sink::has_ended;
use crate::erased::{ErasedServe, Outcome};
use crate::instance_state::{Done, InstanceState};
use crate::intake::Intake;
use crate::scope::InstanceScope;
use tg_bus::TaskKind;
use tg_bus::{Delivery, Envelope, Sink};
use tg_rpc::deadline::{Deadline, QUESTION};
use tg_rpc::{ReplyAddress, ReplyStream};

/// After its deadline a handler has this long for its last words.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Feeds a [`crate::Serve`] handler.
pub(crate) struct ServeSink {
    pub(crate) slot: Arc<InstanceState>,
    pub(crate) handler: Arc<dyn ErasedServe>,
    pub(crate) limit: usize,
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) subscription: Subscription,
    /// Where answers to plain askers go.
    pub(crate) responses: Topic,
    pub(crate) intake: Arc<Intake>,
}

impl ServeSink {
    /// Takes a question, or refuses it.
    pub(crate) fn accept(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        delivery.ack();
        let framed = self.slot.mesh.rules().framed;
        if framed && envelope.headers.frame != Some(Frame::Ask) {
            metrics::counter!("tg_questions_malformed_total").increment(1);
            return;
        }
        self.take(envelope);
    }

    fn refusal(&self, headers: &Headers) -> Option<Error> {
        let refused = |code, text: &str| Some(Error::new(code, text));
        if headers
            .deadline
            .is_some_and(|at| Deadline::from_millis(at).passed())
        {
            return refused(ErrorCode::Timeout, "the deadline has passed");
        }
        if self.slot.of_another_epoch(headers) {
            return refused(
                ErrorCode::FlowStopped,
                "the flow was stopped and started again",
            );
        }
        if has_ended(&self.slot, headers) {
            return refused(ErrorCode::NotFound, "the workspace was deleted");
        }
        if self.slot.stopping.load(Ordering::Acquire) && headers.depth.unwrap_or(0) == 0 {
            return refused(ErrorCode::FlowStopped, "the flow is stopping");
        }
        None
    }

    fn address(&self, headers: &Headers, deadline: Deadline) -> Option<ReplyAddress> {
        let plain = !self.slot.mesh.rules().framed;
        Some(ReplyAddress {
            id: headers.id.clone()?,
            reply_to: match &headers.reply_to {
                Some(inbox) if !plain => inbox.clone(),
                _ if plain => self.responses.to_string(),
                _ => return None,
            },
            seq: headers.seq.unwrap_or(0),
            deadline: deadline.millis(),
            detach: headers.detach,
            plain,
        })
    }

    fn take(&self, envelope: Envelope) {
        let mesh = &self.slot.mesh;
        let headers = envelope.headers.clone();
        let deadline = headers
            .deadline
            .map_or_else(|| Deadline::after(QUESTION), Deadline::from_millis);
        let Some(address) = self.address(&headers, deadline) else {
            metrics::counter!("tg_questions_malformed_total").increment(1);
            tracing::warn!("a question without id or reply address was dropped");
            return;
        };
        if mesh.server().is_held(&address) {
            return;
        }
        if let Some(error) = self.refusal(&headers) {
            self.refuse(&headers, &error);
            return;
        }
        let again = headers.seq.is_some_and(|seq| seq > 0);
        // Of what is asked again only the head is looked at.
        let bytes = if again { 0 } else { envelope.body.len() };
        let workspace = || self.slot.workspace(&headers);
        let Ok(room) = mesh.room().take(workspace, bytes) else {
            let text = "the requests in progress take too much memory, try again later";
            self.refuse(&headers, &Error::new(ErrorCode::Busy, text));
            return;
        };
        // Questions come from several threads at once: who looks also takes the place.
        let one_more = |running: usize| (running < self.limit).then_some(running + 1);
        let begun = self
            .running
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        if begun.is_err() {
            let text = "too many requests in progress, try again later";
            self.refuse(&headers, &Error::new(ErrorCode::Busy, text));
            return;
        }
        self.slot.begin();
        let (slot, handler, running) = (
            self.slot.clone(),
            self.handler.clone(),
            self.running.clone(),
        );
        let subscription = self.subscription.name.clone();
        mesh.clone().spawn(TaskKind::Handler, async move {
            let done = (
                room,
                Done {
                    slot: slot.clone(),
                    running,
                },
            );
            if again {
                ask_again(&slot, &*handler, headers, deadline).await;
            } else if let Some(held) = slot.mesh.server().open(&address) {
                let question = (headers, envelope, subscription.as_str());
                answer(&slot, &*handler, question, deadline, held).await;
                slot.handled(&subscription);
            }
            drop(done);
        });
    }

    fn refuse(&self, headers: &Headers, error: &Error) {
        let mesh = &self.slot.mesh;
        metrics::counter!("tg_questions_refused_total", "code" => error.code().as_str())
            .increment(1);
        if mesh.rules().framed {
            mesh.server().refuse(headers, error);
            return;
        }
        // A plain asker understands only the type's own failure reply.
        let slot = self.slot.clone();
        let handler = self.handler.clone();
        let address = self.address(headers, Deadline::after(QUESTION));
        let error = error.clone();
        mesh.clone().spawn(TaskKind::Handler, async move {
            let held = address.and_then(|address| slot.mesh.server().open(&address));
            if let Some(held) = held {
                handler.fail(&slot.mesh, held, error).await;
            }
        });
    }
}

async fn ask_again(
    slot: &Arc<InstanceState>,
    handler: &dyn ErasedServe,
    headers: Arc<Headers>,
    deadline: Deadline,
) {
    let cx = slot.cx(
        headers.clone(),
        deadline,
        slot.mesh.shutdown().child_token(),
        None,
    );
    if handler.resumes(&cx).await {
        slot.mesh.server().still_working(&headers);
    } else {
        slot.mesh.server().refuse(&headers, &tg_rpc::interrupted());
    }
}

async fn answer(
    slot: &Arc<InstanceState>,
    handler: &dyn ErasedServe,
    (headers, envelope, queue): (Arc<Headers>, Envelope, &str),
    deadline: Deadline,
    held: Arc<ReplyStream>,
) {
    let started = Instant::now();
    let follow = slot.follow(&headers, None);
    let cx = slot.cx(headers, deadline, held.cancelled().clone(), follow);
    let mut span = slot.span(&cx, queue);
    let cx = cx.within(&span);
    let outcome = {
        let mut work = std::pin::pin!(handler.run(cx, envelope, held.clone()));
        tokio::select! {
            outcome = &mut work => outcome,
            () = deadline.reached() => {
                held.cancelled().cancel();
                tokio::time::timeout(LAST_WORDS, work).await.unwrap_or(Outcome::Failed)
            }
        }
    };
    if !held.settled() {
        handler
            .fail(
                &slot.mesh,
                held.clone(),
                Error::new(ErrorCode::Timeout, "the deadline has passed"),
            )
            .await;
    }
    if outcome == Outcome::Failed {
        span.fail(outcome.label());
    }
    slot.note(outcome, started);
}

impl Sink for ServeSink {
    fn deliver(&self, delivery: Delivery) {
        self.intake.take();
        self.accept(delivery);
    }
}

/// Response topic of a request topic, unless the flow names another.
pub(crate) fn response_topic(scope: &InstanceScope, spec: &str, request: &Topic) -> Topic {
    let twin = spec.replace("request", "response");
    scope
        .topics
        .get(&twin)
        .filter(|topic| topic.class() == Class::Response)
        .cloned()
        .unwrap_or_else(|| request.with_class(Class::Response))
}
