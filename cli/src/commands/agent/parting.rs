//! Where two runs of the agent part: what each said, step by step. Pure: replies in, steps out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::commands::retrieval::answered::AGENT;
use crate::fields::text;

/// What can be told of a step, in the order in which it comes.
const FIELDS: [&str; 6] = [
    "thought",
    "action",
    "arguments",
    "observation",
    "answer",
    "error",
];
/// Longest text of a field that is shown to people, in characters.
const SHOWN: usize = 600;

/// One step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// What the subagent is to do whose step it is; empty: a step of the run itself.
    pub(super) subagent: String,
    /// Counts the steps of whoever took it, from 1.
    pub(super) number: usize,
    told: BTreeMap<&'static str, String>,
}

impl Step {
    /// Adds to what is told of a field.
    pub(super) fn add(&mut self, field: &'static str, text: &str) {
        if !text.is_empty() {
            self.told.entry(field).or_default().push_str(text);
        }
    }

    fn has(&self, field: &str) -> bool {
        self.told.contains_key(field)
    }

    fn json(&self) -> Value {
        json!(self.told)
    }
}

/// The steps of one run, or of one of its subagents, as they come.
#[derive(Debug, Default)]
struct Taken {
    goal: String,
    steps: Vec<Step>,
    /// The message of the last thought, while it goes on.
    thinking: Option<String>,
    /// The number that the last step has in names.
    named: Option<u32>,
    /// How many steps the run itself had taken when it came.
    after: usize,
}

impl Taken {
    /// The step that something of this name belongs to.
    fn of(&mut self, below: &str) -> &mut Step {
        let named = numbered(below);
        let other = named.is_some() && self.named.is_some() && named != self.named;
        if self.steps.is_empty() || other {
            self.begin();
        }
        self.named = named.or(self.named);
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    fn begin(&mut self) {
        self.named = None;
        self.steps.push(Step {
            subagent: self.goal.clone(),
            number: self.steps.len() + 1,
            ..Step::default()
        });
    }

    fn thought(&mut self, message: &str, below: &str, reply: &Value) {
        if self.thinking.as_deref() != Some(message) {
            self.begin();
        }
        self.of(below).add("thought", &text(reply, "content"));
        let over = reply.get("end_of_message") == Some(&Value::Bool(true));
        self.thinking = (!over).then(|| message.to_owned());
    }

    fn answer(&mut self, below: &str, reply: &Value) {
        let last = self.steps.last();
        if last.is_some_and(|step| step.has("action") || step.has("observation")) {
            self.begin();
        }
        self.of(below).add("answer", &text(reply, "content"));
    }
}

/// `2` of `/i2/thought`.
fn numbered(below: &str) -> Option<u32> {
    let rest = below.strip_prefix("/i")?;
    rest.split('/').next()?.parse().ok()
}

/// Session and rest of a name; both empty for what is no name of a run.
fn split(name: &str) -> (&str, &str) {
    let Some(own) = name.strip_prefix(AGENT) else {
        return ("", "");
    };
    let end = own.find('/').map_or(name.len(), |at| AGENT.len() + at);
    name.split_at(end)
}

/// Takes in what a run tells, part by part.
#[derive(Debug, Default)]
pub(super) struct Reader {
    root: String,
    all: BTreeMap<String, Taken>,
}

impl Reader {
    /// Takes in a part. `goal`: what the trace's entry of a subagent says that it is to do.
    pub(super) fn add(&mut self, reply: &Value, goal: impl FnOnce(&Value) -> String) {
        let kind = text(reply, "message_type");
        let name = match kind.as_str() {
            "explain" => text(reply, "explain_id"),
            _ => text(reply, "message_id"),
        };
        let (session, below) = split(&name);
        if self.root.is_empty() {
            session.clone_into(&mut self.root);
        }
        let session = match session {
            "" => self.root.clone(),
            session => session.to_owned(),
        };
        let after = self.all.get(&self.root).map_or(0, |own| own.steps.len());
        let taken = self.all.entry(session.clone()).or_default();
        if session != self.root && taken.after == 0 {
            taken.after = after;
        }
        match kind.as_str() {
            "explain" if below.is_empty() && session != self.root => taken.goal = goal(reply),
            "thought" => taken.thought(&name, below, reply),
            "action" => {
                let content = text(reply, "content");
                let said: Value = serde_json::from_slice(content.as_bytes()).unwrap_or_default();
                let step = taken.of(below);
                step.add("action", &text(&said, "name"));
                step.add("arguments", &text(&said, "arguments"));
            }
            "observation" => taken.of(below).add("observation", &text(reply, "content")),
            "answer" | "final-answer" => taken.answer(below, reply),
            "error" => taken.of(below).add("error", &text(reply, "content")),
            _ => {}
        }
    }

    /// The run ended with an error.
    pub(super) fn fail(&mut self, error: &str) {
        let root = self.root.clone();
        self.all.entry(root).or_default().of("").add("error", error);
    }

    /// Whether nothing was told.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All steps: those of subagents behind the step that called them, in the order of their tasks, as they may come in any.
    pub(super) fn steps(mut self) -> Vec<Step> {
        let own = self.all.remove(&self.root).unwrap_or_default().steps;
        let mut others: Vec<Taken> = self.all.into_values().collect();
        others.sort_by(|a, b| (a.after, &a.goal).cmp(&(b.after, &b.goal)));
        let mut others = others.into_iter().peekable();
        let mut all = Vec::new();
        for (at, step) in (1..).zip(own) {
            all.push(step);
            while let Some(taken) = others.next_if(|taken| taken.after <= at) {
                all.extend(taken.steps);
            }
        }
        all.extend(others.flat_map(|taken| taken.steps));
        all
    }
}

/// The first step in which two runs are not the same, and in what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parting {
    /// What each had; `None`: it had ended before.
    pub(super) steps: [Option<Step>; 2],
    /// The fields that differ.
    pub(super) fields: Vec<&'static str>,
}

/// Where two runs part; `None`: nowhere.
pub(super) fn parting(left: Vec<Step>, right: Vec<Step>) -> Option<Parting> {
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    loop {
        let steps = [left.next(), right.next()];
        let [a, b] = steps.each_ref().map(Option::as_ref);
        if a == b {
            a?;
            continue;
        }
        let said =
            |step: Option<&Step>, field: &str| step.and_then(|step| step.told.get(field).cloned());
        let fields = FIELDS
            .into_iter()
            .filter(|field| said(a, field) != said(b, field))
            .collect();
        return Some(Parting { steps, fields });
    }
}

impl Parting {
    /// The step, as people call it.
    pub(super) fn place(&self) -> String {
        let Some(step) = self.steps.iter().flatten().next() else {
            return String::new();
        };
        match step.subagent.as_str() {
            "" => format!("step {}", step.number),
            goal => format!("step {} of the subagent for \"{goal}\"", step.number),
        }
    }

    /// As JSON, of runs with these names.
    pub(super) fn json(&self, names: [&str; 2]) -> Value {
        let step = self.steps.iter().flatten().next();
        let runs = names
            .into_iter()
            .zip(&self.steps)
            .map(|(run, step)| json!({"run": run, "step": step.as_ref().map(Step::json)}));
        json!({
            "same": false,
            "step": step.map_or(0, |step| step.number),
            "subagent": step.map_or("", |step| &step.subagent),
            "differs": self.fields,
            "runs": runs.collect::<Vec<_>>(),
        })
    }

    /// For people: what both had stands once, what differs stands with the sign of its run.
    pub(super) fn text(&self, names: [&str; 2]) -> String {
        let mut lines = vec![format!("The runs part at {}.", self.place())];
        lines.push(format!("- {}", names[0]));
        lines.push(format!("+ {}", names[1]));
        for field in FIELDS {
            let told = self
                .steps
                .each_ref()
                .map(|step| step.as_ref().and_then(|step| step.told.get(field)));
            if !self.fields.contains(&field) {
                lines.extend(told[0].map(|text| shown(" ", field, text)));
                continue;
            }
            for (sign, text) in ["-", "+"].into_iter().zip(told) {
                let text = text.map_or("(none)", String::as_str);
                lines.push(shown(sign, field, text));
            }
        }
        for (sign, step) in ["-", "+"].into_iter().zip(&self.steps) {
            if step.is_none() {
                lines.push(format!("{sign} (the run had ended before)"));
            }
        }
        lines.join("\n")
    }
}

fn shown(sign: &str, field: &str, text: &str) -> String {
    let cut = match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    };
    let cut = cut.replace('\n', &format!("\n{sign}   "));
    format!("{sign} {field}: {cut}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "urn:trustgraph:agent:00000000-0000-0000-0000-000000000001";
    const OTHER: &str = "urn:trustgraph:agent:00000000-0000-0000-0000-000000000002";

    fn told(root: &str, parts: &[(&str, &str, &str)]) -> Vec<Step> {
        let mut reader = Reader::default();
        let entry = json!({"message_type": "explain", "explain_id": root});
        reader.add(&entry, |_| String::new());
        for (kind, below, content) in parts {
            let id = match below.strip_prefix("sub") {
                Some(below) => format!("{OTHER}9{below}"),
                None if below.is_empty() => String::new(),
                None => format!("{root}{below}"),
            };
            let part = json!({"message_type": kind, "message_id": id, "explain_id": id,
                "content": content, "end_of_message": !content.ends_with(' ')});
            reader.add(&part, |_| "goal".to_owned());
        }
        reader.steps()
    }

    fn one(observed: &str) -> [(&'static str, &'static str, &str); 6] {
        [
            ("thought", "/i1/thought", "I must "),
            ("thought", "/i1/thought", "add."),
            (
                "action",
                "/i1",
                r#"{"name": "calculator", "arguments": {"expression": "2+2"}}"#,
            ),
            ("observation", "/i1/observation", observed),
            ("thought", "/i2/thought", "Done."),
            ("answer", "/final", "4"),
        ]
    }

    #[test]
    fn the_same_runs_part_nowhere() {
        let [left, right] = [told(RUN, &one("4")), told(OTHER, &one("4"))];
        assert_eq!(left.len(), 2);
        assert_eq!(left[0].told["thought"], "I must add.");
        assert_eq!(left[0].told["arguments"], r#"{"expression":"2+2"}"#);
        assert_eq!(left[1].told["answer"], "4");
        assert_eq!(parting(left, right), None);
    }

    #[test]
    fn the_first_step_that_differs_is_told_with_what_each_had() {
        let part = parting(told(RUN, &one("4")), told(OTHER, &one("5"))).unwrap();
        assert_eq!(
            (part.place().as_str(), &part.fields),
            ("step 1", &vec!["observation"])
        );
        let text = part.text(["a", "b"]);
        for line in [
            "The runs part at step 1.",
            "  action: calculator",
            "- observation: 4",
            "+ observation: 5",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        let json = part.json(["a", "b"]);
        assert_eq!((&json["step"], &json["same"]), (&json!(1), &json!(false)));
        assert_eq!(json["runs"][1]["step"]["observation"], "5");
    }

    #[test]
    fn one_that_ended_before_has_no_such_step() {
        let all = one("4");
        let part = parting(told(RUN, &all), told(RUN, &all[..4])).unwrap();
        assert_eq!(part.place(), "step 2");
        assert!(
            part.text(["a", "b"])
                .ends_with("+ (the run had ended before)")
        );
        assert_eq!(part.json(["a", "b"])["runs"][1]["step"], Value::Null);
    }

    #[test]
    fn steps_of_subagents_stand_behind_the_step_that_called_them() {
        let parts = [
            ("thought", "/decompose", "split"),
            ("explain", "sub", ""),
            ("thought", "sub/i1/thought", "hm"),
            ("thought", "/synthesis", "both"),
            ("answer", "/synthesis", "x"),
        ];
        let steps = told(RUN, &parts);
        let told: Vec<_> = steps
            .iter()
            .map(|step| (step.subagent.as_str(), step.number))
            .collect();
        assert_eq!(told, [("", 1), ("goal", 1), ("", 2)]);
        let mut other = steps.clone();
        other[1].add("thought", "!");
        let part = parting(steps, other).unwrap();
        assert_eq!(part.place(), "step 1 of the subagent for \"goal\"");
    }
}
