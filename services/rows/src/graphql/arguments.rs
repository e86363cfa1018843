//! Arguments of a table's field, and the filter types they are made of.

use std::collections::BTreeMap;

use async_graphql::dynamic::{InputObject, InputValue, ResolverContext, TypeRef};
use async_graphql::indexmap::IndexMap;
use async_graphql::{Error, Name, Value as Gql};
use tg_schemas::table::{Field as Column, Kind};

use super::named::Named;
use crate::engine::select::{Condition, MOST, Select, Test, USUAL};
use crate::engine::value::Value;

/// Most values of an `in` or `not_in`.
const VALUES: usize = 1_000;

/// The filter type of a kind of field.
pub(super) fn filter_of(kind: Kind) -> &'static str {
    match kind {
        Kind::String | Kind::Uuid => "StringFilter",
        Kind::Integer => "IntFilter",
        Kind::Float => "FloatFilter",
        Kind::Boolean => "BooleanFilter",
        Kind::Timestamp | Kind::Date | Kind::Time => "DateFilter",
    }
}

/// All filter types.
pub(super) fn filters() -> Vec<InputObject> {
    let texts = &["contains", "startsWith", "endsWith"][..];
    let orders = &["gt", "gte", "lt", "lte"][..];
    [
        ("StringFilter", TypeRef::STRING, texts),
        ("IntFilter", TypeRef::INT, orders),
        ("FloatFilter", TypeRef::FLOAT, orders),
        ("DateFilter", TypeRef::STRING, orders),
        ("BooleanFilter", TypeRef::BOOLEAN, &[]),
    ]
    .into_iter()
    .map(|(name, of, tests)| {
        let one = |name: &str| InputValue::new(name, TypeRef::named(of));
        let list = |name: &str| InputValue::new(name, TypeRef::named_nn_list(of));
        let filter = InputObject::new(name).field(one("eq")).field(one("not"));
        let filter = tests
            .iter()
            .fold(filter, |filter, test| filter.field(one(test)));
        match name {
            "BooleanFilter" => filter,
            _ => filter.field(list("in")).field(list("not_in")),
        }
    })
    .collect()
}

/// What the arguments ask for.
pub(super) fn select(named: &Named, cx: &ResolverContext<'_>) -> Result<Select, Error> {
    let argument = |name: &str| {
        let value = cx.args.get(name).map(|value| value.as_value());
        value.filter(|value| **value != Gql::Null)
    };
    let count = |name: &str, usual: usize| match argument(name) {
        None => Ok(usual),
        Some(Gql::Number(number)) => {
            let count = number
                .as_i64()
                .and_then(|number| usize::try_from(number).ok());
            count.ok_or_else(|| Error::new(format!("{name}: must not be negative")))
        }
        Some(_) => Err(Error::new(format!("{name}: must be a number"))),
    };
    let limit = count("limit", USUAL)?;
    if limit > MOST {
        return Err(Error::new(format!("limit: must not be above {MOST}")));
    }
    let order = match argument("order_by") {
        None => None,
        Some(Gql::String(name)) => Some(
            named
                .position(name)
                .ok_or_else(|| Error::new(format!("order_by: there is no field '{name}'")))?,
        ),
        Some(_) => return Err(Error::new("order_by: must be a string")),
    };
    let descending = match argument("direction") {
        Some(Gql::Enum(direction)) => direction == "DESC",
        Some(Gql::String(direction)) => direction == "DESC",
        _ => false,
    };
    let mut conditions = Vec::new();
    if let Some(Gql::Object(fields)) = argument("where") {
        for (name, tests) in entries(fields) {
            let field = named
                .position(name)
                .ok_or_else(|| Error::new(format!("where: there is no field '{name}'")))?;
            if let Gql::Object(tests) = tests {
                for (test, value) in entries(tests) {
                    conditions.extend(condition(&named.table.fields[field], field, test, value)?);
                }
            }
        }
    }
    Ok(Select {
        conditions,
        order: order.map(|field| (field, descending)),
        offset: count("offset", 0)?,
        limit,
    })
}

/// A test that is null asks nothing.
fn condition(
    column: &Column,
    field: usize,
    test: &str,
    value: &Gql,
) -> Result<Option<Condition>, Error> {
    if *value == Gql::Null {
        return Ok(None);
    }
    let fault = || {
        Error::new(format!(
            "where: {}: {test}: has a value that does not fit",
            column.name
        ))
    };
    let one = || typed(column.kind, value).ok_or_else(fault);
    let text = || match value {
        Gql::String(text) => Ok(text.clone()),
        _ => Err(fault()),
    };
    let list = || match value {
        Gql::List(values) if values.len() <= VALUES => values
            .iter()
            .map(|value| typed(column.kind, value).ok_or_else(fault))
            .collect::<Result<Vec<_>, _>>(),
        Gql::List(_) => Err(Error::new(format!(
            "where: {}: {test}: has more than {VALUES} values",
            column.name
        ))),
        one => Ok(vec![typed(column.kind, one).ok_or_else(fault)?]),
    };
    let test = match test {
        "eq" => Test::Eq(one()?),
        "not" => Test::Not(one()?),
        "gt" => Test::Gt(one()?),
        "gte" => Test::Gte(one()?),
        "lt" => Test::Lt(one()?),
        "lte" => Test::Lte(one()?),
        "in" => Test::In(list()?),
        "not_in" => Test::NotIn(list()?),
        "contains" => Test::Contains(text()?),
        "startsWith" => Test::StartsWith(text()?),
        "endsWith" => Test::EndsWith(text()?),
        _ => return Err(fault()),
    };
    Ok(Some(Condition { field, test }))
}

fn typed(kind: Kind, value: &Gql) -> Option<Value> {
    match (kind, value) {
        (Kind::Integer, Gql::Number(number)) => number.as_i64().map(Value::Integer),
        (Kind::Float, Gql::Number(number)) => number.as_f64().map(Value::Float),
        (Kind::Boolean, Gql::Boolean(truth)) => Some(Value::Boolean(*truth)),
        (Kind::Integer | Kind::Float | Kind::Boolean, _) => None,
        (_, Gql::String(text)) => Some(Value::Text(text.clone())),
        _ => None,
    }
}

/// An object's entries by name.
fn entries(object: &IndexMap<Name, Gql>) -> BTreeMap<&str, &Gql> {
    object
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .collect()
}
