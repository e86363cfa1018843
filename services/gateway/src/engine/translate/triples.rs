//! `triples`: pattern queries.

use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{TriplesQueryRequest, TriplesQueryResponse};

use super::fields::{Body, Fields, Reply, triples_to_api};
use super::{About, Translate};

/// The `triples` service.
pub struct TriplesQuery;

impl Translate for TriplesQuery {
    type Question = TriplesQueryRequest;
    type Answer = TriplesQueryResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(TriplesQueryRequest {
            collection: body.collection()?,
            s: body.term("s")?,
            p: body.term("p")?,
            o: body.term("o")?,
            g: body.opt_text("g")?.filter(|graph| graph != "*"),
            limit: body.integer_or("limit", 10_000)?,
            streaming: body.flag("streaming")?,
            batch_size: body.integer_or("batch-size", 20)?,
            user_context: body.parsed("user-context")?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        Reply::new()
            .put("response", triples_to_api(&part.triples))
            .done()
    }

    fn failure(error: &Error, _part: Self::Answer) -> Body {
        Reply::new()
            .put("response", Value::Array(Vec::new()))
            .put("error", super::error_value(error))
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;
    use tg_schemas::{Reply as _, Term, Triple};

    #[test]
    fn patterns_take_terms_and_bare_text() {
        let request = question::<TriplesQuery>(
            json!({"s": "http://example.org/a", "p": null, "o": {"t": "l", "v": "x", "ln": "en"},
                   "g": "*", "batch-size": "50"}),
            "",
        )
        .unwrap();
        assert_eq!(request.s, Some(Term::iri("http://example.org/a")));
        assert_eq!(request.p, None);
        assert_eq!(request.g, None);
        assert_eq!((request.limit, request.batch_size), (10_000, 50));
        let request = question::<TriplesQuery>(json!({"g": ""}), "").unwrap();
        assert_eq!(request.g.as_deref(), Some(""));
        let error = question::<TriplesQuery>(json!({"o": 4}), "").unwrap_err();
        assert_eq!(error.message, "o: must be a term");
    }

    #[test]
    fn replies_hold_quoted_triples() {
        let inner = Triple::new(Term::iri("urn:a"), Term::iri("urn:b"), Term::literal("c"));
        let outer = Triple::new(
            Term::Quoted(Box::new(inner)),
            Term::iri("urn:p"),
            Term::Blank("b0".into()),
        )
        .in_graph("urn:g");
        let reply = TriplesQueryResponse {
            triples: vec![outer],
            ..Default::default()
        };
        assert_eq!(
            part::<TriplesQuery>(reply, ""),
            json!({"response": [{
                "s": {"t": "t", "tr": {"s": {"t": "i", "i": "urn:a"}, "p": {"t": "i", "i": "urn:b"},
                                        "o": {"t": "l", "v": "c"}}},
                "p": {"t": "i", "i": "urn:p"}, "o": {"t": "b", "d": "b0"}, "g": "urn:g"}]})
        );
        let error = Error::typed("triples-query-error", "no");
        let body = TriplesQuery::failure(&error, TriplesQueryResponse::failure(error.clone()));
        assert_eq!(body["response"], json!([]));
        assert_eq!(body["error"]["type"], "triples-query-error");
    }
}
