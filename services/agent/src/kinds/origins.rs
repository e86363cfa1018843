//! Where facts were read: the sentences of documents that say them, so that an answer from the graph can cite them.
//!
//! Nothing of it is in what the tool says: an answer that says what a sentence says gets its number.

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

/// A fact that is told.
pub(super) struct Fact {
    /// As it stands in the graph.
    pub(super) triple: Triple,
    /// What it says of the thing that was asked about.
    pub(super) said: String,
}

/// Citations of the first facts, as far as they come from documents, that the run does not know. A graph that is not
/// ours, or that cannot be asked now, gives none.
///
/// # Errors
/// When the call is over.
pub(super) async fn citations(call: &Call<'_>, facts: Vec<Fact>) -> Result<Vec<Citation>, Error> {
    if facts.is_empty() || !graph::is_ours(call.cx) {
        return Ok(Vec::new());
    }
    match cited(call, facts).await {
        Ok(cites) => Ok(citing::of_run("", &cites, call.known).1),
        Err(error) if error.code().is_over() => Err(error),
        Err(error) => {
            tracing::warn!(%error, "facts could not be followed to their documents");
            Ok(Vec::new())
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
