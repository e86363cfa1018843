//! `kg-extract-rows`: one prompt for each table that the workspace declares, rows from its reply.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_mesh::{ConsumeError, Cx, Derived, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::determinants::ROWS;
use tg_schemas::msg::{Chunk, ExtractedObject, Metadata};
use tg_schemas::processors::kg_extract_rows;
use tg_schemas::table::{TABLE, Table};

use crate::chunk::{Piece, piece};
use crate::engine::rows::{Rows, read, term};
use crate::error::ExtractError;
use crate::replies::{Question, ReplyCache};

/// Characters of the chunk that go with its rows.
const SPAN: usize = 100;
/// What is claimed of rows that a model found.
const CONFIDENCE: f64 = 0.8;

/// Tables of a workspace, and why some cannot be used.
struct Tables {
    tables: Vec<Table>,
    faults: Vec<String>,
}

/// Reads `input` of `kg-extract-rows`.
pub(crate) struct RowsOf {
    cache: Arc<ReplyCache>,
    ready: Derived<Tables>,
}

impl RowsOf {
    pub(crate) fn new(cache: Arc<ReplyCache>) -> Self {
        Self {
            cache,
            ready: Derived::default(),
        }
    }

    fn tables(&self, cx: &Cx) -> Arc<Tables> {
        let rows = [cx.config().values(cx.workspace(), TABLE)];
        if let Some(tables) = self.ready.get(cx.workspace(), &rows) {
            return tables;
        }
        let mut tables = Tables {
            tables: Vec::new(),
            faults: Vec::new(),
        };
        for (key, value) in rows[0].iter() {
            match Table::read(key, value) {
                Ok(table) => tables.tables.push(table),
                Err(fault) => tables.faults.push(format!("schema '{key}': {fault}")),
            }
        }
        self.ready.put(cx.workspace(), rows.into(), tables)
    }

    async fn ask(&self, cx: &Cx, piece: &Piece, table: &Table) -> Result<Rows, ExtractError> {
        let question = Question {
            by: ROWS,
            text: &piece.read,
            terms: Map::from_iter([("schema".to_owned(), term(table))]),
        };
        // An object of unknown fields is still a reply; whether it is a row is looked at later.
        let reply = self.cache.prompt(cx, question, Value::is_object).await?;
        Ok(read(table, &reply.items))
    }

    async fn extract(&self, cx: &Cx, chunk: Chunk) -> Result<(), ExtractError> {
        let Some(piece) = piece(cx, &ROWS, chunk)? else {
            return Ok(());
        };
        let tables = self.tables(cx);
        let mut faults = tables.faults.clone();
        let mut all = Vec::with_capacity(tables.tables.len());
        // Every reply is there before anything is written, so that a retry writes the same again.
        for table in &tables.tables {
            match self.ask(cx, &piece, table).await {
                Ok(rows) => all.push((table, rows)),
                Err(error) if error.is_dead() => faults.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        for (table, rows) in all {
            if rows.bad > 0 {
                cx.effect("bad-lines", rows.bad as i64);
                cx.remark(&rows.faults.join("; "));
            }
            if !rows.rows.is_empty() {
                cx.effect("rows", rows.rows.len() as i64);
                cx.record(kg_extract_rows::OUTPUT, &record(&piece, table, rows))
                    .await?;
            }
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(ExtractError::Declared(faults)),
        }
    }
}

#[async_trait]
impl RecordConsumer<Chunk> for RowsOf {
    async fn consume(&self, cx: Cx, chunk: Chunk) -> Result<(), ConsumeError> {
        Ok(self.extract(&cx, chunk).await?)
    }
}

fn record(piece: &Piece, table: &Table, rows: Rows) -> ExtractedObject {
    ExtractedObject {
        metadata: Some(Metadata {
            id: format!("{}:{}", piece.source.chunk, table.key),
            ..piece.source.metadata.clone()
        }),
        schema_name: table.key.clone(),
        values: rows.rows,
        confidence: CONFIDENCE,
        made_by: piece.source.made_by(ROWS.processor),
        source_span: piece.text.chars().take(SPAN).collect(),
    }
}
