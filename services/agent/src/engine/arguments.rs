//! Checks the arguments that a model wrote against what the tool takes. Faults are for the model to mend.

use serde_json::{Map, Number, Value};

/// What a tool takes under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Name.
    pub name: String,
    /// Kind of value.
    pub kind: Kind,
    /// For the model.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
}

/// Kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    String,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A JSON object.
    Object,
    /// A JSON list.
    Array,
    /// Not checked.
    Any,
}

impl Kind {
    /// Reads the name used in tool configuration; `None` if there is no such kind.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "string" | "" => Self::String,
            "number" | "float" => Self::Number,
            "integer" | "int" => Self::Integer,
            "boolean" | "bool" => Self::Boolean,
            "object" => Self::Object,
            "array" | "list" => Self::Array,
            "any" => Self::Any,
            _ => return None,
        })
    }

    /// The name, as the model is shown it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
            Self::Any => "any",
        }
    }

    /// The value as this kind, where it clearly means one.
    fn read(self, value: Value) -> Option<Value> {
        match (self, value) {
            (Self::Any, value)
            | (Self::String, value @ Value::String(_))
            | (Self::Number, value @ Value::Number(_))
            | (Self::Boolean, value @ Value::Bool(_))
            | (Self::Object, value @ Value::Object(_))
            | (Self::Array, value @ Value::Array(_)) => Some(value),
            (Self::String, Value::Number(number)) => Some(number.to_string().into()),
            (Self::String, Value::Bool(truth)) => Some(truth.to_string().into()),
            (Self::Integer, Value::Number(number)) => whole(&number),
            (Self::Number | Self::Integer, Value::String(text)) => {
                let number: Number = serde_json::from_slice(text.trim().as_bytes()).ok()?;
                self.read(number.into())
            }
            (Self::Boolean, Value::String(text)) => text.trim().parse().ok().map(Value::Bool),
            _ => None,
        }
    }
}

fn whole(number: &Number) -> Option<Value> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone().into());
    }
    let float = number.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and in range"
    )]
    (float.fract() == 0.0 && float.abs() < 9e15).then(|| Value::from(float as i64))
}

/// The arguments with their values as the tool takes them.
///
/// # Errors
/// What is wrong with them, in words for the model.
pub fn check(takes: &[Argument], given: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut faults = Vec::new();
    let mut read = Map::new();
    for (name, value) in given {
        match takes.iter().find(|argument| argument.name == name) {
            None => faults.push(format!("there is no argument '{name}'")),
            Some(argument) if value.is_null() && !argument.required => {}
            Some(argument) => match argument.kind.read(value) {
                Some(value) => {
                    read.insert(name, value);
                }
                None => faults.push(format!(
                    "argument '{name}' must be of type {}",
                    argument.kind.as_str()
                )),
            },
        }
    }
    for argument in takes.iter().filter(|argument| argument.required) {
        let faulty = || {
            faults
                .iter()
                .any(|fault| fault.contains(&format!("'{}' must", argument.name)))
        };
        if !read.contains_key(&argument.name) && !faulty() {
            faults.push(format!("argument '{}' is required", argument.name));
        }
    }
    if faults.is_empty() {
        return Ok(read);
    }
    let names: Vec<_> = takes
        .iter()
        .map(|argument| format!("{} ({})", argument.name, argument.kind.as_str()))
        .collect();
    let taken = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    Err(format!(
        "{}. Arguments of this tool: {taken}",
        faults.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn takes() -> Vec<Argument> {
        let argument = |name: &str, kind, required| Argument {
            name: name.into(),
            kind,
            description: String::new(),
            required,
        };
        vec![
            argument("q", Kind::String, true),
            argument("n", Kind::Integer, false),
            argument("f", Kind::Number, false),
            argument("b", Kind::Boolean, false),
            argument("o", Kind::Object, false),
        ]
    }

    fn run(given: Value) -> Result<Value, String> {
        let Value::Object(given) = given else {
            panic!()
        };
        check(&takes(), given).map(Value::Object)
    }

    #[test]
    fn clear_values_pass_and_are_read_as_their_kind() {
        assert_eq!(
            run(json!({"q": "x", "n": 3.0, "f": "1.5", "b": "true", "o": {}})).unwrap(),
            json!({"q": "x", "n": 3, "f": 1.5, "b": true, "o": {}})
        );
        assert_eq!(run(json!({"q": 7, "n": null})).unwrap(), json!({"q": "7"}));
    }

    #[test]
    fn faults_are_all_told_with_what_the_tool_takes() {
        let told = run(json!({"n": 1.5, "b": "maybe", "o": [1], "zz": 1})).unwrap_err();
        for part in [
            "argument 'n' must be of type integer",
            "argument 'b' must be of type boolean",
            "argument 'o' must be of type object",
            "no argument 'zz'",
            "argument 'q' is required",
            "Arguments of this tool: q (string)",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let told = run(json!({"q": {}})).unwrap_err();
        assert!(!told.contains("missing"), "{told}");
    }
}
