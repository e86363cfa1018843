//! One value of a row: whether it is of its field's kind, and how it is written.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use serde_json::Value;
use tg_schemas::table::{Field, Kind, Misfit, Value as Typed};

/// The value as it is kept. `Err` says what it should be.
pub(super) fn read(field: &Field, value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        // Lists and objects are kept as they are written.
        other => other.to_string(),
    };
    let text =
        of_kind(field.kind, &text).ok_or_else(|| format!("is not a {}", name(field.kind)))?;
    if field.size > 0 && text.chars().count() > field.size {
        return Err(format!("is longer than {} characters", field.size));
    }
    if field.choices.is_empty() {
        return Ok(text);
    }
    let same = |choice: &&String| choice.eq_ignore_ascii_case(&text);
    let chosen = field.choices.iter().find(same);
    chosen.cloned().ok_or_else(|| Misfit::Choice.to_string())
}

fn of_kind(kind: Kind, text: &str) -> Option<String> {
    let owned = |good: bool| good.then(|| text.to_owned());
    match kind {
        Kind::String => Some(text.to_owned()),
        Kind::Integer | Kind::Float | Kind::Boolean => match Typed::read(kind, text).ok()? {
            Typed::Integer(number) => Some(number.to_string()),
            Typed::Boolean(truth) => Some(truth.to_string()),
            Typed::Float(_) => Some(text.to_owned()),
            Typed::Null | Typed::Text(_) => None,
        },
        Kind::Date => owned(NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()),
        Kind::Time => {
            let forms = ["%H:%M", "%H:%M:%S%.f"];
            owned(
                forms
                    .iter()
                    .any(|form| NaiveTime::parse_from_str(text, form).is_ok()),
            )
        }
        Kind::Timestamp => owned(timestamp(text)),
        Kind::Uuid => uuid(text),
    }
}

fn timestamp(text: &str) -> bool {
    let forms = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ];
    DateTime::parse_from_rfc3339(text).is_ok()
        || forms
            .iter()
            .any(|form| NaiveDateTime::parse_from_str(text, form).is_ok())
        || NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

fn uuid(text: &str) -> Option<String> {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let hex = text
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    (hex && lengths == [8, 4, 4, 4, 12]).then(|| text.to_ascii_lowercase())
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "text",
        Kind::Integer => "whole number",
        Kind::Float => "number",
        Kind::Boolean => "truth value",
        Kind::Timestamp => "timestamp",
        Kind::Date => "date (YYYY-MM-DD)",
        Kind::Time => "time of day",
        Kind::Uuid => "UUID",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_of_their_kind() {
        let field = |kind| Field {
            name: "f".to_owned(),
            kind,
            type_name: String::new(),
            size: 0,
            primary_key: false,
            required: false,
            indexed: false,
            description: String::new(),
            choices: Vec::new(),
        };
        for (kind, value, expected) in [
            (Kind::String, json!(" a b "), Some("a b")),
            (Kind::String, json!(["a", 1]), Some("[\"a\",1]")),
            (Kind::Integer, json!(42), Some("42")),
            (Kind::Integer, json!("+42"), Some("42")),
            (Kind::Integer, json!(42.0), Some("42")),
            (Kind::Integer, json!(42.5), None),
            (Kind::Integer, json!("many"), None),
            (Kind::Integer, json!("4."), None),
            (Kind::Float, json!("4.5e3"), Some("4.5e3")),
            (Kind::Float, json!("inf"), None),
            (Kind::Boolean, json!(true), Some("true")),
            (Kind::Boolean, json!("No"), Some("false")),
            (Kind::Boolean, json!("maybe"), None),
            (Kind::Date, json!("2024-02-29"), Some("2024-02-29")),
            (Kind::Date, json!("2023-02-29"), None),
            (Kind::Time, json!("23:59"), Some("23:59")),
            (Kind::Time, json!("24:30"), None),
            (
                Kind::Timestamp,
                json!("2024-02-29T10:00:00Z"),
                Some("2024-02-29T10:00:00Z"),
            ),
            (
                Kind::Timestamp,
                json!("2024-02-29 10:00"),
                Some("2024-02-29 10:00"),
            ),
            (Kind::Timestamp, json!("yesterday"), None),
            (
                Kind::Uuid,
                json!("0F8FAD5B-D9CB-469F-A165-70867728950E"),
                Some("0f8fad5b-d9cb-469f-a165-70867728950e"),
            ),
            (Kind::Uuid, json!("0f8fad5b"), None),
        ] {
            let got = read(&field(kind), &value).ok();
            assert_eq!(got.as_deref(), expected, "{kind:?} {value}");
        }
        let mut small = field(Kind::String);
        small.size = 3;
        assert_eq!(
            read(&small, &json!("four")).unwrap_err(),
            "is longer than 3 characters"
        );
        let mut chosen = field(Kind::String);
        chosen.choices = vec!["Stone".to_owned()];
        assert_eq!(read(&chosen, &json!("stone")).as_deref(), Ok("Stone"));
        assert_eq!(
            read(&chosen, &json!("glass")).unwrap_err(),
            "is not one of the allowed values"
        );
    }
}
