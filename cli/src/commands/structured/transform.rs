//! Changes of a single value, as a descriptor names them. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{NaiveDate, NaiveDateTime};
use regex::Regex;
use serde_json::Value;
use tg_schemas::table::{Kind, Misfit, Value as Typed};

use super::records::{Fields, find};

/// Names of what [`Transform`] can be.
pub(super) const KNOWN: &str = "trim, upper, lower, title_case, to_string, to_int, to_float, to_bool, \
    to_date, default, required, lookup, concat, replace, regex_replace, substring, pad_left, pad_right";
/// Longest value that padding makes.
pub(super) const WIDEST: usize = 10_000;

/// One change.
#[derive(Debug, Clone)]
pub(super) enum Transform {
    Trim,
    Upper,
    Lower,
    TitleCase,
    Text,
    Int,
    Float,
    Bool,
    /// A `chrono` format, and whether it has a time.
    Date(String, bool),
    Default(String),
    Required,
    Lookup {
        table: String,
        entries: Arc<BTreeMap<String, String>>,
        /// What is not in the table has no value; otherwise it is a fault.
        lenient: bool,
    },
    Concat(Vec<String>),
    Replace(String, String),
    RegexReplace(Regex, String),
    Substring(usize, Option<usize>),
    Pad {
        left: bool,
        length: usize,
        with: char,
    },
}

/// A value of a row: text, or none.
pub(super) type Cell = Option<String>;

/// What a value of a record is as text.
pub(super) fn cell(value: Option<&Value>) -> Cell {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

impl Transform {
    /// The value after it. The error says why there is none.
    pub(super) fn apply(&self, cell: Cell, record: &Fields) -> Result<Cell, String> {
        match self {
            Self::Default(value) => return Ok(Some(filled(cell).unwrap_or_else(|| value.clone()))),
            Self::Required => {
                return filled(cell)
                    .map(Some)
                    .ok_or_else(|| "is required and has no value".into());
            }
            Self::Concat(parts) => return Ok(Some(concat(parts, record))),
            _ => {}
        }
        let Some(text) = cell else {
            return Ok(None);
        };
        Ok(match self {
            Self::Trim => Some(text.trim().to_owned()),
            Self::Upper => Some(text.to_uppercase()),
            Self::Lower => Some(text.to_lowercase()),
            Self::TitleCase => Some(title_case(&text)),
            Self::Int => read(&text, |text| of_kind(Kind::Integer, text))?,
            Self::Float => read(&text, |text| of_kind(Kind::Float, text))?,
            Self::Bool => read(&text, truth)?,
            Self::Date(format, timed) => read(&text, |text| date(text, format, *timed))?,
            Self::Lookup {
                table,
                entries,
                lenient,
            } => match entries.get(&text) {
                Some(value) => Some(value.clone()),
                None if *lenient || text.is_empty() => None,
                None => {
                    return Err(format!(
                        "'{}' is not in the lookup table '{table}'",
                        short(&text)
                    ));
                }
            },
            Self::Replace(pattern, with) => Some(text.replace(pattern, with)),
            Self::RegexReplace(pattern, with) => {
                Some(pattern.replace_all(&text, with.as_str()).into_owned())
            }
            Self::Substring(start, end) => {
                let length = end.map_or(usize::MAX, |end| end.saturating_sub(*start));
                Some(text.chars().skip(*start).take(length).collect())
            }
            Self::Pad { left, length, with } => Some(pad(&text, *left, *length, *with)),
            Self::Text | Self::Default(_) | Self::Required | Self::Concat(_) => Some(text),
        })
    }
}

/// A value that is not empty.
pub(super) fn filled(cell: Cell) -> Cell {
    cell.filter(|text| !text.is_empty())
}

/// Enough of a value to recognise it in a message.
pub(super) fn short(text: &str) -> String {
    crate::layout::cut(text, 40)
}

/// Blank is no value.
fn read(text: &str, reader: impl Fn(&str) -> Result<String, String>) -> Result<Cell, String> {
    let bare = text.trim();
    if bare.is_empty() {
        return Ok(None);
    }
    let read = reader(bare).map_err(|why| format!("'{}' {why}", short(bare)))?;
    Ok(Some(read))
}

/// Takes more words than a field of a schema does: files say `on` and `off`, too.
fn truth(text: &str) -> Result<String, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "t" | "on" | "1" => Ok("true".to_owned()),
        "false" | "no" | "n" | "f" | "off" | "0" => Ok("false".to_owned()),
        _ => Err(Misfit::Truth.to_string()),
    }
}

/// As it is kept, by the rules that a field of the kind has.
fn of_kind(kind: Kind, text: &str) -> Result<String, String> {
    match Typed::read(kind, text) {
        Ok(Typed::Integer(number)) => Ok(number.to_string()),
        Ok(_) => Ok(text.to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

fn date(text: &str, format: &str, timed: bool) -> Result<String, String> {
    let read = match timed {
        true => NaiveDateTime::parse_from_str(text, format)
            .map(|time| time.format("%Y-%m-%dT%H:%M:%S").to_string()),
        false => NaiveDate::parse_from_str(text, format).map(|date| date.to_string()),
    };
    read.map_err(|_| "is not a date in the given format".to_owned())
}

/// The first letter of each word large, the others small.
fn title_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        match inside {
            true => out.extend(letter.to_lowercase()),
            false => out.extend(letter.to_uppercase()),
        }
        inside = letter.is_alphabetic();
    }
    out
}

fn pad(text: &str, left: bool, length: usize, with: char) -> String {
    let missing = length.saturating_sub(text.chars().count());
    let padding: String = std::iter::repeat_n(with, missing).collect();
    match left {
        true => padding + text,
        false => text.to_owned() + &padding,
    }
}

/// A part that names a field of the record stands for its value, any other for itself.
fn concat(parts: &[String], record: &Fields) -> String {
    parts
        .iter()
        .map(|part| match find(record, part) {
            Some(value) => cell(Some(value)).unwrap_or_default(),
            None => part.clone(),
        })
        .collect()
}

/// A `chrono` format and whether it has a time, from `YYYY-MM-DD HH:mm:ss` or from `%Y-%m-%d %H:%M:%S`.
pub(super) fn date_format(text: &str) -> (String, bool) {
    let mut format = text.to_owned();
    if !text.contains('%') {
        for (token, code) in [
            ("YYYY", "%Y"),
            ("YY", "%y"),
            ("MMMM", "%B"),
            ("MMM", "%b"),
            ("MM", "%m"),
            ("DD", "%d"),
            ("HH", "%H"),
            ("hh", "%H"),
            ("mm", "%M"),
            ("ss", "%S"),
        ] {
            format = format.replace(token, code);
        }
    }
    let timed = ["%H", "%I", "%T", "%R"]
        .iter()
        .any(|code| format.contains(code));
    (format, timed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn apply(transform: &Transform, text: &str) -> Result<Cell, String> {
        transform.apply(Some(text.to_owned()), &Fields::new())
    }

    fn becomes(transform: Transform, text: &str, wanted: &str) {
        assert_eq!(
            apply(&transform, text),
            Ok(Some(wanted.to_owned())),
            "{transform:?}"
        );
    }

    #[test]
    fn texts_are_changed() {
        becomes(Transform::Trim, " a ", "a");
        becomes(Transform::Upper, "straße", "STRASSE");
        becomes(
            Transform::TitleCase,
            "o'NEILL smith-jones",
            "O'Neill Smith-Jones",
        );
        becomes(Transform::Replace("a".into(), "b".into()), "aa", "bb");
        let digits = Regex::new(r"(\d+)").expect("a pattern");
        becomes(
            Transform::RegexReplace(digits, "<${1}>".into()),
            "a12",
            "a<12>",
        );
        becomes(Transform::Substring(1, Some(3)), "äbcd", "bc");
        becomes(Transform::Substring(9, None), "ab", "");
        let pad = Transform::Pad {
            left: true,
            length: 4,
            with: '0',
        };
        becomes(pad, "42", "0042");
    }

    #[test]
    fn types_are_read_or_refused() {
        becomes(Transform::Int, " 42.0 ", "42");
        becomes(Transform::Float, "1e3", "1e3");
        becomes(Transform::Bool, "Yes", "true");
        let (format, timed) = date_format("DD.MM.YYYY");
        becomes(Transform::Date(format, timed), "24.12.2025", "2025-12-24");
        let (format, timed) = date_format("YYYY/MM/DD HH:mm:ss");
        becomes(
            Transform::Date(format, timed),
            "2025/12/24 18:00:01",
            "2025-12-24T18:00:01",
        );
        assert_eq!(
            apply(&Transform::Int, "4.5"),
            Err("'4.5' is not a whole number".to_owned())
        );
        assert_eq!(apply(&Transform::Int, " "), Ok(None));
        assert!(apply(&Transform::Float, "nan").is_err());
        assert!(apply(&Transform::Bool, "maybe").is_err());
    }

    #[test]
    fn what_has_no_value_may_get_one() {
        let record = json!({"a": "x", "n": 5, "none": null});
        let record = record.as_object().expect("an object");
        let default = Transform::Default("d".into());
        assert_eq!(default.apply(None, record), Ok(Some("d".to_owned())));
        assert_eq!(
            default.apply(Some(String::new()), record),
            Ok(Some("d".to_owned()))
        );
        assert!(Transform::Required.apply(None, record).is_err());
        let concat = Transform::Concat(vec!["a".into(), " - ".into(), "n".into(), "none".into()]);
        assert_eq!(concat.apply(None, record), Ok(Some("x - 5".to_owned())));
        let lookup = |lenient| Transform::Lookup {
            table: "t".into(),
            entries: Arc::new([("US".to_owned(), "United States".to_owned())].into()),
            lenient,
        };
        becomes(lookup(false), "US", "United States");
        assert_eq!(apply(&lookup(true), "XX"), Ok(None));
        assert_eq!(
            apply(&lookup(false), "XX"),
            Err("'XX' is not in the lookup table 't'".to_owned())
        );
    }
}
