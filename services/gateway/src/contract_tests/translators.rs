//! The translator of each service and kind, as the tests of the contract use it.

use std::collections::BTreeSet;

use serde_json::Value;
use tg_schemas::Error;

use crate::engine::translate::{
    About, Body, Fields, Looked, Translate, agent, audit, chat, collection, completion, config,
    embeddings, flow, generic, iam, image, knowledge, librarian, load, operations, passthrough,
    prompt, rag, reranker, rows, sparql, structured, threads, tool, traces, triples, usage,
    vectors, violations,
};
use crate::registry;

/// A translator, with its types forgotten.
pub(super) struct Translator {
    kind: &'static str,
    reads: fn(&Fields<'_>, &About) -> Result<(), Error>,
    shows: fn(Value, &About) -> Option<Body>,
    /// Avro schema of an answer.
    pub(super) answer: &'static str,
}

impl Translator {
    fn new<T: Translate>(kind: &'static str) -> Self
    where
        T::Answer: tg_schemas::Message,
    {
        Self {
            kind,
            reads: |fields, about| T::question(fields, about).map(drop),
            shows: |answer, about| {
                let answer = serde_json::from_value(answer).ok()?;
                Some(T::part(answer, about))
            },
            answer: <T::Answer as tg_schemas::Message>::AVRO,
        }
    }

    fn about(&self, operation: &str) -> About {
        About {
            operation: operation.to_owned(),
            kind: self.kind,
            explained: true,
            ..About::default()
        }
    }

    /// Reads a body as the service would.
    pub(super) fn reads(&self, body: &Body, operation: &str) -> Result<(), Error> {
        (self.reads)(&Fields::new(body), &self.about(operation))
    }

    /// Which keys of a body are looked at, whatever else is wrong with it.
    pub(super) fn looks_at(&self, body: &Body, operation: &str) -> BTreeSet<String> {
        let looked = Looked::default();
        let fields = Fields::watched(body, &looked);
        (self.reads)(&fields, &self.about(operation)).ok();
        looked.paths()
    }

    /// A message of an answer as clients see it.
    pub(super) fn shows(&self, answer: Value, operation: &str) -> Body {
        let shown = (self.shows)(answer.clone(), &self.about(operation));
        shown.unwrap_or_else(|| panic!("{answer} is no answer"))
    }
}

/// The translator of a service or kind.
pub(super) fn of(service: &str) -> Translator {
    let kind = registry::flow_kind(service).map_or("", |kind| kind.name);
    let new = match service {
        "iam" => Translator::new::<iam::Iam>,
        "audit" => Translator::new::<audit::Audit>,
        "config" => Translator::new::<config::Config>,
        "flow" => Translator::new::<flow::Flow>,
        "librarian" => Translator::new::<librarian::Librarian>,
        "collection-management" => Translator::new::<collection::Collection>,
        "traces" => Translator::new::<traces::Traces>,
        "usage" => Translator::new::<usage::Usage>,
        "agent" => Translator::new::<agent::Agent>,
        "text-completion" => Translator::new::<completion::Completion>,
        "chat-completion" => Translator::new::<chat::Chat>,
        "prompt" => Translator::new::<prompt::Prompt>,
        "mcp-tool" => Translator::new::<tool::Tool>,
        "triples" => Translator::new::<triples::TriplesQuery>,
        "sparql" => Translator::new::<sparql::Sparql>,
        "thru" => Translator::new::<passthrough::Passthrough>,
        "knowledge" => Translator::new::<knowledge::Knowledge>,
        "threads" => Translator::new::<threads::Threads>,
        "sessions" => Translator::new::<operations::Operations>,
        "violations" => Translator::new::<violations::Violations>,
        "graph-rag" => Translator::new::<rag::GraphRag>,
        "document-rag" => Translator::new::<rag::DocumentRag>,
        "embeddings" => Translator::new::<embeddings::Embeddings>,
        "graph-embeddings" => Translator::new::<vectors::GraphEmbeddings>,
        "document-embeddings" => Translator::new::<vectors::DocumentEmbeddings>,
        "row-embeddings" => Translator::new::<vectors::RowEmbeddings>,
        "keyword-index" => Translator::new::<vectors::KeywordIndex>,
        "rows" => Translator::new::<rows::Rows>,
        "nlp-query" => Translator::new::<structured::NlpQuery>,
        "structured-query" => Translator::new::<structured::StructuredQuery>,
        "structured-diag" => Translator::new::<structured::StructuredDiag>,
        "reranker" => Translator::new::<reranker::Reranker>,
        "image-to-text" => Translator::new::<image::ImageToText>,
        "text-load" => Translator::new::<load::TextLoad>,
        "document-load" => Translator::new::<load::DocumentLoad>,
        _ => Translator::new::<generic::Generic>,
    };
    new(kind)
}
