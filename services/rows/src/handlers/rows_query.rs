//! `rows-query`: GraphQL over the rows of a collection.

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
use crate::store::RowStore;

/// Longest query in bytes.
const LONGEST: usize = 256 << 10;

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
            extensions: BTreeMap::new(),
        })
        .await
    }
}

fn told(fault: QueryError) -> GraphQLError {
    GraphQLError {
        message: fault.message,
        path: fault.path,
        extensions: BTreeMap::new(),
    }
}
