//! Settings of the service, read through a look-up so that files and variables alike can give them. All
//! mistakes are told at once.

use crate::engine::plan::{DocumentLimits, GraphLimits, Mode};
use crate::reranker::Endpoint;

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

/// A mistake in one setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SettingFault {
    /// The setting.
    pub key: &'static str,
    /// What is wrong with it; never repeats its value.
    pub message: String,
}

impl Settings {
    /// Reads the settings of [`KEYS`]; what is absent or empty stays as usual.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<SettingFault>> {
        let mut reader = Reader {
            get: &|key| lookup(key).map(|text| text.trim().to_owned()),
            faults: Vec::new(),
        };
        let usual = Self::default();
        let (graph, documents) = (usual.graph, usual.documents);
        let settings = Self {
            graph: GraphLimits {
                entities: reader.count("entity_limit", graph.entities),
                triples: reader.count("triple_limit", graph.triples),
                subgraph: reader.count("max_subgraph_size", graph.subgraph),
                path: reader.count("max_path_length", graph.path),
                scored: reader.count("edge_score_limit", graph.scored),
                edges: reader.count("edge_limit", graph.edges),
                reranked: reader.count("max_reranker_input", graph.reranked),
                text: reader.count("max_reranker_text_length", graph.text),
            },
            documents: DocumentLimits {
                documents: reader.count("doc_limit", documents.documents),
                fetch: reader.number("fetch_limit", 0.0, 1_000.0, 0.0) as usize,
                mode: reader.choice("retrieval_mode", "vector, keyword or hybrid", Mode::parse),
                vector_weight: reader.number("vector_weight", 0.001, 1_000.0, 1.0),
                keyword_weight: reader.number("keyword_weight", 0.001, 1_000.0, 1.0),
                diverse: reader
                    .choice("rerank_diversity_mode", "none or mmr", |text| match text {
                        "none" => Some(false),
                        "mmr" => Some(true),
                        _ => None,
                    })
                    .unwrap_or(documents.diverse),
                lambda: reader.number("rerank_diversity_lambda", 0.0, 1.0, documents.lambda),
            },
            reranker: reader.endpoint(),
        };
        if reader.faults.is_empty() {
            Ok(settings)
        } else {
            Err(reader.faults)
        }
    }
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    faults: Vec<SettingFault>,
}

impl Reader<'_> {
    fn text(&self, key: &str) -> Option<String> {
        (self.get)(key).filter(|text| !text.is_empty())
    }

    fn wrong(&mut self, key: &'static str, message: impl Into<String>) {
        self.faults.push(SettingFault {
            key,
            message: message.into(),
        });
    }

    fn count(&mut self, key: &'static str, usual: usize) -> usize {
        match self.text(key).map(|text| text.parse::<usize>()) {
            None => usual,
            Some(Ok(count)) if count > 0 => count,
            Some(_) => {
                self.wrong(key, "must be a whole number above 0");
                usual
            }
        }
    }

    fn number(&mut self, key: &'static str, least: f64, most: f64, usual: f64) -> f64 {
        match self.text(key).map(|text| text.parse::<f64>()) {
            None => usual,
            Some(Ok(number)) if (least..=most).contains(&number) => number,
            Some(_) => {
                self.wrong(key, format!("must be a number from {least} to {most}"));
                usual
            }
        }
    }

    fn choice<T>(
        &mut self,
        key: &'static str,
        names: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(key)?;
        let chosen = parse(&text);
        if chosen.is_none() {
            self.wrong(key, format!("must be {names}"));
        }
        chosen
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        let dialect = self.choice(
            "reranker_dialect",
            "cohere, jina or tei",
            crate::reranker::Dialect::parse,
        );
        let url = self.text("reranker_url")?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            self.wrong("reranker_url", "must begin with http:// or https://");
            return None;
        }
        let (key, model) = (self.text("reranker_key"), self.text("reranker_model"));
        match Endpoint::new(&url, key, model, dialect.unwrap_or_default()) {
            Ok(endpoint) => Some(endpoint),
            Err(message) => {
                self.wrong("reranker_url", message);
                None
            }
        }
    }
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
