//! Where knowledge comes from: document, page or section, chunk, and what extractors found in chunks.
//!
//! One activity may make many things: all chunks of one page are the work of one activity, which keeps the
//! source graph small. Numbers and times are plain literals.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tg_schemas::{Term, Triple};

use crate::build::Description;
use crate::stable::activity_id;
use tg_schemas::vocabulary::{SOURCE_GRAPH, dc, dcterms, made, prov, rdfs, tg};

/// What is known of a document.
#[derive(Debug, Clone, Copy, Default)]
pub struct DocumentFacts<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its title; empty if it has none.
    pub title: &'a str,
    /// Its MIME type; empty if unknown.
    pub kind: &'a str,
    /// What its owner says of it; goes to the default graph as well.
    pub metadata: &'a [Triple],
}

/// Who made something, and when.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    /// Name of the component, e.g. `chunker`.
    pub component: &'a str,
    /// Its version.
    pub version: &'a str,
    /// When it began: UTC, ISO 8601 with `Z`.
    pub started_at: &'a str,
}

/// What a document's part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// A page.
    Page,
    /// A part of a document that has no pages.
    Section,
    /// A piece of text that extractors read.
    Chunk,
    /// An image.
    Image,
}

impl PartKind {
    fn class(self) -> &'static str {
        match self {
            Self::Page => tg::PAGE,
            Self::Section => tg::SECTION,
            Self::Chunk => tg::CHUNK,
            Self::Image => tg::IMAGE,
        }
    }
}

/// What is known of a part of a document.
#[derive(Debug, Clone, Copy)]
pub struct PartFacts<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it is.
    pub kind: PartKind,
    /// What it was taken from.
    pub parent: &'a str,
    /// What people call it, e.g. `Page 3`.
    pub label: Option<&'a str>,
    /// Number of the page, from 1.
    pub page_number: Option<u64>,
    /// Number of the chunk in its parent, from 1.
    pub chunk_index: Option<u64>,
    /// Where it begins in its parent's text, in characters from 0.
    pub char_offset: Option<u64>,
    /// Its length in characters.
    pub char_length: Option<u64>,
    /// MIME type.
    pub mime_type: Option<&'a str>,
    /// Size that the chunker was set to.
    pub chunk_size: Option<u64>,
    /// Overlap that the chunker was set to.
    pub chunk_overlap: Option<u64>,
}

impl<'a> PartFacts<'a> {
    /// A part of which only this is known.
    pub fn new(id: &'a str, kind: PartKind, parent: &'a str) -> Self {
        Self {
            id,
            kind,
            parent,
            label: None,
            page_number: None,
            chunk_index: None,
            char_offset: None,
            char_length: None,
            mime_type: None,
            chunk_size: None,
            chunk_overlap: None,
        }
    }
}

/// What one extractor did with one chunk.
#[derive(Debug, Clone, Copy)]
pub struct Extraction<'a> {
    /// Id of the subgraph, normally [`crate::subgraph_id`].
    pub id: &'a str,
    /// The chunk it read.
    pub chunk: &'a str,
    /// Who did it.
    pub making: Making<'a>,
    /// Model that answered.
    pub llm_model: Option<&'a str>,
    /// IRI of the ontology that guided it.
    pub ontology: Option<&'a str>,
    /// Version of the prompt.
    pub prompt_version: Option<&'a str>,
}

/// IRI of a component.
pub fn agent_iri(component: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~');
    let name = utf8_percent_encode(component, ESCAPED);
    format!("{}{name}", made::AGENT)
}

/// A document: what is known of it in the default graph; beside its pages and chunks in the graph of sources, what it is
/// and is called: who follows these to their root asks there.
pub fn document(facts: &DocumentFacts<'_>) -> Vec<Triple> {
    let title = (!facts.title.is_empty()).then_some(facts.title);
    let kind = (!facts.kind.is_empty()).then_some(facts.kind);
    let mut triples = Description::within("", facts.id)
        .entity(&[tg::DOCUMENT_CLASS])
        .text_if(dc::TITLE, title)
        .text_if(rdfs::LABEL, title)
        .text_if(tg::MIME_TYPE, kind)
        .done()
        .triples;
    let source = Description::within(SOURCE_GRAPH, facts.id)
        .entity(&[tg::DOCUMENT_CLASS])
        .text_if(rdfs::LABEL, title)
        .text_if(dcterms::TITLE, title)
        .text_if(dcterms::FORMAT, kind);
    triples.extend(source.done().triples);
    triples.extend(facts.metadata.iter().cloned());
    triples
}

/// A page, section, chunk or image, and how it was made. Parts of one parent that one component made with the
/// same settings share their activity: describe the first with this and the others with [`part_alone`].
pub fn part(facts: &PartFacts<'_>, making: &Making<'_>) -> Vec<Triple> {
    let mut triples = part_alone(facts, making);
    let about = activity(&made_by(facts, making), facts.parent, making)
        .number(tg::CHUNK_SIZE, facts.chunk_size)
        .number(tg::CHUNK_OVERLAP, facts.chunk_overlap);
    triples.extend(about.done().triples);
    triples.extend(agent(making.component));
    triples
}

/// A page, section, chunk or image, without the activity that made it.
pub fn part_alone(facts: &PartFacts<'_>, making: &Making<'_>) -> Vec<Triple> {
    Description::within(SOURCE_GRAPH, facts.id)
        .entity(&[facts.kind.class()])
        .derived_from(facts.parent)
        .link(prov::WAS_GENERATED_BY, &made_by(facts, making))
        .text_if(rdfs::LABEL, facts.label)
        .number(tg::PAGE_NUMBER, facts.page_number)
        .number(tg::CHUNK_INDEX, facts.chunk_index)
        .number(tg::CHAR_OFFSET, facts.char_offset)
        .number(tg::CHAR_LENGTH, facts.char_length)
        .text_if(tg::MIME_TYPE, facts.mime_type)
        .done()
        .triples
}

fn made_by(facts: &PartFacts<'_>, making: &Making<'_>) -> String {
    let number = |number: Option<u64>| number.unwrap_or(0).to_string();
    let (size, overlap) = (number(facts.chunk_size), number(facts.chunk_overlap));
    activity_id(making.component, &[facts.parent, &size, &overlap])
}

/// What an extractor found in a chunk: the subgraph with its facts as quoted triples, and how it was made.
/// The facts themselves are not among the result; write them to the default graph.
pub fn subgraph(extraction: &Extraction<'_>, facts: &[Triple]) -> Vec<Triple> {
    let making = &extraction.making;
    let made_by = activity_id(making.component, &[extraction.id]);
    let mut about = Description::within(SOURCE_GRAPH, extraction.id);
    for fact in facts {
        let mut fact = fact.clone();
        fact.g = None;
        about = about.with(tg::CONTAINS, Term::Quoted(Box::new(fact)));
    }
    let mut triples = about
        .entity(&[tg::SUBGRAPH])
        .derived_from(extraction.chunk)
        .link(prov::WAS_GENERATED_BY, &made_by)
        .done()
        .triples;
    let about = activity(&made_by, extraction.chunk, making)
        .text_if(tg::LLM_MODEL, extraction.llm_model)
        .link_if(tg::ONTOLOGY, extraction.ontology)
        .text_if(tg::PROMPT_VERSION, extraction.prompt_version);
    triples.extend(about.done().triples);
    triples.extend(agent(making.component));
    triples
}

/// The facts, then their subgraph: all that one extractor writes for one chunk.
pub fn extracted(extraction: &Extraction<'_>, facts: Vec<Triple>) -> Vec<Triple> {
    let about = subgraph(extraction, &facts);
    facts.into_iter().chain(about).collect()
}

fn activity(id: &str, used: &str, making: &Making<'_>) -> Description {
    Description::within(SOURCE_GRAPH, id)
        .classes(&[prov::ACTIVITY])
        .label(format!("{} extraction", making.component))
        .link(prov::USED, used)
        .link(prov::WAS_ASSOCIATED_WITH, &agent_iri(making.component))
        .text(prov::STARTED_AT_TIME, making.started_at)
        .text(tg::COMPONENT_VERSION, making.version)
}

fn agent(component: &str) -> Vec<Triple> {
    let about = Description::within(SOURCE_GRAPH, agent_iri(component));
    about
        .classes(&[prov::AGENT])
        .label(component)
        .done()
        .triples
}

#[cfg(test)]
mod tests;
