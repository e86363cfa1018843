//! The agents of a workspace that a run may give work to, as configuration type `agent-definition` says.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tg_schemas::msg::AgentRun;

use super::capability::{self, Capability};

/// Agents of a workspace; more are left out, in the order of their ids.
const MAX_AGENTS: usize = 200;
/// Fields of agents that are programs.
const OF_PROGRAMS: [&str; 2] = ["engine", "cli"];
/// Longest part of a description that a model is shown with the list, in characters.
const MAX_LINE: usize = 300;

/// An agent that work may be given to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Definition {
    /// For people.
    pub name: String,
    /// For the model that chooses.
    pub description: String,
    /// The framing of its own model, added to that of its caller.
    pub framing: String,
    /// Groups of tools that it has; `None`: those of its caller.
    pub group: Option<Vec<String>>,
    /// The model that answers it; empty: that of the flow.
    pub model: String,
    /// Models that its caller may name instead. No others: what a run reads must not choose among all of a provider.
    pub model_choices: Vec<String>,
    /// What it is good at.
    pub capabilities: Vec<Capability>,
    /// It does what it is given on its own: nobody waits for it.
    pub r#async: bool,
    /// Agents that it may give work to in its turn; `None`: all.
    pub agents: Option<Vec<String>>,
    /// It is a program on this machine. Only the settings say so; no row of configuration can.
    #[serde(skip)]
    pub program: bool,
}

impl Definition {
    /// The same with the model that its caller names; empty: its own.
    ///
    /// # Errors
    /// It may not be named, for the model, with those that may.
    pub fn answered_by(self, model: &str) -> Result<Self, String> {
        if model.is_empty() || model == self.model {
            return Ok(self);
        }
        if self.model_choices.iter().any(|one| one == model) {
            return Ok(Self {
                model: model.to_owned(),
                ..self
            });
        }
        Err(match self.model_choices.as_slice() {
            [] => "model: this agent has no choice of models".to_owned(),
            all => format!("model: must be one of: {}", all.join(", ")),
        })
    }
}

/// The agents of a workspace by id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Roster(BTreeMap<String, Definition>);

impl Roster {
    /// Reads the rows; what cannot be read costs its own agent and no other. Programs come first: no row replaces one.
    pub fn read(
        rows: &[(&str, &str)],
        programs: &[(String, Definition)],
        faults: &mut Vec<String>,
    ) -> Self {
        let mut agents: BTreeMap<String, Definition> = programs.iter().cloned().collect();
        for (id, value) in rows {
            match definition(value) {
                Ok(_) if agents.get(*id).is_some_and(|known| known.program) => {
                    faults.push(format!("agent-definition '{id}': a program has this id"));
                }
                Ok(_) if agents.len() == MAX_AGENTS => {
                    faults.push(format!(
                        "agent-definition '{id}': there are more than {MAX_AGENTS}"
                    ));
                }
                Ok(one) => {
                    agents.insert((*id).to_owned(), one);
                }
                Err(fault) => faults.push(format!("agent-definition '{id}': {fault}")),
            }
        }
        Self(agents)
    }

    /// Those that a run may give work to, by id.
    fn seen_by(&self, run: &AgentRun) -> impl Iterator<Item = (&str, &Definition)> {
        let own = match run.agent.as_str() {
            "" => None,
            // Of an agent that is gone nothing is known: it sees none.
            id => Some(
                self.0
                    .get(id)
                    .map_or(Some(&[][..]), |own| own.agents.as_deref()),
            ),
        };
        let permitted = own.flatten().map(<[String]>::to_vec);
        let all = self.0.iter().map(|(id, one)| (id.as_str(), one));
        all.filter(move |(id, _)| {
            let permitted = permitted.as_ref();
            permitted.is_none_or(|ids| ids.iter().any(|own| own == id))
        })
    }

    /// Groups of tools that agents have which are not their caller's.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        let own = self.0.values().filter_map(|one| one.group.as_ref());
        own.flatten().map(String::as_str)
    }

    /// Whether there are none that a run may give work to.
    pub fn is_empty(&self, run: &AgentRun) -> bool {
        self.seen_by(run).next().is_none()
    }

    /// The ids that a run may give work to, as one text.
    pub fn ids(&self, run: &AgentRun) -> String {
        let ids: Vec<&str> = self.seen_by(run).map(|(id, _)| id).collect();
        match ids.is_empty() {
            true => "none".to_owned(),
            false => ids.join(", "),
        }
    }

    /// The list that a model chooses from.
    pub fn list(&self, run: &AgentRun) -> String {
        let mut text = String::new();
        for (id, one) in self.seen_by(run) {
            let about = one
                .description
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let about: String = about.chars().take(MAX_LINE).collect();
            let about = match about.is_empty() {
                true => one.name.clone(),
                false => about,
            };
            text.push_str(&format!("\n- {id}: {about}"));
            let good_at = capability::format(&one.capabilities);
            if !good_at.is_empty() {
                text.push_str(&format!(" Good at: {good_at}"));
            }
        }
        text
    }

    /// The agent of an id, or, without one, that which fits a task best.
    ///
    /// # Errors
    /// That there is none, for the model, with the ids that there are.
    pub fn choose(
        &self,
        run: &AgentRun,
        id: &str,
        task: &str,
    ) -> Result<(String, Definition), String> {
        if id.is_empty() {
            let seen = self.seen_by(run);
            let seen = seen.map(|(id, one)| (id, one.capabilities.as_slice()));
            let Some(best) = capability::matches(seen, task).into_iter().next() else {
                let ids = self.ids(run);
                return Err(format!(
                    "agent_id: no agent fits; name one by agent_id. Agents: {ids}"
                ));
            };
            let one = self.0.get(&best.agent).cloned().unwrap_or_default();
            return Ok((best.agent, one));
        }
        match self.seen_by(run).find(|(own, _)| *own == id) {
            Some((id, one)) => Ok((id.to_owned(), one.clone())),
            None => Err(format!(
                "agent_id: there is no agent '{id}'. Agents: {}",
                self.ids(run)
            )),
        }
    }
}

fn definition(value: &str) -> Result<Definition, String> {
    let row: Value = serde_json::from_slice(value.as_bytes()).map_err(|error| error.to_string())?;
    if let Some(field) = OF_PROGRAMS.iter().find(|field| row.get(field).is_some()) {
        return Err(format!("{field}: only whoever runs the system sets it"));
    }
    let one: Definition = serde_json::from_value(row).map_err(|error| error.to_string())?;
    for capability in &one.capabilities {
        if capability.name.trim().is_empty() {
            return Err("capabilities: name: is required".to_owned());
        }
        if !(capability.strength > 0.0 && capability.strength <= 1.0) {
            let name = &capability.name;
            return Err(format!(
                "capabilities: {name}: strength: must be above 0 and up to 1"
            ));
        }
    }
    Ok(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster() -> Roster {
        let rows = [
            (
                "a",
                r#"{"description": "Adds.", "capabilities": [{"name": "sums"}], "agents": ["b"]}"#,
            ),
            ("b", r#"{"name": "Bee"}"#),
            ("bad", r#"{"capabilities": [{"name": "x", "strength": 2}]}"#),
            ("c", "{}"),
        ];
        let mut faults = Vec::new();
        let roster = Roster::read(&rows, &[], &mut faults);
        assert_eq!(faults.len(), 1, "{faults:?}");
        roster
    }

    #[test]
    fn a_caller_names_one_of_the_models_that_an_agent_allows() {
        let one = Definition {
            model: "own".into(),
            model_choices: vec!["m".into(), "n".into()],
            ..Definition::default()
        };
        for (named, answers) in [("", "own"), ("own", "own"), ("n", "n")] {
            let model = one.clone().answered_by(named).map(|one| one.model);
            assert_eq!(model.as_deref(), Ok(answers));
        }
        let fault = one.answered_by("o").unwrap_err();
        assert_eq!(fault, "model: must be one of: m, n");
        let fault = Definition::default().answered_by("o").unwrap_err();
        assert_eq!(fault, "model: this agent has no choice of models");
    }

    /// Line 114.
    #[test]
    fn line_114_an_unknown_agent_is_told_with_those_that_are_permitted() {
        let mut run = AgentRun::default();
        let told = |run: &AgentRun, id| roster().choose(run, id, "t").unwrap_err();
        assert_eq!(
            told(&run, "z"),
            "agent_id: there is no agent 'z'. Agents: a, b, c"
        );
        run.agent = "a".into();
        assert_eq!(
            told(&run, "z"),
            "agent_id: there is no agent 'z'. Agents: b"
        );
        assert_eq!(
            told(&run, "c"),
            "agent_id: there is no agent 'c'. Agents: b"
        );
        run.agent = "gone".into();
        assert_eq!(
            told(&run, "b"),
            "agent_id: there is no agent 'b'. Agents: none"
        );
    }

    /// C.11: a row neither is a program nor takes the place of one.
    #[test]
    fn only_whoever_runs_the_system_sets_programs() {
        let coder = Definition {
            description: "Writes code.".into(),
            program: true,
            ..Definition::default()
        };
        let rows = [
            ("coder", r#"{"description": "Mine now."}"#),
            ("a", r#"{"engine": "cli"}"#),
            ("b", r#"{"cli": {"command": "sh"}}"#),
            ("c", r#"{"program": true}"#),
        ];
        let mut faults = Vec::new();
        let roster = Roster::read(&rows, &[("coder".into(), coder.clone())], &mut faults);
        assert_eq!(
            faults,
            [
                "agent-definition 'coder': a program has this id",
                "agent-definition 'a': engine: only whoever runs the system sets it",
                "agent-definition 'b': cli: only whoever runs the system sets it",
            ]
        );
        let run = AgentRun::default();
        assert_eq!(roster.choose(&run, "coder", "t").unwrap().1, coder);
        assert!(!roster.choose(&run, "c", "t").unwrap().1.program);
    }

    #[test]
    fn who_fits_is_chosen_and_a_model_reads_who_there_is() {
        let run = AgentRun::default();
        assert_eq!(roster().choose(&run, "", "a sum").unwrap().0, "a");
        assert!(
            roster()
                .choose(&run, "", "a song")
                .unwrap_err()
                .starts_with("agent_id: no agent fits")
        );
        assert_eq!(
            roster().list(&run),
            "\n- a: Adds. Good at: sums\n- b: Bee\n- c: "
        );
    }
}
