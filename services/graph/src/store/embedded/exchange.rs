//! Whole files into a dataset and out of it.

use std::io::Read;

use futures::executor::block_on;
use oxigraph::model::{GraphName, NamedNode, Quad};

use crate::engine::formats::{self, Format};
use crate::engine::pattern::Pattern;
use crate::error::GraphError;
use crate::store::embedded::EmbeddedGraph;
use tg_collections::CollectionKey;

/// Quads of one change.
const BATCH: usize = 5_000;

/// How a file is taken in.
#[derive(Debug, Clone)]
pub struct Import {
    /// Its format.
    pub format: Format,
    /// Resolves relative IRIs.
    pub base: Option<String>,
    /// Where triples go that the file leaves in the default graph.
    pub graph: Option<NamedNode>,
    /// Names the load; see [`formats::load_of`].
    pub load: String,
}

impl EmbeddedGraph {
    /// Adds a file's quads and returns how many it named. What was read before a fault stays: correct
    /// the file and load it again under the same name.
    ///
    /// # Errors
    /// [`GraphError::Syntax`] where the file cannot be read; otherwise as for [`EmbeddedGraph::write`].
    pub async fn import<R: Read + Send + 'static>(
        &self,
        key: &CollectionKey,
        source: R,
        import: Import,
    ) -> Result<usize, GraphError> {
        let (engine, key) = (self.clone(), key.clone());
        let work = move || {
            let base = import.base.as_deref();
            let mut quads = formats::read(source, import.format, base, &import.load)?;
            let mut count = 0;
            loop {
                let batch: Result<Vec<Quad>, _> = quads.by_ref().take(BATCH).collect();
                let mut batch = batch?;
                if batch.is_empty() {
                    return Ok(count);
                }
                count += batch.len();
                place(&mut batch, import.graph.as_ref());
                block_on(engine.insert(&key, batch))?;
            }
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or(Err(GraphError::Closed))
    }

    /// One graph, or all of them, as a file.
    ///
    /// # Errors
    /// When the dataset cannot be loaded.
    pub async fn export(
        &self,
        key: &CollectionKey,
        format: Format,
        graph: Option<GraphName>,
    ) -> Result<Vec<u8>, GraphError> {
        let dataset = self.seen(key, None).await?;
        let pattern = Pattern {
            graph,
            ..Pattern::default()
        };
        let work = move || {
            let quads = dataset.map(|dataset| dataset.scan(&pattern));
            let quads = quads.into_iter().flatten();
            formats::write(quads, format, Vec::new())
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or(Err(GraphError::Closed))
    }
}

fn place(quads: &mut [Quad], graph: Option<&NamedNode>) {
    let Some(graph) = graph else { return };
    for quad in quads
        .iter_mut()
        .filter(|quad| quad.graph_name.is_default_graph())
    {
        quad.graph_name = graph.clone().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    const FILE: &str = "<urn:a> <urn:p> _:b . _:b <urn:p> 'x' .";

    fn import(load: &str, graph: Option<&str>) -> Import {
        Import {
            format: Format::Turtle,
            base: None,
            graph: graph.map(|iri| NamedNode::new(iri).unwrap()),
            load: load.to_owned(),
        }
    }

    #[tokio::test]
    async fn a_file_comes_in_once_and_goes_out() {
        let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
        let key = CollectionKey::new("w", "");
        let lines = async |graph| {
            let out = engine.export(&key, Format::NTriples, graph).await.unwrap();
            String::from_utf8(out).unwrap().lines().count()
        };
        assert_eq!(lines(None).await, 0);
        for load in ["one", "one", "two"] {
            let count = engine
                .import(&key, FILE.as_bytes(), import(load, None))
                .await;
            assert_eq!(count.unwrap(), 2);
        }
        assert_eq!(
            lines(None).await,
            4,
            "the same load adds nothing, another adds its own nodes"
        );
        let named = import("one", Some("urn:g"));
        engine.import(&key, FILE.as_bytes(), named).await.unwrap();
        assert_eq!(lines(Some(GraphName::DefaultGraph)).await, 4);
        assert_eq!(
            lines(Some(NamedNode::new("urn:g").unwrap().into())).await,
            2
        );
        let broken = engine
            .import(&key, "oops".as_bytes(), import("x", None))
            .await;
        assert!(matches!(broken, Err(GraphError::Syntax(_))));
    }
}
