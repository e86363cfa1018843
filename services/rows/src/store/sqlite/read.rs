//! Reading rows.

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tg_schemas::table::{Kind, Table};
use tg_storage::StorageError;

use super::{SqliteRows, shape, sql};
use crate::engine::select::Select;
use crate::engine::value::Value;
use tg_collections::CollectionKey;

impl SqliteRows {
    /// The rows that a question asks for, a value per field. A table without rows has none.
    pub(super) async fn select_rows(
        &self,
        key: &CollectionKey,
        table: &Table,
        select: Select,
    ) -> Result<Vec<Vec<Value>>, StorageError> {
        if let Some(rows) = self.try_select(key, table, &select).await? {
            return Ok(rows);
        }
        // The configuration gave the table another shape since it was stored.
        let (reshaped, wanted) = (key.clone(), table.clone());
        let reshape = self.database.write(move |tx| {
            shape::ensure(tx, &reshaped, &wanted)?;
            Ok(())
        });
        reshape.await?;
        Ok(self
            .try_select(key, table, &select)
            .await?
            .unwrap_or_default())
    }

    /// `None` when the stored table has another shape.
    async fn try_select(
        &self,
        key: &CollectionKey,
        table: &Table,
        select: &Select,
    ) -> Result<Option<Vec<Vec<Value>>>, StorageError> {
        let (key, table, select) = (key.clone(), table.clone(), select.clone());
        let workspace = key.workspace().to_owned();
        let read = move |conn: &Connection| {
            let Some(set) = shape::find(conn, &key, &table.key)? else {
                return Ok(Some(Vec::new()));
            };
            if !shape::fits(&set, &table) {
                return Ok(None);
            }
            let (sql, bound) = sql::select(set.id, table.fields.len(), &select);
            let mut statement = conn.prepare_cached(&sql)?;
            let rows = statement.query_map(rusqlite::params_from_iter(bound), |row| {
                let fields = table.fields.iter().enumerate();
                fields
                    .map(|(at, field)| Ok(value(field.kind, row.get_ref(at)?)))
                    .collect()
            })?;
            Ok(Some(rows.collect::<Result<_, _>>()?))
        };
        self.database.read_for(&workspace, read).await
    }
}

fn value(kind: Kind, stored: ValueRef<'_>) -> Value {
    match stored {
        ValueRef::Null | ValueRef::Blob(_) => Value::Null,
        ValueRef::Integer(number) if kind == Kind::Boolean => Value::Boolean(number != 0),
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Float(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
    }
}
