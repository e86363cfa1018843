//! One handler per processor: thin, over a [`crate::store::RowStore`].

mod rows_query;
mod rows_write;
mod schemas;

pub(crate) use rows_query::Querier;
pub(crate) use rows_write::Writer;
