//! Properties of which a thing in the source graph has one: saying another value replaces the one before. A
//! page that moved has one number, a chunk one place, an activity one time, however often it is described.

use oxigraph::model::{GraphName, Quad};

const SOURCE_GRAPH: &str = "urn:graph:source";
const TG: &str = "https://trustgraph.ai/ns/";
const PROV: &str = "http://www.w3.org/ns/prov#";
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";

/// Below [`TG`].
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
    match (predicate.strip_prefix(TG), predicate.strip_prefix(PROV)) {
        (Some(term), _) => TERMS.contains(&term),
        (_, Some(term)) => matches!(term, "startedAtTime" | "wasGeneratedBy"),
        _ => predicate == LABEL,
    }
}
