//! The variables of the prompts by which a run plans, takes a step of its plan, and answers; and what their replies say.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tg_schemas::msg::{AgentRun, PlanStep};

use super::bounds::shorten;
use super::decision::{Chosen, Taken};
use super::plan::{COMPLETED, FAILED, SKIPPED};
use super::prompt::{Terms, framing, offers, terms_of};
use super::toolset::Tool;

/// Prompt that plans.
pub const CREATE: &str = "plan-create";
/// Prompt that chooses the tool of a step.
pub const EXECUTE: &str = "plan-step-execute";
/// Prompt that answers from what the steps found.
pub const SYNTHESISE: &str = "plan-synthesise";
/// What a run says before it answers.
pub const SYNTHESISING: &str = "Synthesising final answer from plan results";
/// Most bytes of a result that a plan is revised by.
const MAX_RESULT: usize = 2 << 10;
/// Most bytes of a reply that is shown again.
const MAX_REPLY: usize = 600;

/// What a run says of a plan.
pub fn planned(steps: usize, revision: usize) -> String {
    match revision {
        0 => format!("Created plan with {steps} steps"),
        _ => format!("Revised plan: {steps} steps to go"),
    }
}

/// What a run says of a step.
pub fn executing(run: &AgentRun, at: usize, tool: &str) -> String {
    let goal = run.plan.get(at).map_or("", |step| step.goal.as_str());
    match tool {
        "" => format!("Step {at}: {goal}"),
        _ => format!("Step {at}: {goal} \u{2192} calling {tool}"),
    }
}

/// Variables of [`CREATE`]. What a revision has to know stands in `framing`, which every template shows.
pub fn create(run: &AgentRun, tools: &[&Tool], additional: Option<&str>) -> Terms {
    let mut framing = framing(run, additional);
    if !run.plan.is_empty() {
        framing.push(so_far(&run.plan));
    }
    let tools = tools.iter();
    let tools = tools.map(|tool| json!({"name": tool.name, "description": tool.described(run)}));
    terms_of([
        ("question", run.question.as_str().into()),
        ("framing", framing.join("\n\n").into()),
        ("tools", tools.collect()),
    ])
}

fn so_far(plan: &[PlanStep]) -> String {
    let told = plan.iter().filter_map(|step| {
        let result = shorten(&step.result, MAX_RESULT);
        match step.status.as_str() {
            COMPLETED => Some(format!("- done: {}\n  result: {result}", step.goal)),
            FAILED => Some(format!("- failed: {}\n  {result}", step.goal)),
            SKIPPED => None,
            _ => Some(format!("- not begun: {}", step.goal)),
        }
    });
    format!(
        "An earlier plan could not be followed to its end:\n{}\nPlan only what is still to be done, in another way than the one \
         that failed. Results that there are will be known to every new step. Number the new steps from 0. If nothing \
         more can be done, reply with an empty list.",
        told.collect::<Vec<_>>().join("\n")
    )
}

/// Variables of [`EXECUTE`]. `unread` is a reply that could not be used.
pub fn execute(run: &AgentRun, at: usize, tools: &[&Tool], unread: Option<&str>) -> Terms {
    let step = run.plan.get(at).cloned().unwrap_or_default();
    let from = super::plan::current(run);
    let known = run.plan.iter().enumerate().filter(|(place, other)| {
        let before = *place < from;
        let asked = i64::try_from(*place).is_ok_and(|place| step.depends_on.contains(&place));
        other.status == COMPLETED && (before || asked)
    });
    let known = known.map(|(place, other)| json!({"index": place, "result": other.result}));
    let mut goal = step.goal;
    if !step.tool_hint.is_empty() {
        goal = format!("{goal}\n(a tool that may fit: {})", step.tool_hint);
    }
    if let Some(reply) = unread {
        let reply = shorten(reply.trim(), MAX_REPLY);
        goal = format!(
            "{goal}\n\nYour last reply could not be used: it is not a JSON object with 'tool' and 'arguments'. It was:\n\
             \"\"\"\n{reply}\n\"\"\""
        );
    }
    let mut terms = terms_of([("goal", goal.into()), ("previous_results", known.collect())]);
    terms.insert("tools".to_owned(), offers(run, tools));
    terms
}

/// The tool that a reply chooses, with its arguments; none: an empty name. `None`: it cannot be read.
pub fn choice(text: &str) -> Option<(String, Map<String, Value>)> {
    let value = tg_replies::candidates(text).ok()?.swap_remove(0);
    let value = match value {
        Value::Array(items) => items.into_iter().next()?,
        value => value,
    };
    let tool = match value.get("tool")? {
        Value::String(name) => name.trim().to_owned(),
        Value::Null => String::new(),
        _ => return None,
    };
    match value.get("arguments") {
        None | Some(Value::Null) => Some((tool, Map::new())),
        Some(Value::Object(arguments)) => Some((tool, arguments.clone())),
        Some(_) => None,
    }
}

/// What the model chose where nothing can be read of it.
pub fn unreadable() -> Taken {
    let detail = "the reply names no tool with its arguments".to_owned();
    Taken::Unreadable { detail }
}

/// What is done of what was `chosen` for steps, by their places, the first of which are `places`; and the tool of each that is
/// taken. Those that give work to other agents are taken alone, and as the last.
pub fn chosen(
    places: &[usize],
    mut chosen: BTreeMap<usize, (String, Map<String, Value>)>,
    gives_work: impl Fn(&str) -> bool,
) -> (Vec<(usize, String)>, Taken) {
    let first = places.first().copied().unwrap_or_default();
    if chosen.values().all(|(name, _)| gives_work(name)) {
        return match chosen.remove(&first) {
            Some((name, arguments)) => {
                let told = vec![(first, name.clone())];
                (told, Taken::Action { name, arguments })
            }
            None => (vec![(first, String::new())], unreadable()),
        };
    }
    chosen.retain(|_, (name, _)| !gives_work(name));
    let told = chosen.iter().map(|(at, (name, _))| (*at, name.clone()));
    let told = told.collect();
    let calls = chosen.into_iter().map(|(at, (name, arguments))| Chosen {
        name,
        arguments,
        guard: None,
        place: Some(at),
    });
    let calls = calls.collect();
    (told, Taken::Actions { calls })
}

/// Variables of [`SYNTHESISE`].
pub fn synthesise(run: &AgentRun, additional: Option<&str>) -> Terms {
    let steps = run.plan.iter().enumerate();
    let steps = steps.filter(|(_, step)| step.status == COMPLETED || step.status == FAILED);
    let steps = steps
        .map(|(place, step)| json!({"index": place, "goal": step.goal, "result": step.result}));
    terms_of([
        ("question", run.question.as_str().into()),
        ("framing", framing(run, additional).join("\n\n").into()),
        ("steps", steps.collect()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan;

    fn run() -> AgentRun {
        let mut run = AgentRun {
            question: "q".into(),
            framing: "About bridges.".into(),
            ..AgentRun::default()
        };
        let steps = plan::read(r#"["a", {"goal": "b", "depends_on": [0]}, "c"]"#, 9);
        plan::adopt(&mut run, &steps.unwrap(), 1);
        plan::settle(&mut run, 0, "of a", false, true);
        run
    }

    #[test]
    fn a_step_is_shown_the_results_that_it_depends_on() {
        let run = run();
        let shown = |at| execute(&run, at, &[], None)["previous_results"].clone();
        assert_eq!(shown(1), r#"[{"index":0,"result":"of a"}]"#);
        assert_eq!(shown(2), "[]");
    }

    #[test]
    fn a_revision_knows_what_was_done_and_its_steps_all_results() {
        let mut run = run();
        assert!(!create(&run, &[], Some("House rules."))["framing"].contains("failed: a"));
        plan::settle(&mut run, 1, "Error: away", true, true);
        let framing = create(&run, &[], Some("House rules."))["framing"].clone();
        for part in [
            "House rules.",
            "About bridges.",
            "done: a",
            "of a",
            "failed: b",
            "away",
        ] {
            assert!(framing.contains(part), "{framing}");
        }
        plan::adopt(&mut run, &plan::read(r#"["d"]"#, 9).unwrap(), 0);
        let shown = execute(&run, 3, &[], None)["previous_results"].clone();
        assert_eq!(shown, r#"[{"index":0,"result":"of a"}]"#);
        let steps = synthesise(&run, None)["steps"].clone();
        assert!(steps.contains("of a") && steps.contains("away") && !steps.contains("\"c\""));
    }

    #[test]
    fn who_gives_work_is_taken_alone_and_last() {
        let choices = |names: &[(usize, &str)]| -> BTreeMap<_, _> {
            let names = names.iter();
            names
                .map(|(at, name)| (*at, ((*name).to_owned(), Map::new())))
                .collect()
        };
        let taken = |names: &[(usize, &str)]| {
            let gives_work = |name: &str| name == "delegate";
            let (told, taken) = chosen(&[1, 2, 4], choices(names), gives_work);
            let told: Vec<_> = told.into_iter().map(|(at, _)| at).collect();
            let places = match taken {
                Taken::Actions { calls } => calls.iter().map(|call| call.place).collect(),
                Taken::Action { .. } => vec![None],
                _ => Vec::new(),
            };
            (told, places)
        };
        assert_eq!(
            taken(&[(1, "delegate"), (2, "t"), (4, "")]),
            (vec![2, 4], vec![Some(2), Some(4)])
        );
        assert_eq!(taken(&[(4, "t")]), (vec![4], vec![Some(4)]));
        assert_eq!(
            taken(&[(1, "delegate"), (4, "delegate")]),
            (vec![1], vec![None])
        );
        assert_eq!(taken(&[]), (vec![1], Vec::new()), "it cannot be read");
    }

    #[test]
    fn a_choice_is_read_or_refused() {
        let read = |text| choice(text).map(|(tool, arguments)| (tool, arguments.len()));
        assert_eq!(
            read(r#"{"tool": "t", "arguments": {"a": 1}}"#),
            Some(("t".into(), 1))
        );
        assert_eq!(
            read("```json\n{\"tool\": \"t\"}\n```"),
            Some(("t".into(), 0))
        );
        assert_eq!(read(r#"{"tool": null}"#), Some((String::new(), 0)));
        for bad in [
            "",
            "t",
            r#"{"arguments": {}}"#,
            r#"{"tool": "t", "arguments": [1]}"#,
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
