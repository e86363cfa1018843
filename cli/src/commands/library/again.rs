//! What a flow tries again: how many records, why, and when next. The flow service keeps them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Http, Result};
use crate::fields::{list, text};

/// Records that are looked at.
const MOST: u32 = 1000;

/// What is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Again {
    records: usize,
    /// Why the one that comes next was not handled.
    why: String,
    /// Milliseconds since 1970.
    next: i64,
}

impl Again {
    /// What a flow tries again now; `None`: nothing, or nobody tells.
    pub(super) async fn of(http: &Http, flow: &str) -> Result<Option<Self>> {
        let request = json!({"operation": "list-put-aside", "flow-id": flow, "reason": "retry", "limit": MOST});
        let reply = http.service("flow", request).await?;
        Ok(Self::read(list(&reply, "put-aside")))
    }

    fn read(records: &[Value]) -> Option<Self> {
        let due = |record: &Value| {
            let due = chrono::DateTime::parse_from_rfc3339(&text(record, "due")).ok()?;
            Some(due.timestamp_millis())
        };
        let dated = records
            .iter()
            .filter_map(|record| Some((due(record)?, record)));
        let (next, record) = dated.min_by_key(|(due, _)| *due)?;
        Some(Self {
            records: records.len(),
            why: text(record, "detail"),
            next,
        })
    }

    /// `6 records are tried again, the next in 12 s: the model cannot be reached`.
    pub(super) fn text(&self, now: i64) -> String {
        let records = match self.records {
            1 => "1 record is tried again, in ".to_owned(),
            many => format!("{many} records are tried again, the next in "),
        };
        format!("{records}{}: {}", self.left(now), self.why)
    }

    /// The same in few words.
    pub(super) fn short(&self, now: i64) -> String {
        format!("{} again in {}: {}", self.records, self.left(now), self.why)
    }

    fn left(&self, now: i64) -> String {
        let left = Duration::from_millis(u64::try_from(self.next - now).unwrap_or(0));
        format!("{} s", left.as_secs_f64().ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_try_is_told_with_its_reason() {
        let record = |due: &str, detail: &str| json!({"due": due, "detail": detail});
        let records = [
            record("2026-01-01T00:00:20.000Z", "later"),
            record("2026-01-01T00:00:12.000Z", "the model cannot be reached"),
        ];
        let again = Again::read(&records).expect("some");
        let now = 1_767_225_600_000;
        assert_eq!(
            again.text(now),
            "2 records are tried again, the next in 12 s: the model cannot be reached"
        );
        assert_eq!(
            again.short(now + 60_000),
            "2 again in 0 s: the model cannot be reached"
        );
        let one = Again::read(&records[..1]).expect("one");
        assert_eq!(one.text(now), "1 record is tried again, in 20 s: later");
        assert_eq!(Again::read(&[]), None);
        assert_eq!(Again::read(&[json!({"detail": "no date"})]), None);
    }
}
