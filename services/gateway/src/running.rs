//! An answer under way, as all endpoints read it.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, Peekable, StreamExt};
use tg_mesh::{Mesh, Span, TaskKind};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ask::{Part, Parts};
use crate::auth::Lapse;
use crate::budget::{Reading, Share};
use crate::detached::Listed;
use crate::engine::translate::agent::behind_gap;
use crate::flows;
use crate::inflight::Permit;
use crate::turns::Lane;

/// A question under way. Dropping it cancels the question, or it goes on here, as the call says. It ends,
/// too, when its caller may not ask it any more.
pub(crate) struct Running {
    pub(crate) parts: Peekable<Parts>,
    pub(crate) lapse: Lapse,
    /// What cancels it.
    pub(crate) cancel: CancellationToken,
    /// It goes on without its caller, and counts.
    pub(crate) detached: Option<(Mesh, Listed)>,
    /// It ends with its caller, who may ask about it until then.
    pub(crate) noted: Option<Listed>,
    pub(crate) stopped: CancellationToken,
    pub(crate) over: bool,
    /// The last part was one of the run.
    pub(crate) placed: bool,
    pub(crate) name: &'static str,
    pub(crate) endpoint: &'static str,
    pub(crate) started: Instant,
    pub(crate) permit: Option<Permit>,
    /// The run whose parts these are, and the number of the next.
    pub(crate) run: Option<(Arc<str>, u64)>,
    /// So long somebody may join it when its caller is gone, of one that ends then.
    pub(crate) waits: Duration,
    /// What the question counts, which is kept here until it is answered.
    pub(crate) held: Option<Share>,
    /// Turns of its workspace, for what takes long to write.
    pub(crate) lane: Lane,
    /// Ends with the answer.
    pub(crate) span: Span,
}

/// Where a part stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) run: &'a str,
    pub(crate) offset: u64,
}

impl Running {
    /// Where the part stands that came last.
    pub(crate) fn place(&self) -> Option<Place<'_>> {
        let (run, next) = self.run.as_ref().filter(|_| self.placed)?;
        let offset = next.checked_sub(1)?;
        Some(Place { run, offset })
    }

    /// The question that was read counts until it is answered.
    pub(crate) fn holding(mut self, question: Reading) -> Self {
        self.held = Some(question.sent());
        self
    }

    /// The next part. After the last, or a fault, `None`; there is always exactly one of these.
    pub(crate) async fn next(&mut self) -> Option<Part> {
        if self.over {
            return None;
        }
        let doubt = self.lapse.doubt();
        let part = tokio::select! {
            // Parts come last: an answer that always has one ready must not hide that it may not be read any more.
            biased;
            error = &mut self.lapse => {
                self.cancel.cancel();
                Some(Part::Error(error))
            }
            () = self.cancel.cancelled(), if self.detached.is_some() => Some(Part::Error(cancelled())),
            // A stopped flow ends its answers itself; this is for one that does not.
            part = doubt.next(&mut self.parts) => part,
            () = self.stopped.cancelled() => Some(Part::Error(flows::stopped())),
        };
        let part = part.unwrap_or_else(|| {
            Part::Error(Error::new(
                ErrorCode::Interrupted,
                "the answer is incomplete",
            ))
        });
        self.placed = matches!(&part, Part::Body { body, .. } if !body.is_empty());
        if let (Part::Body { body, .. }, true, Some((_, next))) =
            (&part, self.placed, &mut self.run)
        {
            // A chunk as the agent sent it announces no gap.
            let behind = body.as_tree().and_then(behind_gap);
            *next = behind.unwrap_or(*next + 1);
        }
        let outcome = match &part {
            Part::Body { last: false, .. } => return Some(part),
            Part::Body { failed: true, .. } => "failed",
            Part::Body { .. } => "ok",
            Part::Error(error) => error.code().as_str(),
        };
        self.over = true;
        self.held = None;
        self.noted = None;
        if outcome != "ok" {
            self.span.fail(outcome);
        }
        self.span.end();
        count(self.endpoint, self.name, outcome);
        metrics::histogram!("tg_gateway_request_seconds", "endpoint" => self.endpoint, "service" => self.name)
            .record(self.started.elapsed().as_secs_f64());
        Some(part)
    }
}

/// What was detached goes on to its end, and is looked after until then.
impl Drop for Running {
    fn drop(&mut self) {
        let Some((mesh, listed)) = self.detached.take() else {
            return;
        };
        if self.over {
            return;
        }
        let mut rest = Self {
            parts: std::mem::replace(&mut self.parts, stream::empty().boxed().peekable()),
            lapse: self.lapse.take(),
            cancel: self.cancel.clone(),
            detached: None,
            noted: None,
            stopped: self.stopped.clone(),
            over: false,
            placed: false,
            run: None,
            waits: Duration::ZERO,
            name: self.name,
            endpoint: self.endpoint,
            started: self.started,
            permit: self.permit.take(),
            held: self.held.take(),
            lane: self.lane.clone(),
            span: std::mem::take(&mut self.span),
        };
        if !self.waits.is_zero() {
            mesh.spawn(TaskKind::Background, listed.left(mesh.clone(), self.waits));
        }
        mesh.spawn(TaskKind::Background, async move {
            let cancel = rest.cancel.clone();
            tokio::select! {
                () = async { while rest.next().await.is_some() {} } => {}
                () = cancel.cancelled() => {}
            }
            drop((rest, listed));
        });
    }
}

fn cancelled() -> Error {
    Error::new(ErrorCode::Cancelled, "the request was cancelled")
}

/// Counts a finished request.
pub(crate) fn count(endpoint: &'static str, service: &'static str, outcome: &'static str) {
    metrics::counter!(
        "tg_gateway_requests_total", "endpoint" => endpoint, "service" => service, "outcome" => outcome
    )
    .increment(1);
}
