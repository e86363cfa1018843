//! How a processing stands, in the words that people read: what is mostly done is complete, with warnings. Pure.

use serde_json::Value;

use crate::fields::{in_shell, list, text};

/// Whether something still happens to it.
pub(super) fn is_open(record: &Value) -> bool {
    text(record, "status") == "processing"
}

/// Whether it has come to a good end. `submitted`: those who process it tell nothing more.
pub(super) fn is_good(record: &Value) -> bool {
    matches!(text(record, "status").as_str(), "complete" | "submitted")
}

/// `processing`, `complete`, `complete with 1 warning`, …
pub(super) fn standing(record: &Value) -> String {
    match warnings(record) {
        0 => text(record, "status"),
        1 => "complete with 1 warning".to_owned(),
        many => format!("complete with {many} warnings"),
    }
}

/// The command that tries again what failed, where the library says that it can help.
pub(super) fn retry(record: &Value) -> Option<String> {
    let helps = !text(record, "retry").is_empty();
    helps.then(|| {
        format!(
            "tg process-status {} --retry",
            in_shell(&text(record, "id"))
        )
    })
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
    let kept = list(record, "errors").len() as u64;
    let total = record.get("errors-total").and_then(Value::as_u64);
    // A listing has the first of them only; what the others say is not known.
    let unseen = total.unwrap_or(0).saturating_sub(kept);
    match (told.as_slice(), unseen) {
        ([], _) => match text(record, "error") {
            error if error.is_empty() => text(record, "status"),
            error => error,
        },
        ([one], 0) => one.clone(),
        ([first, more @ ..], unseen) => {
            format!("{first} (and {} more)", more.len() as u64 + unseen)
        }
    }
}

/// What went wrong of one that is complete.
fn warnings(record: &Value) -> u64 {
    record.get("warnings").and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_mostly_done_is_complete_with_warnings() {
        let complete = |warnings: u64| json!({"status": "complete", "warnings": warnings});
        assert_eq!(standing(&complete(2)), "complete with 2 warnings");
        assert_eq!(standing(&complete(1)), "complete with 1 warning");
        assert_eq!(standing(&json!({"status": "complete"})), "complete");
        assert!(is_good(&complete(2)) && is_good(&json!({"status": "submitted"})));
        assert!(!is_good(&json!({"status": "failed"})) && !is_good(&json!({"status": "stopped"})));
    }

    #[test]
    fn a_retry_is_offered_where_it_can_help() {
        let record = |retry: &str| json!({"id": "p", "status": "failed", "retry": retry});
        let command = Some("tg process-status p --retry".to_owned());
        assert_eq!(retry(&record("retry-processing")), command);
        assert_eq!(retry(&record("")), None);
    }

    #[test]
    fn troubles_are_told_once() {
        let same = json!([{"message": "no"}, {"message": "no"}]);
        assert_eq!(troubles(&json!({"status": "failed", "errors": same})), "no");
        assert_eq!(troubles(&json!({"status": "stopped"})), "stopped");
        let two = json!({"errors": [{"message": "a"}, {"message": "b"}, {"message": "a"}]});
        assert_eq!(troubles(&two), "a (and 1 more)");
        let more = json!({"errors": [{"message": "a"}], "errors-total": 7});
        assert_eq!(troubles(&more), "a (and 6 more)");
    }
}
