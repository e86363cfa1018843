//! A record in place of the outside: what models, tools, hooks and users said, step by step, and what the replayed run streams.
//! Nothing is asked, and nothing is kept.
//!
//! A step that another process took up in the recorded run is taken up here as well: what it read before stands, as it did.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tg_schemas::msg::AgentResponse;
use tg_schemas::{Error, ErrorCode};

use crate::engine::decision::{Ending, Finding};
use crate::engine::exchange::{
    Asked, Beginning, Decided, Entry, Heard as Spoken, Outcome, Replied, Rows, Surroundings,
    ToolUse,
};
use crate::engine::guards::Exhausted;
use crate::error::{AgentError, Stop};
use crate::store::{CallKind, Confirmation, Facts, Noted, Piece, Record};

/// A step: the run and its number.
pub(super) type At<'a> = (&'a str, u32);
/// One of its calls, by number from 0.
pub(super) type Which<'a> = (At<'a>, u32);

/// What a model was asked and replied.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange {
    asked: Asked,
    /// Pieces that were there together.
    pub(super) groups: Vec<Vec<Spoken>>,
    /// `None`: the process died over it, or the run ended.
    pub(super) replied: Option<Replied>,
}

/// The inputs of a step.
#[derive(Debug, Clone, Default)]
struct Heard {
    /// By each process that took it.
    takes: VecDeque<VecDeque<Exchange>>,
    around: Option<Surroundings>,
    calls: BTreeMap<u32, OfCall>,
    passed: Vec<(String, String)>,
}

/// The inputs of a call.
#[derive(Debug, Clone, Default)]
struct OfCall {
    polled: Option<u64>,
    tool: Option<ToolUse>,
    hooks: BTreeMap<String, Decided>,
}

impl OfCall {
    /// Of what was done again by another process, the last stands.
    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Poll(at) => self.polled = Some(at),
            Entry::Tool(tool) => self.tool = Some(tool),
            Entry::Hook(hook) => drop(self.hooks.insert(hook.when, hook.decided)),
            _ => {}
        }
    }
}

impl Heard {
    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Step(around) => {
                self.around = Some(around);
                if self.takes.back().is_some_and(|take| !take.is_empty()) {
                    self.takes.push_back(VecDeque::new());
                }
            }
            Entry::Asked(asked) => {
                if self.takes.is_empty() {
                    self.takes.push_back(VecDeque::new());
                }
                if let Some(take) = self.takes.back_mut() {
                    take.push_back(Exchange {
                        asked,
                        ..Exchange::default()
                    });
                }
            }
            Entry::Heard(pieces) => {
                if let Some(last) = self.last() {
                    last.groups.push(pieces);
                }
            }
            Entry::Replied(replied) => {
                if let Some(last) = self.last() {
                    last.replied = Some(replied);
                }
            }
            Entry::Poll(_) | Entry::Tool(_) | Entry::Hook(_) => self.of(0).add(entry),
            Entry::Nth(nth, entry) => self.of(nth).add(*entry),
            Entry::Passed(names) => self.passed.extend(names),
            Entry::Run(_) | Entry::Rows(_) => {}
        }
    }

    fn of(&mut self, nth: u32) -> &mut OfCall {
        self.calls.entry(nth).or_default()
    }

    fn last(&mut self) -> Option<&mut Exchange> {
        self.takes.back_mut().and_then(VecDeque::back_mut)
    }

    /// Whether another process asked a model in this step after the one whose take is the first.
    fn was_taken_up(&self) -> bool {
        self.takes.iter().skip(1).any(|take| !take.is_empty())
    }
}

/// Why a replayed step goes no further, where the record says nothing of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplayError {
    /// The process died: another took the step up.
    Cut,
    /// Nothing is recorded from here on.
    Ends,
}

/// What the replayed run streams.
#[derive(Default)]
struct Telling {
    parts: Vec<AgentResponse>,
    /// Where the present step begins in them.
    begins: usize,
    /// What the model said in it.
    said: Vec<Piece>,
    fault: Option<ReplayError>,
}

/// Inputs by run and step.
#[derive(Default)]
struct All(BTreeMap<(String, u32), Heard>);

/// See the module.
pub(super) struct Playback {
    began: Beginning,
    /// Of a step of which nothing was kept.
    usual: Surroundings,
    rows: BTreeMap<String, Arc<Rows>>,
    heard: Mutex<All>,
    facts: BTreeMap<(String, u32), Facts>,
    findings: BTreeMap<String, Vec<Finding>>,
    subagents: BTreeMap<(String, u32), (String, String)>,
    telling: Mutex<Telling>,
}

impl Playback {
    /// Of what is kept.
    pub(super) fn new(record: Record) -> Result<Self, Error> {
        let (mut began, mut usual, mut rows) = (None, None, BTreeMap::new());
        let mut heard = All::default();
        for Noted {
            run,
            step,
            name,
            text,
        } in record.entries
        {
            match serde_json::from_slice(text.as_bytes()) {
                Ok(Entry::Run(first)) => began = Some(*first),
                Ok(Entry::Rows(some)) => {
                    rows.insert(name.unwrap_or_default(), Arc::new(some));
                }
                Ok(entry) => {
                    if let Entry::Step(around) = &entry {
                        usual.get_or_insert_with(|| around.clone());
                    }
                    heard.0.entry((run, step)).or_default().add(entry);
                }
                Err(_) => {
                    let text = "the record of the run is of another release";
                    return Err(Error::new(ErrorCode::Conflict, text));
                }
            }
        }
        let lost = || Error::new(ErrorCode::NotFound, "the record of the run is not kept");
        Ok(Self {
            began: began.ok_or_else(lost)?,
            usual: usual.unwrap_or_default(),
            rows,
            heard: Mutex::new(heard),
            facts: record.steps,
            findings: record.findings,
            subagents: record.subagents,
            telling: Mutex::default(),
        })
    }

    /// The run before its first step.
    pub(super) fn began(&self) -> &Beginning {
        &self.began
    }

    fn heard<T>(&self, (run, step): At<'_>, read: impl FnOnce(&mut Heard) -> T) -> T {
        let mut heard = self.heard.lock();
        read(heard.0.entry((run.to_owned(), step)).or_default())
    }

    fn facts(&self, (run, step): At<'_>) -> Option<&Facts> {
        self.facts.get(&(run.to_owned(), step))
    }

    /// The step, as it is named in errors.
    fn named(&self, (run, step): At<'_>) -> String {
        match run == self.began.run.run {
            true => format!("step {step}"),
            false => format!("step {step} of subagent {run}"),
        }
    }

    /// The run is not the one that was recorded.
    pub(super) fn differs(&self, at: At<'_>, what: &str) -> Stop {
        AgentError::Differs(format!("{}: {what}", self.named(at))).into()
    }

    /// Nothing is recorded where something should be: the run ended here, or its record does.
    pub(super) fn nothing(&self, at: At<'_>) -> Stop {
        if let Some(ending) = self.ending(at) {
            return Stop::End(ending);
        }
        self.telling.lock().fault = Some(ReplayError::Ends);
        AgentError::Differs(format!(
            "{}: nothing is recorded from here on",
            self.named(at)
        ))
        .into()
    }

    /// What a model replied, who is asked next in a step.
    pub(super) fn exchange(&self, at: At<'_>, asked: &Asked) -> Result<Exchange, Stop> {
        let take = |heard: &mut Heard| heard.takes.front_mut().and_then(VecDeque::pop_front);
        let Some(known) = self.heard(at, take) else {
            return Err(self.cut(at));
        };
        match asked.differs(&known.asked) {
            Some(what) => Err(self.differs(at, &what)),
            None => Ok(known),
        }
    }

    /// A reply broke off with the process: another took the step up, or the run ended with it.
    pub(super) fn cut(&self, at: At<'_>) -> Stop {
        if self.taken_up(at) {
            return self.taken_again();
        }
        self.nothing(at)
    }

    /// Whether another process took the step up; the next that is heard is what that one heard.
    fn taken_up(&self, at: At<'_>) -> bool {
        self.heard(at, |heard| {
            let was = heard.was_taken_up();
            if was {
                heard.takes.pop_front();
            }
            was
        })
    }

    fn taken_again(&self) -> Stop {
        self.telling.lock().fault = Some(ReplayError::Cut);
        AgentError::Differs("a step was taken up again".to_owned()).into()
    }

    /// A step has decided, unless the process died before that was kept, or the run ended.
    pub(super) fn decides(&self, at: At<'_>) -> Result<(), Stop> {
        if self.taken_up(at) {
            return Err(self.taken_again());
        }
        if self.heard(at, |heard| heard.takes.iter().any(|take| !take.is_empty())) {
            let what = "the model is asked less often than was recorded";
            return Err(self.differs(at, what));
        }
        match self.facts(at).is_some_and(|facts| facts.decided) {
            true => Ok(()),
            false => Err(self.nothing(at)),
        }
    }

    /// How long the tool of a call took, unless the run ended before that was kept.
    pub(super) fn took(&self, (at, nth): Which<'_>) -> Result<u64, Stop> {
        let took = self.facts(at).and_then(|facts| {
            let of_one = facts.took_ms.filter(|_| nth == 0);
            facts.calls_took.get(&nth).copied().or(of_one)
        });
        took.ok_or_else(|| self.nothing(at))
    }

    /// What came of the tool that is used in a call.
    pub(super) fn tool(
        &self,
        (at, nth): Which<'_>,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Outcome, Stop> {
        let Some(known) = self.heard(at, |heard| heard.of(nth).tool.clone()) else {
            return Err(self.nothing(at));
        };
        if known.name != name {
            let what = format!("the tool '{name}' is used, recorded is '{}'", known.name);
            return Err(self.differs(at, &what));
        }
        if known.arguments != *arguments {
            let what = format!("the tool '{name}' is given other arguments than were recorded");
            return Err(self.differs(at, &what));
        }
        Ok(known.outcome)
    }

    /// When a poll was about to be made.
    pub(super) fn polled(&self, (at, nth): Which<'_>) -> Result<u64, Stop> {
        self.heard(at, |heard| heard.of(nth).polled)
            .ok_or_else(|| self.nothing(at))
    }

    /// Whether a process had begun to use the tool that died over it.
    pub(super) fn is_unknown(&self, (at, nth): Which<'_>) -> bool {
        self.heard(at, |heard| {
            let tool = heard.of(nth).tool.as_ref();
            tool.is_some_and(|tool| tool.outcome == Outcome::Unknown)
        })
    }

    /// What a hook decided.
    pub(super) fn hook(&self, (at, nth): Which<'_>, when: &str) -> Result<Decided, Stop> {
        let known = self.heard(at, |heard| heard.of(nth).hooks.get(when).cloned());
        known.ok_or_else(|| self.nothing(at))
    }

    /// What came of asking the user.
    pub(super) fn confirmation(&self, (at, nth): Which<'_>) -> Result<Confirmation, Stop> {
        let facts = self.facts(at);
        let known = facts.and_then(|facts| facts.confirmations.get(&nth).cloned());
        known.ok_or_else(|| self.nothing(at))
    }

    /// Why a call was not made.
    pub(super) fn refused(&self, at: At<'_>, (kind, nth): (CallKind, u32)) -> Option<Exhausted> {
        let refused = &self.facts(at)?.refused;
        let of = refused.iter().find(|one| (one.0, one.1) == (kind, nth));
        of.map(|one| one.2.clone())
    }

    /// How the run ended in a step without an answer.
    pub(super) fn ending(&self, at: At<'_>) -> Option<Ending> {
        self.facts(at).and_then(|facts| facts.ending.clone())
    }

    /// The end of a run as it was recorded; what was told behind it was never heard.
    pub(super) fn ends(&self, at: At<'_>, own: &Ending) -> Result<Ending, Stop> {
        let Some(ending) = self.ending(at) else {
            let what = format!("the run ends, which was not recorded: {}", own.message);
            return Err(self.differs(at, &what));
        };
        if let Some(seq) = ending.seq.filter(|_| at.0 == self.began.run.run) {
            let seq = usize::try_from(seq).unwrap_or(usize::MAX);
            self.telling.lock().parts.truncate(seq);
        }
        Ok(ending)
    }

    /// What a step found around itself.
    pub(super) fn around(&self, at: At<'_>) -> Surroundings {
        let own = self.heard(at, |heard| heard.around.clone());
        own.unwrap_or_else(|| self.usual.clone())
    }

    /// The rows that a step went by.
    pub(super) fn rows(&self, at: At<'_>) -> Arc<Rows> {
        let rows = self.rows.get(&self.around(at).rows);
        rows.cloned().unwrap_or_default()
    }

    /// What subagents of a run found, in the order of arrival.
    pub(super) fn findings(&self, run: &str) -> &[Finding] {
        self.findings.get(run).map_or(&[], Vec::as_slice)
    }

    /// Id and start of a subagent.
    pub(super) fn subagent(&self, parent: &str, number: u32) -> Option<&(String, String)> {
        self.subagents.get(&(parent.to_owned(), number))
    }

    /// The parts of subagents that were passed on in a step, by kind and name.
    pub(super) fn passed(&self, at: At<'_>) -> Vec<(String, String)> {
        let names = self.heard(at, |heard| heard.passed.clone());
        let mut known = BTreeSet::new();
        // Of what was noted again by another process, the last stands.
        let mut last: Vec<_> = names.into_iter().rev().collect();
        last.retain(|name| known.insert(name.clone()));
        last.reverse();
        last
    }

    /// Tells parts, but for those that nobody took as the run ended.
    pub(super) fn tell(&self, at: At<'_>, mut parts: Vec<AgentResponse>) -> Result<(), Stop> {
        let ending = self.ending(at);
        let mut telling = self.telling.lock();
        let seq = ending.as_ref().and_then(|ending| ending.seq);
        let room = seq.map_or(usize::MAX, |seq| usize::try_from(seq).unwrap_or(usize::MAX));
        let room = room.saturating_sub(telling.parts.len());
        let too_much = parts.len() > room;
        parts.truncate(room);
        telling.parts.append(&mut parts);
        match ending.filter(|_| too_much) {
            Some(ending) => Err(Stop::End(ending)),
            None => Ok(()),
        }
    }

    /// Takes parts of a run whose end is settled.
    pub(super) fn tell_last(&self, parts: Vec<AgentResponse>) {
        self.telling.lock().parts.extend(parts);
    }

    /// Notes what the model said in this step.
    pub(super) fn say(&self, pieces: &[Piece]) {
        self.telling.lock().said.extend_from_slice(pieces);
    }

    /// What it said in this step before another process took it up.
    pub(super) fn said(&self) -> Vec<Piece> {
        self.telling.lock().said.clone()
    }

    /// A step begins.
    pub(super) fn begin_step(&self) {
        let mut telling = self.telling.lock();
        telling.begins = telling.parts.len();
        telling.said.clear();
    }

    /// A step begins again: what it told is told again.
    pub(super) fn begin_again(&self) {
        let mut telling = self.telling.lock();
        let begins = telling.begins;
        telling.parts.truncate(begins);
    }

    /// Why the last step went no further.
    pub(super) fn fault(&self) -> Option<ReplayError> {
        self.telling.lock().fault.take()
    }

    /// All parts that were streamed.
    pub(super) fn told(&self) -> Vec<AgentResponse> {
        std::mem::take(&mut self.telling.lock().parts)
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::AgentRun;

    use super::*;

    fn noted(step: u32, entry: &Entry) -> Noted {
        Noted {
            run: "r".into(),
            step,
            text: serde_json::to_string(entry).unwrap(),
            ..Noted::default()
        }
    }

    fn asked(text: &str) -> Asked {
        Asked::of("p", &[("question".to_owned(), text.to_owned())].into())
    }

    fn replied() -> Entry {
        Entry::Replied(Replied::default())
    }

    /// Of a run with these entries in its second step.
    fn playback(entries: &[Entry]) -> Playback {
        let began = Beginning {
            run: AgentRun {
                run: "r".into(),
                ..AgentRun::default()
            },
            detach: false,
            options: Value::Null,
        };
        let first = noted(1, &Entry::Run(Box::new(began)));
        let decided = Facts {
            decided: true,
            ..Facts::default()
        };
        let rest = entries.iter().map(|entry| noted(2, entry));
        let record = Record {
            entries: std::iter::once(first).chain(rest).collect(),
            steps: [(("r".to_owned(), 2), decided)].into(),
            ..Record::default()
        };
        Playback::new(record).unwrap()
    }

    const AT: At<'static> = ("r", 2);

    fn why(stop: Stop) -> String {
        match stop {
            Stop::Error(error) => error.message,
            Stop::End(ending) => panic!("{ending:?}"),
            Stop::Spent(over) => panic!("{over:?}"),
        }
    }

    #[test]
    fn what_differs_is_named_with_its_step() {
        let all = playback(&[Entry::Asked(asked("a")), replied()]);
        let told = why(all.exchange(AT, &asked("b")).err().unwrap());
        assert_eq!(
            told,
            "step 2: what the prompt 'p' is told is not what was recorded: question"
        );
        let told = why(all.exchange(("s", 1), &asked("a")).err().unwrap());
        assert!(
            told.starts_with("step 1 of subagent s: nothing is recorded"),
            "{told}"
        );
        assert_eq!(all.fault(), Some(ReplayError::Ends));
        let tool = ToolUse {
            name: "add".into(),
            arguments: Map::new(),
            outcome: Outcome::Failed(Error::new(ErrorCode::Tool, "x")),
        };
        let all = playback(&[Entry::Tool(tool.clone())]);
        assert_eq!(all.tool((AT, 0), "add", &Map::new()).unwrap(), tool.outcome);
        let told = why(all.tool((AT, 0), "sub", &Map::new()).unwrap_err());
        assert!(told.starts_with("step 2: the tool 'sub'"), "{told}");
        let other = Map::from_iter([("x".to_owned(), Value::Null)]);
        let told = why(all.tool((AT, 0), "add", &other).unwrap_err());
        assert!(told.contains("other arguments"), "{told}");
    }

    /// A process died over a reply, the next after one that was not kept as a decision; the third decides.
    #[test]
    fn a_step_is_taken_as_often_as_it_was() {
        let step = || Entry::Step(Surroundings::default());
        let text = |text: &str| Spoken::Text(text.to_owned());
        let heard = |said: &str| Entry::Heard(vec![text(said)]);
        let all = playback(&[
            step(),
            Entry::Asked(asked("a")),
            heard("one"),
            step(),
            Entry::Asked(asked("a")),
            heard("two"),
            replied(),
            step(),
            Entry::Asked(asked("a")),
            heard("three"),
            replied(),
            step(),
        ]);
        let said = || all.exchange(AT, &asked("a")).unwrap();
        let first = said();
        assert!(first.groups == [[text("one")]] && first.replied.is_none());
        why(all.cut(AT));
        assert_eq!(all.fault(), Some(ReplayError::Cut));
        assert_eq!(said().groups, [[text("two")]]);
        why(all.decides(AT).unwrap_err());
        assert_eq!(all.fault(), Some(ReplayError::Cut));
        assert_eq!(said().groups, [[text("three")]]);
        all.decides(AT).unwrap();
        why(all.cut(AT));
        assert_eq!(all.fault(), Some(ReplayError::Ends));
    }

    #[test]
    fn an_exchange_that_is_left_over_is_a_difference() {
        let twice = [
            Entry::Asked(asked("a")),
            replied(),
            Entry::Asked(asked("a")),
            replied(),
        ];
        let all = playback(&twice);
        all.exchange(AT, &asked("a")).unwrap();
        let told = why(all.decides(AT).unwrap_err());
        assert!(told.contains("less often"), "{told}");
    }
}
