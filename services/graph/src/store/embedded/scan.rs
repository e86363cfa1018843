//! Results of a pattern, pulled chunk by chunk: nobody holds a thread while the reader is slow, and
//! nothing is collected that was not asked for.

use std::sync::Arc;

use tg_schemas::Triple;
use tokio::sync::Semaphore;

use crate::engine::convert;
use crate::error::GraphError;
use crate::store::embedded::batch;
use crate::store::embedded::dataset::Quads;
use crate::store::embedded::handle::EmbeddedGraph;

/// Bytes of text after which a chunk ends; its last triple may exceed them.
const CHUNK_BYTES: usize = 1 << 20;

/// A running scan.
pub struct Scan {
    quads: Option<Quads>,
    left: usize,
    /// About how long the texts were that it found.
    bytes: usize,
    threads: Arc<Semaphore>,
}

impl Scan {
    pub(crate) fn new(quads: Option<Quads>, limit: Option<usize>, threads: Arc<Semaphore>) -> Self {
        Self {
            quads,
            left: limit.unwrap_or(usize::MAX),
            bytes: 0,
            threads,
        }
    }

    /// About how many bytes of text it has found.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Up to `size` further triples, fewer where they are long; none only at the end.
    ///
    /// # Errors
    /// When the store failed or is closing.
    pub async fn next_chunk(&mut self, size: usize) -> Result<Vec<Triple>, GraphError> {
        let size = size.min(self.left);
        let Some(mut quads) = self.quads.take().filter(|_| size > 0) else {
            return Ok(Vec::new());
        };
        let (found, bytes, quads) = loop {
            let permit = EmbeddedGraph::permit(&self.threads).await?;
            let work = move || {
                let _permit = permit;
                let found = take(&mut quads, size);
                found.map(|found| (found, quads))
            };
            let done = tokio::task::spawn_blocking(work).await;
            let ((found, bytes), rest) = done.map_err(|_| GraphError::Closed)??;
            quads = rest;
            // Where much is hidden it goes on, with its place given back: whoever asked may be gone.
            if !found.is_empty() || !quads.goes_on() {
                break (found, bytes, quads);
            }
        };
        self.left -= found.len();
        self.bytes = self.bytes.saturating_add(bytes);
        // Asked once more at its end it says so again.
        self.quads = (!found.is_empty()).then_some(quads);
        Ok(found)
    }
}

fn take(quads: &mut Quads, size: usize) -> Result<(Vec<Triple>, usize), GraphError> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    quads.begin();
    while found.len() < size && bytes < CHUNK_BYTES {
        let Some(quad) = quads.next().transpose()? else {
            break;
        };
        bytes += batch::length(&quad);
        found.push(convert::from_quad(quad));
    }
    Ok((found, bytes))
}
