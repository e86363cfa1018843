//! What retrieval does unless a question asks otherwise, and who reranks. docs/retrieval.md says more.

use tg_provider_http::{Credentials, Secret, address, sendable};
use tg_settings::SettingError;

use crate::endpoint::{Dialect, Endpoint};
use crate::engine::mode::{Diversity, Mode};
use crate::services::Services;

/// What is more than a question may ask for is read as the most that it may ask for.
const MANY: u64 = 1_000_000_000;

tg_settings::options! {
    /// How GraphRAG and DocumentRAG look for an answer unless the question says.
    pub struct Options {
        /// GraphRAG: entities that the walk begins with.
        entity_limit: usize = 50, Whole(1..=MANY);
        /// GraphRAG: edges of one node in one direction.
        triple_limit: usize = 30, Whole(1..=MANY);
        /// GraphRAG: edges, of all hops together, that the model is given: the best.
        max_subgraph_size: usize = 1000, Whole(1..=MANY);
        /// GraphRAG: hops.
        max_path_length: usize = 2, Whole(1..=MANY);
        /// GraphRAG: scored edges of one hop that the kept ones are chosen from; where they are more than
        /// `rag.edge_limit`, the choice weighs the score against repetition.
        edge_score_limit: usize = 30, Whole(1..=MANY);
        /// GraphRAG: edges kept of one hop.
        edge_limit: usize = 25, Whole(1..=MANY);
        /// GraphRAG: edges of one hop that are given to the reranker: those whose words fit best.
        max_reranker_input: usize = 350, Whole(1..=MANY);
        /// GraphRAG: characters of an edge's text.
        max_reranker_text_length: usize = 240, Whole(1..=MANY);
        /// DocumentRAG: chunks that the model is given.
        doc_limit: usize = 20, Whole(1..=MANY);
        /// DocumentRAG: chunks that these are chosen from; 0: three times as many.
        fetch_limit: usize = 0, Whole(0..=1_000);
        /// DocumentRAG: `vector`, `keyword` or `hybrid`; empty: hybrid where the flow has a keyword index, else vector.
        retrieval_mode: Option<Mode> = None;
        /// DocumentRAG: what the search by vectors counts in a hybrid one.
        vector_weight: f64 = 1.0, Number(0.001..=1_000.0);
        /// DocumentRAG: what the search by keywords counts in a hybrid one.
        keyword_weight: f64 = 1.0, Number(0.001..=1_000.0);
        /// DocumentRAG: `none`, or `mmr`, which prefers chunks that do not repeat chosen ones.
        rerank_diversity_mode: Diversity = Diversity::None;
        /// DocumentRAG: relevance (1) against variety (0) with `mmr`.
        rerank_diversity_lambda: f64 = 0.7, Number(0.0..=1.0);
        /// Whole address of a reranking model; empty: the reranker that is built in.
        reranker_url: Option<String> = None;
        /// Key of the reranking model. It may be named: `env:NAME` or `file:PATH`.
        #[serde(deserialize_with = "tg_provider_http::by_reference")]
        reranker_key: Option<Secret> = None;
        /// Model asked of it; empty: its own.
        reranker_model: Option<String> = None;
        /// How it is spoken to: `cohere` (also spoken by Jina and others) or `tei`.
        reranker_dialect: Dialect = Dialect::Cohere;
    }
    given {
        /// Credentials that reranking services of workspaces may name.
        credentials: Option<Credentials>,
        /// Whether these services may be at private addresses.
        private_addresses: bool,
    }
}

impl Options {
    /// All mistakes that one setting alone does not show.
    pub fn faults(&self) -> Vec<SettingError> {
        let url = self
            .reranker_url
            .as_deref()
            .map(|url| address("reranker_url", url));
        let key = sendable("reranker_key", self.reranker_key.as_ref());
        let url = url.and_then(Result::err);
        url.into_iter().chain(key.err()).collect()
    }

    /// The reranking services that workspaces may name.
    ///
    /// # Errors
    /// A credential that is listed cannot be read.
    pub(crate) fn services(&self) -> Result<Services, SettingError> {
        let listed = self.credentials.clone().unwrap_or_default();
        let keys = listed.keys("llm.credentials")?;
        Ok(Services::with(keys, self.private_addresses))
    }

    /// The reranking model elsewhere, if one is configured. Opens no connection.
    ///
    /// # Errors
    /// No HTTP client can be made.
    pub(crate) fn reranker(&self) -> Result<Option<Endpoint>, SettingError> {
        // A slash at the end may matter: this is a whole address.
        let Some(url) = &self.reranker_url else {
            return Ok(None);
        };
        let (key, model) = (self.reranker_key.clone(), self.reranker_model.clone());
        let endpoint = Endpoint::new(url, key, model, self.reranker_dialect);
        let fault = |fault| SettingError::new("reranker_url", format!("{fault}"));
        endpoint.map(Some).map_err(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (Options, Vec<SettingError>) {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        tg_settings::read(pairs.iter().map(own).collect())
    }

    #[test]
    fn what_is_given_counts_and_every_mistake_is_told() {
        let (options, faults) = read(&[
            ("edge_limit", "7"),
            ("retrieval_mode", "keyword"),
            ("rerank_diversity_mode", "mmr"),
            ("reranker_dialect", "jina"),
        ]);
        assert_eq!(
            (options.edge_limit, options.doc_limit, faults.len()),
            (7, 20, 0)
        );
        assert_eq!(options.retrieval_mode, Some(Mode::Keyword));
        let (_, faults) = read(&[
            ("edge_limit", "none"),
            ("retrieval_mode", "odd"),
            ("rerank_diversity_lambda", "2"),
        ]);
        let keys: Vec<_> = faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(
            keys,
            ["edge_limit", "rerank_diversity_lambda", "retrieval_mode"]
        );
        let (options, _) = read(&[
            ("reranker_url", "ftp://x"),
            ("reranker_key", "s3cret\n\u{7f}"),
        ]);
        let keys: Vec<_> = options
            .faults()
            .into_iter()
            .map(|fault| fault.key)
            .collect();
        assert_eq!(keys, ["reranker_url", "reranker_key"]);
        assert!(!format!("{options:?}").contains("s3cret"));
    }
}
