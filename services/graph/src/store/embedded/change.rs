//! Changes on their way to the commit thread.

use oxigraph::model::{NamedNode, Quad};
use tg_collections::{CollectionKey, WriteKind};
use tokio::sync::oneshot;

use crate::error::GraphError;
use crate::store::embedded::batch::Batch;

/// Who hears what became of a change.
pub(crate) type Done<T> = oneshot::Sender<Result<T, GraphError>>;

/// Something for the commit thread.
pub(crate) enum Change {
    /// Quads come and go. `false`: too late.
    Write {
        key: CollectionKey,
        batch: Batch,
        kind: WriteKind,
        done: Done<bool>,
    },
    /// What came from chunks goes. `None`: the dataset is not in memory.
    Retract {
        key: CollectionKey,
        wanted: Wanted,
        kind: WriteKind,
        done: Done<Option<usize>>,
    },
    /// Datasets end. How many quads they named.
    End { end: End, done: Done<u64> },
}

/// What is taken back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Chunks and pages.
    pub(crate) parts: Vec<NamedNode>,
    /// What was made anew of chunks that stay.
    pub(crate) outdated: Vec<Outdated>,
    /// Quads, whatever they came from.
    pub(crate) quads: Vec<Quad>,
}

/// What a processor made of a chunk before.
#[derive(Debug, Clone)]
pub(crate) struct Outdated {
    pub(crate) chunk: NamedNode,
    /// The processor, as an agent.
    pub(crate) agent: NamedNode,
    /// Subgraphs that stay.
    pub(crate) kept: Vec<NamedNode>,
    /// Subgraphs that go; empty: those that do not stay.
    pub(crate) gone: Vec<NamedNode>,
}

/// What ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// A collection up to a generation, for good: late changes of its runs are dropped.
    Collection(CollectionKey),
    /// Everything of a workspace; one that is made again under the name begins anew.
    Workspace(String),
}

impl End {
    /// Whether a dataset is among what ends.
    pub(crate) fn holds(&self, key: &CollectionKey) -> bool {
        match self {
            Self::Collection(last) => key.ends_with(last),
            Self::Workspace(workspace) => key.workspace() == workspace,
        }
    }
}
