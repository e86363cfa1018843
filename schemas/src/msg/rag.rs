//! GraphRAG and DocumentRAG. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::policy::UserContext;
use crate::error::Error;
use crate::rdf::Triple;

/// What holds for one hop through the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TraversalStep {
    #[serde(deserialize_with = "nullable")]
    /// Only nodes of one of these types, as IRIs, are expanded; none: all.
    pub types: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Only these predicates, as IRIs, are followed; none: all.
    pub relationships: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Graphs looked in; `*`: all. None: as the question says.
    pub graphs: Vec<String>,
}

message!(TraversalStep);

/// A question that is answered from the graph. A limit of 0 or less is what the service is set to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphRagQuery {
    #[serde(deserialize_with = "nullable")]
    /// The question.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Collection to look in; empty: `default`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Entities that the search begins with; usually 50.
    pub entity_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Edges of one node in one direction; usually 30.
    pub triple_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Kept edges of all hops that the model is given; usually 1,000.
    pub max_subgraph_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Hops; usually 2, at most 6.
    pub max_path_length: i64,
    #[serde(deserialize_with = "nullable")]
    /// Reranked edges of one hop that the kept ones are chosen from; usually 30.
    pub edge_score_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Edges kept of one hop; usually 25.
    pub edge_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Edges of one hop that are reranked; usually 350.
    pub max_reranker_input: i64,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is wanted piece by piece.
    pub streaming: bool,
    #[serde(deserialize_with = "nullable")]
    /// IRI that the question belongs to, for its trace; empty: none.
    pub parent_uri: String,
    /// For whom, where policies filter what is found; passed on to the store.
    pub user_context: Option<UserContext>,
    #[serde(deserialize_with = "nullable")]
    /// Concepts to search with; none: the model names them. Not together with `graph_seeds`.
    pub grounding_seeds: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// IRIs of entities to begin with; none: they are searched for. Not together with `grounding_seeds`.
    pub graph_seeds: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Language tags: texts with one count only in these, and labels are chosen in their order; none: all.
    pub languages: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// What holds for each hop, the first for the first; none: no restriction.
    pub traversal_instructions: Vec<TraversalStep>,
    /// The one graph looked in; `*`: all. `None`: all but those of traces, sources and policies.
    pub graph: Option<String>,
}

message!(GraphRagQuery);

/// A document that an answer rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Source {
    #[serde(deserialize_with = "nullable")]
    /// IRI of the document.
    pub uri: String,
    #[serde(deserialize_with = "nullable")]
    /// Its title, else its label, else empty.
    pub title: String,
}

message!(Source);

/// A number in an answer, with what it names. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Citation {
    #[serde(deserialize_with = "nullable")]
    /// The number, as it stands in brackets: from 1 in the order of first use.
    pub n: i64,
    #[serde(deserialize_with = "nullable")]
    /// IRI of the document; empty where nothing says where it comes from.
    pub document: String,
    #[serde(deserialize_with = "nullable")]
    /// The document's title, else its IRI.
    pub title: String,
    #[serde(deserialize_with = "nullable")]
    /// Number of the page, from 1; 0: the document has none.
    pub page: i64,
    #[serde(deserialize_with = "nullable")]
    /// IRI of the chunk; empty where nothing says where it comes from.
    pub chunk: String,
    #[serde(deserialize_with = "nullable")]
    /// The passage's words that say it, or the fact.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// IRI of the selection in the trace; empty where nothing was selected.
    pub cites: String,
}

message!(Citation);

/// One part of an answer from the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphRagResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The text of this part; in a stream only what is new.
    pub response: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether the text is complete; the trace may still follow.
    pub end_of_stream: bool,
    /// IRI of the step of the trace that `explain_triples` describe; `None` where there is none.
    pub explain_id: Option<String>,
    /// IRI of the graph that holds the trace.
    pub explain_graph: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// The triples of the step.
    pub explain_triples: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// `chunk`: text; `explain`: a step of the trace.
    pub message_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub end_of_session: bool,
    /// Tokens that the model read, in the last part; `None` where it did not say.
    pub in_token: Option<i64>,
    /// Tokens that the model wrote, in the last part; `None` where it did not say.
    pub out_token: Option<i64>,
    /// The model that answered, in the last part; `None` where it did not say.
    pub model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Documents behind the facts that the answer cites, in the last part.
    pub sources: Vec<Source>,
    /// Model whose vectors were searched; nothing if none were. Ours.
    pub embeddings_model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// What the numbers in the answer name, in the last part. Ours, as all that follows.
    pub citations: Vec<Citation>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is that there is none, in the last part.
    pub refused: bool,
    #[serde(deserialize_with = "nullable")]
    /// IRI that names the answer's trace, in the last part.
    pub trace: String,
    #[serde(deserialize_with = "nullable")]
    /// What the answer had to do without, a sentence each, in the last part. Empty: nothing.
    pub warnings: Vec<String>,
}

message!(GraphRagResponse);

/// A question that is answered from chunks of documents. A limit of 0 or less is what the service is set to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentRagQuery {
    #[serde(deserialize_with = "nullable")]
    /// The question.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Collection to look in; empty: `default`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Chunks that the model is given; usually 20.
    pub doc_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Chunks that these are chosen from; usually three times `doc_limit`.
    pub fetch_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is wanted piece by piece.
    pub streaming: bool,
    /// What the question belongs to, for the trace. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub parent_uri: String,
    /// `vector`, `keyword` or `hybrid`; empty: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub retrieval_mode: String,
    /// Weight of the vector search in a hybrid one; 0: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub vector_weight: f64,
    /// Weight of the keyword search in a hybrid one; 0: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub keyword_weight: f64,
    /// `none` or `mmr`; empty: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub rerank_diversity_mode: String,
    /// Weight of relevance against variety, 0 to 1; 0: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub rerank_diversity_lambda: f64,
}

message!(DocumentRagQuery);

/// One part of an answer from chunks of documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentRagResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    /// The text of this part; in a stream only what is new. `None` in the part that closes a stream.
    pub response: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the text is complete; the trace may still follow.
    pub end_of_stream: bool,
    /// IRI of the step of the trace that `explain_triples` describe; `None` where there is none.
    pub explain_id: Option<String>,
    /// IRI of the graph that holds the trace.
    pub explain_graph: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// The triples of the step.
    pub explain_triples: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// `chunk`: text; `explain`: a step of the trace; `end`: closes a stream. Empty in an answer in one part.
    pub message_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub end_of_session: bool,
    /// Tokens that the model read, in the last part; `None` where it did not say.
    pub in_token: Option<i64>,
    /// Tokens that the model wrote, in the last part; `None` where it did not say.
    pub out_token: Option<i64>,
    /// The model that answered, in the last part; `None` where it did not say.
    pub model: Option<String>,
    /// Documents that the cited chunks come from. Ours.
    #[serde(deserialize_with = "nullable")]
    pub sources: Vec<Source>,
    /// Model whose vectors were searched; nothing if none were. Ours.
    pub embeddings_model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// What the numbers in the answer name, in the last part. Ours, as all that follows.
    pub citations: Vec<Citation>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is that there is none, in the last part.
    pub refused: bool,
    #[serde(deserialize_with = "nullable")]
    /// IRI that names the answer's trace, in the last part.
    pub trace: String,
    #[serde(deserialize_with = "nullable")]
    /// What the answer had to do without, a sentence each, in the last part. Empty: nothing.
    pub warnings: Vec<String>,
}

message!(DocumentRagResponse);
