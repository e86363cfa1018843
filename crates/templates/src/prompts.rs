//! The prompts of one workspace as its configuration has them. One broken prompt harms no other.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::RenderError;
use crate::schema::{Schema, is_strict};
use crate::template::{Engine, TemplateError, of_terms};

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
                system = serde_json::from_slice(value.as_bytes()).unwrap_or(system);
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

    /// The shape that a prompt promises. `None`: there is no such prompt, or none that can be used.
    pub fn kind(&self, id: &str) -> Option<Kind> {
        let entry = self.entries.get(id)?.as_ref().ok()?;
        Some(entry.kind)
    }

    /// Renders a prompt with the values of a question, each a JSON text.
    ///
    /// # Errors
    /// [`RenderError`]: there is no such prompt, its row or the system prompt is wrong, a term is not JSON, or rendering failed.
    pub fn render(
        &self,
        id: &str,
        terms: &BTreeMap<String, String>,
    ) -> Result<Prompt<'_>, RenderError> {
        if self.entries.is_empty() {
            return Err(RenderError::NoneConfigured);
        }
        let broken = |why: String| RenderError::Broken { id: shown(id), why };
        let entry = match self.entries.get(id) {
            None => return Err(RenderError::Unknown(shown(id))),
            Some(Err(why)) => return Err(broken(why.clone())),
            Some(Ok(entry)) => entry,
        };
        self.system
            .clone()
            .map_err(|why| broken(format!("system prompt: {why}")))?;
        let values = of_terms(terms).map_err(|name| RenderError::Term { name: shown(name) })?;
        let fault = |error: TemplateError| broken(error.to_string());
        let system = self.engine.render_of(SYSTEM_NAME, values.clone());
        let text = self.engine.render_of(&format!("{PREFIX}{id}"), values);
        Ok(Prompt {
            system: system.map_err(fault)?,
            text: text.map_err(fault)?,
            kind: entry.kind,
            schema: entry.schema.as_ref(),
        })
    }
}

fn entry(engine: &mut Engine, key: &str, value: &str) -> Result<Entry, String> {
    let row: Row = serde_json::from_slice(value.as_bytes())
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
mod tests;
