//! What an agent is: the one definition behind all of its sources.

use tg_schemas::msg::{ModelService, ModelSettings};
use tg_schemas::operations::{AgentConfig, AgentSummary, Capability};

/// Passages that a search returns where nobody says how many.
pub const TOP_K: i64 = 5;

/// How passages are put in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reranking {
    /// Passages that are kept.
    pub kept: i64,
    /// The reranking service that is asked, and its model; `None`: the reranker of the flow.
    pub settings: Option<ModelSettings>,
}

/// An agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Definition {
    /// Its name, by which clients ask for it.
    pub name: String,
    /// The model that it asks for.
    pub model: String,
    /// The model of its flow answers all the same: it is an example, and nobody here chose its model.
    pub of_flow: bool,
    /// Models that are asked in this order where the first one fails.
    pub models: Vec<String>,
    /// What it is for.
    pub description: String,
    /// The system prompt.
    pub system_prompt: String,
    /// Most tokens of an answer.
    pub max_tokens: Option<i64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Names of the tools that it may use.
    pub tools: Vec<String>,
    /// Collection that it reads before each answer.
    pub rag_index: Option<String>,
    /// Passages that a search returns.
    pub rag_top_k: i64,
    /// Collections whose passages it is given before each answer.
    pub collections: Vec<String>,
    /// Collections that its tools may look into; empty: the one that it reads.
    pub knowledge: Vec<String>,
    /// Passages below this score are left out.
    pub rag_min_score: Option<f64>,
    /// How a reranker puts those in order; `None`: none is asked.
    pub rerank: Option<Reranking>,
    /// The flow that answers; `None`: the one that the workspace says.
    pub flow: Option<String>,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// Most rounds of model and tools in a turn; `None`: as the agent service says.
    pub max_iterations: Option<i64>,
    /// The LLM service that answers; `None`: the provider of the flow.
    pub service: Option<ModelService>,
    /// Tokens that its model reads at once, where its LLM service says so.
    pub window: Option<u64>,
    /// Whether what its users say of themselves is remembered across sessions.
    pub memory: bool,
    /// When there is too much of a loop, as JSON in text; `None`: as the workspace says.
    pub loop_detection: Option<String>,
}

impl Definition {
    /// What it says of its model.
    pub fn settings(&self) -> ModelSettings {
        let (model, models) = match self.of_flow {
            true => (String::new(), Vec::new()),
            false => (self.model.clone(), self.models.clone()),
        };
        ModelSettings {
            model,
            models,
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            service: self.service.clone(),
        }
    }

    /// As a listing shows it: without its system prompt.
    pub fn summary(&self) -> AgentSummary {
        AgentSummary {
            name: self.name.clone(),
            model: self.model.clone(),
            description: self.description.clone(),
            tools: self.tools.clone(),
            rag_index: self.rag_index.clone(),
        }
    }

    /// The whole of it.
    pub fn config(&self) -> AgentConfig {
        AgentConfig {
            name: self.name.clone(),
            model: self.model.clone(),
            description: self.description.clone(),
            tools: self.tools.clone(),
            rag_index: self.rag_index.clone(),
            system_prompt: self.system_prompt.clone(),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            rag_top_k: self.rag_top_k,
            capabilities: self.capabilities.clone(),
            engine: "router".to_owned(),
        }
    }
}
