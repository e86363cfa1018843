//! The text of a server-sent event. JSON has no line ends outside of texts, and escapes them there: it is one line.

use bytes::Bytes;
use serde::Serialize;

/// Room for an event of a few words, which most are.
const SMALL: usize = 256;

/// An event of one line, behind lines that stand before it (`event: name`). Written to a buffer at once: by way of a formatter
/// each token of it would be a call of its own.
pub(crate) fn event(before: &[&str], data: &impl Serialize) -> Bytes {
    let mut text = Vec::with_capacity(SMALL);
    for piece in before {
        text.extend_from_slice(piece.as_bytes());
    }
    text.extend_from_slice(b"data: ");
    // What has texts for keys can always be written.
    let _ = serde_json::to_writer(&mut text, data);
    text.extend_from_slice(b"\n\n");
    text.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_written_as_its_tree_is_shown() {
        let data = json!({"b": [1, 0.5, null], "a": "\"x\"\n\u{1}ü"});
        assert_eq!(event(&[], &data), format!("data: {data}\n\n"));
        let named = event(&["event: ", "token", "\n"], &data);
        assert_eq!(named, format!("event: token\ndata: {data}\n\n"));
    }
}
