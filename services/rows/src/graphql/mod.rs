//! GraphQL over the configured tables: names, schema, arguments, execution. Knows no bus.

mod arguments;
mod build;
mod named;
mod names;
mod nesting;
mod target;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_graphql::{PathSegment, Request, Variables};
use serde_json::{Map, Value};

use tg_collections::CollectionKey;

use crate::store::RowStore;

pub use build::{Built, build};
use target::Target;

/// A query as it comes in.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The document.
    pub text: String,
    /// Variables, with their JSON types.
    pub variables: Map<String, Value>,
    /// Which operation of the document.
    pub operation: Option<String>,
}

/// One error of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError {
    /// The text, fit for clients.
    pub message: String,
    /// Where in the answer.
    pub path: Vec<String>,
}

/// What a query comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The data; null when nothing could be run.
    pub data: Value,
    /// What went wrong.
    pub errors: Vec<QueryError>,
}

impl Built {
    /// Runs a query over the rows of a collection.
    pub async fn run(&self, store: Arc<dyn RowStore>, key: CollectionKey, query: Query) -> Outcome {
        if nesting::is_too_deep(&query.text) {
            let message = format!("query: is nested more than {} deep", nesting::DEPTH);
            return Outcome {
                data: Value::Null,
                errors: vec![QueryError {
                    message,
                    path: Vec::new(),
                }],
            };
        }
        let mut request = Request::new(query.text)
            .variables(Variables::from_json(Value::Object(query.variables)))
            .data(Target {
                key,
                store,
                searches: AtomicUsize::new(0),
            });
        if let Some(operation) = query.operation {
            request = request.operation_name(operation);
        }
        let response = self.schema.execute(request).await;
        let mut errors: Vec<_> = response.errors.iter().map(fault).collect();
        if !errors.is_empty() {
            // A table that was left out looks like a misspelt name; its own fault says more.
            let left_out = self.left_out.iter().map(|(key, why)| QueryError {
                message: format!("schema '{key}' is left out: {why}"),
                path: Vec::new(),
            });
            errors.extend(left_out);
        }
        Outcome {
            data: response.data.into_json().unwrap_or(Value::Null),
            errors,
        }
    }
}

fn fault(error: &async_graphql::ServerError) -> QueryError {
    let segment = |segment: &PathSegment| match segment {
        PathSegment::Field(name) => name.clone(),
        PathSegment::Index(at) => at.to_string(),
    };
    QueryError {
        message: error.message.clone(),
        path: error.path.iter().map(segment).collect(),
    }
}

#[cfg(test)]
mod tests;
