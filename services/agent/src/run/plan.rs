//! Plans the steps of a run, chooses the tool of each, and answers from what they found.

use std::collections::BTreeMap;

use tg_schemas::Error;

use super::again::{RETRIES, broke_off};
use super::execution::StepExecution;
use super::hearing::Unheard;
use super::think::{Reply, Shown, decided};
use crate::engine::decision::{Decision, Taken, Usage};
use crate::engine::parser::ReplyParser;
use crate::engine::phase::Phase;
use crate::engine::plan;
use crate::engine::planning::{self, CREATE, EXECUTE, SYNTHESISE, SYNTHESISING};
use crate::engine::splitting;
use crate::engine::toolset::{self, ToolSet};
use crate::error::{AgentError, Stop};
use crate::store::PieceKind;

/// How the prompt service, ours or a foreign one, says that the model's reply is not the JSON that was asked for.
const UNUSABLE: [&str; 2] = ["JSON parse fail", "Schema validation fail"];

fn is_unusable(error: &Error) -> bool {
    let mut faults = UNUSABLE.iter();
    faults.any(|fault| error.message.starts_with(fault))
}

/// A step of the plan whose tool is being chosen.
struct Choosing {
    at: usize,
    /// The last reply that could not be read.
    unread: Option<String>,
    repairs: u32,
    tries: u32,
}

impl Choosing {
    fn of(at: usize) -> Self {
        Self {
            at,
            unread: None,
            repairs: 0,
            tries: 0,
        }
    }
}

impl StepExecution {
    /// Has the model plan. What is no plan is asked for again, and then done without.
    pub(super) async fn plan(&mut self, tools: &ToolSet) -> Result<Decision, Stop> {
        let available = tools.available(&self.run);
        let additional = self.additional();
        let terms = planning::create(&self.run, &available, additional.as_deref());
        let most = self.most_steps();
        let most = most.saturating_sub(plan::taken(&self.run.plan));
        let mut usage = Usage::default();
        let mut steps = None;
        for _ in 0..=self.agent.options.repairs {
            let text = self.ask_whole(CREATE, &terms, &mut usage).await?;
            steps = text.and_then(|text| plan::read(&text, most));
            if steps.is_some() {
                break;
            }
            metrics::counter!("tg_agent_unreadable_replies_total").increment(1);
        }
        let mut steps = steps.unwrap_or_default();
        let first = self.run.plan.is_empty();
        if first && steps.is_empty() {
            steps = plan::directly();
        }
        let revisions_left = match first {
            true => self.router().revisions(),
            false => self.run.revisions_left - 1,
        };
        let revision = self.run.revisions.len() + usize::from(!first);
        let told = planning::planned(steps.len(), revision);
        let taken = Taken::Plan {
            steps,
            revisions_left,
        };
        Ok(decided(taken, Shown::whole(told), usage, &available))
    }

    /// Has the model choose the tools of the steps that can be taken now, of which `at` is the first.
    pub(super) async fn choose_steps(
        &mut self,
        at: usize,
        tools: &ToolSet,
    ) -> Result<Decision, Stop> {
        let places = plan::together(&self.run.plan, self.router().together());
        match places.len() {
            0 | 1 => self.choose(at, tools).await,
            _ => self.choose_several(&places, tools).await,
        }
    }

    /// The same of several, at the same time. A step whose tool gives work to other agents, that the budget has no room for, or
    /// whose tool nobody can read waits for its turn, so that the others go on.
    async fn choose_several(
        &mut self,
        places: &[usize],
        tools: &ToolSet,
    ) -> Result<Decision, Stop> {
        let available = tools.available(&self.run);
        let mut usage = Usage::default();
        let mut chosen = BTreeMap::new();
        let mut left: Vec<Choosing> = places.iter().copied().map(Choosing::of).collect();
        while !left.is_empty() {
            match self.ask_several(left.len()).await {
                Ok(fit) => left.truncate(fit),
                Err(Stop::Spent(_)) if !chosen.is_empty() => break,
                Err(stop) => return Err(stop),
            }
            let terms = left
                .iter()
                .map(|one| planning::execute(&self.run, one.at, &available, one.unread.as_deref()));
            let terms: Vec<_> = terms.collect();
            let replies = self.hear_together(EXECUTE, &terms).await?;
            // They came side by side: time passed once for all.
            let mut took = 0;
            let mut again = Vec::new();
            for (mut one, reply) in left.into_iter().zip(replies) {
                let text = match reply {
                    Ok(whole) => {
                        took = took.max(whole.usage.duration_ms);
                        usage.add(&Usage {
                            duration_ms: 0,
                            ..whole.usage
                        });
                        whole.usable.then_some(whole.text)
                    }
                    Err(error) if is_unusable(&error) => None,
                    Err(error) => {
                        one.tries += 1;
                        let late = self.cx.deadline.passed();
                        if !broke_off(&error) || one.tries > RETRIES || late {
                            return Err(self.ending(&error));
                        }
                        again.push(one);
                        continue;
                    }
                };
                if let Some(choice) = text.as_deref().and_then(planning::choice) {
                    chosen.insert(one.at, choice);
                    continue;
                }
                metrics::counter!("tg_agent_unreadable_replies_total").increment(1);
                one.unread = Some(text.unwrap_or_default());
                one.repairs += 1;
                if one.repairs <= self.agent.options.repairs {
                    again.push(one);
                }
            }
            usage.duration_ms = usage.duration_ms.saturating_add(took);
            left = again;
        }
        let gives_work = |name: &str| {
            let tool = toolset::find(&available, name);
            tool.is_some_and(|tool| tool.kind.gives_work())
        };
        let (told, taken) = planning::chosen(places, chosen, gives_work);
        let told = told
            .iter()
            .map(|(at, name)| planning::executing(&self.run, *at, name));
        let told = told.collect::<Vec<_>>().join("\n");
        Ok(decided(taken, Shown::whole(told), usage, &available))
    }

    /// Has the model choose the tool of a step.
    async fn choose(&mut self, at: usize, tools: &ToolSet) -> Result<Decision, Stop> {
        let available = tools.available(&self.run);
        let mut usage = Usage::default();
        let mut unread: Option<String> = None;
        let mut chosen = None;
        for _ in 0..=self.agent.options.repairs {
            let terms = planning::execute(&self.run, at, &available, unread.as_deref());
            let text = self.ask_whole(EXECUTE, &terms, &mut usage).await?;
            chosen = text.as_deref().and_then(planning::choice);
            if chosen.is_some() {
                break;
            }
            metrics::counter!("tg_agent_unreadable_replies_total").increment(1);
            unread = Some(text.unwrap_or_default());
        }
        let (told, taken) = match chosen {
            Some((name, arguments)) => {
                let told = planning::executing(&self.run, at, &name);
                (told, Taken::Action { name, arguments })
            }
            None => {
                let told = planning::executing(&self.run, at, "");
                (told, planning::unreadable())
            }
        };
        Ok(decided(taken, Shown::whole(told), usage, &available))
    }

    /// Has the model answer from what was found.
    pub(super) async fn put_together(&mut self) -> Result<Decision, Stop> {
        let additional = self.additional();
        let (prompt, told, terms) = match self.phase {
            Phase::Merge => {
                let terms = splitting::synthesise(&self.run, additional.as_deref());
                (splitting::SYNTHESISE, splitting::SYNTHESISING, terms)
            }
            _ => {
                let terms = planning::synthesise(&self.run, additional.as_deref());
                (SYNTHESISE, SYNTHESISING, terms)
            }
        };
        let mut shown = Shown::before(std::mem::take(&mut self.heard));
        let mut usage = Usage::default();
        if shown.thought.is_empty() {
            let told = (PieceKind::ThoughtEnd, told.to_owned());
            match self.run.streaming {
                true => self.say_all(vec![told], &mut shown).await?,
                false => shown = Shown::whole(told.1),
            }
        }
        let asked = (
            prompt,
            &terms,
            ReplyParser::of_answer as fn() -> ReplyParser,
        );
        let parsed = match self.ask_model(asked, &mut shown, &mut usage).await? {
            Reply::Read(_, parsed) => parsed,
            Reply::TooLong(error) => return Err(self.ending(&error)),
        };
        match parsed.choice {
            Ok(choice) => self.decision(choice, "", shown, usage, &[]).await,
            Err(_) => Err(self.ending(&AgentError::NoAnswer.into())),
        }
    }

    /// A reply as a whole; `None`: the model replied, with what is not usable. A call that broke off is made again.
    pub(super) async fn ask_whole(
        &mut self,
        prompt: &str,
        terms: &BTreeMap<String, String>,
        usage: &mut Usage,
    ) -> Result<Option<String>, Stop> {
        let mut tries = 0;
        loop {
            self.ask_again().await?;
            let error = match self.hear_whole(prompt, terms).await {
                Ok(whole) => {
                    usage.add(&whole.usage);
                    return Ok(whole.usable.then_some(whole.text));
                }
                Err(Unheard::Stop(stop)) => return Err(stop),
                Err(Unheard::Failed(error)) => error,
            };
            if is_unusable(&error) {
                return Ok(None);
            }
            if !broke_off(&error) || tries == RETRIES || self.cx.deadline.passed() {
                return Err(self.ending(&error));
            }
            tries += 1;
        }
    }
}
