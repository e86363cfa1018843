//! What a model says: asked by a prompt, and kept where the run is recorded; or of the record of a run that is replayed.

use std::vec::IntoIter;

use futures::FutureExt;
use futures::future::join_all;
use tg_clients::prompt::{Pieces, Prompts, Spent};
use tg_mesh::Cx;
use tg_schemas::Error;
use tokio::time::Instant;

use super::again::Unserved;
use super::execution::StepExecution;
use crate::engine::decision::Usage;
use crate::engine::exchange::{Asked, Entry, Heard, Replied};
use crate::engine::guards::budget;
use crate::engine::native;
use crate::engine::prompt::{PROMPT, Terms};
use crate::error::{AgentError, Stop};
use crate::prices;

/// How a model call failed.
pub(super) enum Unheard {
    Failed(Error),
    Stop(Stop),
}

impl From<Error> for Unheard {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Stop> for Unheard {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// A reply while it arrives.
pub(super) enum Hearing {
    Model {
        pieces: Pieces,
        started: Instant,
        /// Something of it came.
        begun: bool,
    },
    Record {
        groups: IntoIter<Vec<Heard>>,
        replied: Option<Replied>,
    },
}

/// A reply as a whole.
pub(super) struct Whole {
    pub(super) text: String,
    pub(super) usage: Usage,
    /// It is what the prompt is made for.
    pub(super) usable: bool,
}

/// What one call took.
pub(super) fn used(cx: &Cx, spent: Spent, started: Instant) -> Usage {
    let told = spent.nanodollars;
    let usage = unpriced(spent, started);
    Usage {
        cost: prices::cost(cx, &usage.model, &usage, told),
        ..usage
    }
}

fn unpriced(spent: Spent, started: Instant) -> Usage {
    Usage {
        in_token: spent.in_token.unwrap_or(0),
        out_token: spent.out_token.unwrap_or(0),
        cache_read: spent.cache_read.unwrap_or(0),
        cache_write: spent.cache_write.unwrap_or(0),
        model: spent.model.unwrap_or_default(),
        backend: spent.backend.unwrap_or_default(),
        attempts: spent.attempts.unwrap_or(0),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..Usage::default()
    }
}

impl Hearing {
    /// What a reply took that broke off: what was told of that, else so many bytes, if there were any.
    pub(super) fn broken(&self, cx: &Cx, (asked, came): (usize, usize)) -> Usage {
        match self {
            Self::Record { replied, .. } => {
                let usage = replied.as_ref().map(|replied| replied.usage.clone());
                usage.unwrap_or_default()
            }
            Self::Model {
                pieces, started, ..
            } => {
                let (spent, told) = (pieces.spent(), pieces.spent().nanodollars);
                let mut usage = unpriced(spent, *started);
                if came > 0 && usage.in_token + usage.out_token == 0 {
                    usage.in_token = budget::tokens(asked);
                    usage.out_token = budget::tokens(came);
                }
                if usage.in_token + usage.out_token > 0 {
                    usage.cost = prices::cost(cx, &usage.model, &usage, told);
                }
                usage
            }
        }
    }
}

/// Asks a model by a prompt, and waits for all of the reply.
async fn whole(cx: &Cx, prompts: &Prompts, prompt: &str, terms: &Terms) -> Result<Whole, Error> {
    let started = Instant::now();
    let mut unserved = Unserved::default();
    let piece = loop {
        let error = match prompts.whole(prompt, terms.clone()).await {
            Ok(piece) => break piece,
            Err(error) => error,
        };
        if !unserved.waits(cx, &error).await {
            return Err(error);
        }
    };
    Ok(Whole {
        usage: used(cx, piece.spent, started),
        usable: piece.unusable.is_empty(),
        text: piece.text,
    })
}

impl StepExecution {
    /// Who asks the model by prompts, with what the run says of it.
    fn prompts(&self) -> Prompts {
        let prompts = Prompts::of_flow(&self.cx).with_settings(self.run.settings.clone());
        prompts.rendered_here(&self.cx, &self.agent.prompts)
    }

    /// Asks a model by a prompt.
    pub(super) fn hear(&mut self, prompt: &str, terms: &Terms) -> Result<Hearing, Unheard> {
        if let Some(playback) = &self.playback {
            let asked = Asked::of(prompt, terms);
            let known = playback.exchange((&self.run.run, self.step), &asked)?;
            return Ok(Hearing::Record {
                groups: known.groups.into_iter(),
                replied: known.replied,
            });
        }
        if self.records() {
            self.note(&Entry::Asked(Asked::of(prompt, terms)))?;
        }
        Ok(Hearing::Model {
            started: Instant::now(),
            pieces: self.pieces(prompt, terms)?,
            begun: false,
        })
    }

    /// What the model writes to a prompt; nothing is sent before the first piece is awaited.
    fn pieces(&self, prompt: &str, terms: &Terms) -> Result<Pieces, Error> {
        let mut prompts = self.prompts();
        if prompt == PROMPT {
            // Of other questions the asker is told by narration.
            prompts = prompts.with_thinking();
            if self.agent.options.native_tools {
                prompts = prompts.calling(&self.cx, native::offered(terms));
            }
        }
        prompts.stream_of(prompt, terms, self.run.streaming)
    }

    /// The next pieces of the reply to a prompt that are there together; `None` at the end. They are kept before anybody hears them.
    pub(super) async fn hear_more(
        &mut self,
        hearing: &mut Hearing,
        (prompt, terms): (&str, &Terms),
    ) -> Result<Option<Vec<Heard>>, Unheard> {
        let (pieces, begun) = match hearing {
            Hearing::Record { groups, replied } => {
                return match (groups.next(), replied) {
                    (Some(group), _) => Ok(Some(group)),
                    (None, Some(Replied { error, .. })) => match error.take() {
                        Some(error) => Err(Unheard::Failed(error)),
                        None => Ok(None),
                    },
                    (None, None) => Err(self.breaks_off().into()),
                };
            }
            Hearing::Model { pieces, begun, .. } => (pieces, begun),
        };
        let mut group = Vec::new();
        let mut unserved = Unserved::default();
        let mut piece = loop {
            let error = match pieces.next().await {
                Ok(piece) => break piece,
                Err(error) => error,
            };
            if *begun || !unserved.waits(&self.cx, &error).await {
                return Err(error.into());
            }
            *pieces = self.pieces(prompt, terms)?;
        };
        *begun = true;
        while let Some(next) = piece {
            if !next.thinking.is_empty() {
                let thinking = next.thinking;
                group.push(Heard::Thinking { thinking });
            }
            group.push(Heard::Text(next.text));
            piece = pieces.next().now_or_never().transpose()?.flatten();
        }
        if group.is_empty() {
            return Ok(None);
        }
        if self.records() {
            self.note(&Entry::Heard(group.clone()))?;
            if self.run.streaming {
                self.keep_notes().await?;
            }
        }
        Ok(Some(group))
    }

    /// What the reply took that is heard no further; `estimated` where the model did not say.
    pub(super) fn end_hearing(
        &mut self,
        hearing: Hearing,
        estimated: impl FnOnce(&mut Usage),
    ) -> Result<Usage, Unheard> {
        let usage = match hearing {
            Hearing::Record {
                replied: Some(replied),
                ..
            } => {
                self.asks.took(&replied.usage);
                return Ok(replied.usage);
            }
            Hearing::Record { replied: None, .. } => return Err(self.breaks_off().into()),
            Hearing::Model {
                pieces, started, ..
            } => {
                let (spent, told) = (pieces.spent(), pieces.spent().nanodollars);
                let mut usage = unpriced(spent, started);
                estimated(&mut usage);
                usage.cost = prices::cost(&self.cx, &usage.model, &usage, told);
                self.list(&mut usage, false);
                self.asks.took(&usage);
                usage
            }
        };
        self.note(&Entry::Replied(Replied {
            usage: usage.clone(),
            ..Replied::default()
        }))?;
        Ok(usage)
    }

    /// Lists a call where who asked keeps a trail of them. A record has its own list.
    pub(super) fn list(&self, usage: &mut Usage, failed: bool) {
        if self.run.caller_depth > 0 && self.playback.is_none() && !usage.cost.is_none() {
            let model = usage.model.clone();
            usage.list(&model, failed);
        }
    }

    /// A reply that failed is noted, too, with what it took.
    pub(super) fn note_failed(&mut self, error: &Error, usage: Usage) -> Result<(), Stop> {
        self.asks.took(&usage);
        self.note(&Entry::Replied(Replied {
            error: Some(error.clone()),
            usage,
            ..Replied::default()
        }))
    }

    /// The reply to a prompt as a whole.
    pub(super) async fn hear_whole(
        &mut self,
        prompt: &str,
        terms: &Terms,
    ) -> Result<Whole, Unheard> {
        if self.playback.is_some() {
            return self.heard_before(prompt, terms);
        }
        let came = whole(&self.cx, &self.prompts(), prompt, terms).await;
        self.heard_now(prompt, terms, came)
    }

    /// The replies to a prompt with each of these, which are asked for at the same time, for all of which there is room. They are
    /// kept and counted in this order.
    pub(super) async fn hear_together(
        &mut self,
        prompt: &str,
        all: &[Terms],
    ) -> Result<Vec<Result<Whole, Error>>, Stop> {
        let prompts = self.prompts();
        let came = match self.playback {
            Some(_) => Vec::new(),
            None => {
                let one = |terms| whole(&self.cx, &prompts, prompt, terms);
                join_all(all.iter().map(one)).await
            }
        };
        let mut came = came.into_iter();
        let mut heard = Vec::with_capacity(all.len());
        for (nth, terms) in all.iter().enumerate() {
            self.asked_next(nth == 0).await?;
            let one = match came.next() {
                Some(came) => self.heard_now(prompt, terms, came),
                None => self.heard_before(prompt, terms),
            };
            heard.push(match one {
                Ok(whole) => Ok(whole),
                Err(Unheard::Failed(error)) => Err(error),
                Err(Unheard::Stop(stop)) => return Err(stop),
            });
        }
        Ok(heard)
    }

    /// What the record of a replayed run has.
    fn heard_before(&mut self, prompt: &str, terms: &Terms) -> Result<Whole, Unheard> {
        let Some(playback) = &self.playback else {
            return Err(self.breaks_off().into());
        };
        let asked = Asked::of(prompt, terms);
        let known = playback.exchange((&self.run.run, self.step), &asked)?;
        if let Some(replied) = &known.replied {
            self.asks.took(&replied.usage);
        }
        match known.replied {
            None => Err(self.breaks_off().into()),
            Some(Replied {
                error: Some(error), ..
            }) => Err(error.into()),
            Some(replied) => Ok(Whole {
                text: known
                    .groups
                    .into_iter()
                    .flatten()
                    .filter_map(Heard::text)
                    .collect(),
                usage: replied.usage,
                usable: !replied.unusable,
            }),
        }
    }

    /// What came is noted and counted.
    fn heard_now(
        &mut self,
        prompt: &str,
        terms: &Terms,
        came: Result<Whole, Error>,
    ) -> Result<Whole, Unheard> {
        if self.records() {
            self.note(&Entry::Asked(Asked::of(prompt, terms)))?;
        }
        let mut whole = match came {
            Ok(whole) => whole,
            Err(error) => {
                self.note_failed(&error, Usage::default())?;
                return Err(error.into());
            }
        };
        self.list(&mut whole.usage, false);
        self.asks.took(&whole.usage);
        if self.records() {
            self.note(&Entry::Heard(vec![Heard::Text(whole.text.clone())]))?;
        }
        self.note(&Entry::Replied(Replied {
            usage: whole.usage.clone(),
            unusable: !whole.usable,
            error: None,
        }))?;
        Ok(whole)
    }

    /// The record breaks off within a reply.
    fn breaks_off(&self) -> Stop {
        match &self.playback {
            Some(playback) => playback.cut((&self.run.run, self.step)),
            None => AgentError::NotRecorded.into(),
        }
    }
}
