//! `rows-write`: records of objects become rows.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::Target;
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::msg::ExtractedObject;
use tg_schemas::table::{TABLE, Table};
use tg_schemas::{BAD_CONTENT, Error, faults};

use crate::engine::value;
use crate::error::RowsError;
use crate::store::RowStore;

/// See the module.
pub(crate) struct Writer<S>(pub(crate) Arc<LeasedStore<S>>);

#[async_trait]
impl<S: RowStore> RecordConsumer<ExtractedObject> for Writer<S> {
    async fn consume(&self, cx: Cx, record: ExtractedObject) -> Result<(), ConsumeError> {
        let Some(Target { key, .. }) = Target::of(&cx, record.metadata.as_ref()) else {
            return Ok(());
        };
        let table = table(&cx, &record.schema_name).map_err(Error::from)?;
        let chunk = chunk(&record);
        cx.subject(&chunk);
        let (mut rows, mut faults) = (Vec::with_capacity(record.values.len()), Vec::new());
        for (at, texts) in record.values.iter().enumerate() {
            match value::row(&table, texts) {
                Ok(row) => rows.push(row),
                Err(fault) => faults.push(format!("values[{at}].{fault}")),
            }
        }
        let store = self.0.get().await?;
        if !rows.is_empty() {
            let source = source(chunk, &record.made_by);
            let stored = store.write(&key, table, rows, source).await;
            let stored = stored.map_err(Error::from)?;
            cx.effect("rows", i64::try_from(stored).unwrap_or(i64::MAX));
            metrics::counter!("tg_rows_written_total").increment(stored as u64);
        }
        // What fits is stored all the same.
        let count = faults.len() as u64;
        let Some(text) = faults::joined(faults) else {
            return Ok(());
        };
        metrics::counter!("tg_rows_refused_total").increment(count);
        Err(ConsumeError::Dead(Error::typed(BAD_CONTENT, text)))
    }
}

fn table(cx: &Cx, name: &str) -> Result<Table, RowsError> {
    let text = cx.config().get(cx.workspace(), TABLE, name);
    let text = text.ok_or_else(|| RowsError::NoTable(name.to_owned()))?;
    Table::read(name, &text).map_err(|why| RowsError::BadTable(name.to_owned(), why))
}

/// The chunk that the rows come from: extraction names its records `<chunk>:<schema>`. Rows that people load
/// come from none.
fn chunk(record: &ExtractedObject) -> String {
    let id = record
        .metadata
        .as_ref()
        .map_or("", |metadata| metadata.id.as_str());
    let bare = id
        .strip_suffix(&record.schema_name)
        .and_then(|bare| bare.strip_suffix(':'));
    let bare = bare.unwrap_or(id);
    if bare.starts_with("urn:chunk:") {
        bare.to_owned()
    } else {
        String::new()
    }
}

/// The chunk with who found the rows in it.
fn source(chunk: String, made_by: &str) -> String {
    match made_by {
        "" => chunk,
        _ if chunk.is_empty() => chunk,
        made_by => format!("{chunk}\n{made_by}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::msg::Metadata;

    #[test]
    fn the_chunk_is_found_in_the_records_id() {
        let of = |id: &str| {
            let metadata = Metadata {
                id: id.into(),
                ..Metadata::default()
            };
            chunk(&ExtractedObject {
                metadata: Some(metadata),
                schema_name: "cities".into(),
                ..ExtractedObject::default()
            })
        };
        assert_eq!(of("urn:chunk:1:cities"), "urn:chunk:1");
        assert_eq!(of("urn:chunk:1"), "urn:chunk:1");
        assert_eq!(of("my-load"), "");
    }
}
