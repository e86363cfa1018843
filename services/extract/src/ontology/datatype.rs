//! Values of attributes as typed literals: by the range that the ontology declares, or refused.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use serde_json::Value;
use tg_schemas::Term;

use super::turtle::{RDF, RDFS, XSD};

/// The literal of the first range that the value fits. `Err` says what it should have been.
pub(super) fn literal(ranges: &[String], value: &Value) -> Result<Term, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if ranges.is_empty() {
        return Ok(Term::literal(text));
    }
    let fitting = ranges.iter().find_map(|range| of(range, &text));
    fitting.ok_or_else(|| {
        let names: Vec<&str> = ranges
            .iter()
            .map(|range| super::model::local(range))
            .collect();
        format!("is no {}", names.join(" or "))
    })
}

fn of(range: &str, text: &str) -> Option<Term> {
    let plain = [
        format!("{XSD}string"),
        format!("{RDFS}Literal"),
        format!("{RDF}langString"),
    ];
    if plain.iter().any(|known| known == range) {
        return Some(Term::literal(text));
    }
    let value = match range.strip_prefix(XSD) {
        Some(name) => lexical(name, text)?,
        // A type of the ontology's own: nothing is known of how its values look.
        None => text.to_owned(),
    };
    Some(Term::Literal {
        value,
        datatype: range.to_owned(),
        language: String::new(),
    })
}

/// How the value is written as of an XSD type; types that are not known here take any text.
fn lexical(name: &str, text: &str) -> Option<String> {
    let owned = |good: bool| good.then(|| text.to_owned());
    match name {
        "integer" | "int" | "long" | "short" | "byte" => integer(name, text),
        "nonNegativeInteger" | "unsignedInt" | "unsignedLong" | "unsignedShort"
        | "unsignedByte" => integer(name, text).filter(|text| !text.starts_with('-')),
        "positiveInteger" => {
            integer(name, text).filter(|text| text != "0" && !text.starts_with('-'))
        }
        "negativeInteger" => integer(name, text).filter(|text| text.starts_with('-')),
        "nonPositiveInteger" => {
            integer(name, text).filter(|text| text == "0" || text.starts_with('-'))
        }
        "decimal" => owned(is_decimal(text)),
        "float" | "double" => owned(matches!(text, "INF" | "-INF" | "NaN") || is_number(text)),
        "boolean" => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some("true".to_owned()),
            "false" | "0" => Some("false".to_owned()),
            _ => None,
        },
        "date" => owned(NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()),
        "dateTime" | "dateTimeStamp" => {
            let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").is_ok();
            let stamped = text.contains('T') && DateTime::parse_from_rfc3339(text).is_ok();
            owned(stamped || (local && name == "dateTime"))
        }
        "time" => owned(NaiveTime::parse_from_str(text, "%H:%M:%S%.f").is_ok()),
        "gYear" => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            owned((4..=9).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit()))
        }
        "gYearMonth" => owned(
            text.len() == 7 && NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d").is_ok(),
        ),
        "anyURI" => owned(!text.contains(|c: char| c.is_whitespace() || "<>\"".contains(c))),
        _ => Some(text.to_owned()),
    }
}

fn integer(name: &str, text: &str) -> Option<String> {
    let number: i128 = text.parse().ok()?;
    let (least, most): (i128, i128) = match name {
        "int" => (i32::MIN.into(), i32::MAX.into()),
        "long" => (i64::MIN.into(), i64::MAX.into()),
        "short" => (i16::MIN.into(), i16::MAX.into()),
        "byte" => (i8::MIN.into(), i8::MAX.into()),
        "unsignedInt" => (0, u32::MAX.into()),
        "unsignedLong" => (0, u64::MAX.into()),
        "unsignedShort" => (0, u16::MAX.into()),
        "unsignedByte" => (0, u8::MAX.into()),
        _ => (i128::MIN, i128::MAX),
    };
    (least..=most).contains(&number).then(|| number.to_string())
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let some = digits.bytes().any(|c| c.is_ascii_digit());
    some && digits.bytes().all(|c| c.is_ascii_digit() || c == b'.')
        && digits.matches('.').count() <= 1
}

fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    is_decimal(mantissa) && exponent.parse::<i32>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_typed_by_their_range() {
        for (range, value, expected) in [
            ("integer", json!(42), Some("42")),
            ("integer", json!("042"), Some("42")),
            ("integer", json!("forty"), None),
            ("integer", json!(4.5), None),
            ("unsignedByte", json!(256), None),
            ("positiveInteger", json!(0), None),
            ("decimal", json!("-3.50"), Some("-3.50")),
            ("decimal", json!("1e3"), None),
            ("double", json!("1e3"), Some("1e3")),
            ("double", json!("big"), None),
            ("boolean", json!(true), Some("true")),
            ("boolean", json!("maybe"), None),
            ("date", json!("2024-02-29"), Some("2024-02-29")),
            ("date", json!("29 February"), None),
            (
                "dateTime",
                json!("2024-02-29T10:00:00"),
                Some("2024-02-29T10:00:00"),
            ),
            ("dateTimeStamp", json!("2024-02-29T10:00:00"), None),
            ("gYear", json!(1429), Some("1429")),
            ("gYear", json!("the 15th century"), None),
            ("gYearMonth", json!("1429-07"), Some("1429-07")),
            ("anyURI", json!("https://e.x/a b"), None),
            ("duration", json!("P1Y"), Some("P1Y")),
        ] {
            let range = format!("{XSD}{range}");
            let got = literal(std::slice::from_ref(&range), &value).ok();
            let expected = expected.map(|text| Term::Literal {
                value: text.to_owned(),
                datatype: range.clone(),
                language: String::new(),
            });
            assert_eq!(got, expected, "{range} {value}");
        }
        let string = [format!("{XSD}string")];
        assert_eq!(literal(&string, &json!(" x ")), Ok(Term::literal("x")));
        assert_eq!(literal(&[], &json!(3)), Ok(Term::literal("3")));
        let either = [format!("{XSD}integer"), format!("{XSD}date")];
        assert_eq!(
            literal(&either, &json!("x")).unwrap_err(),
            "is no integer or date"
        );
    }
}
