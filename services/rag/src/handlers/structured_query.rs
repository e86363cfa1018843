//! `structured-query`: the question becomes a query, the query is run over the collection's rows.

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{
    GraphQLError, QuestionToStructuredQueryRequest, RowsQueryRequest, StructuredQueryRequest,
    StructuredQueryResponse, collection_or_default,
};
use tg_schemas::processors::structured_query::{NLP_QUERY, ROWS_QUERY};

use super::required;
use crate::error::Kind;

const RESULTS: i64 = 100;

/// Serves `request` of `structured-query`.
pub(crate) struct Structured;

#[async_trait]
impl RequestHandler<StructuredQueryRequest, StructuredQueryResponse> for Structured {
    async fn serve(
        &self,
        cx: Cx,
        ask: StructuredQueryRequest,
        mut out: Responder<StructuredQueryResponse>,
    ) -> Result<(), Error> {
        let answer = answer(&cx, ask).await;
        out.send(answer.map_err(|error| Kind::StructuredQuery.of(error))?)
            .await
    }
}

async fn answer(cx: &Cx, ask: StructuredQueryRequest) -> Result<StructuredQueryResponse, Error> {
    if ask.question.trim().is_empty() {
        return Err(required("question").into());
    }
    let question = QuestionToStructuredQueryRequest {
        question: ask.question,
        max_results: RESULTS,
    };
    let query = cx.ask(NLP_QUERY, &question)?;
    let query = query.last().await?;
    let request = RowsQueryRequest {
        collection: collection_or_default(ask.collection.trim()).to_owned(),
        query: query.graphql_query,
        variables: query.variables,
        ..RowsQueryRequest::default()
    };
    let rows = cx.ask(ROWS_QUERY, &request)?;
    let rows = rows.last().await?;
    Ok(StructuredQueryResponse {
        error: None,
        data: rows.data,
        errors: rows.errors.iter().map(line).collect(),
    })
}

fn line(error: &GraphQLError) -> String {
    if error.path.is_empty() {
        return error.message.clone();
    }
    format!("{} (path: [{}])", error.message, error.path.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_their_path() {
        let error = GraphQLError {
            message: "no".into(),
            path: vec!["orders".into(), "0".into()],
            ..GraphQLError::default()
        };
        assert_eq!(line(&error), "no (path: [orders, 0])");
    }
}
