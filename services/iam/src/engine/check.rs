//! What a request may hold, and the errors of this service. Every refusal names the field.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use tg_schemas::{Error, WorkspaceId};
use unicode_normalization::is_nfc;

use super::Role;
use crate::password::LONGEST;

/// Longest name or mail address in bytes.
const MAX_TEXT: usize = 255;

/// The request is wrong.
pub(crate) fn invalid(field: &str, why: &str) -> Error {
    Error::typed("invalid-argument", format!("{field}: {why}"))
}

/// What is asked for is not there, or not for this asker.
pub(crate) fn not_found(what: &str) -> Error {
    Error::typed("not-found", format!("{what} not found"))
}

/// It is there, and may not be done.
pub(crate) fn not_permitted(why: &str) -> Error {
    Error::typed("operation-not-permitted", why)
}

/// Whoever asks is not known. The same for every reason.
pub(crate) fn auth_failed() -> Error {
    Error::typed("auth-failed", "auth failure")
}

/// A text that must be there.
pub(crate) fn required<'a>(field: &str, text: &'a str) -> Result<&'a str, Error> {
    if text.is_empty() {
        return Err(invalid(field, "is required"));
    }
    optional(field, text)
}

/// A text that may be empty.
pub(crate) fn optional<'a>(field: &str, text: &'a str) -> Result<&'a str, Error> {
    if text.len() > MAX_TEXT {
        return Err(invalid(field, "is longer than 255 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(invalid(field, "must not contain control characters"));
    }
    Ok(text)
}

/// A password. What it is made of is nobody's business; long ones are refused before they cost anything.
pub(crate) fn secret<'a>(field: &str, text: &'a str) -> Result<&'a str, Error> {
    match text.len() {
        0 => Err(invalid(field, "is required")),
        length if length > LONGEST => Err(invalid(field, "is longer than 1024 bytes")),
        _ => Ok(text),
    }
}

/// Passwords are not set by the way.
pub(crate) fn none_in_update(password: &str) -> Result<(), Error> {
    if password.is_empty() {
        return Ok(());
    }
    Err(invalid(
        "user.password",
        "is set by change-password or reset-password only",
    ))
}

/// A name to log in with: what looks the same is the same, so nothing that cannot be seen is in it.
pub(crate) fn username<'a>(field: &str, text: &'a str) -> Result<&'a str, Error> {
    required(field, text)?;
    if text.trim() != text {
        return Err(invalid(field, "must not begin or end with a space"));
    }
    if text.chars().any(is_unseen) {
        return Err(invalid(
            field,
            "must not contain characters that cannot be seen",
        ));
    }
    if !is_nfc(text) {
        return Err(invalid(field, "must be in Unicode's normal form C"));
    }
    Ok(text)
}

/// Characters of no width, and those that turn the direction of writing.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        || (c.is_whitespace() && c != ' ')
}

/// An id for a workspace.
pub(crate) fn workspace_id(field: &str, text: &str) -> Result<WorkspaceId, Error> {
    required(field, text)?;
    WorkspaceId::new(text).map_err(|fault| {
        let why = fault.message.trim_start_matches("workspace: ").to_owned();
        invalid(field, &why)
    })
}

/// Names of known roles.
pub(crate) fn roles(field: &str, names: &[String]) -> Result<BTreeSet<String>, Error> {
    if let Some(unknown) = names.iter().find(|name| Role::find(name).is_none()) {
        let known: Vec<&str> = super::ROLES.iter().map(|role| role.name).collect();
        let shown: String = unknown.chars().take(64).collect();
        return Err(invalid(
            field,
            &format!("unknown role '{shown}' (known: {})", known.join(", ")),
        ));
    }
    Ok(names.iter().cloned().collect())
}

/// When a key ends, as [`moment`] reads it. Empty: never.
pub(crate) fn expiry(
    field: &str,
    text: &str,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, Error> {
    let at = moment(field, text)?;
    if at.is_some_and(|at| at <= now) {
        return Err(invalid(field, "is in the past"));
    }
    Ok(at)
}

/// ISO-8601 date and time, or a date; without an offset it is UTC. Empty: none.
pub(crate) fn moment(field: &str, text: &str) -> Result<Option<DateTime<Utc>>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let with_offset = || {
        DateTime::parse_from_rfc3339(text)
            .map(|at| at.to_utc())
            .ok()
    };
    let without = || {
        [
            "%Y-%m-%dT%H:%M:%S%.f",
            "%Y-%m-%d %H:%M:%S%.f",
            "%Y-%m-%dT%H:%M",
        ]
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
        .map(|at| at.and_utc())
    };
    let date = || {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        Some(date.and_hms_opt(0, 0, 0)?.and_utc())
    };
    let at = with_offset()
        .or_else(without)
        .or_else(date)
        .ok_or_else(|| {
            invalid(
                field,
                "is not an ISO-8601 date and time, like 2030-12-31T23:59:59+00:00",
            )
        })?;
    Ok(Some(at))
}
