//! What the values of a column have in common: their type, and whether they tell records apart. Pure.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use tg_schemas::table::{number, truth, whole};

/// What people write where there is no value; only in columns that are no text otherwise.
pub(super) const NO_VALUE: [&str; 6] = ["NULL", "null", "NA", "N/A", "n/a", "-"];
/// Longest value, in characters, that rows are looked up by.
const SHORT: usize = 64;
/// Characters of a value that is shown.
const SHOWN: usize = 40;

/// A column as far as it was read.
#[derive(Debug)]
pub(super) struct Column {
    /// Where its values come from, as a descriptor names it.
    pub(super) source: String,
    /// The name that the file has for it.
    pub(super) title: String,
    /// The file has no name for it.
    pub(super) unnamed: bool,
    /// The first value, shortened.
    pub(super) example: String,
    /// Records that have a value.
    filled: u64,
    /// Types that all values fit so far, the narrowest first.
    fitting: Vec<Type>,
    /// Some have [`NO_VALUE`].
    pub(super) has_no_value: bool,
    /// Values seen, by their hash, as long as none came twice.
    seen: Option<HashSet<u64>>,
    hashing: RandomState,
    longest: usize,
}

/// A type that values may be guessed to be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Integer,
    Float,
    Boolean,
    Date,
    Timestamp,
    Text,
}

impl Type {
    const ALL: [Self; 5] = [
        Self::Integer,
        Self::Float,
        Self::Boolean,
        Self::Date,
        Self::Timestamp,
    ];

    /// Its name in a schema.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::Text => "string",
        }
    }

    /// The type of a single value.
    pub(super) fn of(text: &str) -> Self {
        let fits = |kind: &Self| kind.fits(text);
        Self::ALL.into_iter().find(fits).unwrap_or(Self::Text)
    }

    fn fits(self, text: &str) -> bool {
        // A number that would not be written the same again is a code: 007, +49…
        let digits = text.strip_prefix('-').unwrap_or(text);
        let code = digits.starts_with('+')
            || (digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit()));
        match self {
            Self::Integer => !code && !text.contains('.') && whole(text).is_some(),
            Self::Float => !code && number(text).is_some(),
            // 0 and 1 are numbers first.
            Self::Boolean => !text.starts_with(['0', '1']) && truth(text).is_some(),
            Self::Date => text.len() == 10 && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok(),
            Self::Timestamp => {
                DateTime::parse_from_rfc3339(text).is_ok()
                    || ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"]
                        .iter()
                        .any(|form| NaiveDateTime::parse_from_str(text, form).is_ok())
            }
            Self::Text => true,
        }
    }
}

impl Column {
    pub(super) fn new(source: String, title: String) -> Self {
        Self {
            source,
            title,
            unnamed: false,
            example: String::new(),
            filled: 0,
            fitting: Type::ALL.to_vec(),
            has_no_value: false,
            seen: Some(HashSet::new()),
            hashing: RandomState::new(),
            longest: 0,
        }
    }

    /// Takes the value of one more record.
    pub(super) fn take(&mut self, value: &str) {
        let bare = value.trim();
        if bare.is_empty() {
            return;
        }
        self.filled += 1;
        self.longest = self.longest.max(value.chars().count());
        if self
            .seen
            .as_mut()
            .is_some_and(|seen| !seen.insert(self.hashing.hash_one(bare)))
        {
            self.seen = None;
        }
        if self.example.is_empty() {
            self.example = bare.chars().take(SHOWN).collect();
        }
        match NO_VALUE.contains(&bare) {
            true => self.has_no_value = true,
            false => self.fitting.retain(|kind| kind.fits(bare)),
        }
    }

    /// The narrowest type that all values have; text if there are none.
    pub(super) fn kind(&self) -> Type {
        match self.fitting.as_slice() {
            _ if self.filled == 0 => Type::Text,
            [] => Type::Text,
            // Nothing but marks for no value came.
            all if all.len() == Type::ALL.len() => Type::Text,
            [first, ..] => *first,
        }
    }

    /// Whether any record has a value.
    pub(super) fn is_filled(&self) -> bool {
        self.filled > 0
    }

    /// Whether its values tell so many records apart.
    pub(super) fn tells_apart(&self, records: u64) -> bool {
        let kind = matches!(self.kind(), Type::Integer | Type::Text);
        kind && self.is_short() && records > 0 && self.filled == records && self.seen.is_some()
    }

    /// Whether rows may be looked up by it.
    pub(super) fn is_short(&self) -> bool {
        self.longest <= SHORT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[&str]) -> Column {
        let mut column = Column::new("a".to_owned(), "a".to_owned());
        for value in values {
            column.take(value);
        }
        column
    }

    #[test]
    fn a_column_has_the_narrowest_type_of_all_its_values() {
        for (values, wanted) in [
            (&["1", "-2", " 30 "][..], Type::Integer),
            (&["1", "2.5", "1e3"], Type::Float),
            (&["1", ""], Type::Integer),
            (&["1", "NA"], Type::Integer),
            (&["NA", "-"], Type::Text),
            (&["yes", "No"], Type::Boolean),
            (&["0", "1"], Type::Integer),
            (&["2020-02-29", "1999-12-31"], Type::Date),
            (&["2020-02-30"], Type::Text),
            (
                &["2020-02-29T10:00:00Z", "2020-02-29 10:00:00"],
                Type::Timestamp,
            ),
            (&["00186", "20095"], Type::Text),
            (&["+49", "49"], Type::Text),
            (&["1", "two"], Type::Text),
            (&["NaN", "inf"], Type::Text),
            (&["12,5"], Type::Text),
            (&[], Type::Text),
        ] {
            assert_eq!(column(values).kind(), wanted, "{values:?}");
        }
    }

    #[test]
    fn only_values_that_differ_and_are_always_there_tell_records_apart() {
        assert!(column(&["1", "2"]).tells_apart(2));
        assert!(!column(&["1", "2"]).tells_apart(3));
        assert!(!column(&["1", "1"]).tells_apart(2));
        assert!(!column(&["1.5", "2.5"]).tells_apart(2));
        assert!(!column(&["x".repeat(65).as_str(), "y"]).tells_apart(2));
    }
}
