//! The router: of which type a task is and by which pattern it is gone about, as configuration offers them.
//!
//! Configuration type `agent-task-type` has `description`, `valid_patterns` and `framing` by the type's name, and
//! `agent-pattern` the `description` of each pattern that may be chosen. Where there is one choice, no model is asked.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tg_schemas::msg::AgentRun;

use super::cost::Cost;
use super::patterns;
use super::phase::{PLAN, REACT, SUPERVISOR};
use super::prompt::{Terms, terms_of};

/// Prompt that finds the type of a task.
pub const CLASSIFY: &str = "task-type-classify";
/// Prompt that selects a pattern.
pub const SELECT: &str = "pattern-select";
/// Type of what cannot be classified.
pub const GENERAL: &str = "general";
/// How often a plan is revised where its row does not say.
const REVISIONS: i64 = 2;
/// Subagents of a run where the row does not say.
const SUBAGENTS: usize = 5;
/// Most subagents that a row can allow.
const MAX_SUBAGENTS: usize = 16;
/// Steps of a plan that are taken at the same time where the row does not say, and the most that it can allow.
const TOGETHER: usize = 4;
const MAX_TOGETHER: usize = 8;
/// Most revisions that a row can allow.
const MAX_REVISIONS: i64 = 10;
/// Most bytes of a type's framing: it travels with each step.
const MAX_FRAMING: usize = 16 << 10;

/// How a run is gone about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// The pattern; empty: nothing was to be chosen.
    pub pattern: String,
    /// The type of the task; empty: none is configured.
    pub task_type: String,
    /// Instructions of the type for the model.
    pub framing: String,
    /// Input tokens of the choice.
    pub in_token: i64,
    /// Output tokens of the choice.
    pub out_token: i64,
    /// Model that chose; empty if none did or it did not say.
    pub model: String,
    /// The asker named the pattern.
    pub named: bool,
    /// Of the input tokens, what the provider had kept.
    pub cache_read: i64,
    /// What the choice cost.
    pub cost: Cost,
    /// Tokens that the provider keeps since then.
    pub cache_write: i64,
}

impl Route {
    /// The way of a question that names its pattern; the usual one is nothing to note.
    pub fn by_name(pattern: &str) -> Self {
        let pattern =
            Some(pattern.trim()).filter(|name| *name != REACT && patterns::is_known(name));
        Self {
            pattern: pattern.unwrap_or_default().to_owned(),
            named: pattern.is_some(),
            ..Self::default()
        }
    }

    /// Has a run go this way.
    pub fn apply(self, run: &mut AgentRun) {
        let both = [run.framing.trim(), &self.framing];
        run.framing = both
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n");
        run.pattern = self.pattern;
        run.task_type = self.task_type;
        run.named = self.named;
        run.in_token = run.in_token.saturating_add(self.in_token);
        run.out_token = run.out_token.saturating_add(self.out_token);
        run.cache_read = run.cache_read.saturating_add(self.cache_read);
        run.cache_write = run.cache_write.saturating_add(self.cache_write);
        run.cost = Cost::from(run.cost).and(&self.cost).of_run();
        if !self.model.is_empty() {
            run.model = self.model;
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct TaskType {
    #[serde(default)]
    description: String,
    valid_patterns: Option<Vec<String>>,
    #[serde(default)]
    framing: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Pattern {
    #[serde(default)]
    description: String,
    max_replan_depth: Option<i64>,
    max_subagents: Option<usize>,
    max_parallel_steps: Option<usize>,
}

/// Task types of a workspace: all of them travel with each question that is classified.
const MAX_TYPES: usize = 64;
/// In bytes.
const MAX_NAME: usize = 255;
/// In bytes.
const MAX_DESCRIPTION: usize = 1 << 10;
/// Characters of a name in the log.
const SHOWN: usize = 64;

fn at(error: &serde_json::Error) -> String {
    format!(
        "line {}, column {} cannot be read",
        error.line(),
        error.column()
    )
}

/// What a workspace has configured.
#[derive(Debug, Default)]
pub struct Router {
    task_types: BTreeMap<String, TaskType>,
    patterns: BTreeMap<String, Pattern>,
    /// Rows that were left out, and why.
    pub faults: Vec<String>,
}

impl Router {
    /// From the rows of `agent-pattern` and of `agent-task-type`. A bad row is left out, the others stay.
    pub fn read(patterns: &[(&str, &str)], task_types: &[(&str, &str)]) -> Self {
        let mut router = Self::default();
        for (name, text) in patterns {
            if !patterns::is_known(name) {
                let shown: String = name.chars().take(SHOWN).collect();
                let fault = format!("pattern {shown:?} is not supported");
                router.faults.push(fault);
                continue;
            }
            match serde_json::from_slice(text.as_bytes()) {
                Ok(pattern) => drop(router.patterns.insert((*name).to_owned(), pattern)),
                Err(error) => router
                    .faults
                    .push(format!("pattern '{name}': {}", at(&error))),
            }
        }
        for (name, text) in task_types {
            if router.task_types.len() == MAX_TYPES {
                router
                    .faults
                    .push(format!("more than {MAX_TYPES} task types"));
                break;
            }
            match serde_json::from_slice::<TaskType>(text.as_bytes()) {
                Ok(kind) if kind.description.len() > MAX_DESCRIPTION || name.len() > MAX_NAME => {
                    let fault =
                        "a task type has a name over 255 bytes, or a description over 1 KiB";
                    router.faults.push(fault.to_owned());
                }
                Ok(kind) if kind.framing.len() > MAX_FRAMING => {
                    let fault = format!("task type '{name}': framing is larger than 16 KiB");
                    router.faults.push(fault);
                }
                Ok(kind) => drop(router.task_types.insert((*name).to_owned(), kind)),
                // Where it is, and not what it says: rows may hold anything.
                Err(error) => router
                    .faults
                    .push(format!("task type '{name}': {}", at(&error))),
            }
        }
        router
    }

    /// Whether nothing is configured.
    pub fn is_empty(&self) -> bool {
        self.task_types.is_empty() && self.patterns.is_empty()
    }

    /// How often a plan may be revised.
    pub fn revisions(&self) -> i64 {
        let row = self.patterns.get(PLAN);
        let given = row.and_then(|row| row.max_replan_depth);
        given.unwrap_or(REVISIONS).clamp(0, MAX_REVISIONS)
    }

    /// How many steps of a plan may be taken at the same time.
    pub fn together(&self) -> usize {
        let row = self.patterns.get(PLAN);
        let given = row.and_then(|row| row.max_parallel_steps);
        given.unwrap_or(TOGETHER).clamp(1, MAX_TOGETHER)
    }

    /// Among how many subagents a question may be split.
    pub fn subagents(&self) -> usize {
        let row = self.patterns.get(SUPERVISOR);
        let given = row.and_then(|row| row.max_subagents);
        given.unwrap_or(SUBAGENTS).clamp(1, MAX_SUBAGENTS)
    }

    /// Variables of the prompt that finds the type. `None`: there is nothing to choose, or the asker `named` one.
    pub fn classify(&self, question: &str, named: &str) -> Option<Terms> {
        if self.task_types.len() < 2 || self.task_types.contains_key(named) {
            return None;
        }
        let offered = self.task_types.iter();
        let offered = offered.map(|(name, kind)| offer(name, &kind.description));
        Some(terms_of([
            ("question", question.into()),
            ("task_types", offered.collect()),
        ]))
    }

    /// The type of a task: the one `named`, else as the model's `reply` says, else the only one, else [`GENERAL`].
    pub fn task_type(&self, named: &str, reply: Option<&str>) -> String {
        if self.task_types.contains_key(named) {
            return named.to_owned();
        }
        let names: Vec<&str> = self.task_types.keys().map(String::as_str).collect();
        let known = reply.and_then(|reply| chosen(reply, &names));
        match (known, self.task_types.len()) {
            (Some(name), _) => name.to_owned(),
            (None, 0) => String::new(),
            (None, 1) => self.task_types.keys().next().cloned().unwrap_or_default(),
            (None, _) => GENERAL.to_owned(),
        }
    }

    /// Instructions of a type for the model.
    pub fn framing(&self, task_type: &str) -> &str {
        let kind = self.task_types.get(task_type);
        kind.map_or("", |kind| kind.framing.trim())
    }

    /// Variables of the prompt that selects a pattern. `None`: there is one choice.
    pub fn select(&self, question: &str, task_type: &str) -> Option<Terms> {
        let choices = self.choices(task_type);
        if choices.len() < 2 {
            return None;
        }
        let offered = choices.iter().map(|name| {
            let pattern = self.patterns.get(*name);
            offer(name, pattern.map_or("", |pattern| &pattern.description))
        });
        let about = self.task_types.get(task_type);
        let about = about.map_or("", |kind| kind.description.as_str());
        Some(terms_of([
            ("question", question.into()),
            ("task_type", task_type.into()),
            ("task_type_description", about.into()),
            ("patterns", offered.collect()),
        ]))
    }

    /// The pattern: as the model's `reply` says, else the first that the type allows.
    pub fn pattern(&self, task_type: &str, reply: Option<&str>) -> String {
        let choices = self.choices(task_type);
        let known = reply.and_then(|reply| chosen(reply, &choices));
        let first = choices.first().copied();
        known.or(first).unwrap_or(REACT).to_owned()
    }

    /// The patterns that a type allows, of those configured, in the type's order.
    fn choices(&self, task_type: &str) -> Vec<&str> {
        let kind = self.task_types.get(task_type);
        let valid = kind.and_then(|kind| kind.valid_patterns.as_ref());
        match valid {
            None => self.patterns.keys().map(String::as_str).collect(),
            Some(valid) => {
                let mut choices = Vec::new();
                for name in valid {
                    if self.patterns.contains_key(name) && !choices.contains(&name.as_str()) {
                        choices.push(name.as_str());
                    }
                }
                choices
            }
        }
    }
}

fn offer(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description})
}

/// The name that a reply gives, which should be nothing else: in any case, without what models put around it. Where it says more,
/// the only name that occurs in it.
fn chosen<'a>(reply: &str, names: &[&'a str]) -> Option<&'a str> {
    let reply = tg_replies::answer(reply).to_lowercase();
    let around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '.' | '*');
    let said = reply.trim_matches(around);
    let exact = names.iter().find(|name| name.to_lowercase() == said);
    if let Some(name) = exact {
        return Some(name);
    }
    let words = reply.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_')));
    let words: BTreeSet<&str> = words.collect();
    let mut told = names
        .iter()
        .filter(|name| words.contains(name.to_lowercase().as_str()));
    match (told.next(), told.next()) {
        (Some(name), None) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: &[(&str, &str)] = &[
        ("general", r#"{"description": "anything"}"#),
        (
            "Risk",
            r#"{"description": "risks", "framing": " Name each hazard. ", "valid_patterns": ["react"]}"#,
        ),
    ];

    #[test]
    fn where_nothing_is_configured_no_model_is_asked() {
        let router = Router::read(&[], &[]);
        assert!(router.is_empty());
        assert_eq!(router.classify("q", ""), None);
        assert_eq!(router.select("q", ""), None);
        assert_eq!(router.task_type("", None), "");
        assert_eq!(router.pattern("", Some("supervisor")), REACT);
    }

    #[test]
    fn the_type_is_as_the_model_says_or_general() {
        let router = Router::read(&[], TYPES);
        let terms = router.classify("why?", "unknown").unwrap();
        assert!(terms["task_types"].contains("anything") && terms["question"] == "\"why?\"");
        for reply in [
            " \"RISK\".\n",
            "The type is **risk**.",
            "```\nRisk\n```",
            "<think>Or general?</think>\nRisk",
            "{\"task_type\": \"Risk\"}",
        ] {
            assert_eq!(router.task_type("", Some(reply)), "Risk", "{reply}");
        }
        for reply in [None, Some("poetry"), Some(""), Some("general or risk")] {
            assert_eq!(router.task_type("", reply), GENERAL);
        }
        assert_eq!(router.framing("Risk"), "Name each hazard.");
        assert_eq!(router.framing("none"), "");
    }

    #[test]
    fn a_type_that_the_asker_names_is_not_asked_for() {
        let router = Router::read(&[], TYPES);
        assert_eq!(router.classify("q", "Risk"), None);
        assert_eq!(router.task_type("Risk", None), "Risk");
    }

    #[test]
    fn the_only_type_is_that_of_every_task() {
        let router = Router::read(&[], &TYPES[1..]);
        assert_eq!(router.classify("q", ""), None);
        assert_eq!(router.task_type("", None), "Risk");
    }

    #[test]
    fn rows_that_cannot_be_used_are_named_and_left_out() {
        let large = format!(r#"{{"framing": "{}"}}"#, "x".repeat(MAX_FRAMING + 1));
        let router = Router::read(
            &[("react", "{}"), ("odd", "{}")],
            &[("a", "{"), ("b", "{}"), ("c", &large)],
        );
        assert_eq!(router.faults.len(), 3, "{:?}", router.faults);
        assert_eq!(router.task_type("", None), "b");
        assert_eq!(router.pattern("b", Some("odd")), REACT);
    }
}
