//! Where facts were read: the sentences of documents that say them, so that an answer from the graph can quote and cite them.

use std::collections::BTreeMap;
use std::time::Duration;

use tg_citations::excerpt;
use tg_clients::graph;
use tg_clients::library::Library;
use tg_schemas::msg::{Citation, SourceDocument, SourcesRequest, SourcesResponse, TracedSource};
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

/// A fact in the result.
#[derive(Clone)]
pub(super) struct Fact {
    /// As it stands in the graph.
    pub(super) triple: Triple,
    /// In words, as a citation shows it.
    pub(super) words: String,
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
    /// Numbers of the run for facts that were loaded from a file, which no sentence says; by their places.
    pub(super) loaded: BTreeMap<usize, usize>,
}

/// Where a fact comes from.
struct Origin {
    /// Which of the facts.
    fact: usize,
    citation: Citation,
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
        Ok(found) => Ok(Origins::of(
            &found,
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
    fn of(found: &[Origin], known: &[Citation], quoted: bool) -> Self {
        let cites: Vec<Citation> = found.iter().map(|one| one.citation.clone()).collect();
        let (_, citations) = citing::of_run("", &cites, known);
        let (mut lines, mut loaded) = (Vec::<String>::new(), BTreeMap::new());
        for Origin { fact, citation } in found {
            let Some(number) = citing::number_in_run(citation, known, &citations) else {
                continue;
            };
            if citation.chunk.is_empty() {
                loaded.insert(*fact, number);
            } else if quoted && !citation.text.is_empty() {
                let line = format!("[{number}] {}", citation.text);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        let sentences = match lines.is_empty() {
            true => String::new(),
            false => format!("\n\n{READ_FROM}\n{}", lines.join("\n")),
        };
        Self {
            citations,
            sentences,
            loaded,
        }
    }
}

async fn cited(call: &Call<'_>, mut facts: Vec<Fact>) -> Result<Vec<Origin>, Error> {
    facts.truncate(FACTS);
    let request = SourcesRequest {
        collection: call.collection.to_owned(),
        edges: facts.iter().map(|fact| fact.triple.clone()).collect(),
        ..SourcesRequest::default()
    };
    let topic = call.cx.topic(SOURCES)?;
    let found = call.cx.ask_topic::<_, SourcesResponse>(&topic, &request);
    let found = found.last().await?;
    if let Some(error) = found.error {
        return Err(error);
    }
    let first = found.traced.iter().filter_map(|one| one.chunks.first());
    let mut chunks: Vec<String> = first.cloned().collect();
    chunks.sort();
    chunks.dedup();
    let texts = match chunks.as_slice() {
        [] => Vec::new(),
        chunks => {
            let library = Library::of_flow(call.cx).at_most(FETCH);
            library.texts(chunks).await?
        }
    };
    let text_of = |chunk: &String| {
        let passage = texts.get(chunks.binary_search(chunk).ok()?)?.as_ref()?;
        Some(passage.text.as_str())
    };
    let traced = found.traced.iter().zip(&facts).enumerate();
    let cites = traced.filter_map(|(fact, (traced, told))| {
        let place = usize::try_from(*traced.documents.first()?).ok()?;
        let citation = of_fact(traced, told, found.documents.get(place)?, text_of)?;
        Some(Origin { fact, citation })
    });
    Ok(cites.collect())
}

/// The sentence of the chunk that says a fact, or the fact itself where it was loaded and never stood in a chunk. `None` if the
/// chunk's text is gone.
fn of_fact<'a>(
    traced: &TracedSource,
    fact: &Fact,
    document: &SourceDocument,
    text_of: impl Fn(&String) -> Option<&'a str>,
) -> Option<Citation> {
    let title = match document.title.is_empty() {
        true => &document.uri,
        false => &document.title,
    };
    let (chunk, text) = match traced.chunks.first() {
        Some(chunk) => (chunk.clone(), excerpt(text_of(chunk)?, &fact.said)),
        None => (String::new(), excerpt(&fact.words, &fact.words)),
    };
    Some(Citation {
        document: document.uri.clone(),
        title: title.clone(),
        // Of several chunks one has the page, and nobody says which.
        page: match traced.chunks.len() {
            1 => traced.page,
            _ => 0,
        },
        chunk,
        text,
        ..Citation::default()
    })
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

    fn origins(cites: &[Citation]) -> Vec<Origin> {
        let each = cites.iter().cloned().enumerate();
        each.map(|(fact, citation)| Origin { fact, citation })
            .collect()
    }

    #[test]
    fn sentences_come_once_with_their_numbers_of_the_run() {
        let known = [citation(1, "a", "The bridge crosses the Sell.")];
        let cites = [
            citation(0, "b", "The bridge was built in 1429."),
            citation(0, "a", "The bridge crosses the Sell."),
            citation(0, "b", "The bridge was built in 1429."),
        ];
        let found = Origins::of(&origins(&cites), &known, true);
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
        let found = Origins::of(&origins(&cites), &[], false);
        assert_eq!((found.citations.len(), found.sentences.as_str()), (1, ""));
    }

    #[test]
    fn a_fact_that_was_loaded_is_cited_by_itself_and_its_file() {
        let fact = Fact {
            triple: Triple::default(),
            words: "Anna Berg works for Ada Ltd".into(),
            said: "works for Ada Ltd".into(),
        };
        let file = SourceDocument {
            uri: "urn:document:team.ttl".into(),
            title: "team.ttl".into(),
            ..SourceDocument::default()
        };
        let loaded = TracedSource {
            documents: vec![0],
            ..TracedSource::default()
        };
        let cited = of_fact(&loaded, &fact, &file, |_| None).expect("cited");
        assert_eq!(
            (cited.title.as_str(), cited.text.as_str()),
            ("team.ttl", "Anna Berg works for Ada Ltd")
        );
        // Its number stands behind the fact, and no sentence is made up; also for a caller under policies, who sees the fact.
        let sentence = citation(0, "b", "The bridge was built in 1429.");
        let all = origins(&[sentence.clone(), cited.clone()]);
        let found = Origins::of(&all, &[], true);
        assert_eq!(found.loaded, BTreeMap::from([(1, 2)]));
        assert_eq!(
            found.sentences,
            "\n\nRead from:\n[1] The bridge was built in 1429."
        );
        assert_eq!(
            Origins::of(&all, &[], false).loaded,
            BTreeMap::from([(1, 2)])
        );
        // A chunk whose text is gone is no loaded fact.
        let read = TracedSource {
            chunks: vec!["urn:chunk".into()],
            ..loaded
        };
        assert_eq!(of_fact(&read, &fact, &file, |_| None), None);
    }
}
