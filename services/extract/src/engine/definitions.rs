//! Definitions: `{entity, definition}`.

use serde_json::Value;

use super::found::Found;
use super::items::text;
use super::names::{clean, single_spaced};

/// Longest definition, in characters.
const LONGEST: usize = 4_000;

/// Adds what one item says. `false` if it says nothing usable.
pub fn read(item: &Value, found: &mut Found) -> bool {
    let Some((name, definition)) = parts(item) else {
        return false;
    };
    found.definition(&name, &definition);
    true
}

fn parts(item: &Value) -> Option<(String, String)> {
    let name = clean(&text(item, &["entity", "name", "topic"])?)?;
    let definition = text(item, &["definition"])?;
    let definition = single_spaced(&definition);
    let said = definition.chars().any(char::is_alphanumeric);
    let fits = said && definition.chars().count() <= LONGEST;
    fits.then(|| (name, definition.into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_incomplete_is_bad() {
        let mut found = Found::default();
        for (item, good) in [
            (
                json!({"entity": " Old  Bridge ", "definition": "A\nbridge."}),
                true,
            ),
            (json!({"entity": "", "definition": "A bridge."}), false),
            (json!({"entity": "Bridge", "definition": null}), false),
            (json!({"entity": "Bridge", "definition": "..."}), false),
            (json!({"entity": {"name": "x"}, "definition": "y"}), false),
            (json!({"definition": "A bridge."}), false),
        ] {
            assert_eq!(read(&item, &mut found), good, "{item}");
        }
        assert_eq!(found.facts().len(), 1);
        let label = found.labels()[0].to_api().to_string();
        assert!(label.contains("\"Old Bridge\""), "{label}");
    }
}
