//! `sparql`: SPARQL queries over a collection.

use tg_schemas::Error;
use tg_schemas::msg::{SparqlQueryRequest, SparqlQueryResponse};

use super::fields::{Body, Fields, Reply};
use super::part_body::PartBody;
use super::results::results;
use super::{About, Translate};

/// The `sparql` service.
pub struct Sparql;

impl Translate for Sparql {
    type Question = SparqlQueryRequest;
    type Answer = SparqlQueryResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(SparqlQueryRequest {
            collection: body.collection()?,
            query: body.required_text("query")?,
            limit: body.integer_or("limit", 10_000)?,
            streaming: body.flag("streaming")?,
            batch_size: body.integer_or("batch-size", 20)?,
            user_context: body.parsed("user-context")?,
            default_graphs: body.texts("default-graph-uri")?,
            named_graphs: body.texts("named-graph-uri")?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        results(&part)
    }

    fn part_body(part: Self::Answer, _about: &About) -> PartBody {
        PartBody::Results(Box::new(part), Vec::new())
    }

    fn failure(error: &Error, part: Self::Answer) -> Body {
        Reply::new()
            .put("query-type", part.query_type)
            .put("error", super::error_value(error))
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;
    use tg_schemas::msg::SparqlBinding;
    use tg_schemas::{Term, Triple};

    #[test]
    fn the_query_is_required() {
        assert_eq!(
            question::<Sparql>(json!({}), "").unwrap_err().message,
            "query: is required"
        );
        let request = question::<Sparql>(json!({"query": "ASK {}", "limit": null}), "").unwrap();
        assert_eq!(request.limit, 10_000);
    }

    #[test]
    fn each_form_has_its_own_keys() {
        let select = SparqlQueryResponse {
            query_type: "select".into(),
            variables: vec!["x".into(), "y".into()],
            bindings: vec![SparqlBinding {
                values: vec![
                    Some(Term::Quoted(Box::new(Triple::new(
                        Term::iri("urn:a"),
                        Term::iri("urn:b"),
                        Term::iri("urn:c"),
                    )))),
                    None,
                ],
            }],
            ..Default::default()
        };
        let body = part::<Sparql>(select, "");
        assert_eq!(body["variables"], json!(["x", "y"]));
        assert_eq!(body["bindings"][0]["values"][0]["tr"]["s"]["i"], "urn:a");
        assert!(body["bindings"][0]["values"][1].is_null());
        let ask = SparqlQueryResponse {
            query_type: "ask".into(),
            ask_result: false,
            ..Default::default()
        };
        assert_eq!(
            part::<Sparql>(ask, ""),
            json!({"query-type": "ask", "ask-result": false})
        );
        let construct = SparqlQueryResponse {
            query_type: "construct".into(),
            ..Default::default()
        };
        assert_eq!(
            part::<Sparql>(construct, ""),
            json!({"query-type": "construct", "triples": []})
        );
    }
}
