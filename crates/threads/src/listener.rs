//! What a listener is: a name, what it takes, what it is for, and whom it may write to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

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

/// What a payload must look like.
#[derive(Debug, Clone)]
pub struct Schema {
    source: Map<String, Value>,
    validator: std::sync::Arc<jsonschema::Validator>,
}

impl Schema {
    /// Reads a JSON schema.
    ///
    /// # Errors
    /// It is none, too large, or one that is costly to check.
    pub fn new(source: Map<String, Value>) -> Result<Self, BadListener> {
        let whole = Value::Object(source);
        if whole.to_string().len() > SCHEMA || !is_cheap(&whole) {
            return Err(BadListener::Schema);
        }
        let validator = jsonschema::validator_for(&whole).map_err(|_| BadListener::Schema)?;
        let Value::Object(source) = whole else {
            return Err(BadListener::Schema);
        };
        Ok(Self {
            source,
            validator: validator.into(),
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

/// Whether a schema costs no more to check than its values times those of a body.
fn is_cheap(schema: &Value) -> bool {
    let (mut count, mut left) = (0, vec![schema]);
    while let Some(value) = left.pop() {
        count += 1;
        match value {
            _ if count > NODES => return false,
            Value::Object(of) if of.keys().any(|key| COSTLY.contains(&key.as_str())) => {
                return false;
            }
            Value::Object(of) => left.extend(of.values()),
            Value::Array(of) => left.extend(of),
            _ => {}
        }
    }
    true
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
         'unevaluatedItems' and 'unevaluatedProperties'"
    )]
    Schema,
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
        let kind = PayloadType::new(kind)?;
        self.types.insert(kind, Schema::new(schema)?);
        Ok(self)
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
}
