//! The chain of a trace: each entity says the hash of the entity before it, of its text, and of all that is said of it,
//! those two included. Whoever changes one entity has to change every one after it, and the signed head of the day.
//!
//! The same events in the same order have the same chain, so a step that is taken twice says the same.

use tg_schemas::vocabulary::{RETRIEVAL_GRAPH, tg};
use tg_schemas::{Term, Triple};

use crate::build::Event;
use crate::canonical::{entity_hash, is};
use crate::stable::text_hash;

/// A chain up to some entity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    head: String,
}

impl Chain {
    /// After the entity with this hash; empty text begins a chain.
    pub fn after(head: &str) -> Self {
        Self {
            head: head.to_owned(),
        }
    }

    /// The hash of the last entity; empty before the first.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// The next entity, with its hashes.
    pub fn link(&mut self, event: Event) -> Event {
        self.join(event, None, None)
    }

    /// The next entity, whose text is given to the library.
    pub fn link_text(&mut self, event: Event, text: Option<&str>) -> Event {
        self.join(event, text, None)
    }

    /// The next entity, which follows from the end of another chain as well.
    pub fn join(&mut self, mut event: Event, text: Option<&str>, other: Option<&str>) -> Event {
        let before = [self.head.as_str(), other.unwrap_or_default()];
        for hash in before.into_iter().filter(|hash| !hash.is_empty()) {
            event.triples.push(says(&event.id, tg::PREVIOUS_HASH, hash));
        }
        if let Some(text) = text {
            event
                .triples
                .push(says(&event.id, tg::TEXT_HASH, &text_hash(text)));
        }
        self.head = entity_hash(&event.id, &event.triples);
        event
            .triples
            .push(says(&event.id, tg::ENTITY_HASH, &self.head));
        event
    }
}

fn says(id: &str, predicate: &str, hash: &str) -> Triple {
    Triple::new(Term::iri(id), Term::iri(predicate), Term::literal(hash)).in_graph(RETRIEVAL_GRAPH)
}

/// The hash that an entity says it has, by its triples.
pub fn hash_of<'a>(id: &str, triples: &'a [Triple]) -> Option<&'a str> {
    triples.iter().find_map(|triple| match &triple.o {
        Some(Term::Literal { value, .. })
            if is(&triple.s, id) && is(&triple.p, tg::ENTITY_HASH) =>
        {
            Some(value.as_str())
        }
        _ => None,
    })
}
