//! Which graphs count, and matching within them.

use std::collections::HashSet;

use oxigraph::model::{GraphName, NamedNode, Quad};
use tg_schemas::msg::NeighbourhoodRequest;

use crate::engine::pattern::Pattern;
use crate::error::GraphError;
use crate::store::embedded::dataset::Dataset;

/// The graphs that are looked in.
pub(super) enum Graphs {
    /// These.
    Only(Vec<GraphName>),
    /// All but these.
    AllBut(HashSet<GraphName>),
}

impl Graphs {
    /// As asked for. A name that is no IRI names no graph.
    pub(super) fn of(ask: &NeighbourhoodRequest) -> Self {
        if ask.graphs.iter().any(|graph| graph == "*") {
            return Self::AllBut(HashSet::new());
        }
        if ask.graphs.is_empty() {
            return Self::AllBut(ask.exclude_graphs.iter().filter_map(|g| name(g)).collect());
        }
        Self::Only(ask.graphs.iter().filter_map(|g| name(g)).collect())
    }

    /// Whether a graph counts.
    pub(super) fn holds(&self, graph: &GraphName) -> bool {
        match self {
            Self::AllBut(excluded) => !excluded.contains(graph),
            Self::Only(graphs) => graphs.contains(graph),
        }
    }

    /// Hands each match to `take` until it says no.
    pub(super) fn each(
        &self,
        data: &Dataset,
        mut pattern: Pattern,
        mut take: impl FnMut(Quad) -> bool,
    ) -> Result<(), GraphError> {
        match self {
            Self::AllBut(excluded) => {
                for quad in data.scan(&pattern) {
                    let quad = quad?;
                    if !excluded.contains(&quad.graph_name) && !take(quad) {
                        return Ok(());
                    }
                }
            }
            Self::Only(graphs) => {
                for graph in graphs {
                    pattern.graph = Some(graph.clone());
                    for quad in data.scan(&pattern) {
                        if !take(quad?) {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn name(graph: &str) -> Option<GraphName> {
    if graph.is_empty() {
        return Some(GraphName::DefaultGraph);
    }
    NamedNode::new(graph).ok().map(GraphName::NamedNode)
}
