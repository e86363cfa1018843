//! Where facts come from: the subgraph that holds the fact, the chunk it was read from, up to the document.

use std::collections::{BTreeSet, HashMap};

use oxigraph::model::vocab::{rdf, rdfs};
use oxigraph::model::{GraphName, NamedNode, Quad, Term as RdfTerm};
use tg_schemas::Triple;
use tg_schemas::msg::{
    LabelledTerm, SourceDocument, SourcesRequest, SourcesResponse, TracedSource,
};
use tg_schemas::vocabulary::{POLICY_GRAPH, RETRIEVAL_GRAPH, SOURCE_GRAPH, dc, dcterms, prov, tg};
use tokio_util::sync::CancellationToken;

use super::labels::Labels;
use super::look::Graphs;
use crate::engine::convert;
use crate::engine::pattern::Pattern;
use crate::error::GraphError;
use crate::store::embedded::dataset::Dataset;

const TRACE_GRAPHS: [&str; 2] = [RETRIEVAL_GRAPH, POLICY_GRAPH];
const TITLES: [&str; 2] = [dc::TITLE, dcterms::TITLE];

/// Edges and nodes asked about at most.
const ASKED: usize = 2_000;
/// Subgraphs of one fact, and parents of one node, that are followed.
const SUBGRAPHS: usize = 8;
const PARENTS: usize = 5;
/// Subgraph, chunk, section, page, document, and room for more.
const LEVELS: usize = 8;
/// Nodes that one fact is followed through.
const CHAIN: usize = 64;
/// Properties of one document that are read.
const PROPERTIES: usize = 200;

pub(super) fn sources(
    data: &Dataset,
    ask: &SourcesRequest,
    cancel: &CancellationToken,
) -> Result<SourcesResponse, GraphError> {
    let mut tracer = Tracer {
        data,
        parents: HashMap::new(),
        places: HashMap::new(),
        documents: Vec::new(),
    };
    let mut traced = Vec::with_capacity(ask.edges.len() + ask.nodes.len());
    for edge in ask.edges.iter().take(ASKED) {
        if cancel.is_cancelled() {
            return Err(GraphError::Cancelled);
        }
        let subgraphs = tracer.holding(edge)?;
        traced.push(tracer.follow(&subgraphs)?);
    }
    for node in ask.nodes.iter().take(ASKED) {
        let start: Vec<NamedNode> = NamedNode::new(node).ok().into_iter().collect();
        traced.push(tracer.follow(&start)?);
    }
    let most = usize::try_from(ask.properties).unwrap_or(0);
    let documents = tracer.describe(most)?;
    Ok(SourcesResponse {
        error: None,
        traced,
        documents,
    })
}

struct Tracer<'a> {
    data: &'a Dataset,
    parents: HashMap<NamedNode, Vec<NamedNode>>,
    places: HashMap<NamedNode, i64>,
    documents: Vec<NamedNode>,
}

impl Tracer<'_> {
    /// Subgraphs that contain a fact, however many graphs the fact stands in.
    fn holding(&self, edge: &Triple) -> Result<Vec<NamedNode>, GraphError> {
        let mut plain = edge.clone();
        plain.g = None;
        let Ok(quad) = convert::quad("", &plain) else {
            return Ok(Vec::new());
        };
        let Quad {
            subject,
            predicate,
            object,
            ..
        } = quad;
        let fact = oxigraph::model::Triple::new(subject, predicate, object);
        let pattern = Pattern {
            subject: None,
            predicate: Some(NamedNode::new_unchecked(tg::CONTAINS)),
            object: Some(RdfTerm::Triple(Box::new(fact))),
            graph: Some(source_graph()),
        };
        let mut found = Vec::new();
        for quad in self.data.scan(&pattern).take(SUBGRAPHS) {
            if let oxigraph::model::NamedOrBlankNode::NamedNode(node) = quad?.subject {
                found.push(node);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Follows the derivation upwards. What is derived from nothing is a document, unless it is where the
    /// search began and no document at all.
    fn follow(&mut self, start: &[NamedNode]) -> Result<TracedSource, GraphError> {
        let mut chunks = BTreeSet::new();
        let mut documents = BTreeSet::new();
        let mut page = 0;
        let mut seen: BTreeSet<NamedNode> = start.iter().cloned().collect();
        let mut level: Vec<NamedNode> = start.to_vec();
        for depth in 0..LEVELS {
            let mut above = Vec::new();
            for node in level {
                if self.has_type(&node, "Chunk")? {
                    chunks.insert(node.as_str().to_owned());
                }
                if page == 0 {
                    page = self.page_number(&node)?;
                }
                let parents = self.parents(&node)?;
                if parents.is_empty() && (depth > 0 || self.has_type(&node, "Document")?) {
                    // A file that was loaded holds the fact itself; a document that has a text says more.
                    documents.insert((depth == 1, self.place(&node)));
                }
                for parent in parents {
                    if seen.len() < CHAIN && seen.insert(parent.clone()) {
                        above.push(parent);
                    }
                }
            }
            if above.is_empty() {
                break;
            }
            level = above;
        }
        Ok(TracedSource {
            chunks: chunks.into_iter().collect(),
            documents: documents.into_iter().map(|(_, place)| place).collect(),
            page,
        })
    }

    fn place(&mut self, node: &NamedNode) -> i64 {
        if let Some(place) = self.places.get(node) {
            return *place;
        }
        let place = self.documents.len() as i64;
        self.places.insert(node.clone(), place);
        self.documents.push(node.clone());
        place
    }

    fn parents(&mut self, node: &NamedNode) -> Result<Vec<NamedNode>, GraphError> {
        if let Some(known) = self.parents.get(node) {
            return Ok(known.clone());
        }
        let pattern = Pattern {
            subject: Some(node.clone().into()),
            predicate: Some(NamedNode::new_unchecked(prov::WAS_DERIVED_FROM)),
            object: None,
            graph: Some(source_graph()),
        };
        let mut found = Vec::new();
        for quad in self.data.scan(&pattern).take(PARENTS) {
            if let RdfTerm::NamedNode(parent) = quad?.object {
                found.push(parent);
            }
        }
        found.sort();
        self.parents.insert(node.clone(), found.clone());
        Ok(found)
    }

    /// The number that a page has, 0 for what is none.
    fn page_number(&self, node: &NamedNode) -> Result<i64, GraphError> {
        let pattern = Pattern {
            subject: Some(node.clone().into()),
            predicate: Some(NamedNode::new_unchecked(tg::PAGE_NUMBER)),
            object: None,
            graph: Some(source_graph()),
        };
        let said = self.data.scan(&pattern).next().transpose()?;
        Ok(match said.map(|quad| quad.object) {
            Some(RdfTerm::Literal(number)) => number.value().parse().unwrap_or(0),
            _ => 0,
        })
    }

    /// Whether a node is of a class of ours, in whatever graph.
    fn has_type(&self, node: &NamedNode, class: &str) -> Result<bool, GraphError> {
        let pattern = Pattern {
            subject: Some(node.clone().into()),
            predicate: Some(rdf::TYPE.into_owned()),
            object: Some(NamedNode::new_unchecked(format!("{}{class}", tg::NAMESPACE)).into()),
            graph: None,
        };
        Ok(self.data.scan(&pattern).next().transpose()?.is_some())
    }

    fn describe(&self, most: usize) -> Result<Vec<SourceDocument>, GraphError> {
        let excluded = TRACE_GRAPHS
            .iter()
            .map(|g| NamedNode::new_unchecked(*g).into());
        let graphs = Graphs::AllBut(excluded.collect());
        let mut labels = Labels::new(self.data, &graphs, &[], &[]);
        self.documents
            .iter()
            .map(|document| self.document(document, &graphs, &mut labels, most))
            .collect()
    }

    fn document(
        &self,
        document: &NamedNode,
        graphs: &Graphs,
        labels: &mut Labels<'_>,
        most: usize,
    ) -> Result<SourceDocument, GraphError> {
        let pattern = Pattern {
            subject: Some(document.clone().into()),
            ..Pattern::default()
        };
        let mut said = BTreeSet::new();
        graphs.each(self.data, pattern, |quad| {
            let predicate = quad.predicate.as_str();
            let ours =
                predicate.starts_with(tg::NAMESPACE) || predicate.starts_with(prov::NAMESPACE);
            if !ours && quad.predicate != rdf::TYPE {
                said.insert((predicate.to_owned(), convert::from_term(quad.object)));
            }
            said.len() < PROPERTIES
        })?;
        let value = |wanted: &str| {
            said.iter().find_map(|(predicate, value)| match value {
                tg_schemas::Term::Literal { value, .. } if predicate == wanted => {
                    Some(value.clone())
                }
                _ => None,
            })
        };
        let mut names = TITLES.iter().copied().chain([rdfs::LABEL.as_str()]);
        let title = names.find_map(value).unwrap_or_default();
        let mut properties = Vec::new();
        // The label only repeats the title.
        let told = said.into_iter().filter(|(p, _)| p != rdfs::LABEL.as_str());
        for (predicate, value) in told.take(most) {
            for term in [tg_schemas::Term::Iri(predicate), value] {
                let label = match convert::object("", &term) {
                    Ok(known) => labels.of(&known)?,
                    Err(_) => String::new(),
                };
                properties.push(LabelledTerm {
                    term: Some(term),
                    label,
                });
            }
        }
        Ok(SourceDocument {
            uri: document.as_str().to_owned(),
            title,
            properties,
        })
    }
}

fn source_graph() -> GraphName {
    NamedNode::new_unchecked(SOURCE_GRAPH).into()
}
