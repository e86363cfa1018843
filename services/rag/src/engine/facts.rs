//! The facts that an answer from the graph is written from, and the documents behind them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tg_schemas::Term;
use tg_schemas::msg::{LabelledTerm, Source, SourceDocument, SourcesResponse};

use super::budget::{fitting, shorten};
use super::citations::leans_on;
use super::traversal::Kept;

/// Properties of all documents together that are told to the model.
const ALL_PROPERTIES: usize = 60;
/// Characters of one part of a fact, and bytes of all facts, that the model is given.
const PART: usize = 4_000;
const FACTS: usize = 120 << 10;

/// The numbered facts that the model is given: kept edges, then what is said of their documents.
pub struct Facts<'a> {
    /// Each as `{s, p, o}`.
    pub facts: Vec<Value>,
    /// The same as texts.
    pub texts: Vec<String>,
    /// Documents behind each fact, as places.
    behind: Vec<Vec<usize>>,
    documents: &'a [SourceDocument],
}

impl<'a> Facts<'a> {
    /// From kept edges and what is known of where they come from.
    pub fn new(kept: &[Kept], sources: &'a SourcesResponse) -> Self {
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
            let subject = named(document);
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
        let mut known = Self {
            facts: Vec::with_capacity(count),
            texts: texts.into_iter().take(count).collect(),
            behind: Vec::with_capacity(count),
            documents: &sources.documents,
        };
        for ([s, p, o], behind) in all {
            known.facts.push(json!({"s": s, "p": p, "o": o}));
            known.behind.push(behind);
        }
        known
    }

    /// Documents behind the facts that an answer cites, or leans on if it cites none.
    pub fn sources(&self, answer: &str, cited: &BTreeSet<usize>) -> Vec<Source> {
        let of = |at: &usize| self.behind.get(*at).cloned().unwrap_or_default();
        let places: BTreeSet<usize> = if cited.is_empty() {
            let facts = leans_on(answer, &self.texts);
            facts.iter().flat_map(of).collect()
        } else {
            cited.iter().flat_map(of).collect()
        };
        let documents = places.iter().filter_map(|at| self.documents.get(*at));
        let mut sources: Vec<Source> = documents
            .map(|document| Source {
                uri: document.uri.clone(),
                title: named(document),
            })
            .collect();
        sources.sort_by(|a, b| a.uri.cmp(&b.uri));
        sources
    }
}

fn named(document: &SourceDocument) -> String {
    if document.title.is_empty() {
        document.uri.clone()
    } else {
        document.title.clone()
    }
}
