//! The entries of a run's trace, as functions of the run and its rows: the same rows have the same entries with the same
//! hashes, whoever takes the step, and however often.

use tg_provenance::{
    Asked, Compaction, Event, Finding, Reason, Session, SessionFacts, Thread, Usage as Used,
    compaction, confirmation, finding, hash_of, session, session_on_thread,
};
use tg_schemas::msg::AgentRun;

use super::bounds;
use super::compacting::SUMMARISE;
use super::decision::{Compacted, Decision, Ending, Finding as Found, Observation, Usage};
use super::linked::Linked;

/// What became of a text that was given to the library.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// The thought.
    pub thought: bool,
    /// The observation or the answer.
    pub text: bool,
}

/// Whether a router chose the pattern of a run.
pub(super) fn is_routed(run: &AgentRun) -> bool {
    !run.pattern.is_empty() && !run.named
}

fn known(count: i64) -> Option<u64> {
    u64::try_from(count).ok().filter(|count| *count > 0)
}

/// Tokens of calls whose time is not known here, and the model, if that is; nothing where there are none.
fn tokens((in_token, out_token): (i64, i64), model: &str) -> Used<'_> {
    let (in_token, out_token) = (known(in_token), known(out_token));
    match in_token.or(out_token) {
        None => Used::default(),
        Some(_) => Used {
            duration_ms: None,
            in_token,
            out_token,
            model: Some(model).filter(|model| !model.is_empty()),
        },
    }
}

/// What the router's choice took: all that a run took before its first step.
pub(super) fn used_by_router(run: &AgentRun) -> Used<'_> {
    tokens((run.in_token, run.out_token), &run.model)
}

/// What a tool's own calls of models took. Nothing where the tool, or each subagent, has entities that say it.
pub(super) fn used_by_tool(seen: &Observation) -> Used<'_> {
    match seen.trace.is_empty() && seen.findings.is_empty() {
        true => apart(&seen.usage),
        false => Used::default(),
    }
}

fn apart(usage: &Usage) -> Used<'_> {
    tokens((usage.in_token, usage.out_token), &usage.model)
}

/// What calls took, as the trace says it.
pub fn used(usage: &Usage) -> Used<'_> {
    Used {
        duration_ms: Some(usage.duration_ms),
        in_token: known(usage.in_token),
        out_token: known(usage.out_token),
        model: Some(usage.model.as_str()).filter(|model| !model.is_empty()),
    }
}

/// What a step leaves behind, as far as it came.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left<'a> {
    /// What was decided.
    pub decision: Option<&'a Decision>,
    /// What the tool returned.
    pub seen: Option<&'a Observation>,
    /// How the run ended here without an answer.
    pub ending: Option<&'a Ending>,
    /// How it was stopped here with the best that it had.
    pub stopped: Option<Stopped<'a>>,
}

/// The end of a run that was stopped.
#[derive(Debug, Clone, Copy)]
pub struct Stopped<'a> {
    /// Word for the trace.
    pub reason: Reason,
    /// Why, in one sentence.
    pub why: &'a str,
    /// Its answer.
    pub text: &'a str,
    /// Whether that is stored.
    pub stored: bool,
}

/// The entries of one step, chained to those of the step before.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    /// The run, which knows the hash of the entry before the step.
    pub run: &'a AgentRun,
    /// The step.
    pub step: u32,
    /// There is a library that takes the texts.
    pub library: bool,
}

impl Entries<'_> {
    /// How many entries a run begins with, before those of its first step.
    pub fn opening(run: &AgentRun) -> u64 {
        1 + u64::from(is_routed(run))
    }

    /// The hash of the last entry of some.
    pub fn head(events: &[Event]) -> String {
        let last = events.last();
        let hash = last.and_then(|last| hash_of(&last.id, &last.triples));
        hash.unwrap_or_default().to_owned()
    }

    /// The entry that a run begins with.
    pub(super) fn began(&self, id: &Session, parent: Option<&str>) -> Event {
        let run = self.run;
        let facts = SessionFacts {
            question: &run.question,
            started_at: &run.started_at,
            parent,
        };
        if run.thread.is_empty() {
            return session(id, &facts);
        }
        let parent = Some(run.parent_thread.as_str()).filter(|parent| !parent.is_empty());
        let thread = Thread {
            id: &run.thread,
            parent,
        };
        session_on_thread(id, &facts, &thread)
    }

    /// What became of the text of one of several calls: all but the first are stored before it is known that the step saw them.
    pub(super) fn stored_of(&self, nth: u32, seen: &Observation, stored: Stored) -> Stored {
        match nth {
            0 => stored,
            _ => Stored {
                text: self.library && !seen.text.is_empty(),
                ..stored
            },
        }
    }

    /// Earlier steps were summed up before the step was decided.
    pub(super) fn compacted(&self, id: &Session, compacted: &Compacted, about: &str) -> Event {
        let prior = self.run.prior.max(0);
        let own = usize::try_from(compacted.steps - prior).unwrap_or(0);
        let steps = (1..).zip(bounds::own_steps(self.run)).take(own);
        let of: Vec<String> = steps
            .flat_map(|(step, made)| {
                let calls = u32::try_from(made.calls.len()).unwrap_or(0).max(1);
                (0..calls).map(move |nth| (step, nth))
            })
            .map(|(step, nth)| id.observation_of(step, nth))
            .collect();
        compaction(&Compaction {
            about,
            tier: compacted.tier.as_str(),
            text: &compacted.text,
            of: &of,
            steps: u64::try_from(compacted.steps).unwrap_or(0),
            tokens: (compacted.before, compacted.after),
            prompt: SUMMARISE,
            usage: used(&compacted.usage),
        })
    }

    /// The user was asked before the tool was used, of whose choice the entity is `about`.
    pub(super) fn asked(
        &self,
        id: &Session,
        (nth, decision, about): (u32, &Decision, &str),
        seen: &Observation,
        linked: &mut Linked,
    ) {
        let Some(confirmed) = &seen.confirmed else {
            return;
        };
        let facts = Asked {
            id: &id.confirmation(self.step, nth),
            about,
            answer: confirmed.answer.as_str(),
            by: &confirmed.by,
            tool: &decision.action_name(),
        };
        linked.add(confirmation(&facts), None);
    }

    /// Subagents ended, each with a trace of its own.
    pub(super) fn found(&self, id: &Session, findings: &[Found], from: &str, linked: &mut Linked) {
        let before = usize::try_from(self.run.findings).unwrap_or(0);
        for (number, found) in (before..).zip(findings) {
            let end = Session::new(&found.run).conclusion();
            // A program has no trace.
            let usage = match found.head.is_empty() {
                true => apart(&found.usage),
                false => Used::default(),
            };
            let facts = Finding {
                number,
                goal: &found.goal,
                from,
                end: (!found.head.is_empty()).then_some(end.as_str()),
                usage,
                error: found.error.as_deref(),
                stored: self.library && !found.text.is_empty(),
            };
            let other = Some(found.head.as_str()).filter(|head| !head.is_empty());
            linked.join(finding(id, &facts), Some(&found.text), other);
        }
    }
}
