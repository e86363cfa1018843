//! SQL texts for a table of rows. Columns are named by position (`c0`, `c1`, …), so no name of a user's ever
//! becomes part of a statement.

use rusqlite::types::Value as Sql;
use tg_schemas::table::{Kind, Table};

use crate::engine::select::{Condition, Select, Test};
use crate::engine::value::{Row, Value};

/// Declared type of a kind's column.
pub(super) fn affinity(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer | Kind::Boolean => "INTEGER",
        Kind::Float => "REAL",
        _ => "TEXT",
    }
}

/// Makes the table of a set and its indexes.
pub(super) fn create(id: i64, table: &Table) -> String {
    let columns: String = table
        .fields
        .iter()
        .enumerate()
        .map(|(at, field)| format!(", c{at} {}", affinity(field.kind)))
        .collect();
    let mut sql = format!(
        "CREATE TABLE r{id} (n INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, texts TEXT NOT NULL{columns});"
    );
    for (at, field) in table.fields.iter().enumerate() {
        if field.indexed {
            sql.push_str(&format!("CREATE INDEX r{id}_c{at} ON r{id} (c{at});"));
        }
    }
    sql
}

/// Inserts a row or replaces the one with its key. Parameters as [`bound`].
pub(super) fn upsert(id: i64, table: &Table) -> String {
    let names: String = (0..table.fields.len())
        .map(|at| format!(", c{at}"))
        .collect();
    let values: String = (0..table.fields.len())
        .map(|at| format!(", ?{}", at + 3))
        .collect();
    let sets: String = (0..table.fields.len())
        .map(|at| format!(", c{at} = excluded.c{at}"))
        .collect();
    format!(
        "INSERT INTO r{id} (key, texts{names}) VALUES (?1, ?2{values}) \
         ON CONFLICT (key) DO UPDATE SET texts = excluded.texts{sets}"
    )
}

/// The fields of a row as the text that is kept of them.
pub(super) fn texts(row: &Row) -> String {
    serde_json::to_string(&row.texts).unwrap_or_default()
}

/// Parameters of [`upsert`], from a row and its [`texts`].
pub(super) fn bound(row: &Row, texts: String) -> Vec<Sql> {
    [Sql::Blob(row.key.to_vec()), Sql::Text(texts)]
        .into_iter()
        .chain(row.values.iter().map(sql))
        .collect()
}

/// A query over a set, with its parameters.
pub(super) fn select(id: i64, fields: usize, select: &Select) -> (String, Vec<Sql>) {
    let columns: Vec<_> = (0..fields).map(|at| format!("c{at}")).collect();
    let mut sql = format!("SELECT {} FROM r{id}", columns.join(", "));
    let mut bound = Vec::new();
    let conditions: Vec<_> = select
        .conditions
        .iter()
        .map(|one| condition(one, &mut bound))
        .collect();
    if !conditions.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(&conditions.join(" AND "));
    }
    match select.order {
        // Rows without a value come last in both directions; equal ones in the order they came in.
        Some((field, descending)) => {
            let way = if descending { "DESC" } else { "ASC" };
            sql.push_str(&format!(" ORDER BY c{field} IS NULL, c{field} {way}, n"));
        }
        None => sql.push_str(" ORDER BY n"),
    }
    sql.push_str(" LIMIT ? OFFSET ?");
    for count in [select.limit, select.offset] {
        bound.push(Sql::Integer(i64::try_from(count).unwrap_or(i64::MAX)));
    }
    (sql, bound)
}

fn condition(condition: &Condition, bound: &mut Vec<Sql>) -> String {
    let column = format!("c{}", condition.field);
    let mut compare = |way: &str, value: &Value| {
        bound.push(sql(value));
        format!("{column} {way} ?")
    };
    match &condition.test {
        Test::Eq(value) => compare("=", value),
        Test::Not(value) => compare("<>", value),
        Test::Gt(value) => compare(">", value),
        Test::Gte(value) => compare(">=", value),
        Test::Lt(value) => compare("<", value),
        Test::Lte(value) => compare("<=", value),
        Test::In(values) => {
            bound.extend(values.iter().map(sql));
            format!("{column} IN ({})", marks(values.len()))
        }
        Test::NotIn(values) => {
            bound.extend(values.iter().map(sql));
            format!(
                "({column} IS NOT NULL AND {column} NOT IN ({}))",
                marks(values.len())
            )
        }
        Test::Contains(text) => {
            bound.push(Sql::Text(text.clone()));
            format!("instr({column}, ?) > 0")
        }
        Test::StartsWith(text) => {
            bound.extend([Sql::Text(text.clone()), Sql::Text(text.clone())]);
            format!("substr({column}, 1, length(?)) = ?")
        }
        // The last n characters; `substr` from 0 would be the whole text.
        Test::EndsWith(text) if text.is_empty() => format!("{column} IS NOT NULL"),
        Test::EndsWith(text) => {
            bound.extend([Sql::Text(text.clone()), Sql::Text(text.clone())]);
            format!("substr({column}, -length(?)) = ?")
        }
    }
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn sql(value: &Value) -> Sql {
    match value {
        Value::Null => Sql::Null,
        Value::Text(text) => Sql::Text(text.clone()),
        Value::Integer(number) => Sql::Integer(*number),
        Value::Float(number) => Sql::Real(*number),
        Value::Boolean(truth) => Sql::Integer(i64::from(*truth)),
    }
}
