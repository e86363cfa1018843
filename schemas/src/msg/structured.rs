//! Rows, queries over them, structured data. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;
use super::metadata::Metadata;
use crate::error::Error;

/// Rows of one schema, found in a text or imported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ExtractedObject {
    /// What they come from, and the collection they go to.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Schema of the rows (config type `schema`).
    pub schema_name: String,
    #[serde(deserialize_with = "nullable")]
    /// The rows, text by field name; numbers and dates are text, too.
    pub values: Vec<BTreeMap<String, String>>,
    #[serde(deserialize_with = "nullable")]
    /// How sure the sender is, from 0 to 1: ours says 0.8 of what a model found and 1 of what was imported. Not
    /// stored.
    pub confidence: f64,
    #[serde(deserialize_with = "nullable")]
    /// The beginning of the text that the rows were found in; may be empty. Not stored.
    pub source_span: String,
    #[serde(deserialize_with = "nullable")]
    /// Who found them, and how: see [`super::made_by`]. Ours: foreign peers ignore it.
    pub made_by: String,
}

message!(ExtractedObject, metadata);

/// Asks what a sample of data is, and how it fits a schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct StructuredDataDiagnosisRequest {
    #[serde(deserialize_with = "nullable")]
    /// `detect-type`, `generate-descriptor`, `diagnose` (both) or `schema-selection`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// The beginning of the data, as text.
    pub sample: String,
    #[serde(deserialize_with = "nullable")]
    /// `csv`, `json` or `xml`; empty: found out where the operation allows it.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// Schema that the data is for; `diagnose` takes the first one if empty.
    pub schema_name: String,
    #[serde(deserialize_with = "string_map")]
    /// What is known of the format, by name: `delimiter`, `has_header`, `encoding`.
    pub options: BTreeMap<String, String>,
}

message!(StructuredDataDiagnosisRequest);

/// What the sample is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct StructuredDataDiagnosisResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The operation that was asked for.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// `csv`, `json` or `xml`; empty where it was not asked for.
    pub detected_type: String,
    #[serde(deserialize_with = "nullable")]
    /// How sure the answer is, from 0 to 1.
    pub confidence: f64,
    #[serde(deserialize_with = "nullable")]
    /// How the data is mapped to the schema, as a JSON object in text for `tg-load-structured-data`.
    pub descriptor: String,
    #[serde(deserialize_with = "string_map")]
    /// What was found out of the format: `csv_options` as a JSON object in text.
    pub metadata: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    /// `schema-selection`: names of schemas that fit.
    pub schema_matches: Vec<String>,
}

message!(StructuredDataDiagnosisResponse);

/// What is wrong with a query or a part of its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphQLError {
    #[serde(deserialize_with = "nullable")]
    /// What is wrong.
    pub message: String,
    #[serde(deserialize_with = "nullable")]
    /// Where in the result, from the outermost name on; list positions as text. Empty: the whole query.
    pub path: Vec<String>,
    #[serde(deserialize_with = "string_map")]
    /// What else is known, by name.
    pub extensions: BTreeMap<String, String>,
}

message!(GraphQLError);

/// A GraphQL query of a collection's rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowsQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// Collection to look in.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// The query; each schema of the workspace is a field of `Query`.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Values of the query's variables by name; they keep their JSON types.
    pub variables: serde_json::Map<String, serde_json::Value>,
    /// Which operation, where the query has several; `None`: the only one.
    pub operation_name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Instead of a query: all rows of the collection as they were written, page by page. Ours, as `after`.
    pub export: bool,
    #[serde(deserialize_with = "nullable")]
    /// Where the page begins: `next` of the page before; empty: the first page.
    pub after: String,
}

message!(RowsQueryRequest);

/// The result of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowsQueryResponse {
    /// What kept the query from being tried; `None`: nothing. What is wrong with the query itself is in `errors`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The result as JSON text; empty or `null`: none.
    pub data: String,
    #[serde(deserialize_with = "nullable")]
    /// What is wrong with the query, or with parts of the result.
    pub errors: Vec<GraphQLError>,
    #[serde(deserialize_with = "string_map")]
    /// What else is known, by name.
    pub extensions: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    /// `export`: the schema of `rows`. Ours, as all that follows.
    pub schema_name: String,
    #[serde(deserialize_with = "nullable")]
    /// `export`: rows of one schema, text by field name, as they were written.
    pub rows: Vec<BTreeMap<String, String>>,
    #[serde(deserialize_with = "nullable")]
    /// `export`: where the next page begins; empty: this was the last.
    pub next: String,
}

message!(RowsQueryResponse);

/// Asks for a GraphQL query that answers a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct QuestionToStructuredQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// The question.
    pub question: String,
    #[serde(deserialize_with = "nullable")]
    /// Most rows that the query is to yield; 0 or less, and 100: as the model wrote it.
    pub max_results: i64,
}

message!(QuestionToStructuredQueryRequest);

/// The query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct QuestionToStructuredQueryResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The query, for [`RowsQueryRequest`].
    pub graphql_query: String,
    #[serde(deserialize_with = "nullable")]
    /// Values of its variables by name; they keep their JSON types.
    pub variables: serde_json::Map<String, serde_json::Value>,
    #[serde(deserialize_with = "nullable")]
    /// Schemas that it asks.
    pub detected_schemas: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// How sure the model is, from 0 to 1.
    pub confidence: f64,
}

message!(QuestionToStructuredQueryResponse);

/// A question that is answered from rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct StructuredQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// The question.
    pub question: String,
    #[serde(deserialize_with = "nullable")]
    /// Collection to look in; empty: `default`.
    pub collection: String,
}

message!(StructuredQueryRequest);

/// The rows that answer it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct StructuredQueryResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The result as JSON text; empty or `null`: none.
    pub data: String,
    #[serde(deserialize_with = "nullable")]
    /// What is wrong with the query that was made, one line each.
    pub errors: Vec<String>,
}

message!(StructuredQueryResponse);
