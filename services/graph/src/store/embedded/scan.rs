//! Results of a pattern, pulled chunk by chunk: nobody holds a thread while the reader is slow, and
//! nothing is collected that was not asked for.

use std::sync::Arc;

use oxigraph::store::QuadIter;
use tg_schemas::Triple;
use tokio::sync::Semaphore;

use crate::engine::convert;
use crate::error::GraphError;
use crate::store::embedded::handle::EmbeddedGraph;

/// A running scan.
pub struct Scan {
    quads: Option<QuadIter<'static>>,
    left: usize,
    threads: Arc<Semaphore>,
}

impl Scan {
    pub(crate) fn new(
        quads: Option<QuadIter<'static>>,
        limit: Option<usize>,
        threads: Arc<Semaphore>,
    ) -> Self {
        Self {
            quads,
            left: limit.unwrap_or(usize::MAX),
            threads,
        }
    }

    /// Up to `size` further triples; fewer only at the end.
    ///
    /// # Errors
    /// When the store failed or is closing.
    pub async fn next_chunk(&mut self, size: usize) -> Result<Vec<Triple>, GraphError> {
        let size = size.min(self.left);
        let Some(mut quads) = self.quads.take().filter(|_| size > 0) else {
            return Ok(Vec::new());
        };
        let permit = EmbeddedGraph::permit(&self.threads).await?;
        let work = move || {
            let _permit = permit;
            let found = take(&mut quads, size);
            found.map(|found| (found, quads))
        };
        let done = tokio::task::spawn_blocking(work).await;
        let (found, quads) = done.map_err(|_| GraphError::Closed)??;
        self.left -= found.len();
        if found.len() == size {
            self.quads = Some(quads);
        }
        Ok(found)
    }
}

fn take(quads: &mut QuadIter<'static>, size: usize) -> Result<Vec<Triple>, GraphError> {
    let found: Result<Vec<_>, _> = quads
        .take(size)
        .map(|quad| quad.map(convert::from_quad))
        .collect();
    Ok(found?)
}
