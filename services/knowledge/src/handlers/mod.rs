//! One handler per processor: thin, over the traits of [`crate::store`].

mod kg_store;
mod knowledge;

pub(crate) use kg_store::Recorder;
pub(crate) use knowledge::Knowledge;
