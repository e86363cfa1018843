//! The texts that a step leaves in the library.

use tg_clients::traces::Text;

use super::execution::StepExecution;
use super::titles;
use crate::engine::decision::{Decision, Taken};
use crate::engine::phase::Phase;
use crate::engine::trace::Left;

impl StepExecution {
    /// What was thought of a decision, where that is an entity of the trace.
    pub(super) fn reflected(&self, decision: Option<&Decision>) -> String {
        let of_its_own = decision.filter(|_| self.phase.is_react());
        of_its_own.map(Decision::thought_text).unwrap_or_default()
    }

    /// What was thought, and what was answered or observed.
    pub(super) fn texts<'a>(&self, thought: &'a str, left: &Left<'a>) -> [Text<'a>; 2] {
        let answer = left.decision.and_then(|decision| match &decision.taken {
            Taken::Answer { text } => Some(text.as_str()),
            _ => None,
        });
        let action = match (answer, left.decision) {
            (Some(_), _) => "Final Answer".into(),
            (None, decision) => decision.map(Decision::action_name).unwrap_or_default(),
        };
        let thought = Text {
            id: self.id.thought(self.step),
            title: titles::thought(&action),
            text: thought,
        };
        let text = match (answer, left.seen) {
            (Some(text), None) if left.ending.is_none() => Text {
                id: self.phase.answer_document(&self.id),
                title: match self.phase {
                    Phase::Conclude | Phase::Merge => titles::SYNTHESIS.to_owned(),
                    _ => titles::answer(&self.run.question),
                },
                text,
            },
            _ => self.observed(left),
        };
        [thought, text]
    }

    /// Id and title of what a call returned, or of what a step of the plan found, by the call's number and the step's place.
    pub(super) fn named(&self, nth: u32, place: Option<usize>) -> (String, String) {
        let place = match self.phase {
            Phase::Execute(first) => Some(place.unwrap_or(first)),
            _ => None,
        };
        match place {
            Some(at) => {
                let goal = self.run.plan.get(at).map_or("", |step| &step.goal);
                (self.id.step_document(at), titles::step_result(goal))
            }
            None => {
                let id = self.id.observation_of(self.step, nth);
                (id, titles::OBSERVATION.to_owned())
            }
        }
    }

    fn observed<'a>(&self, left: &Left<'a>) -> Text<'a> {
        let place = left
            .decision
            .and_then(|decision| decision.apart().first()?.place);
        let (id, title) = self.named(0, place);
        Text {
            id,
            title,
            // Those of other calls were stored as they returned.
            text: left.seen.map_or("", |seen| {
                seen.calls.first().map_or(&*seen.text, |first| &first.text)
            }),
        }
    }
}
