//! Keeps the parts that a step streams, for clients that join the run later.

use tg_clients::neighbours::Neighbours;
use tg_mesh::TaskKind;
use tg_schemas::msg::AgentResponse;

use super::execution::StepExecution;
use super::grace::{asker_left, nobody_listens};
use super::telling::Telling;
use crate::engine::chunks;
use crate::error::Stop;
use crate::store::{KnownRun, Piece, PieceKind, Told};

impl StepExecution {
    /// Keeps the streamed parts, if the caller is known.
    pub(super) fn remembered(mut self, telling: Telling, asker: Option<KnownRun>) -> Self {
        self.telling = telling;
        let known = self.cx.headers.user_id.as_deref();
        if known.is_none_or(str::is_empty) || self.agent.options.replay_mb == 0 {
            return self;
        }
        let workspace = self.cx.workspace_key().to_string();
        let transcript = self.agent.transcripts.of(&self.run.run, &workspace);
        transcript.begin(self.telling.at);
        self.telling.transcript = Some(transcript);
        self.telling.waits = asker.filter(|asker| asker.caller.grace_ms > 0);
        // What another process knew of it is known by the ledger alone.
        if let Some(asker) = self.telling.waits.clone()
            && asker.asker_gone
            && let Some(transcript) = &self.telling.transcript
            && transcript.asker_left()
        {
            let (agent, mesh) = (self.agent.clone(), self.cx.mesh.clone());
            self.cx.mesh.spawn(TaskKind::Background, async move {
                if let Err(error) = nobody_listens(&agent, &mesh, asker).await {
                    tracing::debug!(%error, "a run that nobody listens to goes on");
                }
            });
        }
        self
    }

    /// Remembers parts that are about to be sent. Returns the JSON of each where they are remembered; `known`: the same, if it was
    /// written before.
    pub(super) fn tell(
        &mut self,
        parts: &[AgentResponse],
        known: Vec<String>,
    ) -> Option<Vec<String>> {
        let first = self.telling.at;
        self.telling.at += parts.len() as u64;
        let transcript = self.telling.transcript.as_ref()?;
        let written = match known.len() == parts.len() {
            true => known,
            false => self.written(parts),
        };
        transcript.add(first, written.clone());
        Some(written)
    }

    /// The JSON of parts, as whoever is sent them reads it, and whoever joins the run.
    fn written(&self, parts: &[AgentResponse]) -> Vec<String> {
        let lean = Neighbours::of(&self.cx.mesh).read_lean_terms();
        let written = parts.iter().map(|part| chunks::written(part, lean));
        written.collect()
    }

    /// They were not taken: the next part has this number.
    pub(super) fn untell(&mut self, next: u64) {
        if next < self.telling.at {
            self.telling.at = next;
            if let Some(transcript) = &self.telling.transcript {
                transcript.begin(next);
            }
        }
    }

    /// What the ledger is to keep, with parts that are told when it does.
    pub(super) fn told_with(&self, parts: &[AgentResponse]) -> Told {
        let Some(transcript) = &self.telling.transcript else {
            return Told::default();
        };
        let (first, mut rest) = transcript.rest();
        rest.extend(self.written(parts));
        Told {
            workspace: self.cx.workspace_key().to_string(),
            first,
            parts: rest,
            keep: self.agent.options.replay_mb << 20,
        }
    }

    /// The ledger has the streamed parts.
    pub(super) fn kept(&self, told_until: u64) {
        if let Some(transcript) = &self.telling.transcript {
            transcript.kept(told_until);
        }
    }

    /// Nobody takes the answer any more; the run waits for somebody, if it is to.
    pub(super) async fn nobody_takes(&mut self) -> Result<(), Stop> {
        let Some(mut asker) = self.telling.waits.clone() else {
            return Ok(());
        };
        if asker.asker_gone {
            return Ok(());
        }
        asker.asker_gone = true;
        self.telling.waits = Some(asker.clone());
        let left = asker_left(&self.agent, &self.cx.mesh, asker);
        left.await.map_err(Stop::Error)
    }

    /// What was noted before another process took the step up, as far as the asker lacks it.
    pub(super) async fn resend(&mut self) -> Result<(), Stop> {
        let Some((begins, lacks)) = self.telling.lacked.take() else {
            return Ok(());
        };
        let mut parts = self.known();
        self.untell(begins);
        let written = self.tell(&parts, Vec::new());
        let known = usize::try_from(lacks.saturating_sub(begins)).unwrap_or(usize::MAX);
        let known = known.min(parts.len());
        let written = written.map(|mut written| written.split_off(known));
        self.deliver(parts.split_off(known), written).await
    }

    /// The parts that the step had streamed before another process took it up.
    pub(super) fn known(&self) -> Vec<AgentResponse> {
        let mut parts: Vec<_> = match self.step {
            1 => {
                let began = self.entries().session();
                began.into_iter().rev().map(chunks::explained).collect()
            }
            _ => Vec::new(),
        };
        let pieces = self.heard.iter().map(|piece| self.part_of(piece));
        parts.extend(pieces);
        parts
    }

    /// A piece as the asker gets it.
    pub(super) fn part_of(&self, piece: &Piece) -> AgentResponse {
        let thought = || self.phase.thought(&self.id, self.step);
        match piece.kind {
            PieceKind::Thought => chunks::thought(thought(), &piece.text, false),
            PieceKind::ThoughtEnd => chunks::thought(thought(), &piece.text, true),
            PieceKind::Answer => chunks::answer(self.phase.answer(&self.id), &piece.text),
            PieceKind::Part => chunks::part(&piece.text),
        }
    }
}

/// The JSON of the last parts that the ledger is given, of which there are so many; none where nothing is remembered.
pub(super) fn last_written(told: &Told, count: usize) -> Vec<String> {
    let from = told.parts.len().checked_sub(count);
    from.map_or_else(Vec::new, |from| told.parts[from..].to_vec())
}
