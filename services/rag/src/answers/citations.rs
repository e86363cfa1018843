//! What the numbers of an answer name: passages and facts with their documents, pages and words.

use tg_citations::{Cited, excerpt};
use tg_mesh::Cx;
use tg_schemas::Error;
use tg_schemas::msg::{Citation, Source, SourcesRequest};

use crate::ask::{Graph, Library};
use crate::engine::facts::{Origin, named};

/// Where chunks come from, in order: as the graph traces them, else as the library does.
pub async fn origins(cx: &Cx, collection: &str, chunks: &[String]) -> Result<Vec<Origin>, Error> {
    let traced = traced(cx, collection, chunks).await?;
    Ok(completed(cx, chunks, traced).await)
}

/// Where the graph says that chunks come from, in order; nothing of those that it does not know.
pub async fn traced(cx: &Cx, collection: &str, chunks: &[String]) -> Result<Vec<Origin>, Error> {
    let mut found = vec![Origin::default(); chunks.len()];
    if chunks.is_empty() {
        return Ok(found);
    }
    let request = SourcesRequest {
        collection: collection.to_owned(),
        nodes: chunks.to_vec(),
        ..SourcesRequest::default()
    };
    match Graph::of(cx, None).sources(&request).await {
        Ok(known) => {
            for (origin, traced) in found.iter_mut().zip(&known.traced) {
                let place = traced.documents.first().copied();
                let place = place.and_then(|place| usize::try_from(place).ok());
                let document = place.and_then(|place| known.documents.get(place));
                origin.document = document.map(|document| named(&document.uri, &document.title));
                origin.page = traced.page;
            }
        }
        Err(error) if error.code().is_over() => return Err(error),
        Err(error) => tg_mesh::warn_of!(cx, %error, "sources of chunks could not be traced"),
    }
    Ok(found)
}

/// The same, with what the library knows of those that the graph does not.
pub async fn completed(cx: &Cx, chunks: &[String], mut found: Vec<Origin>) -> Vec<Origin> {
    let unknown: Vec<usize> = (0..found.len())
        .filter(|at| found[*at].document.is_none())
        .collect();
    if !unknown.is_empty() {
        let asked: Vec<String> = unknown.iter().map(|at| chunks[*at].clone()).collect();
        let documents = Library::of(cx).documents(&asked).await;
        for (at, document) in unknown.into_iter().zip(documents) {
            found[at].document = document.map(|document| named(&document.uri, &document.title));
        }
    }
    found
}

/// What a number names.
pub struct Named<'a> {
    /// How the answer cites it.
    pub cited: &'a Cited,
    /// The chunk, if it is known.
    pub chunk: &'a str,
    /// The chunk's text, or the fact.
    pub text: &'a str,
    /// The selection in the trace, if there is one.
    pub selection: Option<String>,
}

/// The citation with the number that follows from its place.
pub fn citation(at: usize, named: Named<'_>, origin: &Origin) -> Citation {
    let document = origin.document.clone().unwrap_or_default();
    Citation {
        n: i64::try_from(at + 1).unwrap_or(i64::MAX),
        document: document.uri,
        title: document.title,
        page: origin.page,
        chunk: named.chunk.to_owned(),
        text: excerpt(named.text, &named.cited.said),
        cites: named.selection.unwrap_or_default(),
    }
}

/// The citations of an answer, with where each comes from in the same order.
pub fn all<'a>(named: impl Iterator<Item = Named<'a>>, origins: &[Origin]) -> Vec<Citation> {
    let each = named.zip(origins).enumerate();
    each.map(|(at, (named, origin))| citation(at, named, origin))
        .collect()
}

/// The documents of citations, each once.
pub fn sources(citations: &[Citation]) -> Vec<Source> {
    let known = citations.iter().filter(|one| !one.document.is_empty());
    let mut sources: Vec<Source> = known.map(|one| named(&one.document, &one.title)).collect();
    sources.sort_by(|a, b| a.uri.cmp(&b.uri));
    sources.dedup_by(|a, b| a.uri == b.uri);
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_shows_the_words_that_say_it() {
        let cited = Cited {
            passage: 3,
            said: "It was built in 1429.".into(),
        };
        let named_ = Named {
            cited: &cited,
            chunk: "urn:chunk:1",
            text: "Ham is small. The bridge was built\nin 1429.",
            selection: Some("urn:s".into()),
        };
        let origin = Origin {
            document: Some(named("urn:doc:1", "")),
            page: 2,
        };
        let citation = citation(0, named_, &origin);
        let expected = Citation {
            n: 1,
            document: "urn:doc:1".into(),
            title: "urn:doc:1".into(),
            page: 2,
            chunk: "urn:chunk:1".into(),
            text: "The bridge was built in 1429.".into(),
            cites: "urn:s".into(),
        };
        assert_eq!(citation, expected);
        let twice = [citation.clone(), citation];
        assert_eq!(sources(&twice), [named("urn:doc:1", "")]);
    }
}
