//! Values of attributes as typed literals: by the range that the ontology declares, or refused.

use std::str::FromStr;

use oxsdatatypes::{Boolean, Date, DateTime, Double, Duration, GYear, GYearMonth, Time};
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
            .map(|range| super::element::local(range))
            .collect();
        format!("is not a valid {}", names.join(" or "))
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
///
/// Whole numbers and decimals are read here because XSD sets no bound to them. Of floating point the parser
/// takes more than XSD does (`infinity`).
fn lexical(name: &str, text: &str) -> Option<String> {
    let owned = |good: bool| good.then(|| text.to_owned());
    match name {
        "decimal" => owned(is_decimal(text)),
        "float" | "double" => {
            let number = is::<Double>(text) && text.ends_with(|c: char| "0123456789.".contains(c));
            owned(number || matches!(text, "INF" | "-INF" | "NaN"))
        }
        "boolean" => Some(
            Boolean::from_str(&text.to_ascii_lowercase())
                .ok()?
                .to_string(),
        ),
        "date" => owned(is::<Date>(text)),
        "dateTime" => owned(is::<DateTime>(text)),
        "dateTimeStamp" => owned(DateTime::from_str(text).ok()?.timezone_offset().is_some()),
        "time" => owned(is::<Time>(text)),
        "gYear" => owned(is::<GYear>(text)),
        "gYearMonth" => owned(is::<GYearMonth>(text)),
        "duration" => owned(is::<Duration>(text)),
        "anyURI" => owned(!text.contains(|c: char| c.is_whitespace() || "<>\"".contains(c))),
        _ => match bounds(name) {
            Some(bounds) => integer(bounds, text),
            None => Some(text.to_owned()),
        },
    }
}

fn is<T: FromStr>(text: &str) -> bool {
    text.parse::<T>().is_ok()
}

fn integer((least, most): (i128, i128), text: &str) -> Option<String> {
    let number: i128 = text.parse().ok()?;
    (least..=most).contains(&number).then(|| number.to_string())
}

fn bounds(name: &str) -> Option<(i128, i128)> {
    Some(match name {
        "integer" => (i128::MIN, i128::MAX),
        "nonNegativeInteger" => (0, i128::MAX),
        "positiveInteger" => (1, i128::MAX),
        "nonPositiveInteger" => (i128::MIN, 0),
        "negativeInteger" => (i128::MIN, -1),
        "int" => (i32::MIN.into(), i32::MAX.into()),
        "long" => (i64::MIN.into(), i64::MAX.into()),
        "short" => (i16::MIN.into(), i16::MAX.into()),
        "byte" => (i8::MIN.into(), i8::MAX.into()),
        "unsignedInt" => (0, u32::MAX.into()),
        "unsignedLong" => (0, u64::MAX.into()),
        "unsignedShort" => (0, u16::MAX.into()),
        "unsignedByte" => (0, u8::MAX.into()),
        _ => return None,
    })
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let some = digits.bytes().any(|c| c.is_ascii_digit());
    some && digits.bytes().all(|c| c.is_ascii_digit() || c == b'.')
        && digits.matches('.').count() <= 1
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
            ("positiveInteger", json!(1), Some("1")),
            ("nonNegativeInteger", json!(-1), None),
            ("nonPositiveInteger", json!(0), Some("0")),
            ("negativeInteger", json!(0), None),
            ("long", json!(u64::MAX), None),
            (
                "unsignedLong",
                json!(u64::MAX),
                Some("18446744073709551615"),
            ),
            ("double", json!("1."), Some("1.")),
            ("double", json!("nan"), None),
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
            ("duration", json!("a year"), None),
            ("boolean", json!("True"), Some("true")),
            ("boolean", json!(0), Some("false")),
            ("double", json!("-INF"), Some("-INF")),
            ("double", json!("infinity"), None),
            (
                "decimal",
                json!("123456789012345678901234567890.5"),
                Some("123456789012345678901234567890.5"),
            ),
            ("date", json!("2023-02-29"), None),
            ("date", json!("2024-2-9"), None),
            ("date", json!("2024-02-29+02:00"), Some("2024-02-29+02:00")),
            ("date", json!("2024-02-29+15:00"), None),
            (
                "dateTimeStamp",
                json!("2024-02-29T10:00:00.5Z"),
                Some("2024-02-29T10:00:00.5Z"),
            ),
            ("dateTime", json!("2024-02-29 10:00:00"), None),
            ("time", json!("10:00:00Z"), Some("10:00:00Z")),
            ("time", json!("25:00:00"), None),
            ("gYear", json!("-0044"), Some("-0044")),
            ("gYear", json!(44), None),
            ("gYearMonth", json!("1429-13"), None),
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
            "is not a valid integer or date"
        );
    }
}
