//! Tells the time.

use chrono::{DateTime, SecondsFormat, Utc};

/// The time as ISO 8601, with the day of the week, which models cannot work out.
pub(super) fn tell(now: DateTime<Utc>) -> String {
    let time = now.to_rfc3339_opts(SecondsFormat::Secs, true);
    format!("{time} ({}, UTC)", now.format("%A"))
}
