//! Typed values of fields, from the texts that records carry: one set of rules for what stores, extracts and loads rows.

use thiserror::Error;

use super::{Field, Kind, number, truth, whole};

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// There is none.
    Null,
    /// Text, also dates, times and UUIDs.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number; never NaN or infinite.
    Float(f64),
    /// True or false.
    Boolean(bool),
}

/// Why a text is no value of a field. Reads as the end of a sentence that begins with the field's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Misfit {
    /// The field always has a value, and here is none.
    #[error("is required and has no value")]
    Missing,
    /// Not a whole number of 64 bits.
    #[error("is not a whole number")]
    Whole,
    /// Not a finite number.
    #[error("is not a number")]
    Number,
    /// Not a truth value.
    #[error("is neither true nor false")]
    Truth,
    /// The field names its only values, and this is none of them.
    #[error("is not one of the allowed values")]
    Choice,
}

impl Value {
    /// Reads a text as a field's kind. Blanks around it do not count, but in a `string`. An empty text of another kind
    /// than `string` is no value.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn read(kind: Kind, text: &str) -> Result<Self, Misfit> {
        let bare = text.trim();
        if bare.is_empty() && kind != Kind::String {
            return Ok(Self::Null);
        }
        match kind {
            Kind::Integer => whole(bare).map(Self::Integer).ok_or(Misfit::Whole),
            Kind::Float => number(bare).map(Self::Float).ok_or(Misfit::Number),
            Kind::Boolean => truth(bare).map(Self::Boolean).ok_or(Misfit::Truth),
            Kind::String => Ok(Self::Text(text.to_owned())),
            Kind::Timestamp | Kind::Date | Kind::Time | Kind::Uuid => {
                Ok(Self::Text(bare.to_owned()))
            }
        }
    }
}

impl Field {
    /// The field's value in a record that has this text for it, or none.
    ///
    /// # Errors
    /// What is wrong with the text, or that a value is missing.
    pub fn value(&self, text: Option<&str>) -> Result<Value, Misfit> {
        let value = text.map_or(Ok(Value::Null), |text| Value::read(self.kind, text))?;
        match &value {
            Value::Null if self.required || self.primary_key => Err(Misfit::Missing),
            Value::Text(text) if !self.choices.is_empty() && !self.choices.contains(text) => {
                Err(Misfit::Choice)
            }
            _ => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Table;
    use super::*;

    #[test]
    fn texts_become_typed_values() {
        assert_eq!(Value::read(Kind::Integer, " 42.0 "), Ok(Value::Integer(42)));
        assert_eq!(Value::read(Kind::Integer, "4.5"), Err(Misfit::Whole));
        assert_eq!(Value::read(Kind::Boolean, "True"), Ok(Value::Boolean(true)));
        assert_eq!(Value::read(Kind::Float, "NaN"), Err(Misfit::Number));
        assert_eq!(Value::read(Kind::Date, ""), Ok(Value::Null));
        let empty = Ok(Value::Text(String::new()));
        assert_eq!(Value::read(Kind::String, ""), empty);
    }

    #[test]
    fn fields_ask_for_values_and_choose_among_them() {
        let table = Table::read(
            "t",
            r#"{"fields": [{"name": "id", "type": "integer", "primary_key": true},
                {"name": "c", "enum": ["red"]}, {"name": "s", "required": true},
                {"name": "d", "type": "date", "enum": ["2020-01-01"]}]}"#,
        )
        .expect("a table");
        let value = |at: usize, text| table.fields[at].value(text);
        assert_eq!(value(0, Some(" ")), Err(Misfit::Missing));
        assert_eq!(value(0, None), Err(Misfit::Missing));
        assert_eq!(value(1, None), Ok(Value::Null));
        assert_eq!(value(1, Some("blue")), Err(Misfit::Choice));
        assert_eq!(value(1, Some(" red")), Err(Misfit::Choice));
        assert_eq!(value(2, Some("")), Ok(Value::Text(String::new())));
        assert_eq!(value(2, None), Err(Misfit::Missing));
        let day = Ok(Value::Text("2020-01-01".to_owned()));
        assert_eq!(value(3, Some(" 2020-01-01 ")), day);
    }
}
