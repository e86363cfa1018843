//! Checks of a single value: those a descriptor names, and what the schema of its rows asks for. Pure.

use regex::Regex;
use tg_schemas::table::{Field, Misfit, number};

use super::transform::{Cell, short};

/// Names of what [`Check`] can be.
pub(super) const KNOWN: &str =
    "required, not_null, min_length, max_length, range, pattern, in_list";

/// One check. All but [`Check::Required`] pass what has no value.
#[derive(Debug, Clone)]
pub(super) enum Check {
    Required,
    MinLength(usize),
    MaxLength(usize),
    /// Both ends belong to it.
    Range(Option<f64>, Option<f64>),
    Pattern(Regex),
    InList(Vec<String>),
}

impl Check {
    /// The error says what is wrong with the value.
    pub(super) fn run(&self, cell: &Cell) -> Result<(), String> {
        let text = cell.as_deref().unwrap_or_default();
        if text.is_empty() {
            return match self {
                Self::Required => Err(Misfit::Missing.to_string()),
                _ => Ok(()),
            };
        }
        let length = || text.chars().count();
        let wrong = match self {
            Self::Required => return Ok(()),
            Self::MinLength(least) if length() < *least => {
                format!("has fewer than {least} characters")
            }
            Self::MaxLength(most) if length() > *most => format!("has more than {most} characters"),
            Self::MinLength(_) | Self::MaxLength(_) => return Ok(()),
            Self::Range(least, most) => {
                let Some(number) = number(text.trim()) else {
                    return Err(format!("'{}' is not a number", short(text)));
                };
                let below = least.is_some_and(|least| number < least);
                if !below && most.is_none_or(|most| number <= most) {
                    return Ok(());
                }
                match (below, least, most) {
                    (true, Some(least), _) => format!("is less than {least}"),
                    (_, _, Some(most)) => format!("is more than {most}"),
                    _ => return Ok(()),
                }
            }
            Self::Pattern(pattern) if pattern.is_match(text) => return Ok(()),
            Self::Pattern(pattern) => format!("does not match {pattern}"),
            Self::InList(values) if values.iter().any(|value| value == text) => return Ok(()),
            Self::InList(_) => Misfit::Choice.to_string(),
        };
        Err(format!("'{}' {wrong}", short(text)))
    }
}

/// Whether a value fits a field of the schema: what the store of rows would refuse is refused here, where the
/// record it comes from is known.
pub(super) fn fits(field: &Field, cell: &Cell) -> Result<(), String> {
    let text = cell.as_deref();
    match field.value(text) {
        Ok(_) => Ok(()),
        Err(Misfit::Missing) => Err(Misfit::Missing.to_string()),
        Err(why) => Err(format!("'{}' {why}", short(text.unwrap_or_default()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::table::Table;

    fn cell(text: &str) -> Cell {
        Some(text.to_owned())
    }

    #[test]
    fn checks_say_what_is_wrong() {
        let pattern = Check::Pattern(Regex::new("^[A-Z]+$").expect("a pattern"));
        for (check, good, bad, why) in [
            (Check::Required, "x", "", "is required"),
            (Check::MinLength(2), "äö", "a", "fewer than 2"),
            (Check::MaxLength(2), "äö", "abc", "more than 2"),
            (
                Check::Range(Some(0.0), Some(9.5)),
                "9.5",
                "10",
                "is more than 9.5",
            ),
            (Check::Range(Some(0.0), None), "0", "-1", "is less than 0"),
            (Check::Range(None, None), "1", "x", "is not a number"),
            (pattern, "AB", "Ab", "does not match ^[A-Z]+$"),
            (Check::InList(vec!["a".into()]), "a", "b", "is not one of"),
        ] {
            assert_eq!(check.run(&cell(good)), Ok(()), "{check:?}");
            let error = check.run(&cell(bad)).expect_err("refused");
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(Check::MinLength(2).run(&None), Ok(()));
        assert!(Check::Required.run(&None).is_err());
    }

    #[test]
    fn values_fit_their_schema_or_do_not() {
        let table = Table::read(
            "t",
            r#"{"fields": [{"name": "id", "type": "integer", "primary_key": true},
                {"name": "w", "type": "float"}, {"name": "on", "type": "boolean"},
                {"name": "c", "enum": ["red"]}, {"name": "s", "required": true}, {"name": "d", "type": "date"}]}"#,
        )
        .expect("a table");
        let fit = |at: usize, text: &str| fits(&table.fields[at], &cell(text)).is_ok();
        assert!(fit(0, " 42.0 ") && !fit(0, "4.5") && !fit(0, ""));
        assert!(fit(1, "") && fit(1, "1e3") && !fit(1, "inf"));
        assert!(fit(2, "No") && !fit(2, "maybe"));
        assert!(fit(3, "red") && !fit(3, "blue"));
        assert!(fit(4, "") && fits(&table.fields[4], &None).is_err());
        assert!(fit(5, "2020-01-01"));
    }
}
