//! The reader's end of a query.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::guard::{Guard, Why};
use super::handover::Taker;
use super::said::Said;
use crate::error::GraphError;
use crate::store::{Part, SparqlAnswer, SparqlParts};

/// Hears the thread: gives up at the deadline, on cancel, and when dropped.
pub(super) struct Line {
    pub(super) parts: Taker<Said>,
    pub(super) guard: Arc<Guard>,
    pub(super) cancel: CancellationToken,
    /// Tells the thread that nobody reads.
    pub(super) gone: CancellationToken,
    /// The asker waits no longer: until then, which is so long.
    pub(super) until: Instant,
    pub(super) time: Duration,
    /// Longest wait for one part; the thread gives up before that unless it takes no steps.
    pub(super) longest: Duration,
}

impl Line {
    async fn hear(&mut self) -> Result<Said, GraphError> {
        let part_until = Instant::now() + self.longest;
        let said = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err((Why::Cancelled, GraphError::Cancelled)),
            said = self.parts.take() => return said.ok_or_else(|| {
                GraphError::Evaluation("the query was interrupted".to_owned())
            }),
            () = tokio::time::sleep_until(part_until.min(self.until)) => {
                let limit = if part_until < self.until { self.longest } else { self.time };
                Err((Why::Time, GraphError::TimeLimit(limit.as_secs().max(1))))
            }
        };
        said.map_err(|(why, error)| {
            self.guard.end_everywhere(why);
            error
        })
    }

    /// Hears what kind of query it is.
    pub(super) async fn open(mut self) -> Result<SparqlAnswer, GraphError> {
        match self.hear().await? {
            Said::Open(form, variables) => Ok(SparqlAnswer {
                form,
                variables,
                parts: Box::new(self),
            }),
            Said::Error(error) => Err(error),
            Said::Part(..) | Said::End => Err(GraphError::Evaluation(
                "the query was interrupted".to_owned(),
            )),
        }
    }
}

#[async_trait]
impl SparqlParts for Line {
    async fn next(&mut self) -> Result<Option<(Part, usize)>, GraphError> {
        match self.hear().await? {
            Said::Part(part, bytes) => Ok(Some((part, bytes))),
            Said::Error(error) => Err(error),
            Said::Open(..) | Said::End => Ok(None),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.guard.end_everywhere(Why::Cancelled);
        self.gone.cancel();
    }
}
