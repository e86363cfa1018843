//! What the tools `search` and `fetch` answer: ChatGPT searches a server by these names, and reads these shapes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::resources::address;
use crate::engine::translate::Body;

/// The operation of the library that reads what was found.
pub(crate) const READS: &str = "get-contents";
/// Most results.
const RESULTS: usize = 10;
/// Longest title, in characters.
const TITLE: usize = 80;
/// Longest beginning of a text, in characters.
const BEGINNING: usize = 300;

/// The passages that were found, the best first.
pub(crate) fn ids(body: &Body) -> Vec<String> {
    let found = body.get("chunks").and_then(Value::as_array);
    let found = found.into_iter().flatten();
    let ids = found.filter_map(|one| one["chunk_id"].as_str());
    ids.take(RESULTS).map(str::to_owned).collect()
}

/// The results of a search, with what the library says of them in their order; it may say nothing.
pub(crate) fn found(ids: &[String], library: &Body) -> Value {
    let contents = library.get("contents").and_then(Value::as_array);
    let contents = contents.map_or(&[][..], Vec::as_slice);
    let results = ids.iter().enumerate().map(|(at, id)| {
        let text = contents.get(at).and_then(text).unwrap_or_default();
        let beginning: String = text.chars().take(BEGINNING).collect();
        json!({"id": id, "title": title(id, &text), "text": beginning, "url": address(id)})
    });
    let results: Vec<Value> = results.collect();
    json!({"results": results})
}

/// What was fetched.
pub(crate) fn fetched(id: &str, text: &str) -> Value {
    json!({"id": id, "title": title(id, text), "text": text, "url": address(id)})
}

/// A content of the library, if it is a text.
fn text(content: &Value) -> Option<String> {
    let bytes = STANDARD.decode(content.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

/// The first line of a text. Passages have no titles of their own, and where nothing is known of one, its id is its title.
fn title(id: &str, text: &str) -> String {
    let mut lines = text.lines().map(|line| line.trim_matches(['#', ' ']));
    let first = lines.find(|line| !line.is_empty());
    first.unwrap_or(id).chars().take(TITLE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn results_are_named_by_what_they_begin_with() {
        let chunks: Vec<Value> = (0..12)
            .map(|n| json!({"chunk_id": n.to_string()}))
            .collect();
        let ids = ids(&body(json!({"chunks": chunks})));
        assert_eq!(ids.len(), RESULTS);
        let told = found(
            &ids[..2],
            &body(json!({"contents": [STANDARD.encode("\n# Skagen #\n\nIt is grey."), ""]})),
        );
        assert_eq!(
            told["results"],
            json!([
                {"id": "0", "title": "Skagen", "text": "\n# Skagen #\n\nIt is grey.",
                    "url": "threadgraph://document/0"},
                {"id": "1", "title": "1", "text": "", "url": "threadgraph://document/1"},
            ])
        );
        assert_eq!(found(&ids[..1], &Body::new())["results"][0]["title"], "0");
        let long = fetched("a", &"ä".repeat(TITLE + 1));
        assert_eq!(long["title"], "ä".repeat(TITLE));
    }
}
