//! Items in which the system shows no secrets to who asks: they are no backup of what they stand for, and are never written
//! over it.

use serde_json::{Map, Value};
use tg_schemas::masks::{MASK, is_masked, may_hold_secrets};

/// Why an item is not written.
pub(crate) fn why() -> String {
    format!("holds {MASK}, which stands for a secret that was not shown")
}

/// Whether an item is not what it is for who may see secrets.
pub(crate) fn is_shown_masked(kind: &str, value: &Value) -> bool {
    may_hold_secrets(kind)
        && match value {
            Value::String(text) => is_masked(text),
            other => is_masked(&other.to_string()),
        }
}

/// Takes such items out; says which they are, as `type/key`.
pub(crate) fn take_masked(config: &mut Map<String, Value>) -> Vec<String> {
    take(config, |kind, _, value| is_shown_masked(kind, value))
}

/// Takes out such items, and those that hold a secret by `masked`, the same configuration as somebody sees it who is shown none.
/// A row of plain text that the caller may see stays: nothing says what it is.
pub(crate) fn take_secret(
    config: &mut Map<String, Value>,
    masked: &Map<String, Value>,
) -> Vec<String> {
    take(config, |kind, key, value| {
        let hidden = masked.get(kind).and_then(|rows| rows.get(key));
        let hidden = hidden.is_none_or(|hidden| is_shown_masked(kind, hidden));
        is_shown_masked(kind, value) || (hidden && has_members(value))
    })
}

/// Whether a row is an object or a list, or the text of one.
fn has_members(value: &Value) -> bool {
    match value {
        Value::String(text) => serde_json::from_slice::<Value>(text.as_bytes())
            .is_ok_and(|inner| inner.is_object() || inner.is_array()),
        other => other.is_object() || other.is_array(),
    }
}

fn take(
    config: &mut Map<String, Value>,
    is_taken: impl Fn(&str, &str, &Value) -> bool,
) -> Vec<String> {
    let mut taken = Vec::new();
    for (kind, rows) in config {
        let Some(rows) = rows.as_object_mut() else {
            continue;
        };
        rows.retain(|key, value| {
            let out = is_taken(kind, key, value);
            if out {
                taken.push(format!("{kind}/{key}"));
            }
            !out
        });
    }
    taken
}

/// What is said of items that were left out of a file, if there are any.
pub(crate) fn left_out(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| {
        format!(
            "Left out, as you may not see the secrets in them (config:write may): {}",
            items.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_shown_is_taken_out_by_name() {
        let mut config = json!({
            "mcp": {"k": "{\"auth-token\": \"********\"}", "open": "{\"url\": \"http://h/\"}"},
            "own": {"k": "********", "k2": {"a": ["********"]}},
            "prompt": {"k": "\"say ********\""},
        });
        let config = config.as_object_mut().expect("an object");
        assert_eq!(take_masked(config), ["mcp/k", "own/k", "own/k2"]);
        assert_eq!(
            Value::Object(config.clone()),
            json!({"mcp": {"open": "{\"url\": \"http://h/\"}"}, "own": {}, "prompt": {"k": "\"say ********\""}})
        );
        assert!(left_out(&[]).is_none());
    }

    #[test]
    fn what_holds_a_secret_is_taken_out_although_it_was_shown() {
        let mut config = json!({
            "mcp": {"k": "{\"auth-token\": \"S3CRET\"}", "open": "{\"url\": \"http://h/\"}",
                "new": "{\"auth-token\": \"S3CRET\"}"},
            "own": {"text": "shown", "kept": "********"},
        });
        let masked = json!({
            "mcp": {"k": "{\"auth-token\": \"********\"}", "open": "{\"url\": \"http://h/\"}"},
            "own": {"text": "********", "kept": "********"},
        });
        let config = config.as_object_mut().expect("an object");
        let masked = masked.as_object().expect("an object");
        // One that came in between is taken out, too: nobody said that it holds none.
        assert_eq!(
            take_secret(config, masked),
            ["mcp/k", "mcp/new", "own/kept"]
        );
        assert_eq!(
            Value::Object(config.clone()),
            json!({"mcp": {"open": "{\"url\": \"http://h/\"}"}, "own": {"text": "shown"}})
        );
    }
}
