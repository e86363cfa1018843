//! `triples`: pattern queries, a client's and those that the gateway asks for one.

use serde_json::Value;
use tg_schemas::msg::{TriplesQueryRequest, TriplesQueryResponse};
use tg_schemas::vocabulary::POLICY_GRAPH;
use tg_schemas::{Error, Term, Triple};

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

/// Everything of a collection, or of one of its graphs, in batches.
pub(crate) fn everything(
    collection: &str,
    graph: Option<String>,
    batch: i64,
) -> TriplesQueryRequest {
    TriplesQueryRequest {
        collection: collection.to_owned(),
        g: graph.filter(|graph| graph != "*"),
        limit: 0,
        streaming: true,
        batch_size: batch,
        ..TriplesQueryRequest::default()
    }
}

/// Whether a collection has policies.
pub(crate) fn any_policy(collection: &str) -> TriplesQueryRequest {
    TriplesQueryRequest {
        collection: collection.to_owned(),
        g: Some(POLICY_GRAPH.to_owned()),
        limit: 1,
        ..TriplesQueryRequest::default()
    }
}

/// What is asked to find out whether anything is shown of an entity: as a subject, then as an object.
pub(crate) fn about(collection: &str, entity: &Term) -> [TriplesQueryRequest; 2] {
    let question = |s, o| TriplesQueryRequest {
        collection: collection.to_owned(),
        s,
        o,
        limit: 1,
        ..TriplesQueryRequest::default()
    };
    let entity = Some(entity.clone());
    [question(entity.clone(), None), question(None, entity)]
}

/// One triple in its own graph.
pub(crate) fn one(collection: &str, triple: &Triple) -> TriplesQueryRequest {
    TriplesQueryRequest {
        collection: collection.to_owned(),
        s: triple.s.clone(),
        p: triple.p.clone(),
        o: triple.o.clone(),
        g: Some(triple.g.clone().unwrap_or_default()),
        limit: 1,
        ..TriplesQueryRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;
    use tg_schemas::Reply as _;

    #[test]
    fn a_triple_is_looked_for_in_its_own_graph_alone() {
        let triple = Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), Term::literal("o"));
        let asked = one("c", &triple);
        assert_eq!(asked.g.as_deref(), Some(""));
        assert_eq!((asked.o, asked.limit), (triple.o.clone(), 1));
        let named = triple.in_graph("urn:g");
        assert_eq!(one("c", &named).g.as_deref(), Some("urn:g"));
    }

    #[test]
    fn everything_is_all_graphs_or_one() {
        let graph = |named: &str| everything("c", Some(named.to_owned()), 10).g;
        assert_eq!((graph("*"), graph("").as_deref()), (None, Some("")));
        let asked = everything("c", None, 10);
        assert_eq!(
            (asked.limit, asked.batch_size, asked.streaming),
            (0, 10, true)
        );
        assert_eq!(any_policy("c").g.as_deref(), Some(POLICY_GRAPH));
    }

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
