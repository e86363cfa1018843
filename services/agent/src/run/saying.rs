//! Pieces of the model's text on their way to the asker.

use tg_clients::neighbours::Neighbours;
use tg_mesh::clock;

use super::execution::{StepExecution, there};
use crate::error::Stop;
use crate::store::{Piece, PieceKind};

impl StepExecution {
    /// Sends pieces of the model's text. Those of a detached run are noted before: who takes it up after this
    /// process died goes on after them.
    pub(super) async fn say(&mut self, pieces: Vec<Piece>) -> Result<(), Stop> {
        let resumed = Neighbours::of(&self.cx.mesh).resume_answers();
        if !self.goes_straight() {
            // What is noted bears the number of the part that comes next.
            self.send_all(Vec::new()).await?;
        }
        let noted = self.detach && self.is_heard() && resumed && self.out.is_some();
        let chunks = pieces.iter().map(|piece| self.part_of(piece)).collect();
        if let Some(playback) = &self.playback {
            playback.say(&pieces);
        }
        if noted && !pieces.is_empty() {
            let ledger = self.ledger().await?;
            let (key, seq) = (self.key(), self.telling.at);
            let kept = ledger.say(&key, self.step, seq, pieces, clock::millis());
            there(kept.await?)?;
        }
        self.send_all(chunks).await
    }

    /// Keeps the end of a thought for the next part, the action or the answer, and sends both in one message. Returns whether these
    /// pieces are that: an end without a text of its own. After a crash it comes again with the decision, or not at all.
    pub(super) fn keep_end(&mut self, pieces: &[Piece]) -> bool {
        let [end] = pieces else {
            return false;
        };
        if end.kind != PieceKind::ThoughtEnd || !end.text.is_empty() || !self.goes_straight() {
            return false;
        }
        let end = self.part_of(end);
        self.unsent.push(end);
        true
    }

    /// Whether nothing notes the pieces, and nobody stands between this step and the asker.
    fn goes_straight(&self) -> bool {
        !self.detach && self.relay.is_none() && self.playback.is_none()
    }

    /// Whether somebody reads the parts, or may join the run later.
    pub(super) fn is_heard(&self) -> bool {
        !self.unheard || self.telling.is_kept()
    }
}
