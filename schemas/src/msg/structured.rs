//! Rows, queries over them, structured data. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;
use super::metadata::Metadata;
use crate::error::Error;

/// The `ExtractedObject` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ExtractedObject {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `schema_name`.
    pub schema_name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `values`.
    pub values: Vec<BTreeMap<String, String>>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `confidence`.
    pub confidence: f64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `source_span`.
    pub source_span: String,
}

message!(ExtractedObject);

/// The `StructuredDataDiagnosisRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct StructuredDataDiagnosisRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `sample`.
    pub sample: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `type`.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `schema_name`.
    pub schema_name: String,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `options`.
    pub options: BTreeMap<String, String>,
}

message!(StructuredDataDiagnosisRequest);

/// The `StructuredDataDiagnosisResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct StructuredDataDiagnosisResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `detected_type`.
    pub detected_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `confidence`.
    pub confidence: f64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `descriptor`.
    pub descriptor: String,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `metadata`.
    pub metadata: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `schema_matches`.
    pub schema_matches: Vec<String>,
}

message!(StructuredDataDiagnosisResponse);

/// The `GraphQLError` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphQLError {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `message`.
    pub message: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `path`.
    pub path: Vec<String>,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `extensions`.
    pub extensions: BTreeMap<String, String>,
}

message!(GraphQLError);

/// The `RowsQueryRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowsQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query`.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `variables`; values keep their JSON types.
    pub variables: serde_json::Map<String, serde_json::Value>,
    /// Wire field `operation_name`.
    pub operation_name: Option<String>,
}

message!(RowsQueryRequest);

/// The `RowsQueryResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowsQueryResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `data`.
    pub data: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `errors`.
    pub errors: Vec<GraphQLError>,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `extensions`.
    pub extensions: BTreeMap<String, String>,
}

message!(RowsQueryResponse);

/// The `QuestionToStructuredQueryRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct QuestionToStructuredQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `question`.
    pub question: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `max_results`.
    pub max_results: i64,
}

message!(QuestionToStructuredQueryRequest);

/// The `QuestionToStructuredQueryResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct QuestionToStructuredQueryResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `graphql_query`.
    pub graphql_query: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `variables`; values keep their JSON types.
    pub variables: serde_json::Map<String, serde_json::Value>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `detected_schemas`.
    pub detected_schemas: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `confidence`.
    pub confidence: f64,
}

message!(QuestionToStructuredQueryResponse);

/// The `StructuredQueryRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct StructuredQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `question`.
    pub question: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
}

message!(StructuredQueryRequest);

/// The `StructuredQueryResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct StructuredQueryResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `data`.
    pub data: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `errors`.
    pub errors: Vec<String>,
}

message!(StructuredQueryResponse);
