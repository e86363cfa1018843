//! What somebody sees.

use oxigraph::model::{GraphName, Quad};

use crate::error::GraphError;

/// What somebody sees of a dataset.
pub(crate) trait Shows: Send + Sync {
    /// Whether a quad is shown.
    fn shows(&self, quad: &Quad) -> Result<bool, GraphError>;

    /// Whether anybody still waits for what is read: asked also of what is left out without being judged.
    fn goes_on(&self) -> Result<(), GraphError>;

    /// Whether a graph is shown.
    fn shows_graph(&self, graph: &GraphName) -> Result<bool, GraphError>;
}
