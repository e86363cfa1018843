//! The prompts of one workspace as its configuration has them. One broken prompt harms no other.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value};
use tg_schemas::{Error, ErrorCode};

use crate::engine::{Engine, TemplateError};
use crate::shape::{Schema, is_strict};

/// What is said to the model when a workspace has no system prompt.
const SYSTEM: &str = "Be helpful.";
/// Name of the system prompt among the templates; no prompt id can be equal, they have a prefix.
const SYSTEM_NAME: &str = "system";
const PREFIX: &str = "template.";
/// Longest id that an error repeats.
const SHOWN: usize = 80;

/// The shape a prompt promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Text as it comes.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// One JSON value a line.
    Jsonl,
}

/// Why a prompt cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The workspace has no prompts at all.
    #[error("this workspace has no prompts")]
    NoneConfigured,
    /// No such prompt.
    #[error("prompt '{0}' does not exist in this workspace")]
    Unknown(String),
    /// Its configuration is at fault.
    #[error("prompt '{id}': {why}")]
    Broken {
        /// Prompt.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// A value of the question is at fault.
    #[error("terms.{name}: is not JSON")]
    Term {
        /// Which value.
        name: String,
    },
}

impl From<PromptError> for Error {
    fn from(error: PromptError) -> Self {
        let text = error.to_string();
        match error {
            PromptError::NoneConfigured => Error::typed("no-configuration", text),
            PromptError::Unknown(_) => Error::new(ErrorCode::NotFound, text),
            PromptError::Broken { .. } => Error::typed("config-error", text),
            PromptError::Term { .. } => Error::new(ErrorCode::BadRequest, text),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    prompt: String,
    #[serde(default)]
    response_type: Option<Kind>,
    #[serde(default)]
    schema: Option<Map<String, Value>>,
    #[serde(default)]
    object_schema: Option<Map<String, Value>>,
}

struct Entry {
    kind: Kind,
    schema: Option<Schema>,
}

/// A rendered prompt, ready for the model.
pub struct Prompt<'a> {
    /// Instructions.
    pub system: String,
    /// The text.
    pub text: String,
    /// Promised shape of the reply.
    pub kind: Kind,
    /// What JSON in the reply must look like.
    pub schema: Option<&'a Schema>,
}

impl Prompt<'_> {
    /// The schema that the model is to be held to, if providers can do that.
    pub fn enforceable(&self) -> Option<&Map<String, Value>> {
        let schema = self.schema.map(Schema::source)?;
        (self.kind == Kind::Json && is_strict(schema)).then_some(schema)
    }
}

/// All prompts of a workspace.
pub struct PromptSet {
    engine: Engine,
    entries: HashMap<String, Result<Entry, String>>,
    system: Result<(), String>,
}

impl PromptSet {
    /// Reads config rows of type `prompt`: `system` and `template.<id>`; others are ignored.
    pub fn read<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut engine = Engine::default();
        let mut entries = HashMap::new();
        let mut system = SYSTEM.to_owned();
        for (key, value) in rows {
            if key == SYSTEM_NAME {
                system = serde_json::from_str(value).unwrap_or(system);
            } else if let Some(id) = key.strip_prefix(PREFIX) {
                entries.insert(id.to_owned(), entry(&mut engine, key, value));
            }
        }
        let system = engine
            .add(SYSTEM_NAME, &system)
            .map_err(|error| error.to_string());
        Self {
            engine,
            entries,
            system,
        }
    }

    /// Renders a prompt with the values of a question, each a JSON text.
    pub fn render(
        &self,
        id: &str,
        terms: BTreeMap<String, String>,
    ) -> Result<Prompt<'_>, PromptError> {
        if self.entries.is_empty() {
            return Err(PromptError::NoneConfigured);
        }
        let broken = |why: String| PromptError::Broken { id: shown(id), why };
        let entry = match self.entries.get(id) {
            None => return Err(PromptError::Unknown(shown(id))),
            Some(Err(why)) => return Err(broken(why.clone())),
            Some(Ok(entry)) => entry,
        };
        self.system
            .clone()
            .map_err(|why| broken(format!("system prompt: {why}")))?;
        let mut values = Map::new();
        for (name, term) in terms {
            match serde_json::from_str(&term) {
                Ok(value) => values.insert(name, value),
                Err(_) => return Err(PromptError::Term { name: shown(&name) }),
            };
        }
        let fault = |error: TemplateError| broken(error.to_string());
        Ok(Prompt {
            system: self
                .engine
                .render(SYSTEM_NAME, values.clone())
                .map_err(fault)?,
            text: self
                .engine
                .render(&format!("{PREFIX}{id}"), values)
                .map_err(fault)?,
            kind: entry.kind,
            schema: entry.schema.as_ref(),
        })
    }
}

fn entry(engine: &mut Engine, key: &str, value: &str) -> Result<Entry, String> {
    let row: Row = serde_json::from_str(value)
        .map_err(|error| format!("its configuration cannot be read: {error}"))?;
    engine
        .add(key, &row.prompt)
        .map_err(|error| format!("prompt: {error}"))?;
    let schema = row
        .schema
        .or(row.object_schema)
        .filter(|schema| !schema.is_empty());
    let schema = schema
        .map(Schema::new)
        .transpose()
        .map_err(|error| format!("schema: {error}"))?;
    Ok(Entry {
        kind: row.response_type.unwrap_or_default(),
        schema,
    })
}

fn shown(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The texts this project ships.
    const SHIPPED: &str = include_str!("../../../blueprints/prompts.json");
    /// The agent's prompt as rendered by the reference's template engine.
    const RENDERED: &str = include_str!("../fixtures/agent-react.txt");

    fn shipped() -> PromptSet {
        let rows: BTreeMap<String, Value> = serde_json::from_str(SHIPPED).unwrap();
        let rows: Vec<(String, String)> = rows
            .into_iter()
            .map(|(key, value)| (key, value.to_string()))
            .collect();
        PromptSet::read(
            rows.iter()
                .map(|(key, value)| (key.as_str(), value.as_str())),
        )
    }

    fn terms(value: Value) -> BTreeMap<String, String> {
        let map = value.as_object().unwrap().clone();
        map.into_iter()
            .map(|(name, value)| (name, value.to_string()))
            .collect()
    }

    #[test]
    fn the_shipped_agent_prompt_renders_as_in_the_reference() {
        let argument =
            |name: &str, about: &str| json!({"name": name, "type": "string", "description": about});
        let values = json!({
            "question": "When was the Old Bridge built?",
            "tool_names": "graph_about,calculator",
            "context": null,
            "tools": [
                {"name": "graph_about", "description": "Facts about a thing.",
                 "arguments": [argument("name", "name of the thing")]},
                {"name": "calculator", "description": "Calculates.",
                 "arguments": [argument("expression", "expression")]},
            ],
            "history": [{
                "thought": "look", "action": "graph_about", "arguments": {"name": "Old Bridge", "x": "y"},
                "observation": "Old Bridge | built | 1429\nOld Bridge | crosses | Arno",
            }],
        });
        let set = shipped();
        let prompt = set.render("agent-react", terms(values)).unwrap();
        assert_eq!(prompt.text, RENDERED);
        assert!(!prompt.system.is_empty());
        assert_eq!(prompt.kind, Kind::Text);
        let prompt = set
            .render("question", terms(json!({"question": "<Why> & \"how\"?"})))
            .unwrap();
        assert_eq!(prompt.text, "<Why> & \"how\"?");
    }

    #[test]
    fn every_shipped_prompt_is_whole() {
        let set = shipped();
        for (id, entry) in &set.entries {
            assert!(entry.is_ok(), "{id}");
        }
        let rows: BTreeMap<String, Value> = serde_json::from_str(SHIPPED).unwrap();
        let index: Vec<String> = serde_json::from_value(rows["template-index"].clone()).unwrap();
        let mut index: Vec<&String> = index.iter().collect();
        let mut ids: Vec<&String> = set.entries.keys().collect();
        index.sort();
        ids.sort();
        assert_eq!(index, ids);
    }

    #[test]
    fn one_broken_prompt_harms_no_other() {
        let set = PromptSet::read([
            ("system", "not json"),
            (
                "template.good",
                r#"{"prompt": "hi {{ name }}", "unknown": 1}"#,
            ),
            ("template.bad", r#"{"prompt": "{% if %}"}"#),
            ("template.worse", "nonsense"),
            (
                "template.kind",
                r#"{"prompt": "x", "response-type": "xml"}"#,
            ),
        ]);
        let good = set.render("good", terms(json!({"name": "you"}))).unwrap();
        assert_eq!(
            (good.text.as_str(), good.system.as_str()),
            ("hi you", "Be helpful.")
        );
        for id in ["bad", "worse", "kind"] {
            let error = set.render(id, BTreeMap::new()).err().unwrap();
            assert!(matches!(error, PromptError::Broken { .. }), "{error}");
        }
        assert_eq!(
            set.render("none", BTreeMap::new()).err(),
            Some(PromptError::Unknown("none".into()))
        );
        let raw = BTreeMap::from([("name".to_owned(), "you".to_owned())]);
        assert_eq!(
            set.render("good", raw).err(),
            Some(PromptError::Term {
                name: "name".into()
            })
        );
        let empty = PromptSet::read([("system", "\"x\"")]);
        assert_eq!(
            empty.render("good", BTreeMap::new()).err(),
            Some(PromptError::NoneConfigured)
        );
    }

    #[test]
    fn only_strict_json_is_enforced() {
        let strict = json!({
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false,
        });
        let row = |kind: &str, key: &str| {
            json!({"prompt": "p", "response-type": kind, key: strict}).to_string()
        };
        let (json_row, lines_row) = (row("json", "schema"), row("jsonl", "object-schema"));
        let set = PromptSet::read([
            ("template.j", json_row.as_str()),
            ("template.l", lines_row.as_str()),
        ]);
        assert!(
            set.render("j", BTreeMap::new())
                .unwrap()
                .enforceable()
                .is_some()
        );
        let lines = set.render("l", BTreeMap::new()).unwrap();
        assert!(lines.enforceable().is_none());
        assert!(lines.schema.is_some());
    }
}
