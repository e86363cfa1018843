//! Values that are kept as JSON.

use tg_storage::StorageError;
use tg_storage::rusqlite::types::Type;
use tg_storage::rusqlite::{self, Row};

/// A value as JSON text.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Failed(error.to_string()))
}

/// A column's JSON text as a value. What cannot be read is damage, and never taken for nothing: what is kept next would
/// make the loss lasting.
pub(super) fn from_json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_slice(text.as_bytes()).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    })
}
