//! `nlp-query`: a question as GraphQL over the workspace's rows, in two steps: which schemas, then the query.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{QuestionToStructuredQueryRequest, QuestionToStructuredQueryResponse};
use tg_schemas::table::Table;

use super::{SELECT, required};
use crate::ask;
use crate::engine::graphql;
use crate::engine::schemas;
use crate::error::{Kind, RagError};

const GENERATE: &str = "graphql-generation";
/// Confidence of a model that tells none.
const CONFIDENCE: f64 = 0.8;
/// Schemas tried when the model named none.
const TRIED: usize = 5;
/// Rows that a query returns anyway, so that it need not say.
const USUAL_RESULTS: i64 = 100;

/// Serves `request` of `nlp-query`.
pub(crate) struct Nlp;

#[async_trait]
impl RequestHandler<QuestionToStructuredQueryRequest, QuestionToStructuredQueryResponse> for Nlp {
    async fn serve(
        &self,
        cx: Cx,
        ask: QuestionToStructuredQueryRequest,
        mut out: Responder<QuestionToStructuredQueryResponse>,
    ) -> Result<(), Error> {
        let answer = answer(&cx, &ask).await;
        out.send(answer.map_err(|error| Kind::NlpQuery.of(error))?)
            .await
    }
}

async fn answer(
    cx: &Cx,
    ask: &QuestionToStructuredQueryRequest,
) -> Result<QuestionToStructuredQueryResponse, Error> {
    let question = ask.question.trim();
    if question.is_empty() {
        return Err(required("question").into());
    }
    let all = ask::schemas_of(cx);
    if all.is_empty() {
        return Err(RagError::NoSchemas.into());
    }
    let chosen = select(cx, question, &all).await?;
    if chosen.is_empty() {
        return Err(RagError::NoFit.into());
    }
    let shown: Vec<Value> = chosen.iter().copied().map(schemas::full).collect();
    let reply = ask::object(
        cx,
        GENERATE,
        BTreeMap::from([
            ("question".to_owned(), json!(question).to_string()),
            ("schemas".to_owned(), json!(shown).to_string()),
        ]),
    )
    .await?;
    let query = reply
        .get("query")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if query.trim().is_empty() {
        return Err(RagError::NoQuery.into());
    }
    let bounded = match u64::try_from(ask.max_results) {
        Ok(most) if most > 0 && ask.max_results != USUAL_RESULTS => graphql::bounded(query, most),
        _ => query.to_owned(),
    };
    let confidence = reply.get("confidence").and_then(Value::as_f64);
    Ok(QuestionToStructuredQueryResponse {
        error: None,
        graphql_query: bounded,
        variables: reply
            .get("variables")
            .and_then(Value::as_object)
            .map_or_else(Map::new, Clone::clone),
        detected_schemas: chosen.iter().map(|schema| schema.key.clone()).collect(),
        confidence: confidence.unwrap_or(CONFIDENCE).clamp(0.0, 1.0),
    })
}

/// The schemas that the model names; if it names none of ours, those whose words fit.
async fn select<'a>(cx: &Cx, question: &str, all: &'a [Table]) -> Result<Vec<&'a Table>, Error> {
    let shown: Vec<Value> = all.iter().map(schemas::brief).collect();
    let reply = ask::object(
        cx,
        SELECT,
        BTreeMap::from([
            ("question".to_owned(), json!(question).to_string()),
            ("schemas".to_owned(), json!(shown).to_string()),
        ]),
    )
    .await?;
    let named = schemas::named(all, &reply);
    Ok(if named.is_empty() {
        schemas::fitting(all, question, TRIED)
    } else {
        named
    })
}
