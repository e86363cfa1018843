//! Finds the JSON values of a reply, whatever stands around them.

use serde_json::Value;

use crate::json::{NotJson, container, strict};
use crate::thinking::answer;

/// Most values that are looked at.
const MOST: usize = 256;

/// How much may be read in vain: a text of brackets would else be read again from each of them.
pub(crate) struct Budget(usize);

impl Budget {
    /// For a text.
    pub(crate) fn of(text: &str) -> Self {
        Self(text.len().saturating_mul(8).saturating_add(1 << 16))
    }

    /// The object or array that a text begins with, and its length.
    pub(crate) fn container(&mut self, text: &str) -> Option<(Value, usize)> {
        if self.0 == 0 {
            return None;
        }
        match container(text) {
            Ok(found) => Some(found),
            Err(read) => {
                self.0 = self.0.saturating_sub(read.saturating_add(16));
                None
            }
        }
    }
}

/// The JSON values that a reply may mean, the likeliest first; at least one. What the model thinks is no part of it. Where the
/// reply is JSON as a whole, that is the only one; what stands in fences comes before what stands in prose, objects come before
/// lists of nothing but numbers, which prose has as well.
///
/// # Errors
/// [`NotJson`]: there is none.
pub fn candidates(reply: &str) -> Result<Vec<Value>, NotJson> {
    let reply = answer(reply);
    let fault = match strict(&reply) {
        Ok(value) => return Ok(vec![value]),
        Err(fault) => fault,
    };
    let bodies = fences(&reply);
    let fault = bodies.first().map_or(fault, |body| match strict(body) {
        Ok(_) => fault,
        Err(fault) => fault,
    });
    let mut budget = Budget::of(&reply);
    let mut found = Vec::new();
    for body in &bodies {
        match strict(body) {
            Ok(value) => found.push(value),
            Err(_) => containers(body, &mut budget, &mut found),
        }
    }
    if found.is_empty() {
        containers(&reply, &mut budget, &mut found);
    }
    found.truncate(MOST);
    // Stable: among equals the first in the text stays the first.
    found.sort_by_key(|value| !has_object(value));
    match found.is_empty() {
        true => Err(fault),
        false => Ok(found),
    }
}

/// The objects and arrays of a text that are not within others.
fn containers(text: &str, budget: &mut Budget, found: &mut Vec<Value>) {
    let mut at = 0;
    while let Some(next) = text[at..].find(['{', '[']) {
        at += next;
        match budget.container(&text[at..]) {
            Some((value, length)) if found.len() < MOST => {
                found.push(value);
                at += length;
            }
            Some(_) => return,
            None => at += 1,
        }
    }
}

/// Whether a value is an object or holds one.
pub(crate) fn has_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(has_object),
        _ => false,
    }
}

/// What stands in the fences of a text. A fence begins and ends with a line; one that is not closed goes on to the end.
pub(crate) fn fences(text: &str) -> Vec<&str> {
    const FENCE: &str = "```";
    let mut bodies = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (begins, bare) = (at, line.trim());
        at += line.len();
        match open {
            None => {
                let Some(rest) = bare.strip_prefix(FENCE) else {
                    continue;
                };
                // The first line of a fence names the language, unless the body begins in it.
                let inner = begins + (line.len() - line.trim_start().len()) + FENCE.len();
                let body = match rest.find(['{', '[', '"']) {
                    Some(from) => inner + from,
                    None => at,
                };
                match rest.rfind(FENCE) {
                    Some(end) if inner + end >= body => bodies.push(&text[body..inner + end]),
                    Some(_) => {}
                    None => open = Some(body),
                }
            }
            Some(body) if bare.starts_with(FENCE) => {
                bodies.push(&text[body..begins]);
                open = None;
            }
            Some(body) if bare.ends_with(FENCE) => {
                let end = begins + line.trim_end().len() - FENCE.len();
                bodies.push(&text[body..end]);
                open = None;
            }
            Some(_) => {}
        }
    }
    if let Some(body) = open {
        bodies.push(&text[body..]);
    }
    bodies.retain(|body| !body.trim().is_empty());
    bodies
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(reply: &str) -> Value {
        candidates(reply).expect("a value").remove(0)
    }

    #[test]
    fn the_value_is_found_whatever_is_around_it() {
        let green = json!({"colour": "green"});
        for reply in [
            r#"{"colour": "green"}"#,
            "```json\n{\"colour\": \"green\"}\n```",
            "```JSON\r\n{\"colour\": \"green\",}\r\n```\r\n",
            "```{\"colour\": \"green\"}```",
            "Here:\n```\n{\"colour\": \"green\"}```\nDone.",
            "```json\n{\"colour\": \"green\"}",
            "Sure! {\"colour\": \"green\"} is the answer.",
            "<think>Is it {\"colour\": \"red\"}?</think>\n{\"colour\": \"green\"}",
            "Is it {\"colour\": \"red\"}?\n</think>\n\n{\"colour\": \"green\"}",
            "As [1] says, {\"colour\": \"green\"}.",
            "In the set {x}: {\"colour\": \"green\"}",
            "```python\nprint(1)\n```\n{\"colour\": \"green\"}",
            "{'colour': 'green'}\n\nNote: {\"colour\": \"red\"} is not it.",
            "\u{feff}{“colour”： “green”}",
        ] {
            assert_eq!(first(reply), green, "{reply}");
        }
        assert_eq!(first("42"), json!(42));
        assert_eq!(first("\"text\""), json!("text"));
        assert_eq!(first("```\n42\n```"), json!(42));
        let code = json!({"code": "```\nlet x;\n```"});
        assert_eq!(first(&code.to_string()), code);
    }

    #[test]
    fn what_is_thought_or_cut_off_is_no_value() {
        for reply in [
            "",
            "no",
            "{\"colour\": \"gre",
            "<think>Is it {\"colour\": \"red\"}?",
            "<think>{\"colour\": \"red\"}</think>",
        ] {
            assert!(candidates(reply).is_err(), "{reply}");
        }
        assert_eq!(
            candidates("```json\n{\"a\": x}\n```"),
            Err(NotJson { line: 1, column: 7 })
        );
    }

    #[test]
    fn a_flood_of_brackets_is_read_within_a_bound() {
        let flood = "[\"a\", ".repeat(1 << 15);
        assert!(candidates(&flood).is_err());
        let many = "{\"a\": 1} ".repeat(MOST + 9);
        assert_eq!(candidates(&many).map(|found| found.len()), Ok(MOST));
    }
}
