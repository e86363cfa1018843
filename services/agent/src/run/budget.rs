//! What runs may take, as the workspace says: whether the next call fits, and what it took.
//!
//! Both are in the ledger, under the step: a step that is taken up again reserves and counts nothing twice, and runs that go
//! on at the same time know of each other.

use std::time::Duration;

use chrono::DateTime;
use tg_clients::model_calls::key_of;
use tg_mesh::tg_bus::pause::doubled;
use tg_mesh::{Cx, Deadline, clock};
use tg_schemas::msg::AgentRun;
use tokio::time::Instant;

use super::Agent;
use super::day::today;
use super::execution::{StepExecution, there};
use super::guard;
use crate::engine::cost::Price;
use crate::engine::decision::{Decision, Observation, Taken, Usage};
use crate::engine::guards::budget::{self, Budgets};
use crate::engine::guards::{Budget, Exhausted};
use crate::engine::splitting;
use crate::engine::usage::{Amount, Scope};
use crate::error::{AgentError, Stop};
use crate::prices;
use crate::store::{Account, Bound, Call, CallKind, Counted, Decided, Reservation, Used};

/// Config type and key of what a workspace says of its own.
const OWN: (&str, &str) = ("agent", "budget");
/// What is reserved for a call outlives its deadline by so many milliseconds, and is never longer than a day.
pub(super) const GRACE_MS: i64 = 60_000;
pub(super) const LONGEST_MS: i64 = 24 * 3600 * 1000;
/// How long a call waits for others to need less than is reserved for them, and how often it is tried meanwhile. Those may wait for
/// this one, as a tool does that gives work to an agent: then the run ends as one whose budget is used up.
const TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What binds the runs of a workspace.
///
/// # Errors
/// The workspace's own row cannot be read; the error names the field.
pub(crate) fn budgets_of(agent: &Agent, cx: &Cx) -> Result<Budgets, AgentError> {
    let (usual, workspace) = (agent.options.budgets(), cx.workspace());
    let rows = [cx.config().values(workspace, OWN.0)];
    let Some(row) = rows[0].get(OWN.1) else {
        return Ok(usual);
    };
    if let Some(known) = agent.budgets.get(workspace, &rows) {
        return Ok(*known);
    }
    let read = usual.with(row).map_err(AgentError::Budget)?;
    agent.budgets.put(workspace, rows.into(), read);
    Ok(read)
}

/// Whom calls of a run are counted for, on behalf of who sent the message.
pub(super) fn account_of(cx: &Cx, run: &str, conversation: &str, agent: &str) -> Account {
    let user = cx.headers.user_id.as_deref().unwrap_or_default();
    let session = match (conversation, user) {
        ("", _) => String::new(),
        (_, "") => conversation.to_owned(),
        // Nobody uses up what another's conversation of the same id has.
        _ => format!("{user}/{conversation}"),
    };
    Account {
        workspace: cx.workspace_key().to_string(),
        run: run.to_owned(),
        session,
        key: key_of(&cx.headers),
        agent: agent.to_owned(),
    }
}

/// What binds a call today, of a run that has gone on for so many seconds.
pub(super) fn bounds_of(budgets: Budgets, today: &str, seconds: u64) -> Vec<Bound> {
    let Budgets {
        run,
        session,
        key,
        workspace,
    } = budgets;
    // Most runs have no bound, and are asked for it several times in a step.
    let share = |scope: Scope, whose: &str, share: &budget::Share| {
        share.budget.binds().then(|| Bound {
            scope,
            since: share.per.since(today),
            budget: share.budget,
            seconds: None,
            whose: format!("the budget of {whose} for the {}", share.per.as_str()),
        })
    };
    let whole = |scope: Scope, whose: &str, budget: Budget| {
        budget.binds().then(|| Bound {
            scope,
            since: String::new(),
            budget,
            seconds: (scope == Scope::Run).then_some(seconds),
            whose: whose.to_owned(),
        })
    };
    let all = [
        whole(Scope::Run, "its budget", run),
        whole(Scope::Session, "the budget of its session", session),
        share(Scope::Key, "its key", &key),
        share(Scope::Workspace, "its workspace", &workspace),
    ];
    all.into_iter().flatten().collect()
}

/// The tool that is about to be called, unless a guard has it not called.
fn to_call(decision: &Decision) -> Option<&str> {
    let stops = decision.guard.as_ref().is_some_and(|guard| guard.stops());
    match &decision.taken {
        Taken::Action { name, .. }
            if !name.is_empty() && !stops && guard::blocks(decision).is_none() =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// When a call of a question with this deadline is over at the latest.
pub(super) fn expires_ms(deadline: Deadline, now: i64) -> i64 {
    let deadline = i64::try_from(deadline.millis()).unwrap_or(i64::MAX);
    deadline.min(now + LONGEST_MS).saturating_add(GRACE_MS)
}

impl StepExecution {
    /// A row that became unreadable after the run began counts no more.
    fn budgets(&self) -> Budgets {
        budgets_of(&self.agent, &self.cx).unwrap_or_else(|error| {
            let workspace = self.cx.workspace();
            tracing::warn!(workspace, %error, "a run goes on with the budgets of the settings");
            self.agent.options.budgets()
        })
    }

    fn seconds(&self) -> u64 {
        let began = DateTime::parse_from_rfc3339(&self.run.started_at);
        let began = began.map_or_else(|_| clock::millis(), |began| began.timestamp_millis());
        u64::try_from((clock::millis() - began) / 1000).unwrap_or(0)
    }

    /// Whom the calls of this run are counted for.
    fn account(&self) -> Account {
        let agent = match self.run.agent.as_str() {
            "" => &self.run.account,
            definition => definition,
        };
        let run = splitting::whole(&self.run);
        account_of(&self.cx, run, &self.run.conversation, agent)
    }

    /// Whether anything binds calls of the run.
    pub(super) fn is_bound(&self) -> bool {
        self.budgets().bind()
    }

    fn price(&self, model: &str) -> Option<Price> {
        prices::price(&self.cx, model)
    }

    /// What the next call of the model may cost in a run: by the price of the one that answered last, else by the highest.
    pub(super) fn likely(&self, run: &AgentRun) -> Amount {
        let dear = |price: &Amount| price.nanodollars;
        match run.model.as_str() {
            "" => {
                let prices = prices::all(&self.cx);
                let likely = prices
                    .iter()
                    .map(|price| budget::model_call(run, Some(price)));
                let dearest = likely.max_by_key(dear);
                dearest.unwrap_or_else(|| budget::model_call(run, None))
            }
            model => budget::model_call(run, self.price(model).as_ref()),
        }
    }

    pub(super) fn numbered(&self, step: u32, (kind, nth): (CallKind, u32)) -> Call {
        Call {
            run: self.run.run.clone(),
            step,
            kind,
            nth,
        }
    }

    /// Why the model is not asked any more. Otherwise what it is likely to take is reserved.
    pub(super) async fn no_model_call(&mut self) -> Result<Option<Exhausted>, Stop> {
        if self.playback.is_none() {
            self.settle_router().await?;
        }
        self.asks.ahead = self.is_reserved();
        if self.asks.ahead {
            return Ok(None);
        }
        self.no_ask(0, true).await
    }

    /// Waits for others where the run has reserved nothing itself that is not settled.
    async fn no_ask(&self, nth: u32, waits: bool) -> Result<Option<Exhausted>, Stop> {
        // What it is likely to cost is looked for only then: a workspace may have hundreds of prices.
        if self.playback.is_none() && !self.is_bound() {
            return Ok(None);
        }
        let like = (Scope::Model, self.run.model.clone());
        let (call, likely) = ((CallKind::Model, nth), self.likely(&self.run));
        match waits {
            true => self.reserve_soon(call, likely, like).await,
            false => self.reserve(call, likely, like).await,
        }
    }

    /// The model is about to be asked: after the first time, which is reserved before the step is gone about, this is reserved,
    /// and what the time before took is counted.
    pub(super) async fn ask_again(&mut self) -> Result<(), Stop> {
        let nth = self.asks.models;
        if nth > 0 {
            self.settle_last((CallKind::Model, nth - 1)).await?;
            if let Some(over) = self.no_ask(nth, true).await? {
                return Err(Stop::Spent(over));
            }
        }
        self.asks.models += 1;
        Ok(())
    }

    /// The model is about to be asked several things at the same time, after whatever it was asked before: how many of them fit,
    /// in their order. Where none does, it is why.
    pub(super) async fn ask_several(&mut self, most: usize) -> Result<usize, Stop> {
        let first = self.asks.models;
        if first > 0 {
            self.settle_last((CallKind::Model, first - 1)).await?;
        }
        let mut fit = 0;
        for nth in (first..).take(most) {
            // The first of all is reserved before the step is gone about.
            if nth > 0
                && let Some(over) = self.no_ask(nth, fit == 0).await?
            {
                match fit {
                    0 => return Err(Stop::Spent(over)),
                    _ => break,
                }
            }
            fit += 1;
        }
        Ok(fit)
    }

    /// One of those is heard: what the one before it took is counted, unless it is the first of them.
    pub(super) async fn asked_next(&mut self, first: bool) -> Result<(), Stop> {
        if !first {
            self.settle_last((CallKind::Model, self.asks.models.saturating_sub(1)))
                .await?;
        }
        self.asks.models += 1;
        Ok(())
    }

    /// The model is about to be asked to sum up so many tokens.
    pub(super) async fn sum_up_again(&mut self, tokens: u64) -> Result<(), Stop> {
        if self.asks.models > 0 {
            self.settle_last((CallKind::Model, self.asks.models - 1))
                .await?;
        }
        let model = self.run.model.clone();
        let settings = self.run.settings.as_ref();
        let likely = budget::summary_call(tokens, settings, self.price(&model).as_ref());
        let call = (CallKind::Summary, self.asks.summaries);
        let over = self.reserve(call, likely, (Scope::Model, model)).await?;
        if let Some(over) = over {
            return Err(Stop::Spent(over));
        }
        self.asks.summaries += 1;
        Ok(())
    }

    /// Counts what that took.
    pub(super) async fn settle_summary(&mut self) -> Result<(), Stop> {
        let nth = self.asks.summaries.saturating_sub(1);
        self.settle_last((CallKind::Summary, nth)).await
    }

    /// Whether the router may ask a model, before the first step.
    pub(super) async fn router_may_ask(&mut self) -> Result<bool, Stop> {
        let over = self.no_ask(self.asks.models, true).await?;
        self.asks.models += u32::from(over.is_none());
        Ok(over.is_none())
    }

    /// Counts what that took.
    pub(super) async fn settle_asked(&mut self, used: &Usage) -> Result<(), Stop> {
        self.asks.took(used);
        let nth = self.asks.models.saturating_sub(1);
        self.settle_last((CallKind::Model, nth)).await
    }

    async fn settle_last(&mut self, call: (CallKind, u32)) -> Result<(), Stop> {
        let used = std::mem::take(&mut self.asks.last);
        let amount = Amount {
            model_calls: 1,
            ..Amount::of(&used)
        };
        let by = (Scope::Model, used.model);
        self.count(self.numbered(self.step, call), by, amount).await
    }

    /// Counts what is known of the last time that the model was asked, of a step in which nothing was decided. Of what was left
    /// before it said how much it is, it is counted what was reserved.
    pub(super) async fn settle_undecided(&mut self) -> Result<(), Stop> {
        if let Some(Decided::Fits) = self.asks.reserved.take() {
            // The tool was chosen, and the run ends before it is called.
            self.free(CallKind::Tool).await?;
        }
        let last = &self.asks.last;
        match self.asks.models {
            _ if self.decision.is_some() => Ok(()),
            0 => self.free(CallKind::Model).await,
            _ if last.in_token + last.out_token == 0 => Ok(()),
            asked => self.settle_last((CallKind::Model, asked - 1)).await,
        }
    }

    /// Why the tool that was chosen is not called any more. Of several, those are called that fit, in their order; where none
    /// does, it is why.
    pub(super) async fn no_tool_call(
        &mut self,
        decision: &Decision,
    ) -> Result<Option<Exhausted>, Stop> {
        let apart = decision.apart();
        if apart.is_empty() || decision.guard.is_some() {
            return match self.asks.reserved.take() {
                Some(Decided::Fits) => Ok(None),
                Some(Decided::Refused(over)) if !over.reserved => Ok(Some(over)),
                _ => self.no_call(0, decision, true).await,
            };
        }
        let mut fits = false;
        for (nth, one) in (0..).zip(&apart) {
            match self.no_call(nth, one, !fits).await? {
                Some(over) if !fits => return Ok(Some(over)),
                Some(over) => {
                    self.asks.refused = Some((nth, over.why));
                    break;
                }
                None => fits |= guard::blocks(one).is_none(),
            }
        }
        Ok(None)
    }

    async fn no_call(
        &self,
        nth: u32,
        decision: &Decision,
        waits: bool,
    ) -> Result<Option<Exhausted>, Stop> {
        let Some(name) = to_call(decision) else {
            return Ok(None);
        };
        let like = (Scope::Tool, name.to_owned());
        let (call, likely) = ((CallKind::Tool, nth), budget::tool_call());
        match waits {
            true => self.reserve_soon(call, likely, like).await,
            false => self.reserve(call, likely, like).await,
        }
    }

    /// Commits a decision with what was used for it, and reserves what the tool is likely to take that it chose.
    pub(super) async fn commit_decision(&mut self, decision: &Decision) -> Result<(), Stop> {
        let (took, now) = (self.model_took(decision), clock::millis());
        let next = self.next_call(decision, now);
        let ledger = self.ledger().await?;
        let key = self.key();
        let Some(next) = next else {
            let kept = ledger.decide(&key, self.step, decision, &took, now);
            return there(kept.await?).map_err(Stop::from);
        };
        let decided = ledger.decide_and_reserve(&key, self.step, decision, &took, &next, now);
        let decided = decided.await?;
        match &decided {
            // It waits before it is called.
            Decided::Refused(over) if over.reserved => {}
            Decided::Fits => {}
            Decided::Refused(over) => self.out_of(over),
            Decided::WorkspaceEnded => return Err(AgentError::NoWorkspace.into()),
        }
        self.asks.reserved = Some(decided);
        Ok(())
    }

    /// The call of the tool that was chosen, if it is one and anything binds it.
    fn next_call(&self, decision: &Decision, now: i64) -> Option<(Call, Reservation)> {
        if self.playback.is_some() {
            return None;
        }
        let like = (Scope::Tool, to_call(decision)?.to_owned());
        let next = self.reservation(budget::tool_call(), like, now)?;
        let next = Reservation {
            waits: true,
            ahead: true,
            ..next
        };
        Some((self.numbered(self.step, (CallKind::Tool, 0)), next))
    }

    /// What is reserved for a call. `None`: nothing binds it.
    pub(super) fn reservation(
        &self,
        amount: Amount,
        like: (Scope, String),
        now: i64,
    ) -> Option<Reservation> {
        let budgets = self.budgets();
        if !budgets.bind() {
            return None;
        }
        let day = today();
        let bounds = bounds_of(budgets, &day, self.seconds());
        Some(Reservation {
            account: self.account(),
            amount,
            like,
            bounds,
            expires_ms: expires_ms(self.cx.deadline, now),
            day,
            waits: false,
            ahead: false,
        })
    }

    /// Notes that a call does not fit.
    fn out_of(&self, over: &Exhausted) {
        let (run, why) = (self.run.run.as_str(), over.why.as_str());
        metrics::counter!("tg_agent_budget_total", "limit" => over.limit.as_str()).increment(1);
        tracing::info!(run, why, "a run is out of its budget");
    }

    async fn reserve(
        &self,
        call: (CallKind, u32),
        amount: Amount,
        like: (Scope, String),
    ) -> Result<Option<Exhausted>, Stop> {
        let over = self.try_to_reserve(call, (amount, like), false).await?;
        if let Some(over) = over.as_ref().filter(|_| self.playback.is_none()) {
            self.out_of(over);
        }
        Ok(over)
    }

    /// The same of a call that waits for others that may need less than is reserved for them.
    async fn reserve_soon(
        &self,
        call: (CallKind, u32),
        amount: Amount,
        like: (Scope, String),
    ) -> Result<Option<Exhausted>, Stop> {
        let (end, mut pause) = (Instant::now() + TIMEOUT, FIRST_PAUSE);
        while self.playback.is_none() && Instant::now() < end {
            let next = (amount, like.clone());
            match self.try_to_reserve(call, next, true).await? {
                None => return Ok(None),
                // It is noted, and said once more.
                Some(over) if !over.reserved => break,
                Some(_) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.cx.cancel.cancelled() => return Err(self.ending(&AgentError::Cancelled.into())),
                () = self.cx.deadline.reached() => return Err(self.ending(&AgentError::Timeout.into())),
            }
            pause = doubled(pause, LONGEST_PAUSE);
        }
        self.reserve(call, amount, like).await
    }

    async fn try_to_reserve(
        &self,
        call: (CallKind, u32),
        (amount, like): (Amount, (Scope, String)),
        waits: bool,
    ) -> Result<Option<Exhausted>, Stop> {
        if let Some(playback) = &self.playback {
            return Ok(playback.refused((&self.run.run, self.step), call));
        }
        let now = clock::millis();
        let Some(next) = self.reservation(amount, like, now) else {
            return Ok(None);
        };
        let next = Reservation { waits, ..next };
        let ledger = self.ledger().await?;
        let call = self.numbered(self.step, call);
        Ok(ledger.reserve(&call, &next, now).await?)
    }

    /// Counts what the router's choice took, before the first step of a run.
    async fn settle_router(&self) -> Result<(), Stop> {
        let used = self.used_before();
        if self.step != 1 || used.in_token + used.out_token == 0 {
            return Ok(());
        }
        let amount = Amount {
            model_calls: 1,
            ..Amount::of(&used)
        };
        let by = (Scope::Model, used.model);
        self.count(self.numbered(0, (CallKind::Model, 0)), by, amount)
            .await
    }

    /// What a decision took that is not counted yet: the last time that the model was asked for it. Summaries were counted
    /// as they were made.
    pub(super) fn model_took(&self, decision: &Decision) -> Vec<Counted> {
        let (usage, nth) = match self.asks.models {
            // Another process decided it. Where it had asked more than once, the first time is counted.
            0 => (decision.asked(), 0),
            asked => (self.asks.last.clone(), asked - 1),
        };
        let amount = Amount {
            model_calls: 1,
            ..Amount::of(&usage)
        };
        let call = self.numbered(self.step, (CallKind::Model, nth));
        let took = self.took(call, (Scope::Model, usage.model), amount);
        took.into_iter().collect()
    }

    /// What a tool took. Subagents have counted themselves what they took.
    pub(super) fn tool_took(&self, decision: &Decision, seen: &Observation) -> Vec<Counted> {
        let apart = decision.apart();
        let several = (0..).zip(&apart).zip(&seen.calls);
        let several = several.filter_map(|((nth, one), seen)| self.call_took(nth, one, seen));
        several.chain(self.call_took(0, decision, seen)).collect()
    }

    fn call_took(&self, nth: u32, decision: &Decision, seen: &Observation) -> Option<Counted> {
        let Taken::Action { name, .. } = &decision.taken else {
            return None;
        };
        let call = self.numbered(self.step, (CallKind::Tool, nth));
        if !seen.called {
            // What was reserved for a call that was not made is free again.
            let by = (Scope::Tool, String::new());
            return match self.is_bound() {
                true => self.took(call, by, Amount::default()),
                false => None,
            };
        }
        let amount = Amount {
            tool_calls: 1,
            duration_ms: seen.duration_ms,
            ..match seen.findings.is_empty() {
                true => prices::of_tool(&self.cx, &decision.usage.model, &seen.usage),
                false => Amount::default(),
            }
        };
        let by = (Scope::Tool, name.clone());
        self.took(call, by, amount)
    }

    /// What a call took, as the ledger counts it. `None`: it took nothing now.
    fn took(&self, call: Call, by: (Scope, String), amount: Amount) -> Option<Counted> {
        if self.playback.is_some() {
            return None;
        }
        let used = Used {
            account: self.account(),
            unreported: prices::unreported(&self.cx, &by, &amount),
            by,
            amount,
            day: today(),
        };
        Some(Counted { call, used })
    }

    async fn count(&self, call: Call, by: (Scope, String), amount: Amount) -> Result<(), Stop> {
        let took = self.took(call, by, amount);
        self.count_all(took.into_iter().collect()).await
    }

    /// Counts what calls took that have no row of a step to be committed with.
    pub(super) async fn count_all(&self, counted: Vec<Counted>) -> Result<(), Stop> {
        if counted.is_empty() {
            return Ok(());
        }
        let ledger = self.ledger().await?;
        let key = self.key();
        for one in &counted {
            let settled = ledger.settle(&key, &one.call, &one.used, clock::millis());
            settled.await?;
        }
        Ok(())
    }
}
