//! `kg-extract-rows`: one prompt for each table that the workspace declares, rows from its reply.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_mesh::{Cx, Read, ReadFault};
use tg_schemas::msg::{Chunk, ExtractedObject, Metadata};
use tg_schemas::{Error, ErrorCode};

use super::chunk::{Piece, piece};
use super::desk::{Desk, Question};
use super::ready::Ready;
use crate::rows::{Rows, Schema, read};

/// Config type of tables.
pub(super) const SCHEMAS: &str = "schema";
const EXTRACTOR: &str = "kg-extract-rows";
/// Characters of the chunk that go with its rows.
const SPAN: usize = 100;
/// What is claimed of rows that a model found.
const CONFIDENCE: f64 = 0.8;

/// Tables of a workspace, and why some cannot be used.
struct Tables {
    schemas: Vec<Schema>,
    faults: Vec<String>,
}

pub(super) struct RowsOf {
    desk: Arc<Desk>,
    ready: Ready<Tables>,
}

impl RowsOf {
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        Self {
            desk,
            ready: Ready::default(),
        }
    }

    fn tables(&self, cx: &Cx) -> Arc<Tables> {
        let rows = cx.config().values(cx.workspace(), SCHEMAS);
        if let Some(tables) = self.ready.get(cx.workspace(), &rows) {
            return tables;
        }
        let mut tables = Tables {
            schemas: Vec::new(),
            faults: Vec::new(),
        };
        for (key, value) in rows.iter() {
            match Schema::read(key, value) {
                Ok(schema) => tables.schemas.push(schema),
                Err(fault) => tables.faults.push(fault.to_string()),
            }
        }
        self.ready.put(cx.workspace(), rows, tables)
    }

    async fn ask(&self, cx: &Cx, piece: &Piece, schema: &Schema) -> Result<Rows, ReadFault> {
        let question = Question {
            extractor: EXTRACTOR,
            prompts: &["extract-rows"],
            renderer: "prompt",
            text: &piece.text,
            terms: Map::from_iter([("schema".to_owned(), schema.term())]),
        };
        // An object of unknown fields is still a reply; whether it is a row is looked at later.
        let reply = self.desk.prompt(cx, question, Value::is_object).await?;
        Ok(read(schema, &reply.items))
    }
}

#[async_trait]
impl Read<Chunk> for RowsOf {
    async fn read(&self, cx: Cx, chunk: Chunk) -> Result<(), ReadFault> {
        let Some(piece) = piece(&cx, chunk)? else {
            return Ok(());
        };
        let tables = self.tables(&cx);
        let mut faults = tables.faults.clone();
        let mut all = Vec::with_capacity(tables.schemas.len());
        // Every reply is there before anything is written, so that a retry writes the same again.
        for schema in &tables.schemas {
            match self.ask(&cx, &piece, schema).await {
                Ok(rows) => all.push((schema, rows)),
                Err(ReadFault::Dead(error)) => faults.push(error.message),
                Err(retry) => return Err(retry),
            }
        }
        for (schema, rows) in all {
            if rows.bad > 0 {
                cx.effect("bad-lines", rows.bad as i64);
                cx.remark(&rows.faults.join("; "));
            }
            if !rows.rows.is_empty() {
                cx.record("output", &record(&piece, schema, rows)).await?;
            }
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(ReadFault::Dead(Error::new(
                ErrorCode::BadRequest,
                faults.join("; "),
            ))),
        }
    }
}

fn record(piece: &Piece, schema: &Schema, rows: Rows) -> ExtractedObject {
    ExtractedObject {
        metadata: Some(Metadata {
            id: format!("{}:{}", piece.source.chunk, schema.key),
            ..piece.source.metadata.clone()
        }),
        schema_name: schema.key.clone(),
        values: rows.rows,
        confidence: CONFIDENCE,
        source_span: piece.text.chars().take(SPAN).collect(),
    }
}
