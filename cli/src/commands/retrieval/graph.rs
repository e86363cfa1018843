//! `tg invoke-graph-rag`: a question that is answered from the facts of the graph.

use clap::Args;
use serde_json::{Value, json};

use super::ask::Ask;
use crate::args::Options;
use crate::client::Result;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg invoke-graph-rag`.
#[derive(Debug, Args)]
pub struct InvokeGraphRag {
    #[command(flatten)]
    ask: Ask,
    /// Entities to begin with
    #[arg(short = 'e', long, default_value_t = 50, value_name = "COUNT")]
    entity_limit: u64,
    /// Facts to look at around an entity
    #[arg(long, default_value_t = 30, value_name = "COUNT")]
    triple_limit: u64,
    /// Most facts altogether
    #[arg(short = 's', long, default_value_t = 150, value_name = "COUNT")]
    max_subgraph_size: u64,
    /// Steps away from the entities
    #[arg(short = 'p', long, default_value_t = 2, value_name = "COUNT")]
    max_path_length: u64,
    /// Facts to keep at each step
    #[arg(long, default_value_t = 25, value_name = "COUNT")]
    edge_limit: u64,
    /// Facts that are compared with the question at each step
    #[arg(long, default_value_t = 350, value_name = "COUNT")]
    max_reranker_input: u64,
    /// Least score of a fact that is kept [default: none]
    #[arg(long, value_name = "SCORE")]
    edge_score_limit: Option<u64>,
    /// Concepts to begin with instead of those found in the question: a JSON list of texts
    #[arg(long, value_name = "JSON", value_parser = list)]
    grounding_seeds: Option<Value>,
    /// Entities to begin with: a JSON list of IRIs
    #[arg(long, value_name = "JSON", value_parser = list, conflicts_with = "grounding_seeds")]
    graph_seeds: Option<Value>,
    /// Languages of labels and texts: a JSON list, e.g. ["en", ""]
    #[arg(long, value_name = "JSON", value_parser = list)]
    languages: Option<Value>,
    /// What each step may follow: a JSON list of objects with types, relationships and graphs
    #[arg(long, value_name = "JSON", value_parser = list)]
    traversal_instructions: Option<Value>,
    /// Look into this named graph only
    #[arg(short = 'g', long, value_name = "IRI")]
    graph: Option<String>,
}

/// A JSON list.
fn list(text: &str) -> std::result::Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(list @ Value::Array(_)) => Ok(list),
        Ok(_) => Err("must be a JSON list".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Command for InvokeGraphRag {
    const NAME: &'static str = "invoke-graph-rag";
    const ABOUT: &'static str = "Ask a question over the graph";

    fn options(&self) -> Options {
        Options::from(&self.ask.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut options = vec![
            ("entity-limit", json!(self.entity_limit)),
            ("triple-limit", json!(self.triple_limit)),
            ("max-subgraph-size", json!(self.max_subgraph_size)),
            ("max-path-length", json!(self.max_path_length)),
            ("edge-limit", json!(self.edge_limit)),
            ("max-reranker-input", json!(self.max_reranker_input)),
        ];
        let given = [
            ("edge-score-limit", self.edge_score_limit.map(Value::from)),
            ("grounding-seeds", self.grounding_seeds),
            ("graph-seeds", self.graph_seeds),
            ("languages", self.languages),
            ("traversal-instructions", self.traversal_instructions),
            ("graph", self.graph.map(Value::from)),
        ];
        options.extend(
            given
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        self.ask.run(session, "graph-rag", options).await
    }
}
