//! A question over one table: which rows, in which order, how many.

use crate::engine::value::Value;

/// Most rows of one answer.
pub const MOST: usize = 10_000;
/// Rows of an answer unless it is asked otherwise.
pub const USUAL: usize = 100;

/// What a condition asks of a field's value. A field without a value meets none of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Equal.
    Eq(Value),
    /// Another value.
    Not(Value),
    /// Greater.
    Gt(Value),
    /// Greater or equal.
    Gte(Value),
    /// Less.
    Lt(Value),
    /// Less or equal.
    Lte(Value),
    /// One of these.
    In(Vec<Value>),
    /// None of these.
    NotIn(Vec<Value>),
    /// Has the text in it.
    Contains(String),
    /// Begins with the text.
    StartsWith(String),
    /// Ends with the text.
    EndsWith(String),
}

/// A test of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Position of the field in its table.
    pub field: usize,
    /// What must hold.
    pub test: Test,
}

/// The question. All conditions must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Select {
    /// What must hold.
    pub conditions: Vec<Condition>,
    /// Position of the field to order by, and whether the greatest comes first. Rows are in the order they
    /// came in otherwise.
    pub order: Option<(usize, bool)>,
    /// Rows to pass over.
    pub offset: usize,
    /// Most rows, after ordering.
    pub limit: usize,
}

impl Select {
    /// Whether no index can help: a condition looks inside of texts.
    pub fn searches(&self) -> bool {
        let inside = |one: &Condition| {
            matches!(
                one.test,
                Test::Contains(_) | Test::StartsWith(_) | Test::EndsWith(_)
            )
        };
        self.conditions.iter().any(inside)
    }
}
