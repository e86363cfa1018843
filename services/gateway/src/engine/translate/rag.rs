//! `graph-rag` and `document-rag`: answers from what is stored, in chunks, with explain messages between.

use serde_json::{Value, json};
use tg_schemas::msg::{
    DocumentRagQuery, DocumentRagResponse, GraphRagQuery, GraphRagResponse, Source,
};
use tg_schemas::{Error, Reply as _, Triple};

use super::answered::Answered;
use super::fields::{Body, Fields, Reply};
use super::{About, Translate, error_value};

/// The `graph-rag` service.
pub struct GraphRag;

impl Translate for GraphRag {
    type Question = GraphRagQuery;
    type Answer = GraphRagResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        let query = GraphRagQuery {
            query: body.required_text("query")?,
            collection: body.collection()?,
            entity_limit: body.integer_or("entity-limit", 0)?,
            triple_limit: body.integer_or("triple-limit", 0)?,
            max_subgraph_size: body.integer_or("max-subgraph-size", 0)?,
            max_path_length: body.integer_or("max-path-length", 0)?,
            edge_score_limit: body.integer_or("edge-score-limit", 0)?,
            edge_limit: body.integer_or("edge-limit", 0)?,
            max_reranker_input: body.integer_or("max-reranker-input", 0)?,
            streaming: body.flag("streaming")?,
            parent_uri: String::new(),
            user_context: body.parsed("user-context")?,
            grounding_seeds: body.texts("grounding-seeds")?,
            graph_seeds: body.texts("graph-seeds")?,
            languages: body.texts("languages")?,
            traversal_instructions: body.parsed("traversal-instructions")?.unwrap_or_default(),
            graph: body.opt_text("graph")?,
        };
        if !query.grounding_seeds.is_empty() && !query.graph_seeds.is_empty() {
            let why = "grounding-seeds and graph-seeds are mutually exclusive";
            return Err(body.fault("graph-seeds", why));
        }
        Ok(query)
    }

    fn part(part: Self::Answer, about: &About) -> Body {
        frame(Frame::from(part).for_caller(about))
    }

    fn failure(error: &Error, part: Self::Answer) -> Body {
        failed(error, part.into())
    }

    fn is_aside(part: &Self::Answer, about: &About) -> bool {
        about.whole && !part.is_last()
    }
}

/// The `document-rag` service. Limits that are left out are the service's own, as those of `graph-rag`.
pub struct DocumentRag;

impl Translate for DocumentRag {
    type Question = DocumentRagQuery;
    type Answer = DocumentRagResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(DocumentRagQuery {
            query: body.required_text("query")?,
            collection: body.collection()?,
            doc_limit: body.integer_or("doc-limit", 0)?,
            fetch_limit: body.integer_or("fetch-limit", 0)?,
            streaming: body.flag("streaming")?,
            retrieval_mode: body.text("retrieval-mode")?,
            vector_weight: body.number_or("vector-weight", 0.0)?,
            keyword_weight: body.number_or("keyword-weight", 0.0)?,
            rerank_diversity_mode: body.text("rerank-diversity-mode")?,
            rerank_diversity_lambda: body.number_or("rerank-diversity-lambda", 0.0)?,
            ..DocumentRagQuery::default()
        })
    }

    fn part(part: Self::Answer, about: &About) -> Body {
        frame(Frame::from(part).for_caller(about))
    }

    fn failure(error: &Error, part: Self::Answer) -> Body {
        failed(error, part.into())
    }

    fn is_aside(part: &Self::Answer, about: &About) -> bool {
        about.whole && !part.is_last()
    }
}

/// What frames of both kinds have.
struct Frame {
    message_type: String,
    response: Option<String>,
    explain: (Option<String>, Option<String>, Vec<Triple>),
    ends: (bool, bool),
    usage: (Option<i64>, Option<i64>, Option<String>),
    sources: Vec<Source>,
    embeddings: Option<String>,
    answered: Answered,
}

impl Frame {
    /// An answer in one part carries its whole trace, many times its own size: for those who want it.
    fn for_caller(mut self, about: &About) -> Self {
        if !about.explained {
            self.explain = (None, None, Vec::new());
        }
        self
    }
}

impl From<GraphRagResponse> for Frame {
    fn from(part: GraphRagResponse) -> Self {
        Self {
            message_type: part.message_type,
            response: Some(part.response),
            explain: (part.explain_id, part.explain_graph, part.explain_triples),
            ends: (part.end_of_stream, part.end_of_session),
            usage: (part.in_token, part.out_token, part.model),
            sources: part.sources,
            embeddings: part.embeddings_model,
            answered: Answered {
                citations: part.citations,
                refused: part.refused,
                trace: part.trace,
                warnings: part.warnings,
            },
        }
    }
}

impl From<DocumentRagResponse> for Frame {
    fn from(part: DocumentRagResponse) -> Self {
        Self {
            message_type: part.message_type,
            response: part.response,
            explain: (part.explain_id, part.explain_graph, part.explain_triples),
            ends: (part.end_of_stream, part.end_of_session),
            usage: (part.in_token, part.out_token, part.model),
            sources: part.sources,
            embeddings: part.embeddings_model,
            answered: Answered {
                citations: part.citations,
                refused: part.refused,
                trace: part.trace,
                warnings: part.warnings,
            },
        }
    }
}

fn frame(part: Frame) -> Body {
    let (id, graph, triples) = part.explain;
    let (in_token, out_token, model) = part.usage;
    let triples: Vec<Value> = triples.iter().map(Triple::to_api).collect();
    let sources: Vec<Value> = part
        .sources
        .into_iter()
        .map(|source| json!({"uri": source.uri, "title": source.title}))
        .collect();
    let reply = Reply::new()
        .put_truthy("message_type", part.message_type)
        .put_some("response", part.response)
        .put_truthy("explain_id", id.unwrap_or_default())
        .put_some("explain_graph", graph)
        .put_truthy("explain_triples", triples)
        .put("end_of_stream", part.ends.0)
        .put("end_of_session", part.ends.1)
        .put_some("in_token", in_token)
        .put_some("out_token", out_token)
        .put_some("model", model)
        .put_truthy("sources", sources)
        .put_some("embeddings_model", part.embeddings);
    part.answered.add_to(reply).done()
}

/// A failure ends stream and session, whatever the service set.
fn failed(error: &Error, mut part: Frame) -> Body {
    part.ends = (true, true);
    let mut body = frame(part);
    body.insert("error".to_owned(), error_value(error));
    body
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use tg_schemas::Term;

    #[test]
    fn numbers_may_be_text_and_limits_left_out_are_the_services() {
        let request = question::<GraphRag>(
            json!({"query": "q", "edge-limit": "3", "graph": null, "languages": ["en"],
                   "explainable": true,
                   "traversal-instructions": [{"types": ["urn:T"], "graphs": null}]}),
            "",
        )
        .unwrap();
        assert_eq!((request.edge_limit, request.entity_limit), (3, 0));
        assert_eq!(
            (request.max_reranker_input, request.max_subgraph_size),
            (0, 0)
        );
        assert_eq!(request.graph, None);
        assert_eq!(request.traversal_instructions[0].types, ["urn:T"]);
        let request = question::<DocumentRag>(json!({"query": "q"}), "").unwrap();
        assert_eq!((request.doc_limit, request.fetch_limit), (0, 0));
    }

    #[test]
    fn faults_name_the_field() {
        let message = |body| question::<GraphRag>(body, "").unwrap_err().message;
        assert_eq!(message(json!({})), "query: is required");
        assert!(
            message(json!({"query": "q", "graph-seeds": ["a"], "grounding-seeds": ["b"]}))
                .contains("mutually exclusive")
        );
        let error = question::<DocumentRag>(json!({"query": "q", "vector-weight": "x"}), "");
        assert_eq!(
            error.unwrap_err().message,
            "vector-weight: must be a number"
        );
    }

    #[test]
    fn frames_have_the_keys_of_the_contract() {
        let explain = GraphRagResponse {
            message_type: "explain".into(),
            explain_id: Some("urn:x".into()),
            explain_graph: Some(tg_schemas::vocabulary::RETRIEVAL_GRAPH.into()),
            explain_triples: vec![Triple::new(
                Term::iri("urn:a"),
                Term::iri("urn:b"),
                Term::iri("urn:c"),
            )],
            ..Default::default()
        };
        let body = Value::Object(GraphRag::part(explain.clone(), &explained()));
        assert_eq!(body["explain_triples"][0]["s"]["i"], "urn:a");
        assert_eq!(
            (&body["end_of_stream"], &body["end_of_session"]),
            (&json!(false), &json!(false))
        );
        let last = GraphRagResponse {
            message_type: "chunk".into(),
            end_of_stream: true,
            end_of_session: true,
            in_token: Some(3),
            sources: vec![Source {
                uri: "urn:d".into(),
                title: "D".into(),
            }],
            ..Default::default()
        };
        assert_eq!(
            part::<GraphRag>(last, ""),
            json!({"message_type": "chunk", "response": "", "end_of_stream": true,
                   "end_of_session": true, "in_token": 3, "sources": [{"uri": "urn:d", "title": "D"}]})
        );
        let end = DocumentRagResponse {
            message_type: "end".into(),
            end_of_session: true,
            embeddings_model: Some("lexical/1024".into()),
            ..Default::default()
        };
        assert_eq!(
            part::<DocumentRag>(end, ""),
            json!({"message_type": "end", "end_of_stream": false, "end_of_session": true,
                   "embeddings_model": "lexical/1024"})
        );
    }

    fn explained() -> About {
        About {
            explained: true,
            ..About::default()
        }
    }

    #[test]
    fn who_does_not_ask_for_the_trace_gets_its_name_alone() {
        let whole = DocumentRagResponse {
            response: Some("It is [1].".into()),
            explain_id: Some("urn:x".into()),
            explain_graph: Some(tg_schemas::vocabulary::RETRIEVAL_GRAPH.into()),
            explain_triples: vec![Triple::default()],
            end_of_stream: true,
            end_of_session: true,
            trace: "urn:x".into(),
            ..Default::default()
        };
        assert_eq!(
            part::<DocumentRag>(whole.clone(), ""),
            json!({"response": "It is [1].", "end_of_stream": true, "end_of_session": true,
                   "trace": "urn:x"})
        );
        let body = DocumentRag::part(whole, &explained());
        assert!(body.contains_key("explain_triples") && body.contains_key("explain_id"));
    }

    #[test]
    fn a_failure_ends_everything() {
        let error = Error::typed("document-rag-error", "no");
        let body = DocumentRag::failure(
            &error,
            DocumentRagResponse {
                error: Some(error.clone()),
                ..Default::default()
            },
        );
        assert_eq!(
            Value::Object(body),
            json!({"end_of_stream": true, "end_of_session": true,
                   "error": {"type": "document-rag-error", "message": "no"}})
        );
    }

    #[test]
    fn who_wants_the_whole_answer_gets_one_frame() {
        let whole = About {
            whole: true,
            ..About::default()
        };
        let explain = GraphRagResponse::default();
        assert!(GraphRag::is_aside(&explain, &whole));
        assert!(!GraphRag::is_aside(&explain, &About::default()));
        let failed = GraphRagResponse::failure(Error::typed("t", "m"));
        assert!(!GraphRag::is_aside(&failed, &whole));
    }
}
