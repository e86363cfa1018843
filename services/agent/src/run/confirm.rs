//! Asks the user before a tool is used, and waits. The question, its answer, and that the tool is about to be used are rows of the
//! ledger: whoever takes the step up goes on waiting, and calls nothing twice.

use std::time::Duration;

use tg_mesh::clock;

use super::execution::StepExecution;
use crate::engine::chunks;
use crate::engine::confirmation::Confirmed;
use crate::engine::decision::Decision;
use crate::error::{AgentError, Stop};
use crate::store::{Asking, Confirmation};

/// Who waits for an answer looks so often, besides when one is noted here.
const LOOK: Duration = Duration::from_secs(5);
/// Of the time that is left so much, at most that long, is for what comes behind the answer.
const AFTER: (u32, Duration) = (5, Duration::from_secs(10));

/// What came of asking.
pub(super) struct Consent {
    pub(super) confirmed: Confirmed,
    /// The tool was about to be used by a process that died.
    pub(super) used: bool,
}

impl StepExecution {
    /// Asks, unless that was done, and waits for the answer.
    pub(super) async fn ask_user(
        &mut self,
        (nth, decision): (u32, &Decision),
    ) -> Result<Consent, Stop> {
        if let Some(playback) = self.playback.clone() {
            let at = (&*self.run.run, self.step);
            let row = playback.confirmation((at, nth))?;
            let chunk = chunks::confirm(&self.id, (self.step, nth), decision, row.until_ms);
            self.send_all(vec![chunk]).await?;
            let at = (&*self.run.run, self.step);
            return consent(&row).ok_or_else(|| playback.nothing(at));
        }
        let key = self.key();
        let asking = Asking {
            workspace: self.cx.workspace_key().to_string(),
            user: self.cx.headers.user_id.clone().unwrap_or_default(),
            id: self.id.confirmation(self.step, nth),
            until_ms: clock::millis().saturating_add(self.patience()),
        };
        let ledger = self.ledger().await?;
        let asked = ledger.ask_user(&key, (self.step, nth), &asking, clock::millis());
        let mut row = asked.await?.ok_or(AgentError::NoWorkspace)?;
        drop(ledger);
        let chunk = chunks::confirm(&self.id, (self.step, nth), decision, row.until_ms);
        self.send_all(vec![chunk]).await?;
        metrics::counter!("tg_agent_confirmations_total").increment(1);
        loop {
            if let Some(consent) = consent(&row) {
                return Ok(consent);
            }
            row = self.answered_by(nth, row.until_ms).await?;
        }
    }

    /// How long the user may take, in milliseconds.
    fn patience(&self) -> i64 {
        let left = self.cx.deadline.left();
        let left = left.saturating_sub((left / AFTER.0).min(AFTER.1));
        let most = Duration::from_secs(self.agent.options.confirm_seconds);
        i64::try_from(left.min(most).as_millis()).unwrap_or(i64::MAX)
    }

    /// What the ledger has once somebody has answered anything, the time is over, or a moment has passed.
    async fn answered_by(&self, nth: u32, until_ms: i64) -> Result<Confirmation, Stop> {
        let news = self.agent.answers.notified();
        tokio::pin!(news);
        news.as_mut().enable();
        let (run, at) = (&self.run.run, (self.step, nth));
        let known = self.ledger().await?.confirmation(run, at).await?;
        let known = known.ok_or(AgentError::NoWorkspace)?;
        if known.answer.is_some() {
            return Ok(known);
        }
        let left = u64::try_from(until_ms - clock::millis()).unwrap_or(0);
        if left > 0 {
            let look = LOOK.min(Duration::from_millis(left));
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep(look) => {}
                () = self.cx.cancel.cancelled() => {
                    return Err(self.ending(&AgentError::Cancelled.into()));
                }
                () = self.cx.deadline.reached() => {
                    return Err(self.ending(&AgentError::Timeout.into()));
                }
                () = self.cx.mesh.stopping().cancelled() => {
                    return Err(AgentError::Stopping.into());
                }
            }
        }
        let ledger = self.ledger().await?;
        if clock::millis() >= until_ms {
            ledger.close_question(run, at).await?;
        }
        let known = ledger.confirmation(run, at).await?;
        Ok(known.ok_or(AgentError::NoWorkspace)?)
    }
}

fn consent(row: &Confirmation) -> Option<Consent> {
    Some(Consent {
        confirmed: Confirmed {
            answer: row.answer?,
            by: row.by.clone(),
            until_ms: row.until_ms,
        },
        used: row.used,
    })
}
