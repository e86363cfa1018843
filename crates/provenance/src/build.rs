//! Collecting the triples of one event.

use tg_schemas::{Term, Triple};

use tg_schemas::vocabulary::{RETRIEVAL_GRAPH, prov, rdf, rdfs, tg};

/// The model calls behind a decision.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage<'a> {
    /// How long they took.
    pub duration_ms: Option<u64>,
    /// Input tokens.
    pub in_token: Option<u64>,
    /// Output tokens.
    pub out_token: Option<u64>,
    /// Model.
    pub model: Option<&'a str>,
}

impl Usage<'_> {
    /// With the tokens of other calls.
    #[must_use]
    pub fn and(self, other: &Usage<'_>) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            in_token: sum(self.in_token, other.in_token),
            out_token: sum(self.out_token, other.out_token),
            ..self
        }
    }
}

/// What one explain chunk shows and one entry of the trace holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// IRI of what is described.
    pub id: String,
    /// Its triples, each in the retrieval graph.
    pub triples: Vec<Triple>,
}

impl Event {
    /// Whether what is described is of a class.
    pub fn is(&self, class: &str) -> bool {
        // All of an entry is said of its own IRI.
        let is_iri =
            |term: &Option<Term>, iri: &str| matches!(term, Some(Term::Iri(text)) if text == iri);
        let mut all = self.triples.iter();
        all.any(|triple| is_iri(&triple.p, rdf::TYPE) && is_iri(&triple.o, class))
    }
}

/// Describes one thing. Numbers, times and texts are plain literals.
pub(crate) struct Description {
    event: Event,
    graph: &'static str,
}

impl Description {
    /// Something in a trace.
    pub(crate) fn of(id: impl Into<String>) -> Self {
        Self::within(RETRIEVAL_GRAPH, id)
    }

    /// Something in a graph; empty is the default graph.
    pub(crate) fn within(graph: &'static str, id: impl Into<String>) -> Self {
        Self {
            event: Event {
                id: id.into(),
                triples: Vec::with_capacity(16),
            },
            graph,
        }
    }

    pub(crate) fn with(mut self, predicate: &str, object: Term) -> Self {
        let triple = Triple::new(
            Term::iri(self.event.id.as_str()),
            Term::iri(predicate),
            object,
        );
        self.event.triples.push(match self.graph {
            "" => triple,
            graph => triple.in_graph(graph),
        });
        self
    }

    /// `prov:Entity` and the given classes.
    pub(crate) fn entity(self, classes: &[&str]) -> Self {
        self.with(rdf::TYPE, Term::iri(prov::ENTITY))
            .classes(classes)
    }

    pub(crate) fn classes(self, classes: &[&str]) -> Self {
        classes
            .iter()
            .fold(self, |this, class| this.with(rdf::TYPE, Term::iri(*class)))
    }

    pub(crate) fn label(self, text: impl Into<String>) -> Self {
        self.text(rdfs::LABEL, text)
    }

    pub(crate) fn text(self, predicate: &str, text: impl Into<String>) -> Self {
        self.with(predicate, Term::literal(text))
    }

    pub(crate) fn text_if(self, predicate: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(predicate, text),
            None => self,
        }
    }

    pub(crate) fn number(self, predicate: &str, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.text(predicate, number.to_string()),
            None => self,
        }
    }

    pub(crate) fn link(self, predicate: &str, iri: &str) -> Self {
        self.with(predicate, Term::iri(iri))
    }

    pub(crate) fn link_if(self, predicate: &str, iri: Option<&str>) -> Self {
        match iri {
            Some(iri) => self.link(predicate, iri),
            None => self,
        }
    }

    pub(crate) fn derived_from(self, iri: &str) -> Self {
        self.link(prov::WAS_DERIVED_FROM, iri)
    }

    /// What model calls took.
    pub(crate) fn used(self, usage: &Usage<'_>) -> Self {
        self.number(tg::LLM_DURATION_MS, usage.duration_ms)
            .number(tg::IN_TOKEN, usage.in_token)
            .number(tg::OUT_TOKEN, usage.out_token)
            .text_if(tg::LLM_MODEL, usage.model)
    }

    pub(crate) fn done(self) -> Event {
        self.event
    }
}
