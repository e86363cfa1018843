//! Settings of the service, read through a look-up so that files and variables alike can give them. All
//! mistakes are told at once.

use tg_provider_http::{SettingFault, SettingReader};

use crate::engine::plan::{DocumentLimits, GraphLimits, Mode};
use crate::reranker::{Dialect, Endpoint};

/// Names of the settings.
pub const KEYS: &[&str] = &[
    "entity_limit",
    "triple_limit",
    "max_subgraph_size",
    "max_path_length",
    "edge_score_limit",
    "edge_limit",
    "max_reranker_input",
    "max_reranker_text_length",
    "doc_limit",
    "fetch_limit",
    "retrieval_mode",
    "vector_weight",
    "keyword_weight",
    "rerank_diversity_mode",
    "rerank_diversity_lambda",
    "reranker_url",
    "reranker_key",
    "reranker_model",
    "reranker_dialect",
];

/// All settings.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What GraphRAG does unless asked otherwise.
    pub graph: GraphLimits,
    /// What DocumentRAG does unless asked otherwise.
    pub documents: DocumentLimits,
    /// A reranker elsewhere; nothing: the one built in.
    pub reranker: Option<Endpoint>,
}

impl Settings {
    /// Reads the settings of [`KEYS`]; what is absent or empty stays as usual.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<SettingFault>> {
        let mut reader = SettingReader::new(lookup);
        let usual = Self::default();
        let (graph, documents) = (usual.graph, usual.documents);
        let settings = Self {
            graph: GraphLimits {
                entities: reader.count("entity_limit").unwrap_or(graph.entities),
                triples: reader.count("triple_limit").unwrap_or(graph.triples),
                subgraph: reader.count("max_subgraph_size").unwrap_or(graph.subgraph),
                path: reader.count("max_path_length").unwrap_or(graph.path),
                scored: reader.count("edge_score_limit").unwrap_or(graph.scored),
                edges: reader.count("edge_limit").unwrap_or(graph.edges),
                reranked: reader.count("max_reranker_input").unwrap_or(graph.reranked),
                text: reader
                    .count("max_reranker_text_length")
                    .unwrap_or(graph.text),
            },
            documents: DocumentLimits {
                documents: reader.count("doc_limit").unwrap_or(documents.documents),
                fetch: reader.number("fetch_limit", 0.0..=1_000.0).unwrap_or(0.0) as usize,
                mode: reader.choice("retrieval_mode", "vector, keyword or hybrid", Mode::parse),
                vector_weight: reader
                    .number("vector_weight", 0.001..=1_000.0)
                    .unwrap_or(1.0),
                keyword_weight: reader
                    .number("keyword_weight", 0.001..=1_000.0)
                    .unwrap_or(1.0),
                diverse: reader
                    .choice("rerank_diversity_mode", "none or mmr", |text| match text {
                        "none" => Some(false),
                        "mmr" => Some(true),
                        _ => None,
                    })
                    .unwrap_or(documents.diverse),
                lambda: reader
                    .number("rerank_diversity_lambda", 0.0..=1.0)
                    .unwrap_or(documents.lambda),
            },
            reranker: endpoint(&mut reader),
        };
        reader.finish(settings)
    }
}

fn endpoint<F: Fn(&str) -> Option<String>>(reader: &mut SettingReader<F>) -> Option<Endpoint> {
    let names = "cohere, jina or tei";
    let dialect = reader.choice("reranker_dialect", names, Dialect::parse);
    let (key, model) = (reader.secret("reranker_key"), reader.text("reranker_model"));
    let url = reader.text("reranker_url")?;
    // A slash at the end may matter: this is a whole address.
    reader.address("reranker_url", &url);
    let endpoint = Endpoint::new(&url, key, model, dialect.unwrap_or_default());
    endpoint
        .map_err(|fault| reader.wrong("reranker_url", fault.to_string()))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, Vec<SettingFault>> {
        let of = |key: &str| pairs.iter().find(|(name, _)| *name == key);
        Settings::from_lookup(|key| of(key).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn what_is_given_counts_and_every_mistake_is_told() {
        let settings = read(&[
            ("edge_limit", "7"),
            ("retrieval_mode", "keyword"),
            ("doc_limit", ""),
        ]);
        let settings = settings.unwrap();
        assert_eq!(
            (settings.graph.edges, settings.documents.documents),
            (7, 20)
        );
        assert_eq!(settings.documents.mode, Some(Mode::Keyword));
        let faults = read(&[
            ("edge_limit", "none"),
            ("retrieval_mode", "odd"),
            ("rerank_diversity_lambda", "2"),
            ("reranker_url", "ftp://x"),
            ("reranker_key", "s3cret"),
        ]);
        let faults = faults.unwrap_err();
        let keys: Vec<_> = faults.iter().map(|fault| fault.key).collect();
        let expected = [
            "edge_limit",
            "retrieval_mode",
            "rerank_diversity_lambda",
            "reranker_url",
        ];
        assert_eq!(keys, expected);
        let with = read(&[("reranker_url", "http://x"), ("reranker_key", "s3cret")]).unwrap();
        assert!(!format!("{with:?}").contains("s3cret"));
    }
}
