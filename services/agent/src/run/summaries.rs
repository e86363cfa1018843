//! What a run had summed up, after the fact: the steps that a summary stands for, as the ledger has them, and another summary of
//! the same steps by another model. The run's own rows never change.

use std::sync::Arc;

use tg_clients::flow_records;
use tg_clients::prompt::Prompts;
use tg_clients::traces::TraceWriter;
use tg_compaction::{
    Asked, Failure, MODEL_TYPE, Role, Row, Summariser, Tier, said, summarise, tokens, window,
};
use tg_mesh::{Cx, InstanceScope, clock};
use tg_provenance::{Compaction, Event, Session, remade};
use tg_schemas::msg::{AgentRunStep, ModelSettings};
use tg_schemas::processors::agent_manager;
use tg_schemas::{Error, ErrorCode, FlowId, Topic, WorkspaceId, WorkspaceKey};
use tokio::time::Instant;

use super::agent::Agent;
use super::budget::{account_of, bounds_of, budgets_of};
use super::compact::{OWN, as_said, prompted, rested, tokens_of};
use super::day::today;
use super::execution::is_over;
use super::hearing::used;
use super::outside::pause;
use super::together;
use crate::engine::bounds::{MAX_SHOWN, shorten};
use crate::engine::compacting::{SUMMARISE, dialog};
use crate::engine::decision::{Compacted, Decision, Observation, Usage};
use crate::engine::guards::budget;
use crate::engine::trace;
use crate::engine::usage::{Amount, Scope};
use crate::error::AgentError;
use crate::prices;
use crate::store::summaries::MOST_REMADE;
use crate::store::{Account, Call, CallKind, KnownRun, Ledger, Remade, Reservation, RunKey, Used};

/// Steps of a run that are looked at: more than one may take.
const LOOKED: u32 = 1_000;
/// Bytes that the steps together are shown with at most, and parts of a step that are shown.
const TOGETHER: usize = 2 << 20;
const PARTS: usize = 4;
/// What is reserved for a call outlives its question by so many milliseconds.
const GRACE_MS: i64 = 60_000;

/// What was summed up before a step.
pub(crate) struct Summed {
    /// The step.
    pub(crate) step: u32,
    /// What the run went on with.
    pub(crate) compacted: Compacted,
    /// What it stands for, by number; 0: it came with the question.
    pub(crate) steps: Vec<(u32, AgentRunStep)>,
    /// What the summary is about in the trace.
    about: String,
}

impl Summed {
    /// Its entity in the trace.
    pub(crate) fn entity(&self) -> String {
        format!("{}/compaction", self.about)
    }
}

/// A step as the model was shown it.
fn as_shown(decision: &Decision, seen: Option<&Observation>) -> AgentRunStep {
    let (action, arguments) = decision.action();
    AgentRunStep {
        thought: decision.thought_text(),
        action: action.into_owned(),
        arguments,
        observation: seen.map_or_else(String::new, |seen| together::shown(decision, seen)),
        calls: together::calls(decision),
        ..AgentRunStep::default()
    }
}

/// Cuts the texts of steps so that all together fit an answer.
fn bounded(steps: &mut [(u32, AgentRunStep)]) {
    let most = (TOGETHER / (PARTS * steps.len().max(1))).min(MAX_SHOWN);
    for (_, step) in steps {
        for text in [
            &mut step.thought,
            &mut step.action,
            &mut step.arguments,
            &mut step.observation,
        ] {
            *text = shorten(text, most);
        }
    }
}

/// What a run had summed up before a step; 0: the last time that it did.
///
/// # Errors
/// When the ledger failed.
pub(crate) async fn summed(ledger: &Ledger, run: &str, step: u32) -> Result<Option<Summed>, Error> {
    let id = Session::new(run);
    let (mut given, mut own) = (Vec::new(), Vec::<AgentRunStep>::new());
    let mut found = None;
    for number in 1..=LOOKED {
        let row = ledger.load(run.to_owned(), number).await?;
        let decision = row.decision.as_ref();
        let compacted = decision.and_then(|decision| decision.compacted.as_ref());
        if let (Some(decision), Some(compacted)) = (decision, compacted) {
            given.extend(compacted.given.iter().cloned());
            if step == 0 || step == number {
                let about = match (decision.is_answer(), own.last()) {
                    (false, _) => id.iteration(number),
                    (true, None) => id.iri().to_owned(),
                    (true, Some(last)) => id.observation_of(number - 1, last_call(last)),
                };
                found = Some((number, compacted.clone(), about, given.len()));
            }
        }
        let seen = row.observation.as_ref();
        own.push(decision.map_or_else(AgentRunStep::default, |decision| as_shown(decision, seen)));
        if number == step || !row.later {
            break;
        }
    }
    Ok(found.map(|(step, compacted, about, came)| {
        let all = usize::try_from(compacted.steps).unwrap_or(0);
        given.truncate(came);
        let before = usize::try_from(step - 1).unwrap_or(0);
        let own = (1..).zip(own.into_iter().take(all.saturating_sub(came).min(before)));
        let mut steps: Vec<_> = given.into_iter().map(|one| (0, one)).chain(own).collect();
        bounded(&mut steps);
        Summed {
            step,
            compacted,
            steps,
            about,
        }
    }))
}

fn last_call(step: &AgentRunStep) -> u32 {
    u32::try_from(step.calls.len().saturating_sub(1)).unwrap_or(0)
}

/// Sums the same steps up again, by that model; the same question for it has the same answer.
///
/// # Errors
/// The run is under way, its flow is not there, the model gives no summary, or a budget is used up.
pub(crate) async fn remake(
    agent: &Agent,
    cx: &Cx,
    run: &KnownRun,
    (summed, model): (&Summed, &str),
) -> Result<Remade, Error> {
    if !run.over {
        return Err(AgentError::UnderWay.into());
    }
    let cx = in_flow(cx, run)?;
    let ledger = agent.ledger().await?;
    let known = ledger.remade(&run.run, summed.step).await?;
    let full = known.len() >= MOST_REMADE;
    let known = known.into_iter().find(|known| *known.request == *cx.id);
    if full && known.is_none() {
        // Before a model is paid.
        return Err(AgentError::Remade.into());
    }
    // While the model is asked, the store may have to go to another process.
    drop(ledger);
    let stands = match known {
        Some(known) => known,
        None => {
            let made = make(agent, &cx, run, (summed, model)).await?;
            let key = RunKey {
                run: run.run.clone(),
                is_over: is_over(&cx),
            };
            let ledger = agent.ledger().await?;
            let kept = ledger.keep_remade(&key, summed.step, &made).await?;
            kept.ok_or(AgentError::Remade)?
        }
    };
    // Said again, it is the same.
    let ledger = agent.ledger().await?;
    let traced = ledger
        .traced_in(&run.workspace, Session::new(&run.run).iri())
        .await?;
    drop(ledger);
    if let Some(collection) = traced {
        let event = entity(run, summed, &stands);
        let writer = TraceWriter::new(&cx, &collection);
        writer.store([], |_| vec![event]).await?;
    }
    Ok(stands)
}

/// The same question as an instance of the run's flow has it.
fn in_flow(cx: &Cx, run: &KnownRun) -> Result<Cx, Error> {
    let gone = || {
        let text = format!("the run's flow '{}' is not running", run.caller.flow);
        Error::new(ErrorCode::NotFound, text)
    };
    let key = WorkspaceKey::parse(&run.workspace);
    let id = agent_manager::PROCESSOR.id;
    let row = flow_records::processor(cx.config(), key.name(), &run.caller.flow, id);
    let row = row.ok_or_else(gone)?;
    let topic = |(spec, topic): (&String, &String)| {
        let topic = Topic::parse(topic).ok()?;
        Some((spec.clone(), topic))
    };
    let unread = row.unread.iter();
    // What it asks of models counts for the run, which is done here.
    let mut own = cx.clone().counted_by_run();
    own.scope = Arc::new(InstanceScope {
        processor: id.to_owned(),
        workspace: WorkspaceId::new(key.name()).ok(),
        flow: FlowId::new(&run.caller.flow).ok(),
        epoch: row.epoch,
        topics: row.topics.iter().filter_map(topic).collect(),
        parameters: row.parameter_texts(),
        unread: unread.filter_map(|one| Topic::parse(one).ok()).collect(),
    });
    // Another workspace of the same name has its own flows.
    match own.workspace_key().as_str() == run.workspace {
        true => Ok(own),
        false => Err(gone()),
    }
}

async fn make(
    agent: &Agent,
    cx: &Cx,
    run: &KnownRun,
    (summed, model): (&Summed, &str),
) -> Result<Remade, Error> {
    let rows = dialog(summed.steps.iter().map(|(_, step)| step));
    let row = |kind: &str, key: &str| cx.config().get(cx.workspace(), kind, key);
    let own = row(OWN.0, OWN.1);
    let how = as_said(cx, agent.options.compacting(), own.as_deref());
    let of_model = row(MODEL_TYPE, model).and_then(|row| said(&row).ok());
    let window = window(of_model, None, Some(agent.options.context_window));
    let mut by = Asker {
        agent,
        cx,
        run,
        call: Call {
            // No other call of the ledger has it, and the same question for it has it again.
            run: format!("remake/{}", cx.id),
            step: summed.step,
            kind: CallKind::Summary,
            nth: 0,
        },
        model,
        usage: Usage::default(),
        failed: None,
    };
    let summary = match summarise(&rows, window, how.mask, &mut by).await {
        Ok(summary) if summary.tier == Tier::Note => {
            let none = || Error::new(ErrorCode::Provider, "the model gave no summary");
            return Err(by.failed.unwrap_or_else(none));
        }
        Ok(summary) => summary,
        Err(Failure::TooSmall) => return Err(AgentError::SmallModel.into()),
        Err(Failure::Stopped(error)) => return Err(error),
    };
    let (before, after) = (summed.compacted.before, summed.compacted.after);
    let size = |text: &str| match text {
        "" => 0,
        text => tokens(&[Row::text(Role::Assistant, text)]),
    };
    let after = after.saturating_sub(size(&summed.compacted.text)) + size(&summary.text);
    let answered = by.usage.model.clone();
    Ok(Remade {
        request: cx.id.to_string(),
        model: match answered.is_empty() {
            true => model.to_owned(),
            false => answered,
        },
        tier: summary.tier,
        text: summary.text,
        tokens: (before, after),
        usage: by.usage,
        at_ms: clock::millis(),
    })
}

/// What the trace says of it.
fn entity(run: &KnownRun, summed: &Summed, made: &Remade) -> Event {
    let id = &Session::new(&run.run);
    let own = summed.steps.iter().filter(|(number, _)| *number > 0);
    let mut of: Vec<String> = own
        .flat_map(|(number, step)| {
            (0..=last_call(step)).map(move |nth| id.observation_of(*number, nth))
        })
        .collect();
    if of.is_empty() {
        // All of them came with the question.
        of.push(id.iri().to_owned());
    }
    let usage = Usage {
        model: made.model.clone(),
        ..made.usage.clone()
    };
    let facts = Compaction {
        about: &summed.about,
        tier: made.tier.as_str(),
        text: &made.text,
        of: &of,
        steps: u64::try_from(summed.compacted.steps).unwrap_or(0),
        tokens: made.tokens,
        prompt: SUMMARISE,
        usage: trace::used(&usage),
    };
    remade(&made.request, &facts)
}

/// Its name in the trace.
pub(crate) fn entity_of(made: &Remade) -> String {
    format!("urn:trustgraph:summary:{}", made.request)
}

/// Has a model sum up that is named. It counts for the run, and binds key and workspace of who asks for it.
struct Asker<'a> {
    agent: &'a Agent,
    cx: &'a Cx,
    run: &'a KnownRun,
    /// The next.
    call: Call,
    model: &'a str,
    usage: Usage,
    /// Why it gave no reply the last time.
    failed: Option<Error>,
}

impl Asker<'_> {
    fn account(&self) -> Account {
        account_of(self.cx, &self.run.run, "", "")
    }

    /// Reserves what it is likely to take to sum up so many tokens.
    async fn reserve(&self, size: u64) -> Result<(), Error> {
        let day = today();
        let budgets = budgets_of(self.agent, self.cx)?;
        // The run is over: neither its own bound nor that of its session is left to be kept.
        let mut bounds = bounds_of(budgets, &day, 0);
        bounds.retain(|bound| matches!(bound.scope, Scope::Key | Scope::Workspace));
        if bounds.is_empty() {
            return Ok(());
        }
        let price = prices::price(self.cx, self.model);
        let deadline = i64::try_from(self.cx.deadline.millis()).unwrap_or(i64::MAX);
        let next = Reservation {
            account: self.account(),
            amount: budget::summary_call(size, None, price.as_ref()),
            like: (Scope::Model, self.model.to_owned()),
            bounds,
            expires_ms: deadline.saturating_add(GRACE_MS),
            day,
            waits: false,
            ahead: false,
        };
        let ledger = self.agent.ledger().await?;
        match ledger.reserve(&self.call, &next, clock::millis()).await? {
            None => Ok(()),
            Some(over) => {
                let pause = pause(&over, &next.bounds);
                Err(Error::new(ErrorCode::Busy, over.why).after(pause))
            }
        }
    }

    async fn settle(&mut self, took: &Usage) -> Result<(), Error> {
        self.usage.add(took);
        let by = (Scope::Model, took.model.clone());
        let amount = Amount {
            model_calls: 1,
            ..Amount::of(took)
        };
        let used = Used {
            account: self.account(),
            unreported: prices::unreported(self.cx, &by, &amount),
            by,
            amount,
            day: today(),
        };
        let key = RunKey {
            run: self.run.run.clone(),
            is_over: is_over(self.cx),
        };
        let ledger = self.agent.ledger().await?;
        ledger
            .settle(&key, &self.call, &used, clock::millis())
            .await?;
        Ok(())
    }
}

impl Summariser for Asker<'_> {
    type Stop = Error;

    async fn ask(&mut self, asked: Asked<'_>) -> Result<Option<String>, Error> {
        let (prompt, terms) = prompted(asked);
        self.reserve(tokens_of(&terms)).await?;
        let settings = ModelSettings {
            model: self.model.to_owned(),
            ..ModelSettings::default()
        };
        let prompts = Prompts::of_flow(self.cx).with_settings(Some(settings));
        let started = Instant::now();
        let reply = prompts.whole(prompt, terms).await;
        let took = match &reply {
            Ok(piece) => used(self.cx, piece.spent.clone(), started),
            Err(_) => Usage::default(),
        };
        self.settle(&took).await?;
        self.call.nth += 1;
        match reply {
            Ok(piece) => Ok(piece.unusable.is_empty().then_some(piece.text)),
            Err(error) if self.cx.cancel.is_cancelled() || self.cx.deadline.passed() => Err(error),
            Err(error) => {
                self.failed = Some(error);
                Ok(None)
            }
        }
    }

    async fn pause(&mut self, attempts: u32) -> Result<(), Error> {
        rested(self.cx, attempts).await;
        Ok(())
    }
}
