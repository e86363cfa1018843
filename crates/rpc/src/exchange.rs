//! The state of one question at its asker: a pure machine. Frames, publications and the clock come in; what to
//! tell whom comes out.

use std::sync::Arc;
use std::time::Duration;

use tg_bus::Envelope;
use tg_bus::pause::doubled;
use tg_schemas::{Error, ErrorCode, Frame, Headers};
use tokio::time::Instant;

use crate::joined;
use crate::reorder::{Part, Reorder, interrupted};
use crate::rivals::Rivals;

/// Silence of a server that has just spoken (it sends a heartbeat after 300 ms).
const FIRST_SIGN: Duration = Duration::from_millis(1500);
/// Silence after a question was asked, while nobody is known to have it; doubles each time it is asked again, until a
/// part of an answer comes.
const FIRST_ANSWER: Duration = Duration::from_millis(700);
/// Longest silence: more than two of the server's longest pauses.
const LONGEST_SILENCE: Duration = Duration::from_secs(12);
/// Silence of a server that has sent parts before the question is asked again: a process that pauses for seconds is not
/// worth an answer that breaks off, and one that is gone is noticed by its inbox.
const PAUSED: Duration = Duration::from_millis(4500);
/// A server that another wants to replace has this long to say that it lives.
const PROBE: Duration = Duration::from_millis(400);
/// A gap is asked for after this long, and again after as long.
const GAP: Duration = Duration::from_millis(50);

/// One question and its answer, as far as it is there.
pub(crate) struct Exchange {
    phase: Phase,
    parts: Reorder,
    /// Silence that is fine after the question is asked the next time.
    patience: Duration,
    /// The server that had it died.
    died: bool,
    /// A queue had it.
    queued: bool,
    /// A plain server neither numbers nor speaks up: the order of arrival counts.
    plain: bool,
}

/// Where a question stands.
#[derive(Default)]
enum Phase {
    /// The reader is to publish the question.
    #[default]
    Unasked,
    /// The reader publishes it.
    Asking,
    /// A queue has it; nobody has answered.
    Asked(Silence),
    /// A server answers.
    Streaming(Stream),
    /// All parts are there; the reader may be behind.
    Complete,
    /// How it ended, once the reader has what is there.
    Failed(Error),
}

/// Since when nothing was heard, and how long that is fine.
#[derive(Debug, Clone, Copy)]
struct Silence {
    heard: Instant,
    patience: Duration,
}

impl Silence {
    fn from(now: Instant) -> Self {
        Self {
            heard: now,
            patience: FIRST_SIGN,
        }
    }

    fn is_over(self, now: Instant) -> bool {
        now - self.heard > self.patience
    }
}

struct Stream {
    server: Arc<str>,
    silence: Silence,
    /// Since when a part is missing.
    gap: Option<Instant>,
    /// Since when the server was asked whether it lives, for another wants to take over.
    probed: Option<Instant>,
    /// When the server was last asked to speak up, for it was silent.
    nudged: Option<Instant>,
    /// The server before: what it still says comes too late.
    replaced: Option<Arc<str>>,
    /// Others that began the answer anew.
    rivals: Rivals,
}

/// How far a question is, as its asker knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// No process has given a sign that it has it.
    Untaken,
    /// A process has it, and was silent for so long.
    Taken {
        /// Since its last part or heartbeat.
        silent: Duration,
    },
}

/// A control frame for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tell {
    pub(crate) to: Arc<str>,
    pub(crate) frame: Frame,
    pub(crate) seq: u64,
}

/// What the reader does next.
pub(crate) enum Next {
    /// A part is there; the server may get credit.
    Part(Part, Option<Tell>),
    /// The answer ends here.
    Failed(Error),
    /// Publish the question: [`Exchange::asked`] or [`Exchange::not_asked`] follows.
    Ask,
    /// Wait to be woken.
    Wait,
}

/// What became of a frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The reader has something to look at.
    pub(crate) wake: bool,
    pub(crate) tell: Option<Tell>,
}

/// What a look at the clock led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Fine,
    Tell(Tell),
    /// The server is gone: the reader asks again, under the same id.
    AskAgain,
}

impl Exchange {
    pub(crate) fn new(plain: bool) -> Self {
        Self {
            phase: Phase::default(),
            parts: Reorder::default(),
            patience: FIRST_ANSWER,
            died: false,
            queued: false,
            plain,
        }
    }

    /// Whether somebody may be working on it.
    pub(crate) fn was_asked(&self) -> bool {
        !matches!(self.phase, Phase::Unasked) || self.parts.next() > 0
    }

    /// Number of the next part that is not there yet.
    pub(crate) fn lacks_from(&self) -> u64 {
        self.parts.next()
    }

    /// Whether the reader has something to look at.
    pub(crate) fn has_news(&self) -> bool {
        self.parts.is_ready() || matches!(self.phase, Phase::Complete | Phase::Failed(_))
    }

    /// What the reader does next.
    pub(crate) fn read(&mut self) -> Next {
        if let Some(part) = self.parts.pop() {
            let credit = if part.1 { None } else { self.credit_due() };
            return Next::Part(part, credit);
        }
        match &self.phase {
            Phase::Failed(error) => Next::Failed(error.clone()),
            Phase::Complete => {
                Next::Failed(Error::new(ErrorCode::Internal, "the answer has ended"))
            }
            Phase::Unasked => {
                self.phase = Phase::Asking;
                Next::Ask
            }
            Phase::Asking | Phase::Asked(_) | Phase::Streaming(_) => Next::Wait,
        }
    }

    /// A part that is there, whatever else is the case.
    pub(crate) fn take_ready(&mut self) -> Option<Part> {
        self.parts.pop()
    }

    /// A queue has the question.
    pub(crate) fn asked(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Asking => {
                self.died = false;
                self.queued = true;
                self.phase = Phase::Asked(Silence {
                    heard: now,
                    patience: self.patience,
                });
                self.patience = doubled(self.patience, LONGEST_SILENCE);
            }
            Phase::Streaming(stream) => stream.silence.heard = now,
            _ => {}
        }
    }

    /// Publishing was given up half-way.
    pub(crate) fn not_asked(&mut self) {
        if matches!(self.phase, Phase::Asking) {
            self.phase = Phase::Unasked;
        }
    }

    /// No queue wanted the question for as long as one could be expected. Returns how it ends.
    pub(crate) fn unserved(&mut self) -> Error {
        let error = if self.parts.next() > 0 {
            interrupted()
        } else {
            Error::new(
                ErrorCode::NobodyServes,
                "no process serves this at the moment",
            )
        };
        self.phase = Phase::Failed(error.clone());
        error
    }

    /// Another question was asked under its id in this process: the answer is that one's.
    pub(crate) fn superseded(&mut self) {
        if !matches!(self.phase, Phase::Complete | Phase::Failed(_)) {
            let text = "asked again under the same id";
            self.phase = Phase::Failed(Error::new(ErrorCode::Cancelled, text));
        }
    }

    /// Takes a frame that carries this question's id.
    pub(crate) fn hear(&mut self, envelope: Envelope, now: Instant) -> Heard {
        if matches!(self.phase, Phase::Complete | Phase::Failed(_)) {
            return Heard::default();
        }
        if self.plain {
            let seq = self.parts.next();
            self.accept(seq, (envelope, false), now);
            return Heard {
                wake: true,
                tell: None,
            };
        }
        let frame = envelope.headers.frame.unwrap_or(Frame::Part);
        if frame == Frame::Refuse {
            if self.is_answered_by_another(&envelope.headers) {
                return Heard::default();
            }
            let error = serde_json::from_slice(&envelope.body)
                .unwrap_or_else(|_| Error::new(ErrorCode::Internal, "refused"));
            self.phase = Phase::Failed(error);
            return Heard {
                wake: true,
                tell: None,
            };
        }
        if !self.is_from_server(&envelope.headers, now) {
            return Heard::default();
        }
        match frame {
            Frame::Part | Frame::Last => {
                let Some(seq) = envelope.headers.seq else {
                    return Heard::default();
                };
                self.set_patience(|_| FIRST_SIGN);
                // It is answered: should it be asked again after all, that may be lost, too.
                self.patience = FIRST_ANSWER;
                for (seq, part, last) in joined::split(seq, envelope, frame == Frame::Last) {
                    self.accept(seq, (part, last), now);
                }
                Heard {
                    wake: true,
                    tell: None,
                }
            }
            // The server doubles its pauses from 300 ms to 5 s.
            Frame::Alive => {
                self.set_patience(|patience| doubled(patience, LONGEST_SILENCE));
                Heard {
                    wake: true,
                    tell: self.alive(envelope.headers.seq, now),
                }
            }
            _ => Heard::default(),
        }
    }

    /// Another process wants to go on with the answer. Where its server says nothing when asked, the other is
    /// told from which part on; until then it gets no reply and asks again.
    pub(crate) fn take_over(&mut self, from: Arc<str>, now: Instant) -> Option<Tell> {
        let seq = self.parts.next();
        let go_on = Tell {
            to: from.clone(),
            frame: Frame::Resend,
            seq,
        };
        let mut replaced = None;
        match &mut self.phase {
            _ if self.plain => return None,
            Phase::Complete | Phase::Failed(_) => return Some(go_on),
            Phase::Streaming(stream) if stream.server != from => {
                match stream.probed {
                    // It spoke since: it lives.
                    Some(at) if stream.silence.heard > at => {
                        stream.probed = None;
                        return None;
                    }
                    Some(at) if now - at < PROBE => return None,
                    Some(_) => {}
                    None => {
                        stream.probed = Some(now);
                        return Some(Tell {
                            to: stream.server.clone(),
                            frame: Frame::Resend,
                            seq,
                        });
                    }
                }
                replaced = Some(stream.server.clone());
                // What came early belongs to words that nobody will complete.
                self.parts.drop_early();
            }
            Phase::Streaming(stream) => replaced = stream.replaced.take(),
            Phase::Unasked | Phase::Asking | Phase::Asked(_) => {}
        }
        self.phase = Phase::Streaming(Stream {
            server: from,
            silence: Silence::from(now),
            gap: self.parts.has_gap().then_some(now),
            probed: None,
            nudged: None,
            replaced,
            rivals: Rivals::default(),
        });
        Some(go_on)
    }

    /// Looks after gaps and silence; `reconnected`: the bus was away since the last look.
    pub(crate) fn look(&mut self, now: Instant, reconnected: bool) -> Look {
        if self.plain {
            return Look::Fine;
        }
        let seq = self.parts.next();
        match &mut self.phase {
            Phase::Streaming(stream) if reconnected => {
                stream.silence = Silence::from(now);
                Look::Tell(stream.resend(seq))
            }
            Phase::Streaming(stream) if stream.gap.is_some_and(|since| now - since > GAP) => {
                stream.gap = Some(now);
                Look::Tell(stream.resend(seq))
            }
            // Whoever has sent parts may be the only one who can go on: where a question was passed on, those who would
            // be asked again know nothing of it. One that is gone is told by its inbox; one that is slow is waited for.
            // Who has sent none is asked once whether it lives: what others say of a question that it answers is no end.
            Phase::Streaming(stream)
                if stream.silence.is_over(now)
                    && now - stream.silence.heard < PAUSED
                    && (seq > 0 || !stream.was_nudged()) =>
            {
                stream.silence.patience = if seq > 0 {
                    stream.silence.patience + FIRST_SIGN
                } else {
                    now - stream.silence.heard + PROBE
                };
                stream.nudged = Some(now);
                Look::Tell(stream.resend(seq))
            }
            Phase::Streaming(Stream { silence, .. }) | Phase::Asked(silence)
                if reconnected || silence.is_over(now) =>
            {
                self.phase = Phase::Unasked;
                Look::AskAgain
            }
            _ => Look::Fine,
        }
    }

    /// The process that answers, or that was to, is known to be gone: the question is asked again at once.
    pub(crate) fn server_died(&mut self, server: &str) -> bool {
        let dead = matches!(&self.phase, Phase::Streaming(stream) if *stream.server == *server);
        if dead {
            self.phase = Phase::Unasked;
            self.died = true;
        }
        dead
    }

    /// Whether the server that had the question died, so that it is asked again.
    pub(crate) fn has_lost_its_server(&self) -> bool {
        self.died
    }

    /// Whether a queue had the question before, so that it is asked again.
    pub(crate) fn was_queued(&self) -> bool {
        self.queued
    }

    /// How far it is; `None`: it is over, or its server gives no signs.
    pub(crate) fn stands(&self, now: Instant) -> Option<Stands> {
        match &self.phase {
            _ if self.plain => None,
            Phase::Unasked | Phase::Asking | Phase::Asked(_) => Some(Stands::Untaken),
            Phase::Streaming(stream) => Some(Stands::Taken {
                silent: now - stream.silence.heard,
            }),
            Phase::Complete | Phase::Failed(_) => None,
        }
    }

    /// The process that answers, and since when it is silent.
    pub(crate) fn silent_server(&self, now: Instant) -> Option<(Arc<str>, Duration)> {
        match &self.phase {
            Phase::Streaming(stream) => Some((stream.server.clone(), now - stream.silence.heard)),
            _ => None,
        }
    }

    /// Whether a frame counts: not from a server that was replaced, nor from another one that does not go on with the
    /// answer but gives one of its own.
    fn is_from_server(&mut self, headers: &Headers, now: Instant) -> bool {
        let Some(from) = headers.from.as_deref() else {
            return !matches!(self.phase, Phase::Unasked);
        };
        let (next, end) = (self.parts.next(), self.parts.end());
        match &mut self.phase {
            Phase::Streaming(stream) => {
                if stream.replaced.as_deref() == Some(from) {
                    return false;
                }
                if *stream.server != *from {
                    let part = matches!(headers.frame, None | Some(Frame::Part | Frame::Last));
                    let other_words = match headers.seq {
                        Some(seq) if part => stream.rivals.competes(from, seq, end),
                        seq => stream.rivals.knows(from) || seq.is_some_and(|seq| seq < next),
                    };
                    if other_words {
                        return false;
                    }
                    stream.server = from.into();
                }
                stream.silence.heard = now;
            }
            _ => {
                self.phase = Phase::Streaming(Stream {
                    server: from.into(),
                    silence: Silence::from(now),
                    gap: None,
                    probed: None,
                    nudged: None,
                    replaced: None,
                    rivals: Rivals::default(),
                });
            }
        }
        true
    }

    /// Whether a process other than this one answers: what it says of a question that was asked again, because the
    /// other was silent, does not count.
    fn is_answered_by_another(&self, headers: &Headers) -> bool {
        match (&self.phase, headers.from.as_deref()) {
            (Phase::Streaming(stream), Some(from)) => *stream.server != *from,
            _ => false,
        }
    }

    fn alive(&mut self, next: Option<u64>, now: Instant) -> Option<Tell> {
        let lacks = self.parts.next();
        let Phase::Streaming(stream) = &mut self.phase else {
            return None;
        };
        if next.is_some_and(|next| next > lacks) {
            stream.gap.get_or_insert(now);
            return None;
        }
        // Nothing is missing: it may wait for a credit that was lost.
        let seq = self.parts.credit()?;
        Some(Tell {
            to: stream.server.clone(),
            frame: Frame::Credit,
            seq,
        })
    }

    fn accept(&mut self, seq: u64, part: Part, now: Instant) {
        match self.parts.accept(seq, part) {
            Ok(true) => self.phase = Phase::Complete,
            Ok(false) => {
                let gap = self.parts.has_gap();
                if let Phase::Streaming(stream) = &mut self.phase {
                    stream.gap = gap.then(|| stream.gap.unwrap_or(now));
                }
            }
            Err(error) => self.phase = Phase::Failed(error),
        }
    }

    fn credit_due(&mut self) -> Option<Tell> {
        let Phase::Streaming(stream) = &self.phase else {
            return None;
        };
        let to = stream.server.clone();
        let seq = self.parts.credit_due()?;
        Some(Tell {
            to,
            frame: Frame::Credit,
            seq,
        })
    }

    fn set_patience(&mut self, change: impl FnOnce(Duration) -> Duration) {
        if let Phase::Streaming(Stream { silence, .. }) | Phase::Asked(silence) = &mut self.phase {
            silence.patience = change(silence.patience);
        }
    }
}

impl Stream {
    /// Whether it was asked to speak up since it last did.
    fn was_nudged(&self) -> bool {
        self.nudged.is_some_and(|at| at > self.silence.heard)
    }

    fn resend(&self, seq: u64) -> Tell {
        Tell {
            to: self.server.clone(),
            frame: Frame::Resend,
            seq,
        }
    }
}

#[cfg(test)]
mod tests;
