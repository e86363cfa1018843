//! The facts that an answer from the graph is written from, and the documents behind them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tg_citations::{Cited, excerpt, leans_on};
use tg_schemas::Term;
use tg_schemas::msg::{LabelledTerm, Source, SourceDocument, SourcesResponse, TracedSource};

use super::budget::{fitting, shorten};
use super::documents::Passage;
use super::traversal::RankedEdge;

/// Properties of all documents together that are told to the model.
const ALL_PROPERTIES: usize = 60;
/// Characters of one part of a fact, and bytes of all facts, that the model is given.
const PART: usize = 4_000;
const FACTS: usize = 120 << 10;
/// Facts, from the first, whose sentences the model is given.
const READ: usize = 20;

/// The numbered facts that the model is given: kept edges, then what is said of their documents.
pub struct Facts<'a> {
    /// Each as `{s, p, o}`.
    pub facts: Vec<Value>,
    /// The same as texts.
    pub texts: Vec<String>,
    /// The same with the sentences from which they were read: what the model has, so that its numbers can be checked.
    pub passages: Vec<String>,
    /// Documents behind each fact, as places.
    behind: Vec<Vec<usize>>,
    documents: &'a [SourceDocument],
    /// Where each of the kept edges was found.
    traced: &'a [TracedSource],
    kept: usize,
}

impl<'a> Facts<'a> {
    /// From kept edges and what is known of where they come from.
    pub fn new(kept: &[RankedEdge], sources: &'a SourcesResponse) -> Self {
        let mut all: Vec<([String; 3], Vec<usize>)> = Vec::new();
        let place = |at: &i64| usize::try_from(*at).ok();
        for (at, kept) in kept.iter().enumerate() {
            let parts = kept.edge.names.each_ref().map(|name| shorten(name, PART));
            let traced = sources.traced.get(at);
            let behind = traced.map_or_else(Vec::new, |traced| {
                traced.documents.iter().filter_map(place).collect()
            });
            all.push((parts, behind));
        }
        let mut left = if kept.is_empty() { 0 } else { ALL_PROPERTIES };
        for (at, document) in sources.documents.iter().enumerate() {
            let subject = named(&document.uri, &document.title).title;
            for pair in document.properties.chunks_exact(2).take(left) {
                let text = |term: &LabelledTerm| match &term.term {
                    Some(Term::Literal { value, .. }) => value.clone(),
                    _ => term.label.clone(),
                };
                let parts = [subject.clone(), text(&pair[0]), text(&pair[1])];
                all.push((parts.map(|part| shorten(&part, PART)), vec![at]));
                left -= 1;
            }
        }
        let texts: Vec<String> = all.iter().map(|(parts, _)| parts.join(" ")).collect();
        let count = fitting(&texts, FACTS);
        all.truncate(count);
        let texts: Vec<String> = texts.into_iter().take(count).collect();
        let mut known = Self {
            facts: Vec::with_capacity(count),
            passages: texts.clone(),
            texts,
            behind: Vec::with_capacity(count),
            documents: &sources.documents,
            traced: &sources.traced,
            kept: kept.len(),
        };
        for ([s, p, o], behind) in all {
            known.facts.push(json!({"s": s, "p": p, "o": o}));
            known.behind.push(behind);
        }
        known
    }

    /// The chunks from which the first of the kept facts were read, each once.
    pub fn chunks(&self) -> Vec<String> {
        let mut chunks: Vec<String> = Vec::new();
        for chunk in (0..READ.min(self.facts.len())).map(|fact| self.chunk(fact)) {
            if !chunk.is_empty() && !chunks.contains(&chunk) {
                chunks.push(chunk);
            }
        }
        chunks
    }

    /// Gives the first facts the sentences that say them: a fact has only a part of what its sentence says.
    pub fn read_from(&mut self, texts: &[Passage]) {
        for fact in 0..READ.min(self.facts.len()) {
            let chunk = self.chunk(fact);
            let Some(passage) = texts.iter().find(|passage| passage.chunk == chunk) else {
                continue;
            };
            let sentence = excerpt(&passage.text, &self.said(fact));
            self.passages[fact].push_str(&format!(" {sentence}"));
            self.facts[fact]["read"] = json!(sentence);
        }
    }

    /// Whether a fact is a kept edge; the others are said of documents.
    pub fn is_chosen(&self, fact: usize) -> bool {
        fact < self.kept
    }

    /// What a fact says of its subject.
    pub fn said(&self, fact: usize) -> String {
        let part = |name: &str| self.facts.get(fact).and_then(|fact| fact[name].as_str());
        [part("p"), part("o")]
            .map(Option::unwrap_or_default)
            .join(" ")
    }

    /// The first chunk that says a fact; empty where none is known.
    pub fn chunk(&self, fact: usize) -> String {
        let traced = self.traced_of(fact);
        traced
            .and_then(|traced| traced.chunks.first().cloned())
            .unwrap_or_default()
    }

    /// Where a fact comes from, unless it is reported for its chunk alone.
    pub fn origin(&self, fact: usize) -> Option<Origin> {
        let traced = self.traced_of(fact);
        // Of several documents the first need not be the chunk's.
        let many = |traced: &TracedSource| traced.chunks.len() > 1 || traced.documents.len() > 1;
        if traced.is_some_and(|traced| !traced.chunks.is_empty() && many(traced)) {
            return None;
        }
        let place = self.behind.get(fact).and_then(|behind| behind.first());
        let document = place.and_then(|place| self.documents.get(*place));
        Some(Origin {
            document: document.map(|document| named(&document.uri, &document.title)),
            page: traced.map_or(0, |traced| traced.page),
        })
    }

    fn traced_of(&self, fact: usize) -> Option<&TracedSource> {
        self.traced.get(fact).filter(|_| self.is_chosen(fact))
    }

    /// Documents behind the facts that an answer cites, or leans on if it cites none.
    pub fn sources(&self, answer: &str, cited: &[Cited]) -> Vec<Source> {
        let of = |at: &usize| self.behind.get(*at).cloned().unwrap_or_default();
        let places: BTreeSet<usize> = if cited.is_empty() {
            let facts = leans_on(answer, &self.texts);
            facts.iter().flat_map(of).collect()
        } else {
            cited.iter().flat_map(|one| of(&one.passage)).collect()
        };
        let documents = places.iter().filter_map(|at| self.documents.get(*at));
        let mut sources: Vec<Source> = documents
            .map(|document| named(&document.uri, &document.title))
            .collect();
        sources.sort_by(|a, b| a.uri.cmp(&b.uri));
        sources
    }
}

/// Where a chunk or a fact comes from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// Its document, if anybody knows it.
    pub document: Option<Source>,
    /// Its page; 0: none.
    pub page: i64,
}

/// A document, by its title or else its IRI.
pub fn named(uri: &str, title: &str) -> Source {
    let title = if title.is_empty() { uri } else { title };
    Source {
        uri: uri.to_owned(),
        title: title.to_owned(),
    }
}
