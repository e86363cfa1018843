//! Properties of which a thing in the source graph has one: saying another value replaces the one before. A
//! page that moved has one number, a chunk one place, an activity one time, however often it is described.

use oxigraph::model::{GraphName, Quad};
use tg_schemas::vocabulary::{SOURCE_GRAPH, dcterms, prov, rdfs, tg};

/// Below [`tg::NAMESPACE`].
const TERMS: [&str; 10] = [
    "pageNumber",
    "chunkIndex",
    "charOffset",
    "charLength",
    "chunkSize",
    "chunkOverlap",
    "componentVersion",
    "mimeType",
    "llmModel",
    "promptVersion",
];

/// Whether a quad says something of which there is one.
pub(crate) fn is_single(quad: &Quad) -> bool {
    let in_source =
        matches!(&quad.graph_name, GraphName::NamedNode(graph) if graph.as_str() == SOURCE_GRAPH);
    if !in_source {
        return false;
    }
    let predicate = quad.predicate.as_str();
    match (
        predicate.strip_prefix(tg::NAMESPACE),
        predicate.strip_prefix(prov::NAMESPACE),
    ) {
        (Some(term), _) => TERMS.contains(&term),
        (_, Some(term)) => matches!(term, "startedAtTime" | "wasGeneratedBy"),
        _ => [rdfs::LABEL, dcterms::TITLE, dcterms::FORMAT].contains(&predicate),
    }
}
