//! What an answer says of its numbers: each is an entity of its own, linked from the answer, so that two answers of one
//! trace can use the same number for different things.

use tg_schemas::msg::Citation;
use tg_schemas::vocabulary::tg;

use crate::build::{Description, Event, Usage};

/// What a number names. Either may be unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbered {
    /// The selection in the trace.
    pub selection: Option<String>,
    /// The chunk; the document of a fact that was loaded and not read from a chunk.
    pub chunk: Option<String>,
}

impl From<&Citation> for Numbered {
    fn from(citation: &Citation) -> Self {
        let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let selection = known(&citation.cites);
        // Without either the trace would not say what the number names.
        let loaded = known(&citation.document).filter(|_| selection.is_none());
        Self {
            chunk: known(&citation.chunk).or(loaded),
            selection,
        }
    }
}

/// The entry of an answer with its citations, which `name` names by their numbers.
pub(crate) fn with_citations(
    mut answer: Description,
    name: impl Fn(usize) -> String,
    cites: &[Numbered],
    refused: bool,
    usage: &Usage<'_>,
) -> Event {
    let mut citations = Vec::with_capacity(cites.len() * 4);
    for (at, cited) in cites.iter().enumerate() {
        let id = name(at + 1);
        answer = answer.link_if(tg::CITES, cited.selection.as_deref());
        answer = answer.link(tg::CITATION, &id);
        let citation = Description::of(id)
            .classes(&[tg::CITATION_CLASS])
            .number(tg::CITATION_NUMBER, u64::try_from(at + 1).ok())
            .link_if(tg::CITES, cited.selection.as_deref())
            .link_if(tg::DOCUMENT, cited.chunk.as_deref());
        citations.extend(citation.done().triples);
    }
    if refused {
        answer = answer.text(tg::REFUSED, "true");
    }
    let mut event = answer.used(usage).done();
    event.triples.extend(citations);
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_without_a_chunk_is_named_by_its_document() {
        let fact = Citation {
            document: "urn:doc:team".into(),
            ..Citation::default()
        };
        let of = |citation: &Citation| {
            let named = Numbered::from(citation);
            (named.selection, named.chunk)
        };
        assert_eq!(of(&fact), (None, Some("urn:doc:team".into())));
        let selected = Citation {
            cites: "urn:selection".into(),
            ..fact.clone()
        };
        assert_eq!(of(&selected), (Some("urn:selection".into()), None));
        let read = Citation {
            chunk: "urn:chunk".into(),
            ..fact
        };
        assert_eq!(of(&read), (None, Some("urn:chunk".into())));
    }
}
