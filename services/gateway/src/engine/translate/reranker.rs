//! `reranker`: documents by how well they fit queries.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{RerankerDocument, RerankerQuery, RerankerRequest, RerankerResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `reranker` service.
pub struct Reranker;

impl Translate for Reranker {
    type Question = RerankerRequest;
    type Answer = RerankerResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        for key in ["queries", "documents"] {
            if body.opt_list(key)?.is_none() {
                return Err(body.fault(key, "is required"));
            }
        }
        let query = |fields: &Fields<'_>| {
            Ok::<_, Error>(RerankerQuery {
                query_id: fields.text("query_id")?,
                query_text: fields.required_text("query_text")?,
            })
        };
        let document = |fields: &Fields<'_>| {
            Ok::<_, Error>(RerankerDocument {
                document_id: fields.text("document_id")?,
                document_text: fields.required_text("document_text")?,
            })
        };
        Ok(RerankerRequest {
            queries: body
                .objects("queries")?
                .iter()
                .map(query)
                .collect::<Result<_, _>>()?,
            documents: body
                .objects("documents")?
                .iter()
                .map(document)
                .collect::<Result<_, _>>()?,
            limit: body.integer_or("limit", 10)?,
            ..RerankerRequest::default()
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        let results: Vec<Value> = part
            .results
            .into_iter()
            .map(|one| {
                json!({"document_id": one.document_id, "query_id": one.query_id, "score": one.score})
            })
            .collect();
        Reply::new().put("results", results).done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use tg_schemas::msg::RerankerResult;

    #[test]
    fn both_lists_are_required() {
        let request = question::<Reranker>(
            json!({"queries": [{"query_id": "q", "query_text": "x"}],
                   "documents": [{"document_id": "d", "document_text": "y"}], "limit": null}),
            "",
        )
        .unwrap();
        assert_eq!(
            (request.limit, request.documents[0].document_id.as_str()),
            (10, "d")
        );
        let message = |body| question::<Reranker>(body, "").unwrap_err().message;
        assert_eq!(message(json!({"queries": []})), "documents: is required");
        assert_eq!(
            message(json!({"queries": [{}], "documents": []})),
            "queries[0].query_text: is required"
        );
        let reply = RerankerResponse {
            results: vec![RerankerResult {
                document_id: "d".into(),
                query_id: "q".into(),
                score: 0.25,
            }],
            ..Default::default()
        };
        assert_eq!(
            part::<Reranker>(reply, ""),
            json!({"results": [{"document_id": "d", "query_id": "q", "score": 0.25}]})
        );
    }
}
