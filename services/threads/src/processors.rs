//! The processor `threads`.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};
use tg_schemas::flow_record;
use tg_schemas::processors::threads::{PROCESSOR, THREADS};

use crate::engine::rows::CONFIG;
use crate::handlers::Threads;
use crate::options::Options;

/// Messages from outside in progress at once per workspace: they mostly wait for listeners.
const CONCURRENCY: usize = 1024;

/// The processors of this service, to be hosted.
pub fn processors(_: &Mesh, options: Options) -> Vec<Processor> {
    let threads = Processor::new(PROCESSOR)
        .watches(&[CONFIG, flow_record::KIND])
        .serves(THREADS, Arc::new(Threads::new(options)))
        .concurrency(CONCURRENCY)
        .exclusive();
    vec![threads]
}
