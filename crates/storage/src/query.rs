//! Reading all rows of a statement.

use rusqlite::{Connection, Params, Row};

use crate::StorageError;

/// The rows of a statement, each as `read` says; the statement is prepared once for a connection.
///
/// # Errors
/// What failed, of the statement or of a row.
pub fn query_rows<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StorageError> {
    let mut query = conn.prepare_cached(sql)?;
    let rows = query.query_map(params, read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}
