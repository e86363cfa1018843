//! `tg invoke-graph-rag`: a question that is answered from the facts of the graph.

use clap::Args;
use serde_json::Value;

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
    /// Entities to begin with [default: 50]
    #[arg(short = 'e', long, value_name = "COUNT")]
    entity_limit: Option<u64>,
    /// Facts to look at around an entity [default: 30]
    #[arg(long, value_name = "COUNT")]
    triple_limit: Option<u64>,
    /// Most facts altogether [default: 1000]
    #[arg(short = 's', long, value_name = "COUNT")]
    max_subgraph_size: Option<u64>,
    /// Steps away from the entities [default: 2]
    #[arg(short = 'p', long, value_name = "COUNT")]
    max_path_length: Option<u64>,
    /// Facts to keep at each step [default: 25]
    #[arg(long, value_name = "COUNT")]
    edge_limit: Option<u64>,
    /// Facts that are compared with the question at each step [default: 350]
    #[arg(long, value_name = "COUNT")]
    max_reranker_input: Option<u64>,
    /// Best of the compared facts that those to keep are chosen from [default: 30]
    #[arg(long, value_name = "COUNT")]
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
    match serde_json::from_slice(text.as_bytes()) {
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
        // What is not given is the server's to choose.
        let given = [
            ("entity-limit", self.entity_limit.map(Value::from)),
            ("triple-limit", self.triple_limit.map(Value::from)),
            ("max-subgraph-size", self.max_subgraph_size.map(Value::from)),
            ("max-path-length", self.max_path_length.map(Value::from)),
            ("edge-limit", self.edge_limit.map(Value::from)),
            (
                "max-reranker-input",
                self.max_reranker_input.map(Value::from),
            ),
            ("edge-score-limit", self.edge_score_limit.map(Value::from)),
            ("grounding-seeds", self.grounding_seeds),
            ("graph-seeds", self.graph_seeds),
            ("languages", self.languages),
            ("traversal-instructions", self.traversal_instructions),
            ("graph", self.graph.map(Value::from)),
        ];
        let given = given.into_iter();
        let options = given
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        self.ask.run(session, "graph-rag", options).await
    }
}
