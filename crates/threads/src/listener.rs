//! What a listener is: a name, what it takes, what it is for, and whom it may write to.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::PatternOptions;
use serde_json::{Map, Value};
use tg_schemas::limits;

use crate::name::Name;
use crate::payload::{Payload, PayloadType};

/// Longest description, in bytes.
const DESCRIPTION: usize = 4096;
/// Longest schema, in bytes.
const SCHEMA: usize = 64 << 10;
/// Most values that a schema consists of: each of them may be looked at once for each value of a body.
const NODES: usize = 2000;
/// What a schema may not have: by the first three a few lines cost a lifetime to check, and by the others, which look at
/// everything below once more, as deep as they are nested.
const COSTLY: [&str; 5] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Most types that one listener takes, and most peers.
const MOST: usize = 256;
/// Most patterns in the schemas of one listener.
const PATTERNS: usize = 32;
/// Bytes that the patterns of one schema have together once they are compiled: a body is looked through in time that grows
/// with these.
const COMPILED: usize = 256 << 10;
/// Bytes that they count at least: how many they take is found by doubling from here.
const COMPILED_LEAST: usize = 4 << 10;
/// Bytes that the engine may keep of what it found out about one pattern.
const CACHED: usize = 256 << 10;
/// How many values a schema counts as at least where a check is weighed: a body without a schema is read, too.
pub(crate) const LIGHTEST: usize = 16;
/// From so much on (bytes of bodies times values of their schemas) a check belongs beside the runtime. It takes a few
/// milliseconds, and so does reading as many bytes as [`limits::OFFLOAD`].
pub(crate) const CHECKS: usize = LIGHTEST * limits::OFFLOAD;

/// What a payload must look like.
#[derive(Debug, Clone)]
pub struct Schema {
    source: Map<String, Value>,
    validator: std::sync::Arc<jsonschema::Validator>,
    patterns: usize,
    /// Bytes that its patterns take at most once they are compiled.
    compiled: usize,
    /// Values, each of which may be looked at once for each value of a body.
    weight: usize,
}

impl Schema {
    /// Reads a JSON schema. Its patterns are those of an engine that never goes back in a text.
    ///
    /// # Errors
    /// It is none, too large, or one that is costly to check.
    pub fn new(source: Map<String, Value>) -> Result<Self, BadListener> {
        let whole = Value::Object(source);
        if whole.to_string().len() > SCHEMA {
            return Err(BadListener::Schema);
        }
        let (values, patterns) = counted(&whole).ok_or(BadListener::Schema)?;
        if patterns > PATTERNS {
            return Err(BadListener::Patterns);
        }
        let (validator, compiled) = compiled(&whole, patterns).ok_or(BadListener::Schema)?;
        // A pattern looks through a text in time that grows with its own size, too.
        let of_patterns = if patterns > 0 { NODES } else { 0 };
        let Value::Object(source) = whole else {
            return Err(BadListener::Schema);
        };
        Ok(Self {
            source,
            validator: validator.into(),
            patterns,
            compiled,
            weight: values + of_patterns,
        })
    }

    /// The schema as it was given.
    pub fn source(&self) -> &Map<String, Value> {
        &self.source
    }

    /// Whether a body is as it says. Nobody learns why not.
    pub fn admits(&self, body: &mut Map<String, Value>) -> bool {
        let whole = Value::Object(std::mem::take(body));
        let valid = self.validator.is_valid(&whole);
        if let Value::Object(whole) = whole {
            *body = whole;
        }
        valid
    }
}

/// Compiles a schema under the smallest bound for its patterns that lets them pass: their engine does not say how large they are.
fn compiled(schema: &Value, patterns: usize) -> Option<(jsonschema::Validator, usize)> {
    let build = |bound: usize| {
        let engine = PatternOptions::regex()
            .size_limit(bound / patterns.max(1))
            .dfa_size_limit(CACHED);
        let options = jsonschema::options().with_pattern_options(engine);
        options.build(schema).ok()
    };
    if patterns == 0 {
        return Some((build(COMPILED)?, 0));
    }
    let mut bound = COMPILED_LEAST;
    while bound <= COMPILED {
        if let Some(validator) = build(bound) {
            return Some((validator, bound));
        }
        bound *= 2;
    }
    None
}

/// How many values and patterns a schema has. `None`: it costs more to check than its values times those of a body.
fn counted(schema: &Value) -> Option<(usize, usize)> {
    let (mut count, mut patterns, mut left) = (0, 0, vec![schema]);
    while let Some(value) = left.pop() {
        count += 1;
        match value {
            _ if count > NODES => return None,
            Value::Object(of) if of.keys().any(|key| COSTLY.contains(&key.as_str())) => {
                return None;
            }
            Value::Object(of) => {
                patterns += usize::from(of.get("pattern").is_some_and(Value::is_string));
                let by_name = of.get("patternProperties").and_then(Value::as_object);
                patterns += by_name.map_or(0, |by_name| by_name.len());
                left.extend(of.values());
            }
            Value::Array(of) => left.extend(of),
            _ => {}
        }
    }
    Some((count, patterns))
}

/// Whom an agent may forward to, itself aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Those named: its peers and the listeners behind its tools.
    Only(BTreeSet<Name>),
    /// Every listener that takes delegated work.
    Delegates,
}

/// What kind of listener it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// It computes, and may forward to any listener of its flow.
    Tool,
    /// A model drives it.
    Agent(Reach),
    /// What comes to it leaves through a door.
    Door,
}

/// A listener that may not be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadListener {
    /// Its name.
    #[error("the name: {0}")]
    Name(#[from] crate::name::BadName),
    /// It says nothing of itself, or too much.
    #[error("the description is required, and has at most 4096 bytes")]
    Description,
    /// What it takes is no schema.
    #[error(
        "a schema is not a JSON schema of at most 64 KiB and 2,000 values, without '$ref', '$dynamicRef', '$recursiveRef', \
         'unevaluatedItems' and 'unevaluatedProperties', and with patterns of at most 256 KiB together once they are \
         compiled, without look-around and back references"
    )]
    Schema,
    /// Too many patterns in what it takes, or in what all listeners take.
    #[error(
        "there are more than 32 patterns in its schemas, or in those of all listeners more than 256 or more than 4 MiB of \
         them once they are compiled"
    )]
    Patterns,
    /// A type that is none.
    #[error("a type: {0}")]
    Type(#[from] crate::payload::BadType),
    /// Too many types or peers.
    #[error("there are more than 256 types or peers")]
    Many,
    /// Another one has the name.
    #[error("another listener has the name")]
    Taken,
}

/// A registered listener.
#[derive(Debug, Clone)]
pub struct Listener {
    pub(crate) name: Name,
    pub(crate) description: String,
    pub(crate) kind: Kind,
    pub(crate) types: BTreeMap<PayloadType, Schema>,
    pub(crate) delegated: bool,
}

impl Listener {
    /// A listener by what it says of itself.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(name: &str, description: &str, kind: Kind) -> Result<Self, BadListener> {
        let name = Name::of_listener(name)?;
        if matches!(&kind, Kind::Agent(Reach::Only(peers)) if peers.len() > MOST) {
            return Err(BadListener::Many);
        }
        Self::named(name, description, kind)
    }

    pub(crate) fn named(name: Name, description: &str, kind: Kind) -> Result<Self, BadListener> {
        if description.trim().is_empty() || description.len() > DESCRIPTION {
            return Err(BadListener::Description);
        }
        Ok(Self {
            name,
            description: description.to_owned(),
            kind,
            types: BTreeMap::new(),
            delegated: false,
        })
    }

    /// It takes this type.
    ///
    /// # Errors
    /// The type or the schema is none, or there are too many.
    pub fn takes(mut self, kind: &str, schema: Map<String, Value>) -> Result<Self, BadListener> {
        if self.types.len() >= MOST {
            return Err(BadListener::Many);
        }
        let (kind, schema) = (PayloadType::new(kind)?, Schema::new(schema)?);
        if self.patterns() + schema.patterns > PATTERNS {
            return Err(BadListener::Patterns);
        }
        self.types.insert(kind, schema);
        Ok(self)
    }

    /// How many patterns the schemas of its types have.
    pub(crate) fn patterns(&self) -> usize {
        self.types.values().map(|schema| schema.patterns).sum()
    }

    /// Bytes that they take at most once they are compiled.
    pub(crate) fn compiled(&self) -> usize {
        self.types.values().map(|schema| schema.compiled).sum()
    }

    /// What a check of a payload of this type takes for each of its bytes.
    pub(crate) fn weight(&self, kind: &str) -> usize {
        let kind = PayloadType::any(kind).ok();
        let schema = kind.and_then(|kind| self.types.get(&kind));
        schema.map_or(LIGHTEST, |schema| schema.weight.max(LIGHTEST))
    }

    /// It takes delegated work.
    pub fn delegated(mut self) -> Self {
        self.delegated = true;
        self
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What it is for.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What it takes.
    pub fn types(&self) -> &BTreeMap<PayloadType, Schema> {
        &self.types
    }

    /// Whether a model drives it.
    pub fn is_agent(&self) -> bool {
        matches!(self.kind, Kind::Agent(_))
    }

    /// Whom it may forward to, for the log.
    pub(crate) fn peers(&self) -> String {
        match &self.kind {
            Kind::Agent(Reach::Only(peers)) => {
                let names: Vec<_> = peers.iter().map(Name::as_str).collect();
                names.join(", ")
            }
            Kind::Agent(Reach::Delegates) => "all that take delegated work".to_owned(),
            Kind::Tool | Kind::Door => "all".to_owned(),
        }
    }

    /// The payload, if it is one of those that it takes.
    pub fn admitted(&self, mut payload: Payload) -> Option<Payload> {
        let schema = self.types.get(&payload.kind)?;
        schema.admits(&mut payload.body).then_some(payload)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(source: Value) -> Option<Schema> {
        Schema::new(source.as_object().cloned().unwrap()).ok()
    }

    #[test]
    fn a_schema_that_costs_too_much_is_none() {
        let mut levels = Map::new();
        for level in 0..41 {
            let below = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            levels.insert(format!("l{level}"), json!({"allOf": [below, below]}));
        }
        levels.insert("l41".to_owned(), json!({"type": "object"}));
        assert!(schema(json!({"$ref": "#/$defs/l0", "$defs": levels})).is_none());
        for costly in COSTLY {
            let nested = json!({"allOf": [{"properties": {"a": {costly: "#"}}}]});
            assert!(schema(nested).is_none(), "{costly}");
        }
        let wide = |count| json!({"enum": vec![1; count]});
        assert!(schema(wide(NODES - 2)).is_some_and(|it| !it.admits(&mut Map::new())));
        assert!(schema(wide(NODES)).is_none());
    }

    #[test]
    fn a_pattern_that_goes_back_in_a_text_is_none() {
        let with = |pattern: &str| schema(json!({"properties": {"a": {"pattern": pattern}}}));
        let word = with("^[a-z0-9_-]{1,64}$").expect("a plain pattern");
        let body = |text: &str| json!({ "a": text }).as_object().cloned().unwrap();
        assert!(word.admits(&mut body("greeter")) && !word.admits(&mut body("a b")));
        // By each of these a short text can cost a lifetime, or a pattern much memory.
        for costly in [r"^(a*)*\1$", "^(?=(a+)+$)", "(?<=a)b", "^.{20000}$"] {
            assert!(with(costly).is_none(), "{costly}");
        }
    }

    #[test]
    fn a_listener_has_so_many_patterns() {
        let named = |count: usize| -> Map<String, Value> {
            let names = (0..count).map(|n| (format!("^a{n}"), json!({})));
            json!({"patternProperties": names.collect::<Map<_, _>>()})
                .as_object()
                .cloned()
                .unwrap()
        };
        let one = json!({"items": {"pattern": "^a"}});
        let one = one.as_object().cloned().unwrap();
        let listener = || Listener::new("a", "A.", Kind::Tool).unwrap();
        let full = listener().takes("some", named(PATTERNS)).unwrap();
        assert_eq!(full.patterns(), PATTERNS);
        assert_eq!(full.takes("more", one).err(), Some(BadListener::Patterns));
        let too_many = listener().takes("some", named(PATTERNS + 1));
        assert_eq!(too_many.err(), Some(BadListener::Patterns));
    }
}
