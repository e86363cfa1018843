//! The time of day, for what is written down. What waits or measures uses tokio's clock, which tests can stop.

use chrono::{DateTime, SecondsFormat, Utc};

/// This moment.
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Milliseconds since the Unix epoch.
pub fn millis() -> i64 {
    now().timestamp_millis()
}

/// The same as headers carry it: 0 before the epoch.
pub fn header_millis() -> u64 {
    u64::try_from(millis()).unwrap_or(0)
}

/// Nanoseconds since the Unix epoch, as spans of traces state times: 0 out of range.
pub fn nanos() -> u64 {
    let nanos = now().timestamp_nanos_opt();
    nanos.and_then(|at| u64::try_from(at).ok()).unwrap_or(0)
}

/// Seconds since the Unix epoch.
pub fn seconds() -> i64 {
    now().timestamp()
}

/// RFC 3339 in UTC with six digits of a second, as provenance states times: `2026-08-01T09:00:00.120000Z`.
pub fn rfc3339() -> String {
    now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Seconds since the Unix epoch of a time in RFC 3339.
pub fn seconds_of(text: &str) -> Option<i64> {
    let at = DateTime::parse_from_rfc3339(text).ok()?;
    Some(at.timestamp())
}

/// A time in milliseconds since the Unix epoch as RFC 3339 in UTC with as many digits; empty where it is out of range.
pub fn rfc3339_of(millis: i64) -> String {
    let at = DateTime::from_timestamp_millis(millis);
    at.map_or_else(String::new, |at| {
        at.to_rfc3339_opts(SecondsFormat::Millis, true)
    })
}
