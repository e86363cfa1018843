//! `rows-query`: GraphQL over the rows of a collection, and all of them, page by page.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::msg::{GraphQLError, RowsQueryRequest, RowsQueryResponse};
use tg_schemas::{Error, ErrorCode};

use super::schemas::Schemas;
use crate::graphql::{Query, QueryError};
use crate::store::{RowCursor, RowStore};

/// Longest query in bytes.
const LONGEST: usize = 256 << 10;

/// Rows of a page of an export.
const PAGE: usize = 1_000;

/// Longest run of a query. What it still reads is ended then.
const LONGEST_RUN: Duration = Duration::from_secs(30);

/// See the module.
pub(crate) struct Querier<S> {
    store: Arc<LeasedStore<S>>,
    schemas: Schemas,
}

impl<S> Querier<S> {
    pub(crate) fn new(store: Arc<LeasedStore<S>>) -> Self {
        Self {
            store,
            schemas: Schemas::default(),
        }
    }
}

#[async_trait]
impl<S: RowStore> RequestHandler<RowsQueryRequest, RowsQueryResponse> for Querier<S> {
    async fn serve(
        &self,
        cx: Cx,
        ask: RowsQueryRequest,
        mut out: Responder<RowsQueryResponse>,
    ) -> Result<(), Error> {
        if ask.export {
            return out.send(self.page(&cx, &ask).await?).await;
        }
        if ask.query.trim().is_empty() {
            return Err(Error::new(ErrorCode::BadRequest, "query: is required"));
        }
        if ask.query.len() > LONGEST {
            return Err(Error::new(
                ErrorCode::TooLarge,
                "query: is larger than 256 KiB",
            ));
        }
        let schema = self.schemas.of(&cx).await?;
        let store = self.store.get().await?;
        let query = Query {
            text: ask.query,
            variables: ask.variables,
            operation: ask.operation_name.filter(|name| !name.is_empty()),
        };
        let outcome = tokio::select! {
            outcome = schema.run(store, CollectionKey::of(&cx, &ask.collection), query) => outcome,
            () = cx.cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(cx.deadline.left().min(LONGEST_RUN)) => {
                return Err(Error::new(ErrorCode::Timeout, "the time limit of a query was reached"));
            }
        };
        out.send(RowsQueryResponse {
            error: None,
            data: outcome.data.to_string(),
            errors: outcome.errors.into_iter().map(told).collect(),
            ..RowsQueryResponse::default()
        })
        .await
    }
}

impl<S: RowStore> Querier<S> {
    async fn page(&self, cx: &Cx, ask: &RowsQueryRequest) -> Result<RowsQueryResponse, Error> {
        let after = place(&ask.after).ok_or_else(|| {
            Error::new(
                ErrorCode::BadRequest,
                "after: is not the 'next' of an earlier page",
            )
        })?;
        let store = self.store.get().await?;
        let key = CollectionKey::of(cx, &ask.collection);
        let page = store.page(&key, after, PAGE).await?;
        Ok(RowsQueryResponse {
            schema_name: page.table,
            rows: page.rows,
            next: page
                .next
                .map_or_else(String::new, |next| format!("{}:{}", next.row, next.table)),
            ..RowsQueryResponse::default()
        })
    }
}

/// A place as pages name it: the row's number and the table.
fn place(text: &str) -> Option<RowCursor> {
    if text.is_empty() {
        return Some(RowCursor::default());
    }
    let (row, table) = text.split_once(':')?;
    Some(RowCursor {
        table: table.to_owned(),
        row: row.parse().ok()?,
    })
}

fn told(fault: QueryError) -> GraphQLError {
    GraphQLError {
        message: fault.message,
        path: fault.path,
        extensions: BTreeMap::new(),
    }
}
