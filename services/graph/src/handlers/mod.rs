//! One handler per question or record: thin, over a [`crate::QuadStore`].

mod neighbours;
mod sparql_query;
mod triples_query;
mod triples_write;

pub(crate) use neighbours::{Neighbours, Sources};
pub(crate) use sparql_query::Sparql;
pub(crate) use triples_query::Querier;
pub(crate) use triples_write::Writer;

use std::sync::Arc;

use tg_mesh::Cx;
use tg_schemas::msg::UserContext;

/// What is known of the user: what the question came with from the gateway, else what is in it. What cannot be read is not
/// known.
fn user(cx: &Cx, said: Option<UserContext>) -> Option<Arc<UserContext>> {
    match &cx.headers.user_context {
        Some(text) => serde_json::from_slice(text.as_bytes()).ok().map(Arc::new),
        None => said.map(Arc::new),
    }
}

/// A limit as asked for: nothing and less mean none.
fn limit(asked: i64) -> Option<usize> {
    usize::try_from(asked).ok().filter(|limit| *limit > 0)
}

/// Items of a streamed part: what is asked for, within reason.
fn batch(asked: i64) -> usize {
    usize::try_from(asked).map_or(20, |size| match size {
        0 => 20,
        size => size.min(5_000),
    })
}
