//! Where facts were read: the sentences of documents that say them, so that an answer from the graph can quote and cite them.

use std::time::Duration;

use tg_citations::excerpt;
use tg_clients::graph;
use tg_clients::library::Library;
use tg_schemas::msg::{Citation, SourcesRequest, SourcesResponse};
use tg_schemas::processors::agent_manager::SOURCES;
use tg_schemas::{Error, Triple};

use super::tool_call::Call;
use crate::engine::citing;

/// Facts that are followed to their documents, of one call.
const FACTS: usize = 20;
/// Longest wait for their texts.
const FETCH: Duration = Duration::from_secs(10);

/// What stands above the sentences in what the tool returns.
const READ_FROM: &str = "Read from:";

/// A fact that is told.
pub(super) struct Fact {
    /// As it stands in the graph.
    pub(super) triple: Triple,
    /// What it says of the thing that was asked about.
    pub(super) said: String,
}

/// What documents say of facts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Origins {
    /// Citations that the run does not know.
    pub(super) citations: Vec<Citation>,
    /// The sentences for the model, each with its number of the run; empty without any.
    pub(super) sentences: String,
}

/// Citations and sentences of the first facts, as far as they come from documents. A graph that is not ours, or that cannot be
/// asked now, gives none.
///
/// # Errors
/// When the call is over.
pub(super) async fn origins(call: &Call<'_>, facts: Vec<Fact>) -> Result<Origins, Error> {
    if facts.is_empty() || !graph::is_ours(call.cx) {
        return Ok(Origins::default());
    }
    match cited(call, facts).await {
        // Policies are about things and not about texts: a caller who is held to them reads no sentences.
        Ok(cites) => Ok(Origins::of(
            &cites,
            call.known,
            call.cx.headers.user_context.is_none(),
        )),
        Err(error) if error.code().is_over() => Err(error),
        Err(error) => {
            tracing::warn!(%error, "facts could not be followed to their documents");
            Ok(Origins::default())
        }
    }
}

impl Origins {
    fn of(cites: &[Citation], known: &[Citation], quoted: bool) -> Self {
        let (_, citations) = citing::of_run("", cites, known);
        let mut lines: Vec<String> = Vec::new();
        for one in cites.iter().filter(|one| quoted && !one.text.is_empty()) {
            let number = citing::number_in_run(one, known, &citations);
            let line = number.map(|number| format!("[{number}] {}", one.text));
            lines.extend(line.filter(|line| !lines.contains(line)));
        }
        let sentences = match lines.is_empty() {
            true => String::new(),
            false => format!("\n\n{READ_FROM}\n{}", lines.join("\n")),
        };
        Self {
            citations,
            sentences,
        }
    }
}

async fn cited(call: &Call<'_>, mut facts: Vec<Fact>) -> Result<Vec<Citation>, Error> {
    facts.truncate(FACTS);
    let (edges, said): (Vec<_>, Vec<_>) = facts
        .into_iter()
        .map(|fact| (fact.triple, fact.said))
        .unzip();
    let request = SourcesRequest {
        collection: call.collection.to_owned(),
        edges,
        ..SourcesRequest::default()
    };
    let topic = call.cx.topic(SOURCES)?;
    let found = call.cx.ask_topic::<_, SourcesResponse>(&topic, &request);
    let found = found.last().await?;
    if let Some(error) = found.error {
        return Err(error);
    }
    let read: Vec<_> = found
        .traced
        .iter()
        .zip(said)
        .filter_map(|(traced, said)| Some((traced, said, traced.chunks.first()?)))
        .collect();
    let mut chunks: Vec<String> = read.iter().map(|(.., chunk)| (*chunk).clone()).collect();
    chunks.sort();
    chunks.dedup();
    let texts = Library::of_flow(call.cx)
        .at_most(FETCH)
        .texts(&chunks)
        .await?;
    let cites = read.into_iter().filter_map(|(traced, said, chunk)| {
        let passage = texts.get(chunks.binary_search(chunk).ok()?)?.as_ref()?;
        let place = usize::try_from(*traced.documents.first()?).ok()?;
        let document = found.documents.get(place)?;
        let title = match document.title.is_empty() {
            true => &document.uri,
            false => &document.title,
        };
        Some(Citation {
            document: document.uri.clone(),
            title: title.clone(),
            // Of several chunks one has the page, and nobody says which.
            page: match traced.chunks.len() {
                1 => traced.page,
                _ => 0,
            },
            chunk: chunk.clone(),
            text: excerpt(&passage.text, &said),
            ..Citation::default()
        })
    });
    Ok(cites.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn citation(n: i64, chunk: &str, text: &str) -> Citation {
        Citation {
            n,
            chunk: chunk.into(),
            text: text.into(),
            ..Citation::default()
        }
    }

    #[test]
    fn sentences_come_once_with_their_numbers_of_the_run() {
        let known = [citation(1, "a", "The bridge crosses the Sell.")];
        let cites = [
            citation(0, "b", "The bridge was built in 1429."),
            citation(0, "a", "The bridge crosses the Sell."),
            citation(0, "b", "The bridge was built in 1429."),
        ];
        let found = Origins::of(&cites, &known, true);
        assert_eq!(
            found.citations,
            [citation(2, "b", "The bridge was built in 1429.")]
        );
        assert_eq!(
            found.sentences,
            "\n\nRead from:\n[2] The bridge was built in 1429.\n[1] The bridge crosses the Sell."
        );
    }

    #[test]
    fn facts_without_documents_and_callers_under_policies_get_no_sentences() {
        assert_eq!(Origins::of(&[], &[], true), Origins::default());
        let cites = [citation(0, "b", "The bridge was built in 1429.")];
        let found = Origins::of(&cites, &[], false);
        assert_eq!((found.citations.len(), found.sentences.as_str()), (1, ""));
    }
}
