//! Reading a model's reply in the shape a prompt promises. Pure.

use serde_json::Value;
pub use tg_templates::Schema;

/// Why a reply does not have the promised shape. Repeats nothing of the reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misshapen {
    /// Not JSON.
    #[error("JSON parse fail: the model's answer is not valid JSON (line {line}, column {column})")]
    NotJson {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// JSON of another shape.
    #[error("Schema validation fail: {0}")]
    Schema(String),
}

impl From<tg_replies::NotJson> for Misshapen {
    fn from(fault: tg_replies::NotJson) -> Self {
        let tg_replies::NotJson { line, column } = fault;
        Self::NotJson { line, column }
    }
}

/// Reads one JSON value, whatever is around it: where a reply has several, the first that is of the schema.
///
/// # Errors
/// [`Misshapen::NotJson`] with the place, or [`Misshapen::Schema`] with what does not fit.
pub fn json(text: &str, schema: Option<&Schema>) -> Result<Value, Misshapen> {
    let mut found = tg_replies::candidates(text)?;
    let Some(schema) = schema else {
        return Ok(found.swap_remove(0));
    };
    let mut fault = None;
    for value in found {
        match schema.check(&value) {
            Ok(()) => return Ok(value),
            Err(why) => drop(fault.get_or_insert(Misshapen::Schema(why))),
        }
    }
    Err(fault.unwrap_or(Misshapen::NotJson { line: 1, column: 1 }))
}

/// What could be read of a reply of one JSON value a line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lines {
    /// Values that are as they should be.
    pub values: Vec<Value>,
    /// How many are not.
    pub dropped: usize,
}

/// Reads one JSON value a line; an array, over one line or several, counts as its items. Lines that are not
/// JSON, and values that are not of the schema, are dropped. `Err` when that leaves nothing of something.
///
/// # Errors
/// [`Misshapen`] of the first line that was dropped, where none is left.
pub fn json_lines(text: &str, schema: Option<&Schema>) -> Result<Lines, Misshapen> {
    let mut lines = Lines::default();
    let mut fault = None;
    let take = |value: Value| {
        let items = match value {
            Value::Array(items) => items,
            other => vec![other],
        };
        for item in items {
            let checked = match schema {
                Some(schema) => {
                    let checked = schema.check(&item).map_err(Misshapen::Schema);
                    checked.map(|()| item)
                }
                None => Ok(item),
            };
            match checked {
                Ok(value) => lines.values.push(value),
                Err(error) => {
                    tracing::debug!(%error, "line of an answer dropped");
                    lines.dropped += 1;
                    fault.get_or_insert(error);
                }
            }
        }
    };
    let read = tg_replies::lines(text);
    read.values.into_iter().for_each(take);
    lines.dropped += read.bad;
    // That a line is of no use says more than that it is none.
    let fault = fault.or(read.fault.map(Misshapen::from));
    match fault {
        Some(fault) if lines.values.is_empty() => Err(fault),
        _ => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: Value) -> Schema {
        Schema::new(value.as_object().unwrap().clone()).unwrap()
    }

    #[test]
    fn json_is_read_bare_and_fenced_and_checked() {
        let number = schema(json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
        for text in [
            "{\"a\": 1}",
            " ```json\n{\"a\": 1}\n``` ",
            "Here:\n```\n{\"a\": 1}\n```\nDone.",
            "```{\"a\": 1}```",
        ] {
            assert_eq!(
                json(text, Some(&number)).unwrap(),
                json!({"a": 1}),
                "{text}"
            );
        }
        let fault = json("{\"a\": \"s3cret\"}", Some(&number))
            .unwrap_err()
            .to_string();
        assert!(
            fault.starts_with("Schema validation fail: at /a"),
            "{fault}"
        );
        assert!(!fault.contains("s3cret"), "{fault}");
        let drafted = "<think>Maybe {\"a\": 0}?</think>\nNot {\"a\": \"x\"} but {\"a\": 1,}";
        assert_eq!(json(drafted, Some(&number)).unwrap(), json!({"a": 1}));
        assert!(
            json("no", None)
                .unwrap_err()
                .to_string()
                .starts_with("JSON parse fail")
        );
    }

    #[test]
    fn good_lines_survive_bad_ones() {
        let named = schema(json!({"type": "object", "required": ["n"]}));
        let text = "```jsonl\n{\"n\": 1}\nnot json\n{\"m\": 2}\n\n{\"n\": 3}\n```";
        assert_eq!(
            json_lines(text, Some(&named)).unwrap(),
            Lines {
                values: vec![json!({"n": 1}), json!({"n": 3})],
                dropped: 2
            }
        );
        assert_eq!(json_lines("", None).unwrap(), Lines::default());
        assert_eq!(json_lines("[]", Some(&named)).unwrap(), Lines::default());
        assert!(json_lines("nothing here", None).is_err());
    }

    #[test]
    fn what_is_thought_is_no_line() {
        let text = "<think>\n{\"n\": 0}\n</think>\n{\"n\": 1}\n{\n  'n': 2,\n}";
        let lines = json_lines(text, None).unwrap();
        assert_eq!(lines.values, [json!({"n": 1}), json!({"n": 2})]);
        assert_eq!(lines.dropped, 0);
    }

    #[test]
    fn arrays_are_as_good_as_lines() {
        for text in [
            "[{\"n\": 1}, {\"n\": 2}]",
            "```json\n[\n  {\"n\": 1},\n  {\n    \"n\": 2\n  }\n]\n```",
            "[\n{\"n\": 1},\n{\"n\": 2},\n]",
            "[{\"n\": 1}]\n[{\"n\": 2}]",
        ] {
            let lines = json_lines(text, None).unwrap();
            assert_eq!(lines.values, [json!({"n": 1}), json!({"n": 2})], "{text}");
            assert_eq!(lines.dropped, 0, "{text}");
        }
    }
}
