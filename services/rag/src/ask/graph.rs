//! The graph, asked for a whole frontier at once where the store is ours, by patterns where it is not.

use tg_mesh::Cx;
use tg_schemas::msg::{
    NeighbourhoodRequest, NeighbourhoodResponse, SourcesRequest, SourcesResponse, UserContext,
};
use tg_schemas::processors::graph_rag::{NEIGHBOURS, SOURCES, TRIPLES_QUERY};
use tg_schemas::{Error, Term, Topic};

use super::patterns::Patterns;
use crate::engine::traversal::Edge;

/// The graph of a flow.
pub enum Graph {
    /// A store of ours answers.
    Own {
        /// Context of the question.
        cx: Box<Cx>,
        /// Where frontiers are asked.
        neighbours: Topic,
        /// Where sources are asked.
        sources: Topic,
    },
    /// Somebody else's, or one behind a filter: patterns only.
    Patterns(Patterns),
    /// The flow has none.
    None,
}

impl Graph {
    /// The graph of the context's flow. A filter that stands before our store is never passed by.
    pub fn of(cx: &Cx, user_context: Option<UserContext>) -> Self {
        let patterns = cx.has(TRIPLES_QUERY);
        match (own(cx), patterns) {
            (Some((neighbours, sources)), _) => Self::Own {
                cx: Box::new(cx.clone()),
                neighbours,
                sources,
            },
            (None, true) => Self::Patterns(Patterns::new(cx, user_context)),
            (None, false) => Self::None,
        }
    }

    /// The edges around a frontier, and how many were looked at.
    pub async fn around(
        &self,
        request: &NeighbourhoodRequest,
        searches: &[String],
    ) -> Result<(Vec<Edge>, usize), Error> {
        match self {
            Self::Own { cx, neighbours, .. } => {
                let answer = cx.ask_topic::<_, NeighbourhoodResponse>(neighbours, request);
                Ok(edges(answer.last().await?))
            }
            Self::Patterns(patterns) => patterns.around(request, searches).await,
            Self::None => Ok((Vec::new(), 0)),
        }
    }

    /// Where edges and parts of documents come from.
    pub async fn sources(&self, request: &SourcesRequest) -> Result<SourcesResponse, Error> {
        match self {
            Self::Own { cx, sources, .. } => {
                let answer = cx.ask_topic::<_, SourcesResponse>(sources, request);
                answer.last().await
            }
            Self::Patterns(patterns) => patterns.sources(request).await,
            Self::None => Ok(SourcesResponse::default()),
        }
    }
}

/// Topics of our store, if it is what the flow has.
fn own(cx: &Cx) -> Option<(Topic, Topic)> {
    if !tg_clients::graph::is_ours(cx) {
        return None;
    }
    Some((cx.topic(NEIGHBOURS).ok()?, cx.topic(SOURCES).ok()?))
}

fn edges(found: NeighbourhoodResponse) -> (Vec<Edge>, usize) {
    let term = |place: i64| {
        let place = usize::try_from(place).ok()?;
        found.terms.get(place)
    };
    let edges = found.edges.iter().filter_map(|edge| {
        let parts = [term(edge.s)?, term(edge.p)?, term(edge.o)?];
        let [s, p, o] = parts.map(|part| part.term.clone());
        let names = parts.map(|part| match &part.term {
            Some(Term::Literal { value, .. }) => value.clone(),
            _ => part.label.clone(),
        });
        let g = edge.graph.clone();
        Some(Edge {
            triple: tg_schemas::Triple { s, p, o, g },
            names,
            node: usize::try_from(edge.node).ok()?,
        })
    });
    let edges = edges.collect();
    (edges, usize::try_from(found.examined).unwrap_or(0))
}
