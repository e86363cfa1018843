//! Values of a flow's parameters: what the user gave, what a controller gives, what the type gives.
//! Everything ends as text, checked. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use tg_schemas::{Error, ErrorCode, Topic};

use super::blueprint::{Blueprint, Parameter};

/// Longest value in bytes.
const MAX_VALUE: usize = 1024;
/// Most parameters of a start.
const MAX_PARAMETERS: usize = 256;

/// What a value may be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParameterType {
    kind: Kind,
    default: Option<String>,
    choices: Vec<String>,
    min: Option<f64>,
    max: Option<f64>,
    required: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    Integer,
    Float,
    Boolean,
}

impl ParameterType {
    /// Reads a `parameter-type` row. What cannot be read places no condition.
    pub fn read(text: &str) -> Self {
        let value: Value = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
        let number = |a: &str, b: &str| {
            value
                .get(a)
                .or_else(|| value.get(b))
                .and_then(Value::as_f64)
        };
        let choices = value
            .get("enum")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |list| {
                list.iter()
                    .filter_map(|item| plain(item.get("id").unwrap_or(item)))
                    .collect()
            });
        let kind = match value.get("type").and_then(Value::as_str) {
            Some("integer" | "int") => Kind::Integer,
            Some("float" | "number" | "double") => Kind::Float,
            Some("boolean" | "bool") => Kind::Boolean,
            _ => Kind::Text,
        };
        Self {
            kind,
            default: value.get("default").and_then(plain),
            choices,
            min: number("min", "minimum"),
            max: number("max", "maximum"),
            required: value
                .get("required")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        }
    }

    /// Checks a value and gives it its usual spelling.
    fn accept(&self, value: &str) -> Result<String, String> {
        let spelled = match self.kind {
            Kind::Text => value.to_owned(),
            Kind::Boolean => match value.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" => "true".to_owned(),
                "false" | "0" | "no" => "false".to_owned(),
                _ => return Err("must be true or false".to_owned()),
            },
            Kind::Integer => {
                let number: i64 = value.trim().parse().map_err(|_| "must be a whole number")?;
                self.within(number as f64)?;
                number.to_string()
            }
            Kind::Float => {
                let number: f64 = value.trim().parse().map_err(|_| "must be a number")?;
                if !number.is_finite() {
                    return Err("must be a number".to_owned());
                }
                self.within(number)?;
                value.trim().to_owned()
            }
        };
        if !self.choices.is_empty() && !self.choices.contains(&spelled) {
            let shown: Vec<_> = self.choices.iter().take(20).map(String::as_str).collect();
            return Err(format!("must be one of {}", shown.join(", ")));
        }
        Ok(spelled)
    }

    fn within(&self, number: f64) -> Result<(), String> {
        match (self.min, self.max) {
            (Some(min), _) if number < min => Err(format!("must be at least {min}")),
            (_, Some(max)) if number > max => Err(format!("must be at most {max}")),
            _ => Ok(()),
        }
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// The parameters of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Values by name.
    pub values: BTreeMap<String, String>,
    /// Names the user gave that the blueprint does not have: kept, but nothing uses them.
    pub unused: Vec<String>,
}

/// Resolves the parameters of a start. `types` are the `parameter-type` rows by key.
///
/// # Errors
/// `bad-request`, naming the parameter: one is required and not given, is not of its type, or there are too many.
pub fn resolve(
    blueprint: &Blueprint,
    types: &BTreeMap<String, ParameterType>,
    given: &BTreeMap<String, String>,
) -> Result<Resolved, Error> {
    if given.len() > MAX_PARAMETERS {
        return Err(fault(
            "parameters",
            &format!("has more than {MAX_PARAMETERS} entries"),
        ));
    }
    let resolver = Resolver {
        blueprint,
        types,
        given,
    };
    let mut resolved = Resolved::default();
    for (name, parameter) in blueprint.parameters.iter().flatten() {
        if let Some(value) = resolver.value(name, parameter)? {
            resolved.values.insert(name.clone(), value);
        }
    }
    for (name, value) in given {
        if !resolved.values.contains_key(name) {
            resolver.safe(name, value)?;
            resolved.values.insert(name.clone(), value.clone());
            resolved.unused.push(name.clone());
        }
    }
    Ok(resolved)
}

struct Resolver<'a> {
    blueprint: &'a Blueprint,
    types: &'a BTreeMap<String, ParameterType>,
    given: &'a BTreeMap<String, String>,
}

impl Resolver<'_> {
    fn value(&self, name: &str, parameter: &Parameter) -> Result<Option<String>, Error> {
        let unknown = ParameterType::default();
        let kind = self.types.get(&parameter.kind).unwrap_or(&unknown);
        let by_user = self.chain(name).find_map(|at| self.given.get(at));
        let by_type = || kind.default.as_ref();
        let by_controller = || {
            self.chain(name)
                .skip(1)
                .find_map(|at| self.types.get(&self.parameter(at)?.kind)?.default.as_ref())
        };
        let Some(value) = by_user.or_else(by_type).or_else(by_controller) else {
            if kind.required {
                // The text is the reference's.
                let text = format!("Required parameter '{name}' not provided and has no default");
                return Err(Error::typed("flow-error", text));
            }
            return Ok(None);
        };
        let value = kind.accept(value).map_err(|why| fault(name, &why))?;
        self.safe(name, &value)?;
        Ok(Some(value))
    }

    fn parameter(&self, name: &str) -> Option<&Parameter> {
        let all = self.blueprint.parameters.as_ref()?;
        all.iter()
            .find(|(known, _)| known == name)
            .map(|(_, parameter)| parameter)
    }

    /// The parameter, its controller, that one's controller …
    fn chain<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        let next = |at: &&'s str| self.parameter(at)?.controlled_by.as_deref();
        std::iter::successors(Some(name), next).take(MAX_PARAMETERS)
    }

    /// No value may change the meaning of a name it becomes part of.
    fn safe(&self, name: &str, value: &str) -> Result<(), Error> {
        if value.len() > MAX_VALUE {
            return Err(fault(name, &format!("is longer than {MAX_VALUE} bytes")));
        }
        if value.contains(['{', '}']) || value.chars().any(char::is_control) {
            return Err(fault(name, "must not contain braces or control characters"));
        }
        if self.blueprint.names_topics(name) {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if value.is_empty() || value.contains("--") || !value.chars().all(plain) {
                let why = "becomes part of a topic: it may contain letters, digits, '.', '_' and single '-'";
                return Err(fault(name, why));
            }
        } else if value.contains(':') && Topic::parse(value).is_ok() {
            return Err(fault(name, "must not be the name of a topic"));
        }
        Ok(())
    }
}

fn fault(name: &str, why: &str) -> Error {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    let path = if shown == "parameters" {
        shown
    } else {
        format!("parameters/{shown}")
    };
    Error::new(ErrorCode::BadRequest, format!("{path}: {why}"))
}
