//! Tools that ask GraphRAG (`knowledge-query`) and DocumentRAG (`document-query`). What they leave in the
//! trace is passed on with what they return.

use tg_mesh::Answer;
use tg_schemas::msg::{
    Citation, DocumentRagQuery, DocumentRagResponse, GraphRagQuery, GraphRagResponse, Source,
};
use tg_schemas::processors::agent_manager::{DOCUMENT_RAG, GRAPH_RAG};
use tg_schemas::{Error, Reply, Triple};

use super::tool_call::{Arguments, Call, Output, text};
use crate::engine::citing;
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
    collect(call, call.cx.ask_with(GRAPH_RAG, &question, ask)?).await
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
    collect(call, call.cx.ask_with(DOCUMENT_RAG, &question, ask)?).await
}

/// What parts of both kinds have.
struct Part {
    explained: Option<Explained>,
    text: String,
    usage: Usage,
    sources: Vec<Source>,
    citations: Vec<Citation>,
}

impl Part {
    fn explaining(id: Option<String>, triples: Vec<Triple>) -> Self {
        Self {
            explained: id.map(|id| Explained { id, triples }),
            text: String::new(),
            usage: Usage::default(),
            sources: Vec::new(),
            citations: Vec::new(),
        }
    }

    fn took(mut self, in_token: Option<i64>, out_token: Option<i64>) -> Self {
        // The run's model is the one that decides.
        self.usage.in_token = in_token.unwrap_or(0);
        self.usage.out_token = out_token.unwrap_or(0);
        self
    }
}

impl From<GraphRagResponse> for Part {
    fn from(from: GraphRagResponse) -> Self {
        Self {
            text: from.response,
            sources: from.sources,
            citations: from.citations,
            ..Self::explaining(from.explain_id, from.explain_triples)
        }
        .took(from.in_token, from.out_token)
    }
}

impl From<DocumentRagResponse> for Part {
    fn from(from: DocumentRagResponse) -> Self {
        Self {
            text: from.response.unwrap_or_default(),
            sources: from.sources,
            citations: from.citations,
            ..Self::explaining(from.explain_id, from.explain_triples)
        }
        .took(from.in_token, from.out_token)
    }
}

async fn collect<R: Reply + Into<Part>>(
    call: &Call<'_>,
    mut answer: Answer<R>,
) -> Result<Output, Error> {
    let mut output = Output::default();
    let (mut sources, mut citations) = (Vec::new(), Vec::new());
    let mut left = TRIPLES;
    while let Some(part) = answer.next().await {
        let part = part?;
        let failed = part.error().cloned();
        let part: Part = part.into();
        output.usage.add(&part.usage);
        if let Some(error) = failed {
            return match output.usage.in_token + output.usage.out_token {
                0 => Err(error),
                _ => Ok(Output {
                    usage: output.usage,
                    failed: Some(error),
                    ..Output::default()
                }),
            };
        }
        output.text.push_str(&part.text);
        sources.extend(part.sources);
        citations.extend(part.citations);
        if let Some(explained) = part.explained
            && explained.triples.len() <= left
        {
            left -= explained.triples.len();
            output.trace.push(explained);
        }
    }
    // A foreign service does not say what its numbers name; they stay as they are.
    let (text, new) = match citations.is_empty() {
        true => (output.text, Vec::new()),
        false => citing::of_run(&output.text, &citations, call.known),
    };
    output.citations = new;
    output.text = with_sources(text.trim(), &sources);
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
