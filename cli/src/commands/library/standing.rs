//! How a processing stands, in the words that people read: what is mostly done is complete, with warnings. Pure.

use serde_json::Value;

use crate::fields::{list, text};

/// Processors that take documents apart: what they cannot read they will not read the next time.
const CUTTERS: [&str; 2] = ["document-decoder", "chunker"];

/// Whether something still happens to it.
pub(super) fn is_open(record: &Value) -> bool {
    text(record, "status") == "processing"
}

/// Whether it has come to a good end. `submitted`: those who process it tell nothing more.
pub(super) fn is_good(record: &Value) -> bool {
    let status = text(record, "status");
    matches!(status.as_str(), "complete" | "submitted") || warnings(record) > 0
}

/// `processing`, `complete`, `complete with 1 warning`, …
pub(super) fn standing(record: &Value) -> String {
    match warnings(record) {
        0 => text(record, "status"),
        1 => "complete with 1 warning".to_owned(),
        many => format!("complete with {many} warnings"),
    }
}

/// The command that tries again what failed, where that can help.
pub(super) fn retry(record: &Value) -> Option<String> {
    let status = text(record, "status");
    let helps = match status.as_str() {
        "failed" => list(record, "errors").iter().any(|error| {
            let processor = text(error, "processor");
            !CUTTERS.contains(&processor.as_str())
        }),
        "stopped" => true,
        _ => false,
    };
    helps.then(|| format!("tg process-status {} --retry", text(record, "id")))
}

/// What is wrong with it, each thing once, on one line.
pub(super) fn troubles(record: &Value) -> String {
    let mut told: Vec<String> = Vec::new();
    for error in list(record, "errors") {
        let message = text(error, "message");
        if !message.is_empty() && !told.contains(&message) {
            told.push(message);
        }
    }
    match told.as_slice() {
        [] => match text(record, "error") {
            error if error.is_empty() => text(record, "status"),
            error => error,
        },
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} (and {} more)", more.len()),
    }
}

/// What failed of a document that is mostly done: more than half of its chunks went through all who read them.
fn warnings(record: &Value) -> u64 {
    let count = |key: &str| {
        let told = record.get("progress").and_then(|told| told.get(key));
        told.and_then(Value::as_u64).unwrap_or(0)
    };
    let mostly = count("chunks") > count("chunks-total") / 2;
    match text(record, "status").as_str() {
        "failed" if mostly => count("records-failed").max(1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failed(chunks: u64, processor: &str) -> Value {
        json!({"id": "p", "status": "failed", "error": "2 of 9 records failed",
            "progress": {"chunks": chunks, "chunks-total": 4, "records-failed": 2},
            "errors": [{"processor": processor, "message": "no"}, {"processor": processor, "message": "no"}]})
    }

    #[test]
    fn what_is_mostly_done_is_complete_with_warnings() {
        assert_eq!(standing(&failed(3, "x")), "complete with 2 warnings");
        assert!(is_good(&failed(3, "x")));
        assert_eq!(standing(&failed(2, "x")), "failed");
        assert!(!is_good(&failed(0, "x")));
        let complete = json!({"status": "complete", "progress": {"chunks": 4, "chunks-total": 4}});
        assert_eq!(standing(&complete), "complete");
        assert!(is_good(&complete) && !is_good(&json!({"status": "stopped"})));
    }

    #[test]
    fn a_retry_is_offered_where_it_can_help() {
        let command = Some("tg process-status p --retry".to_owned());
        assert_eq!(retry(&failed(0, "kg-extract-definitions")), command);
        assert_eq!(retry(&failed(3, "document-decoder")), None);
        assert_eq!(retry(&json!({"id": "p", "status": "stopped"})), command);
        assert_eq!(retry(&json!({"id": "p", "status": "complete"})), None);
    }

    #[test]
    fn troubles_are_told_once() {
        assert_eq!(troubles(&failed(0, "x")), "no");
        assert_eq!(troubles(&json!({"status": "stopped"})), "stopped");
        let two = json!({"errors": [{"message": "a"}, {"message": "b"}, {"message": "a"}]});
        assert_eq!(troubles(&two), "a (and 1 more)");
    }
}
