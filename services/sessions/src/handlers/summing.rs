//! Shortening sessions: a model of the flow sums up what was said, and the store cuts there.

use std::sync::Arc;
use std::time::Duration;

use tg_compaction::{
    Asked, Failure as Unsummed, KEPT, MODEL_TYPE, Role, Row, Summariser, Tier, said, split_point,
    summarise, window,
};
use tg_mesh::tg_bus::pause::after;
use tg_mesh::{Ask, Cx, LeasedStore, clock, warn_of};
use tg_schemas::msg::{ChatCompletionRequest, ChatCompletionResponse, ChatTurn};
use tg_schemas::operations::{Cost, TenantSettings, Usage};
use tg_schemas::price::ROWS as PRICES;
use tg_schemas::{Class, Error, FlowId, Topic, WorkspaceId, limits};
use tokio::time::Instant;
use uuid::Uuid;

use crate::engine::cost::{self, UNKNOWN, both};
use crate::engine::definition::Definition;
use crate::engine::llm_service;
use crate::engine::summing::{self, PROMPT, cut, fill, fit, fitting, opening, prune, row};
use crate::error::SessionsError;
use crate::store::{
    LineageStore, Message, Session, SessionStore, Shortening, Span, SqliteSessions, SummaryKind,
    SummaryRow,
};
use crate::trail::ModelCall;

/// Base of the topic on which the model of a flow is asked.
const CHAT: &str = "chat-completion";
/// Between two questions for the same summary: doubling from the first up to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
/// Most messages that are summed up at once; a session with more is summed up as far as these go.
const MOST: usize = 50_000;

/// Tokens that a model reads, as the workspace says.
fn window_of(cx: &Cx, model: &str) -> u64 {
    let row = cx.config().get(cx.workspace(), MODEL_TYPE, model);
    window(row.and_then(|row| said(&row).ok()), None, None)
}

/// Tokens that the model of an agent reads: as its LLM service says, else as the workspace says.
pub(super) fn window_for(cx: &Cx, agent: &Definition) -> u64 {
    agent.window.unwrap_or_else(|| window_of(cx, &agent.model))
}

/// Whether the model that an agent names may be asked, by what the workspace says of it. A service of the workspace says so itself.
///
/// # Errors
/// It reads too little at once.
pub(super) fn may_be_asked(cx: &Cx, agent: &Definition) -> Result<(), SessionsError> {
    if agent.service.is_some() || agent.model.is_empty() {
        return Ok(());
    }
    let window = i64::try_from(window_of(cx, &agent.model)).unwrap_or(i64::MAX);
    Ok(llm_service::reads_enough(window)?)
}

/// What caused a session to be shortened.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trigger {
    /// Somebody asked for it.
    Manual,
    /// It filled its model, which reads so many tokens.
    Auto(u64),
}

/// What it cost to ask a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Spent {
    pub(super) usage: Usage,
    pub(super) calls: i64,
    usd: Option<f64>,
    /// Who says what the calls cost; empty: there was none.
    source: &'static str,
    /// Each of the calls.
    pub(super) made: Vec<ModelCall>,
}

impl Spent {
    /// Adds it to what a turn cost. `rate`: euros for a dollar; 0: not set.
    pub(super) fn onto(&self, usage: &mut Usage, cost: &mut Cost, rate: f64) {
        if self.calls == 0 {
            return;
        }
        usage.input += self.usage.input;
        usage.output += self.usage.output;
        usage.total += self.usage.total;
        usage.cache_read += self.usage.cache_read;
        usage.cache_write += self.usage.cache_write;
        cost.sub_calls += self.calls;
        if let Some(usd) = self.usd {
            cost.usd = Some(cost.usd.unwrap_or_default() + usd);
            if rate > 0.0 {
                cost.eur = Some(cost.eur.unwrap_or_default() + usd * rate);
            }
        }
        cost.source = both(&cost.source, self.source).to_owned();
    }
}

/// Asks the model of a flow, by a chat.
pub(super) struct Model<'a> {
    cx: &'a Cx,
    topic: Topic,
    /// The model that is asked; `None`: that of the flow.
    model: Option<String>,
    /// What its questions are called.
    name: &'static str,
    /// The model that answered.
    pub(super) answered: String,
    pub(super) spent: Spent,
}

impl<'a> Model<'a> {
    pub(super) fn new(
        cx: &'a Cx,
        flow: &FlowId,
        model: Option<String>,
        name: &'static str,
    ) -> Result<Self, SessionsError> {
        let workspace = WorkspaceId::new(cx.workspace())?;
        Ok(Self {
            cx,
            topic: Topic::flow(Class::Request, CHAT, &workspace, flow),
            model,
            name,
            answered: String::new(),
            spent: Spent::default(),
        })
    }

    /// What a call cost, and who says so.
    fn cost(&self, answer: &ChatCompletionResponse) -> (&'static str, Option<f64>) {
        let model = answer.model.as_deref().or(self.model.as_deref());
        let row = |kind| {
            let config = self.cx.config();
            config.get(self.cx.workspace(), kind, model.unwrap_or_default())
        };
        let used = answer.usage.unwrap_or_default();
        let (price, known) = (row(PRICES), row(MODEL_TYPE));
        cost::of(answer.cost, &used, price.as_deref(), known.as_deref())
    }

    /// A call that took so long, for the trail.
    fn made(
        &self,
        answer: Result<&ChatCompletionResponse, &Error>,
        (source, usd): (&str, Option<f64>),
        took: Duration,
    ) -> ModelCall {
        let failed = answer.err().map(|error| error.code().as_str().to_owned());
        let answer = answer.ok();
        let reported = answer.and_then(|answer| answer.usage);
        let used = reported.unwrap_or_default();
        let model = answer.and_then(|answer| answer.model.clone());
        ModelCall {
            surface: self.name,
            model: model.or_else(|| self.model.clone()).unwrap_or_default(),
            backend: answer.and_then(|answer| answer.backend.clone()),
            attempts: answer.and_then(|answer| answer.attempts),
            is_done: answer.is_some(),
            error_code: failed,
            estimated: reported.map(|used| used.estimated),
            source: source.to_owned(),
            duration_ms: i64::try_from(took.as_millis()).ok(),
            usage: Usage {
                input: used.input,
                output: used.output,
                cache_read: used.cache_read,
                cache_write: used.cache_write,
                total: used.total,
            },
            usd,
        }
    }

    /// Its answer.
    pub(super) async fn chat(&mut self, system: String, text: &str) -> Result<String, Error> {
        let turn = |role: &str, content: String| ChatTurn {
            role: role.to_owned(),
            content,
            ..ChatTurn::default()
        };
        let question = ChatCompletionRequest {
            operation: "completion".to_owned(),
            model: self.model.clone(),
            messages: vec![turn("system", system), turn("user", text.to_owned())],
            ..ChatCompletionRequest::default()
        };
        self.spent.calls += 1;
        // A message that is handed out again after a crash asks the same question. Another message with the same request does not: the
        // answer to the first one may have been that the model failed.
        let message = self.cx.headers.id.as_deref().unwrap_or(&self.cx.id);
        let ask = Ask {
            id: Some(format!("{message}/{}/{}", self.name, self.spent.calls)),
            ..self.cx.ask_options()
        };
        let began = Instant::now();
        let answer = self.cx.mesh.ask(&self.topic, &question, ask);
        let answer: Result<ChatCompletionResponse, Error> = answer.last().await;
        let answer = answer.and_then(|answer| match answer.error {
            Some(error) => Err(error),
            None => Ok(answer),
        });
        let (source, usd) = match &answer {
            Ok(answer) => self.cost(answer),
            Err(_) => (UNKNOWN, None),
        };
        self.spent.source = both(self.spent.source, source);
        let made = self.made(answer.as_ref(), (source, usd), began.elapsed());
        self.spent.made.push(made);
        let answer = answer?;
        if let Some(used) = answer.usage {
            let usage = &mut self.spent.usage;
            usage.input += used.input;
            usage.output += used.output;
            usage.cache_read += used.cache_read;
            usage.cache_write += used.cache_write;
            usage.total += used.total;
        }
        if let Some(usd) = usd {
            self.spent.usd = Some(self.spent.usd.unwrap_or_default() + usd);
        }
        self.answered = answer.model.unwrap_or_default();
        Ok(match answer.content.is_empty() {
            true => answer.delta,
            false => answer.content,
        })
    }
}

impl Summariser for Model<'_> {
    type Stop = Error;

    async fn ask(&mut self, asked: Asked<'_>) -> Result<Option<String>, Error> {
        let (system, text) = summing::asked(&asked);
        match self.chat(system, text).await {
            Ok(text) if text.len() > limits::SESSION_SUMMARY => {
                warn_of!(
                    self.cx,
                    bytes = text.len(),
                    "a summary is too long to be taken"
                );
                Ok(None)
            }
            Ok(text) => Ok(Some(text)),
            Err(error) if self.cx.cancel.is_cancelled() || self.cx.deadline.passed() => Err(error),
            Err(error) => {
                warn_of!(self.cx, %error, "a model did not sum a session up");
                Ok(None)
            }
        }
    }

    async fn pause(&mut self, attempts: u32) -> Result<(), Error> {
        tokio::time::sleep(after(PAUSES.0, attempts - 1, PAUSES.1)).await;
        Ok(())
    }
}

/// What sessions are shortened with.
pub(super) struct Shortener<'a> {
    pub(super) cx: &'a Cx,
    pub(super) store: &'a Arc<LeasedStore<SqliteSessions>>,
    pub(super) settings: &'a TenantSettings,
    pub(super) flow: &'a FlowId,
}

/// A session that was shortened.
pub(super) struct Shortened {
    pub(super) successor: Session,
    pub(super) summary: SummaryRow,
}

impl Shortener<'_> {
    fn key(&self) -> String {
        self.cx.workspace_key().as_str().to_owned()
    }

    /// The summary and the model that wrote it. What was spent is there however that ended.
    async fn summary(
        &self,
        rows: &[Row],
        mask: bool,
        spent: &mut Spent,
    ) -> Result<(tg_compaction::Summary, String), Unsummed<SessionsError>> {
        let model = self.settings.compact_summary_model.clone();
        let window = window_of(self.cx, model.as_deref().unwrap_or_default());
        let mut by =
            Model::new(self.cx, self.flow, model, "compaction").map_err(Unsummed::Stopped)?;
        let done = summarise(rows, window, mask, &mut by).await;
        *spent = by.spent;
        match done {
            Ok(summary) => Ok((summary, by.answered)),
            Err(Unsummed::TooSmall) => Err(Unsummed::TooSmall),
            Err(Unsummed::Stopped(error)) => Err(Unsummed::Stopped(error.into())),
        }
    }

    /// Sums a session up and makes the one that continues it. Whoever calls this has the turn.
    ///
    /// # Errors
    /// There is nothing to sum up, or no model did it; nothing was changed.
    pub(super) async fn shorten(
        &self,
        session: &Session,
        trigger: Trigger,
        spent: &mut Spent,
    ) -> Result<Shortened, SessionsError> {
        let key = self.key();
        let store = self.store.get().await?;
        let span = Span {
            after: 0,
            live: true,
            plain: false,
            most: MOST,
            bytes: limits::SESSION_TEXTS,
        };
        let live = store.messages(&key, &session.id, span).await?.items;
        drop(store);
        let keep = match trigger {
            Trigger::Auto(window) if session.parent.is_some() => {
                fitting(&live, session.keep, window)
            }
            _ => session.keep,
        };
        let cut = cut(&live, keep).filter(|_| session.archived.is_none());
        let cut = cut.ok_or(SessionsError::NothingToCompact)?;
        let rows: Vec<Row> = live[..cut].iter().map(row).collect();
        let summed = self.summary(&rows, session.mask, spent).await;
        let (summary, model) = summed.map_err(|_| SessionsError::NotSummedUp)?;
        if summary.tier > Tier::Partial {
            return Err(SessionsError::NotSummedUp);
        }
        let (first, last) = (live[0].seq, live[cut - 1].seq);
        // Of a long session not all that stays was read.
        let stay = usize::try_from(session.live).unwrap_or_default();
        let stay = stay.max(live.len()) - cut;
        let new = Shortening {
            opening: opening(&session.id, &summary.text),
            first_kept: last + 1,
            ids: (0..=stay).map(|_| Uuid::new_v4().to_string()).collect(),
            summary: SummaryRow {
                id: Uuid::new_v4().to_string(),
                session: session.id.clone(),
                successor: Some(Uuid::new_v4().to_string()),
                kind: SummaryKind::Lineage,
                tier: summary.tier.as_str().to_owned(),
                text: summary.text,
                model,
                prompt: PROMPT.to_owned(),
                mask: session.mask,
                first,
                last,
                count: i64::try_from(cut).unwrap_or(i64::MAX),
                before: summing::tokens(session.characters),
                after: 0,
                trigger: match trigger {
                    Trigger::Manual => "manual",
                    Trigger::Auto(_) => "auto",
                }
                .to_owned(),
                request: self.cx.id.to_string(),
                at: clock::millis(),
            },
        };
        let mut summary = new.summary.clone();
        let store = self.store.get().await?;
        let made = store.shorten(&key, new).await?;
        let successor = made.ok_or(SessionsError::NothingToCompact)?;
        summary.after = summing::tokens(successor.characters);
        Ok(Shortened { successor, summary })
    }

    /// The newest summary in place of a conversation's messages, with the number of the last one that it stands for.
    pub(super) async fn in_place(
        &self,
        session: &str,
    ) -> Result<Option<(String, i64)>, SessionsError> {
        let store = self.store.get().await?;
        let newest = store.newest_in_place(&self.key(), session).await?;
        Ok(newest.map(|one| (one.text, one.last)))
    }

    /// Makes the part of a conversation that its agent is sent fit the agent's model, which reads `window` tokens. The conversation
    /// stays as it is. `before` is the summary that stands for the messages before these; empty: none does. Shortens what tools returned in
    /// the older messages. Where that is not enough, takes these messages out, and returns the summary in their place; it is empty where
    /// none fits.
    pub(super) async fn sum_up(
        &self,
        session: &Session,
        (before, window): (&str, u64),
        past: &mut Vec<Message>,
        spent: &mut Spent,
    ) -> Result<Option<String>, SessionsError> {
        let told = (crate::engine::transcript::TOLD / 4) as u64;
        let window = window.min(told);
        // The agent reads the summary that stands now before these messages: it counts, too.
        let standing: Vec<Row> = match before {
            "" => Vec::new(),
            text => vec![Row::text(Role::Assistant, text)],
        };
        let read = |past: &[Message]| -> Vec<Row> {
            let past = past.iter().map(row);
            standing.iter().cloned().chain(past).collect()
        };
        let whole = read(past.as_slice());
        if !fill(&whole, window) {
            return Ok(None);
        }
        let said = whole.get(standing.len()..).unwrap_or_default();
        let Some(cut) = split_point(said, KEPT) else {
            return Ok(None);
        };
        prune(past, cut);
        let mut rows = read(past.as_slice());
        if !fill(&rows, window) {
            return Ok(None);
        }
        let kept = rows.split_off(standing.len() + cut);
        let nothing = tg_compaction::Summary {
            text: String::new(),
            tier: Tier::HardClear,
        };
        // No summary fits beside messages that are too much by themselves: then no model is asked.
        let summed = match fit(&kept, window) {
            true => self.summary(&rows, true, spent).await,
            false => Err(Unsummed::TooSmall),
        };
        let (summary, model) = match summed {
            Ok((summary, model)) => {
                let mut read = vec![Row::text(Role::Assistant, summary.text.as_str())];
                read.extend(kept);
                match fit(&read, window) {
                    true => (summary, model),
                    false => (nothing, String::new()),
                }
            }
            Err(Unsummed::TooSmall) => (nothing, String::new()),
            Err(Unsummed::Stopped(error)) => return Err(error),
        };
        let (first, last) = (past[0].seq, past[cut - 1].seq);
        past.drain(..cut);
        let new = SummaryRow {
            id: Uuid::new_v4().to_string(),
            session: session.id.clone(),
            successor: None,
            kind: SummaryKind::InPlace,
            tier: summary.tier.as_str().to_owned(),
            text: summary.text.clone(),
            model,
            prompt: PROMPT.to_owned(),
            mask: true,
            first,
            last,
            count: i64::try_from(cut).unwrap_or(i64::MAX),
            before: summing::tokens(session.characters),
            after: 0,
            trigger: "auto".to_owned(),
            request: self.cx.id.to_string(),
            at: clock::millis(),
        };
        // The turn does not depend on it: the next one makes a summary anew.
        if let Err(error) = self.stored(new).await {
            warn_of!(
                self.cx,
                session = session.id,
                ?error,
                "a summary could not be stored, and the turn goes on with it"
            );
        }
        Ok(Some(summary.text))
    }

    /// Stores a summary in place of messages.
    async fn stored(&self, new: SummaryRow) -> Result<(), SessionsError> {
        let store = self.store.get().await?;
        store.summed_up(&self.key(), new).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(usd: Option<f64>, source: &str) -> Cost {
        Cost {
            usd,
            source: source.to_owned(),
            sub_calls: 1,
            ..Cost::default()
        }
    }

    #[test]
    fn line_039_costs_of_several_sources_are_mixed() {
        let known = (Some(0.5), "upstream");
        let unknown = (None, "unknown");
        for (own, before, source, usd) in [
            (known, cost(Some(0.25), "upstream"), "upstream", Some(0.75)),
            (known, cost(Some(0.25), "table"), "mixed", Some(0.75)),
            (known, cost(None, ""), "upstream", Some(0.5)),
            (unknown, cost(Some(0.25), "local"), "mixed", Some(0.25)),
            (unknown, cost(None, "unknown"), "unknown", None),
        ] {
            let spent = Spent {
                calls: 2,
                usd: own.0,
                source: own.1,
                ..Spent::default()
            };
            let mut after = before;
            spent.onto(&mut Usage::default(), &mut after, 0.5);
            assert_eq!(
                (after.source.as_str(), after.usd, after.sub_calls),
                (source, usd, 3)
            );
            assert_eq!(after.eur, own.0.map(|dollars: f64| dollars / 2.0));
        }
        let mut same = cost(None, "local");
        Spent::default().onto(&mut Usage::default(), &mut same, 0.5);
        assert_eq!(same, cost(None, "local"));
    }
}
