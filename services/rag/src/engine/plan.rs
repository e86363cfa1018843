//! What a question asks for, with defaults filled in and bounds kept. All limits are counts unless said.

use tg_schemas::msg::{DocumentRagQuery, GraphRagQuery, TraversalStep, collection_or_default};

pub use super::mode::{Diversity, Mode};
use crate::error::RagError;
use crate::options::Options;

/// Longest question, in bytes.
const QUESTION: usize = 64 << 10;

/// How GraphRAG looks for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphLimits {
    /// Entities that the walk begins with.
    pub entities: usize,
    /// Edges of one node in one direction.
    pub triples: usize,
    /// Edges, of all hops together, that the model is given: the best.
    pub subgraph: usize,
    /// Hops.
    pub path: usize,
    /// Scored edges of one hop that the kept ones are chosen from; where they are more than `edges`, the
    /// choice weighs the score against saying the same again.
    pub scored: usize,
    /// Edges kept of one hop.
    pub edges: usize,
    /// Edges of one hop that are given to the reranker: those whose words fit best.
    pub reranked: usize,
    /// Characters of an edge's text.
    pub text: usize,
}

/// What may be asked for at most.
const MOST: GraphLimits = GraphLimits {
    entities: 1_000,
    triples: 1_000,
    subgraph: 5_000,
    path: 6,
    scored: 1_000,
    edges: 500,
    reranked: 2_000,
    text: 2_000,
};

/// A question to the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphPlan {
    /// The question.
    pub question: String,
    /// Collection.
    pub collection: String,
    /// Limits.
    pub limits: GraphLimits,
    /// Restrictions of the hops, first hop first.
    pub steps: Vec<TraversalStep>,
    /// The one graph to look in.
    pub graph: Option<String>,
    /// Languages that texts may be in.
    pub languages: Vec<String>,
}

impl GraphPlan {
    /// Checks a question and fills in what it leaves open.
    ///
    /// # Errors
    /// Which fields do not go together, are out of their range, or ask for what the flow does not have.
    pub fn new(ask: &GraphRagQuery, usual: &Options) -> Result<Self, RagError> {
        check(&ask.query)?;
        if !ask.grounding_seeds.is_empty() && !ask.graph_seeds.is_empty() {
            return Err(RagError::BothSeeds);
        }
        let limits = GraphLimits {
            entities: limit(ask.entity_limit, usual.entity_limit, MOST.entities),
            triples: limit(ask.triple_limit, usual.triple_limit, MOST.triples),
            subgraph: limit(
                ask.max_subgraph_size,
                usual.max_subgraph_size,
                MOST.subgraph,
            ),
            path: limit(ask.max_path_length, usual.max_path_length, MOST.path),
            scored: limit(ask.edge_score_limit, usual.edge_score_limit, MOST.scored),
            edges: limit(ask.edge_limit, usual.edge_limit, MOST.edges),
            reranked: limit(
                ask.max_reranker_input,
                usual.max_reranker_input,
                MOST.reranked,
            ),
            text: usual.max_reranker_text_length.clamp(20, MOST.text),
        };
        let languages = ask.languages.iter().map(|tag| tag.trim().to_owned());
        Ok(Self {
            question: ask.query.trim().to_owned(),
            collection: collection_or_default(ask.collection.trim()).to_owned(),
            limits,
            steps: ask.traversal_instructions.clone(),
            graph: ask.graph.clone(),
            languages: languages.filter(|tag| !tag.is_empty()).collect(),
        })
    }
}

/// What may be asked for at most.
const MOST_DOCUMENTS: usize = 200;
const MOST_FETCHED: usize = 1_000;

/// A question to documents.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentPlan {
    /// The question.
    pub question: String,
    /// Collection.
    pub collection: String,
    /// Chunks that the model is given.
    pub documents: usize,
    /// Chunks that these are chosen from.
    pub pool: usize,
    /// How chunks are looked for.
    pub mode: Mode,
    /// What vectors count.
    pub vector_weight: f64,
    /// What keywords count.
    pub keyword_weight: f64,
    /// λ when the choice avoids repeats.
    pub diversity: Option<f64>,
}

impl DocumentPlan {
    /// Checks a question and fills in what it leaves open, given what the flow has.
    ///
    /// # Errors
    /// Which fields do not go together, are out of their range, or ask for what the flow does not have.
    pub fn new(
        ask: &DocumentRagQuery,
        usual: &Options,
        keyword_index: bool,
        reranker: bool,
    ) -> Result<Self, RagError> {
        check(&ask.query)?;
        let asked = match ask.retrieval_mode.trim() {
            "" => usual.retrieval_mode,
            text => Some(
                Mode::parse(text)
                    .ok_or_else(|| bad("retrieval-mode", "must be vector, keyword or hybrid"))?,
            ),
        };
        let mode = match asked {
            None if keyword_index => Mode::Hybrid,
            None => Mode::Vector,
            Some(Mode::Keyword) if !keyword_index => {
                return Err(bad("retrieval-mode", "this flow has no keyword index"));
            }
            Some(Mode::Hybrid) if !keyword_index => Mode::Vector,
            Some(mode) => mode,
        };
        let diverse = match ask.rerank_diversity_mode.trim() {
            "" => usual.rerank_diversity_mode == Diversity::Mmr,
            "none" => false,
            "mmr" => true,
            _ => return Err(bad("rerank-diversity-mode", "must be none or mmr")),
        };
        let weight = |asked: f64, usual: f64, field: &'static str| match asked {
            0.0 => Ok(usual),
            asked if asked.is_finite() && asked > 0.0 => Ok(asked),
            _ => Err(bad(field, "must be above 0")),
        };
        let lambda = match ask.rerank_diversity_lambda {
            0.0 => usual.rerank_diversity_lambda,
            asked if (0.0..=1.0).contains(&asked) => asked,
            _ => return Err(bad("rerank-diversity-lambda", "must be from 0 to 1")),
        };
        let documents = limit(ask.doc_limit, usual.doc_limit, MOST_DOCUMENTS);
        let wide = match limit(ask.fetch_limit, usual.fetch_limit, MOST_FETCHED) {
            0 => documents * 3,
            fetch => fetch,
        };
        let reranks = reranker || diverse;
        Ok(Self {
            question: ask.query.trim().to_owned(),
            collection: collection_or_default(ask.collection.trim()).to_owned(),
            documents,
            pool: if reranks {
                wide.max(documents)
            } else {
                documents
            },
            mode,
            vector_weight: weight(ask.vector_weight, usual.vector_weight, "vector-weight")?,
            keyword_weight: weight(ask.keyword_weight, usual.keyword_weight, "keyword-weight")?,
            diversity: diverse.then_some(lambda),
        })
    }
}

fn check(question: &str) -> Result<(), RagError> {
    if question.trim().is_empty() {
        return Err(bad("query", "is required"));
    }
    if question.len() > QUESTION {
        return Err(RagError::TooLarge {
            field: "query",
            bound: "is larger than 64 KiB".to_owned(),
        });
    }
    Ok(())
}

/// What is asked for within bounds; nothing and less mean as usual.
fn limit(asked: i64, usual: usize, most: usize) -> usize {
    match usize::try_from(asked) {
        Ok(asked) if asked > 0 => asked.min(most),
        _ => usual.min(most),
    }
}

fn bad(field: &'static str, why: &'static str) -> RagError {
    RagError::Field { field, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_filled_in_and_bounded() {
        let ask = GraphRagQuery {
            query: " q ".into(),
            edge_limit: 7,
            max_path_length: 99,
            entity_limit: -1,
            ..GraphRagQuery::default()
        };
        let plan = GraphPlan::new(&ask, &Options::default()).unwrap();
        assert_eq!(
            (plan.question.as_str(), plan.collection.as_str()),
            ("q", "default")
        );
        let limits = plan.limits;
        assert_eq!(
            (limits.edges, limits.path, limits.entities),
            (7, MOST.path, 50)
        );
        let both = GraphRagQuery {
            grounding_seeds: vec!["a".into()],
            graph_seeds: vec!["urn:a".into()],
            ..ask
        };
        let refused = |ask| GraphPlan::new(ask, &Options::default()).unwrap_err();
        assert_eq!(refused(&both), RagError::BothSeeds);
        let empty = refused(&GraphRagQuery::default());
        assert_eq!(empty, bad("query", "is required"));
    }

    #[test]
    fn the_mode_follows_what_the_flow_has() {
        let plan = |mode: &str, index: bool| {
            let ask = DocumentRagQuery {
                query: "q".into(),
                doc_limit: 10,
                retrieval_mode: mode.into(),
                ..DocumentRagQuery::default()
            };
            DocumentPlan::new(&ask, &Options::default(), index, true)
        };
        assert_eq!(plan("", true).unwrap().mode, Mode::Hybrid);
        assert_eq!(plan("", false).unwrap().mode, Mode::Vector);
        assert_eq!(plan("keyword", true).unwrap().mode, Mode::Keyword);
        let refused = |mode, index| plan(mode, index).unwrap_err().to_string();
        let none = "retrieval-mode: this flow has no keyword index";
        assert_eq!(refused("keyword", false), none);
        let modes = "retrieval-mode: must be vector, keyword or hybrid";
        assert_eq!(refused("odd", true), modes);
        assert_eq!(plan("", true).unwrap().pool, 30);
        let alone = DocumentRagQuery {
            query: "q".into(),
            ..DocumentRagQuery::default()
        };
        let alone = DocumentPlan::new(&alone, &Options::default(), false, false).unwrap();
        assert_eq!((alone.documents, alone.pool), (20, 20));
    }
}
