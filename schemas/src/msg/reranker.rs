//! Which texts fit queries best. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::llm::ModelSettings;
use super::message;
use crate::error::Error;

/// What texts are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RerankerQuery {
    #[serde(deserialize_with = "nullable")]
    /// Name of the query in this request.
    pub query_id: String,
    #[serde(deserialize_with = "nullable")]
    /// The query.
    pub query_text: String,
}

message!(RerankerQuery);

/// A text to be put in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RerankerDocument {
    #[serde(deserialize_with = "nullable")]
    /// Name of the text in this request.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// The text.
    pub document_text: String,
}

message!(RerankerDocument);

/// Asks which texts fit the queries best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RerankerRequest {
    #[serde(deserialize_with = "nullable")]
    /// The queries; a text counts with the one it fits best.
    pub queries: Vec<RerankerQuery>,
    #[serde(deserialize_with = "nullable")]
    /// The texts.
    pub documents: Vec<RerankerDocument>,
    #[serde(deserialize_with = "nullable")]
    /// Most results of the answer; 0 or less: 10, which is also what is meant if it is left out.
    pub limit: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The reranking service of the workspace that answers, and its model; `None`: the reranker of the flow. Ours.
    pub settings: Option<ModelSettings>,
}

impl Default for RerankerRequest {
    fn default() -> Self {
        Self {
            queries: Default::default(),
            documents: Default::default(),
            limit: 10,
            settings: Default::default(),
        }
    }
}

message!(RerankerRequest);

/// How well one text fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RerankerResult {
    #[serde(deserialize_with = "nullable")]
    /// Name of the text in the request.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Name of the query that it fits best.
    pub query_id: String,
    #[serde(deserialize_with = "nullable")]
    /// How well; the larger the better. Comparable only within one answer; from 0 to 1 from our own reranker.
    pub score: f64,
}

message!(RerankerResult);

/// The texts that fit best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RerankerResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The best first.
    pub results: Vec<RerankerResult>,
}

message!(RerankerResponse);
