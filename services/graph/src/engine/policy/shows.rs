//! What somebody sees.

use oxigraph::model::{GraphName, Quad};

use crate::error::GraphError;

/// What somebody sees of a dataset.
pub(crate) trait Shows: Send + Sync {
    /// Whether a quad is shown.
    fn shows(&self, quad: &Quad) -> Result<bool, GraphError>;

    /// Whether a graph is shown.
    fn shows_graph(&self, graph: &GraphName) -> Result<bool, GraphError>;
}
