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
    let mut taken = Vec::new();
    for (kind, rows) in config {
        let Some(rows) = rows.as_object_mut() else {
            continue;
        };
        rows.retain(|key, value| {
            let masked = is_shown_masked(kind, value);
            if masked {
                taken.push(format!("{kind}/{key}"));
            }
            !masked
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
}
