//! Reads one agent from the text of its YAML file. Reports everything that is wrong with it, not only the first fault.

use serde_yaml_ng::{Mapping, Value};
use tg_schemas::limits::{CHAT_MODELS, MODEL_NAME};
use tg_schemas::operations::{Capability, Object};

use super::definition::{Definition, TOP_K};

/// Longest name.
const NAME: usize = 64;
/// Longest system prompt, in characters.
const SYSTEM_PROMPT: usize = 131_072;
/// Longest of all other texts, in characters.
const TEXT: usize = 2_000;
/// Longest list.
const LIST: usize = 200;
/// Rounds of model and tools in a turn where a file does not say how many.
const ITERATIONS: i64 = 10;

/// Fields of an agent that this release reads.
const KNOWN: &[&str] = &[
    "name",
    "model",
    "models",
    "description",
    "system_prompt",
    "max_tokens",
    "temperature",
    "tools",
    "rag_index",
    "rag_top_k",
    "flow",
    "capabilities",
    "engine",
    "max_iterations",
    "memory",
    "loop_detection",
];
/// Fields of an agent that a later release reads.
const LATER: &[&str] = &["cli", "async", "peers"];
/// What `loop_detection` says: switches, and counts.
const SWITCHES: &[&str] = &[
    "enabled",
    "genericRepeat",
    "knownPollNoProgress",
    "pingPong",
];
const COUNTS: &[&str] = &[
    "historySize",
    "warningThreshold",
    "criticalThreshold",
    "globalCircuitBreakerThreshold",
];

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field; empty: the file as a whole.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads the text of a file.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(text: &str) -> Result<Definition, Vec<FieldError>> {
    let whole = |reason: String| {
        vec![FieldError {
            field: String::new(),
            reason,
        }]
    };
    let value: Value = serde_yaml_ng::from_str(unmarked(text))
        .map_err(|error| whole(format!("cannot be read as YAML: {error}")))?;
    let Value::Mapping(map) = value else {
        return Err(whole("must be a mapping of fields".to_owned()));
    };
    let mut fields = Fields {
        map: &map,
        errors: Vec::new(),
    };
    fields.unknown();
    let index = fields.text("rag_index", TEXT);
    let named = index.iter().filter(|one| !one.trim().is_empty());
    let definition = Definition {
        name: fields.name(),
        model: fields.model(),
        models: fields.models(),
        of_flow: false,
        description: fields.text("description", TEXT).unwrap_or_default(),
        system_prompt: fields
            .text("system_prompt", SYSTEM_PROMPT)
            .unwrap_or_default(),
        max_tokens: fields.whole("max_tokens", 1, i64::from(i32::MAX)),
        temperature: fields.number("temperature", 0.0, 2.0),
        tools: fields.texts("tools"),
        // Its tools look into no other, whatever the model reads elsewhere.
        knowledge: named.cloned().collect(),
        collections: index.iter().cloned().collect(),
        rag_index: index,
        rag_top_k: fields.whole("rag_top_k", 1, 50).unwrap_or(TOP_K),
        flow: fields.text("flow", TEXT),
        capabilities: fields.capabilities(),
        max_iterations: fields.whole("max_iterations", 1, 50).or(Some(ITERATIONS)),
        memory: fields.flag("memory"),
        loop_detection: fields.loops(),
        rag_min_score: None,
        rerank: None,
        service: None,
        window: None,
    };
    if fields
        .text("engine", TEXT)
        .is_some_and(|engine| engine != "router")
    {
        fields.fail("engine", "must be router: this release has no other engine");
    }
    match fields.errors.is_empty() {
        true => Ok(definition),
        false => Err(fields.errors),
    }
}

/// A text without the mark of its encoding that editors put before it. The parser counts the mark as a column of the first line, so that
/// the second one seems to stand further left.
pub(super) fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Whether a text can be the name of an agent.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.len() <= NAME && text.chars().all(plain)
}

/// The fields of a file, and what is wrong with those that were read.
struct Fields<'a> {
    map: &'a Mapping,
    errors: Vec<FieldError>,
}

impl Fields<'_> {
    fn fail(&mut self, field: &str, reason: impl Into<String>) {
        self.errors.push(FieldError {
            field: field.to_owned(),
            reason: reason.into(),
        });
    }

    fn unknown(&mut self) {
        for key in self.map.keys() {
            match key.as_str() {
                Some(key) if KNOWN.contains(&key) => {}
                Some(key) if LATER.contains(&key) => {
                    self.fail(key, "is not available in this release");
                }
                Some(key) => self.fail(key, "is not a field of an agent"),
                None => self.fail("", "has a key that is not a text"),
            }
        }
    }

    fn value(&self, field: &str) -> Option<&Value> {
        self.map.get(field).filter(|value| !value.is_null())
    }

    fn text(&mut self, field: &str, most: usize) -> Option<String> {
        let text = match self.value(field)? {
            Value::String(text) => text.clone(),
            _ => {
                self.fail(field, "must be a text");
                return None;
            }
        };
        if text.chars().count() > most {
            self.fail(field, format!("must have at most {most} characters"));
            return None;
        }
        Some(text)
    }

    fn required(&mut self, field: &str) -> String {
        let before = self.errors.len();
        let text = self.text(field, TEXT).unwrap_or_default();
        if text.trim().is_empty() && self.errors.len() == before {
            self.fail(field, "is required");
        }
        text
    }

    fn name(&mut self) -> String {
        let before = self.errors.len();
        let name = self.required("name");
        if self.errors.len() == before && !is_name(&name) {
            self.fail(
                "name",
                format!("must have at most {NAME} letters, digits, '_' and '-'"),
            );
        }
        name
    }

    fn model(&mut self) -> String {
        let model = self.required("model");
        if model.len() > MODEL_NAME {
            self.fail("model", format!("must have at most {MODEL_NAME} bytes"));
        }
        model
    }

    fn models(&mut self) -> Vec<String> {
        let models = self.texts("models");
        if models.len() > CHAT_MODELS || models.iter().any(|model| model.len() > MODEL_NAME) {
            let reason =
                format!("must be at most {CHAT_MODELS} names of at most {MODEL_NAME} bytes");
            self.fail("models", reason);
        }
        models
    }

    fn whole(&mut self, field: &str, least: i64, most: i64) -> Option<i64> {
        let number = self.value(field)?.as_i64();
        let fits = number.filter(|number| (least..=most).contains(number));
        if fits.is_none() {
            let reason = format!("must be a whole number from {least} to {most}");
            self.fail(field, reason);
        }
        fits
    }

    fn flag(&mut self, field: &str) -> bool {
        let flag = match self.value(field) {
            None => return false,
            Some(value) => value.as_bool(),
        };
        if flag.is_none() {
            self.fail(field, "must be true or false");
        }
        flag.unwrap_or_default()
    }

    /// When there is too much of a loop, as JSON in text.
    fn loops(&mut self) -> Option<String> {
        let read = match self.value("loop_detection")? {
            Value::Mapping(said) => said.iter().map(loop_field).collect::<Option<Object>>(),
            _ => None,
        };
        if read.is_none() {
            let (switches, counts) = (SWITCHES.join(", "), COUNTS.join(", "));
            let reason = format!("must be a mapping of {switches} (true or false) and {counts}");
            self.fail("loop_detection", reason);
        }
        read.map(|said| serde_json::Value::Object(said).to_string())
    }

    fn number(&mut self, field: &str, least: f64, most: f64) -> Option<f64> {
        let number = self.value(field)?.as_f64();
        let fits = number.filter(|number| (least..=most).contains(number));
        if fits.is_none() {
            self.fail(field, format!("must be a number from {least} to {most}"));
        }
        fits
    }

    fn texts(&mut self, field: &str) -> Vec<String> {
        let listed = match self.value(field) {
            None => return Vec::new(),
            Some(value) => texts_of(value),
        };
        if listed.is_none() {
            self.fail(field, format!("must be a list of at most {LIST} texts"));
        }
        listed.unwrap_or_default()
    }

    fn capabilities(&mut self) -> Vec<Capability> {
        let read = match self.value("capabilities") {
            None => return Vec::new(),
            Some(Value::Sequence(listed)) if listed.len() <= LIST => {
                listed.iter().map(capability).collect::<Option<Vec<_>>>()
            }
            Some(_) => None,
        };
        if read.is_none() {
            let reason =
                "must be a list of mappings with name, tags and a strength over 0 and at most 1";
            self.fail("capabilities", reason);
        }
        read.unwrap_or_default()
    }
}

/// A list of texts, none of them empty.
fn texts_of(value: &Value) -> Option<Vec<String>> {
    let listed = value.as_sequence().filter(|listed| listed.len() <= LIST)?;
    let text = |value: &Value| {
        let text = value.as_str().map(str::to_owned);
        text.filter(|text| !text.trim().is_empty() && text.chars().count() <= TEXT)
    };
    listed.iter().map(text).collect()
}

/// A field of `loop_detection`.
fn loop_field((key, value): (&Value, &Value)) -> Option<(String, serde_json::Value)> {
    let key = key.as_str()?;
    let read = match SWITCHES.contains(&key) {
        true => value.as_bool().map(Into::into),
        false => value
            .as_i64()
            .filter(|_| COUNTS.contains(&key))
            .map(Into::into),
    };
    Some((key.to_owned(), read?))
}

fn capability(value: &Value) -> Option<Capability> {
    let map = value.as_mapping()?;
    let known = |key: &Value| matches!(key.as_str(), Some("name" | "tags" | "strength"));
    if !map.keys().all(known) {
        return None;
    }
    let name = map.get("name")?.as_str()?.to_owned();
    let tags = map.get("tags").map_or(Some(Vec::new()), texts_of)?;
    let strength = map.get("strength").map_or(Some(1.0), Value::as_f64)?;
    let fits = !name.trim().is_empty() && strength > 0.0 && strength <= 1.0;
    fits.then_some(Capability {
        name,
        tags,
        strength,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_file_has_the_defaults() {
        let agent = read("name: a-1\nmodel: m\n").unwrap();
        assert_eq!((agent.name.as_str(), agent.model.as_str()), ("a-1", "m"));
        assert_eq!((agent.rag_top_k, agent.rag_index), (5, None));
        assert!(agent.tools.is_empty() && agent.temperature.is_none());
        assert_eq!(agent.max_iterations, Some(10));
    }

    #[test]
    fn tools_of_a_file_with_a_collection_look_into_that_one() {
        for (more, knowledge) in [
            ("", vec![]),
            ("rag_index: ''\n", vec![]),
            ("rag_index: docs\n", vec!["docs".to_owned()]),
        ] {
            let agent = read(&format!("name: a\nmodel: m\n{more}")).unwrap();
            assert_eq!(agent.knowledge, knowledge, "{more}");
        }
        let errors = read("name: a\nmodel: m\nrag_index: [1]\n").unwrap_err();
        assert_eq!(errors.len(), 1, "a wrong field is named once");
    }

    #[test]
    fn all_errors_of_a_file_are_reported_together() {
        let text = "name: a b\ntemperature: 3\nmax_tokens: x\ntools: [1]\nspeed: 1\npeers: []\nengine: cli\n\
                    capabilities: [{name: a, strength: 2}]\nrag_top_k: 0\n";
        let errors = read(text).unwrap_err();
        let fields: Vec<&str> = errors.iter().map(|one| one.field.as_str()).collect();
        let expected = [
            "speed",
            "peers",
            "name",
            "model",
            "max_tokens",
            "temperature",
            "tools",
            "rag_top_k",
            "capabilities",
            "engine",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn an_agent_says_when_there_is_too_much_of_a_loop() {
        let with = |said: &str| read(&format!("name: a\nmodel: m\nloop_detection: {said}\n"));
        let agent = with("{enabled: true, warningThreshold: 3}").unwrap();
        let expected = r#"{"enabled":true,"warningThreshold":3}"#;
        assert_eq!(agent.loop_detection.as_deref(), Some(expected));
        assert_eq!(read("name: a\nmodel: m\n").unwrap().loop_detection, None);
        for bad in ["[]", "{speed: 1}", "{enabled: 1}", "{historySize: many}"] {
            let errors = with(bad).unwrap_err();
            assert_eq!(
                (errors.len(), errors[0].field.as_str()),
                (1, "loop_detection")
            );
        }
    }

    #[test]
    fn the_models_of_an_agent_are_few_and_have_short_names() {
        let read = |model: &str, models: usize| {
            let models = vec!["m"; models].join(", ");
            let errors = read(&format!("name: a\nmodel: {model}\nmodels: [{models}]\n"));
            let errors = errors.err().unwrap_or_default();
            let fields = errors.into_iter().map(|one| one.field);
            fields.collect::<Vec<_>>()
        };
        assert!(read(&"m".repeat(256), 16).is_empty());
        assert_eq!(read(&"m".repeat(257), 17), ["model", "models"]);
    }

    /// As editors and templates write files.
    #[test]
    fn a_file_is_read_however_it_is_written() {
        let expected = read("name: a\nmodel: m\nmemory: true\n").unwrap();
        for text in [
            "\u{feff}name: a\nmodel: m\nmemory: true\n",
            "---\r\nname: a\r\nmodel: m\r\nmemory: true\r\n...\r\n",
            "# an agent\n{name: 'a', model: \"m\", memory: true, tools: []}",
            "name: &n a\nmodel: m\nmemory: True\ndescription:\n",
        ] {
            assert_eq!(read(text), Ok(expected.clone()), "{text:?}");
        }
        // What only looks like another kind of value stays a text, or is refused by its field.
        assert_eq!(read("name: no\nmodel: 1:30\n").unwrap().model, "1:30");
        for (text, field) in [
            ("name: 123\nmodel: m\n", "name"),
            ("name: a\nmodel: 4.1\n", "model"),
            ("name: a\nmodel: m\nmemory: yes\n", "memory"),
            ("name: a\nmodel: m\ntemperature: '0.7'\n", "temperature"),
            ("name: a\nmodel: m\ntools: rag_query\n", "tools"),
            ("name: a\nmodel: m\n<<: {memory: true}\n", "<<"),
            ("name: a\nname: b\nmodel: m\n", ""),
            ("name: a\nmodel: m\n---\nname: b\nmodel: m\n", ""),
            ("name: a\n\tmodel: m\n", ""),
        ] {
            let errors = read(text).unwrap_err();
            let fields: Vec<&str> = errors.iter().map(|one| one.field.as_str()).collect();
            assert_eq!(fields, [field], "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_mapping_is_one_error() {
        for text in ["", "- a", "a", "name: [", "*x"] {
            assert_eq!(read(text).unwrap_err().len(), 1, "{text}");
        }
    }
}
