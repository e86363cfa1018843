//! Tools that ask GraphRAG (`knowledge-query`) and DocumentRAG (`document-query`). What they leave in the
//! trace is passed on with what they return.

use tg_mesh::Answer;
use tg_schemas::msg::{
    DocumentRagQuery, DocumentRagResponse, GraphRagQuery, GraphRagResponse, Source,
};
use tg_schemas::processors::agent_manager::{DOCUMENT_RAG, GRAPH_RAG};
use tg_schemas::{Error, Reply, Triple};

use super::tool_call::{Arguments, Call, Output, text};
use crate::engine::decision::{Explained, Usage};

/// Triples of sub-traces that are passed on; the store has the rest.
const TRIPLES: usize = 2_000;

pub(super) async fn graph(call: &Call<'_>, arguments: &Arguments) -> Result<Output, Error> {
    let question = GraphRagQuery {
        query: text(arguments, "question").to_owned(),
        collection: call.collection.to_owned(),
        parent_uri: call.iteration.clone(),
        // In pieces, because only then each entry of the trace comes by itself.
        streaming: true,
        ..GraphRagQuery::default()
    };
    let mut ask = call.cx.ask_options();
    ask.id = Some(call.key.clone());
    collect(call.cx.ask_with(GRAPH_RAG, &question, ask)?).await
}

pub(super) async fn documents(call: &Call<'_>, arguments: &Arguments) -> Result<Output, Error> {
    let question = DocumentRagQuery {
        query: text(arguments, "question").to_owned(),
        collection: call.collection.to_owned(),
        parent_uri: call.iteration.clone(),
        streaming: true,
        ..DocumentRagQuery::default()
    };
    let mut ask = call.cx.ask_options();
    ask.id = Some(call.key.clone());
    collect(call.cx.ask_with(DOCUMENT_RAG, &question, ask)?).await
}

/// What parts of both kinds have.
struct Part {
    explained: Option<Explained>,
    text: String,
    usage: Usage,
    sources: Vec<Source>,
}

fn part(
    id: Option<String>,
    triples: Vec<Triple>,
    text: String,
    tokens: (Option<i64>, Option<i64>),
    sources: Vec<Source>,
) -> Part {
    Part {
        explained: id.map(|id| Explained { id, triples }),
        text,
        usage: Usage {
            in_token: tokens.0.unwrap_or(0),
            out_token: tokens.1.unwrap_or(0),
            // The run's model is the one that decides.
            ..Usage::default()
        },
        sources,
    }
}

impl From<GraphRagResponse> for Part {
    fn from(from: GraphRagResponse) -> Self {
        let tokens = (from.in_token, from.out_token);
        part(
            from.explain_id,
            from.explain_triples,
            from.response,
            tokens,
            from.sources,
        )
    }
}

impl From<DocumentRagResponse> for Part {
    fn from(from: DocumentRagResponse) -> Self {
        let tokens = (from.in_token, from.out_token);
        part(
            from.explain_id,
            from.explain_triples,
            from.response.unwrap_or_default(),
            tokens,
            from.sources,
        )
    }
}

async fn collect<R: Reply + Into<Part>>(mut answer: Answer<R>) -> Result<Output, Error> {
    let mut output = Output::default();
    let mut sources = Vec::new();
    let mut left = TRIPLES;
    while let Some(part) = answer.next().await {
        let part = part?;
        if let Some(error) = part.error() {
            return Err(error.clone());
        }
        let part: Part = part.into();
        output.text.push_str(&part.text);
        output.usage.add(&part.usage);
        sources.extend(part.sources);
        if let Some(explained) = part.explained
            && explained.triples.len() <= left
        {
            left -= explained.triples.len();
            output.trace.push(explained);
        }
    }
    output.text = with_sources(output.text.trim(), &sources);
    Ok(output)
}

/// The answer with the documents behind it, so that the model can name them.
fn with_sources(text: &str, sources: &[Source]) -> String {
    if sources.is_empty() {
        return text.to_owned();
    }
    let lines: Vec<String> = sources
        .iter()
        .map(|source| format!("- {} ({})", source.title, source.uri))
        .collect();
    format!("{text}\n\nSources:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_named_behind_the_answer() {
        assert_eq!(with_sources("Yes.", &[]), "Yes.");
        let source = Source {
            uri: "urn:doc".into(),
            title: "Bridges".into(),
        };
        let text = with_sources("Yes [1].", &[source]);
        assert_eq!(text, "Yes [1].\n\nSources:\n- Bridges (urn:doc)");
    }
}
