//! One handler per question or record: thin, over a [`crate::QuadStore`].

mod neighbours;
mod sparql_query;
mod triples_query;
mod triples_write;

pub(crate) use neighbours::{Neighbours, Sources};
pub(crate) use sparql_query::Sparql;
pub(crate) use triples_query::Querier;
pub(crate) use triples_write::Writer;

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
