//! The graphs that the asker of a query chose, in place of those that the query names.

use oxigraph::model::NamedNode;
use oxigraph::sparql::PreparedSparqlQuery;

use crate::engine::convert;
use crate::error::GraphError;
use crate::store::Graphs;

/// Most graphs of either kind: each pattern is looked up in each of them.
const MOST: usize = 100;

/// Chosen graphs, with valid names.
pub(super) struct Chosen {
    default: Vec<NamedNode>,
    named: Vec<NamedNode>,
}

impl Chosen {
    /// Reads names; none of either kind choose nothing.
    pub(super) fn read(graphs: &Graphs) -> Result<Option<Self>, GraphError> {
        if *graphs == Graphs::default() {
            return Ok(None);
        }
        Ok(Some(Self {
            default: names("default-graph-uri", &graphs.default)?,
            named: names("named-graph-uri", &graphs.named)?,
        }))
    }

    /// Lets the query see these and no others.
    pub(super) fn put(&self, query: &mut PreparedSparqlQuery) {
        let dataset = query.dataset_mut();
        dataset.set_default_graph(self.default.iter().cloned().map(Into::into).collect());
        dataset.set_available_named_graphs(self.named.iter().cloned().map(Into::into).collect());
    }
}

fn names(field: &str, graphs: &[String]) -> Result<Vec<NamedNode>, GraphError> {
    if graphs.len() > MOST {
        return Err(GraphError::Term {
            field: field.to_owned(),
            why: format!("names more than {MOST} graphs"),
        });
    }
    let names = graphs.iter().map(|graph| convert::iri(field, graph));
    names.collect()
}
