//! What was found in a chunk, and the records that it becomes: facts with their labels and where they come
//! from, and what is said of each entity.

use std::collections::HashSet;

use tg_provenance::{Extraction, Kind, Making, extraction_id, stable_id, subgraph};
use tg_schemas::msg::{EntityContext, Metadata, made_by};
use tg_schemas::vocabulary::{rdfs, skos};
use tg_schemas::{Term, Triple};

use super::names::entity_iri;

/// Most triples of one record.
pub const RECORD: usize = 1_000;
/// Most characters that a context has.
const CONTEXT: usize = 2_000;

/// What a chunk is and where its facts go.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Id of the chunk.
    pub chunk: String,
    /// Document and collection.
    pub metadata: Metadata,
    /// Fingerprint of what the extractor does with it; empty where nobody says.
    pub fingerprint: String,
}

impl Source {
    /// Who made something of it, and how.
    pub fn made_by(&self, extractor: &str) -> String {
        made_by(extractor, &self.fingerprint)
    }
}

/// How facts were found.
#[derive(Debug, Clone, Copy)]
pub struct How<'a> {
    /// The extractor's processor id.
    pub extractor: &'a str,
    /// Its version.
    pub version: &'a str,
    /// When the model was asked: UTC, ISO 8601 with `Z`.
    pub asked_at: &'a str,
    /// The model that replied; empty if it did not say.
    pub model: &'a str,
    /// Version of the prompt; empty if unknown.
    pub prompt_version: &'a str,
    /// The ontology, if one guided it.
    pub ontology: Option<&'a str>,
}

/// What was found in one chunk. Nothing is in it twice.
#[derive(Debug, Clone, Default)]
pub struct Found {
    facts: Vec<Triple>,
    labels: Vec<Triple>,
    contexts: Vec<EntityContext>,
    seen: HashSet<Triple>,
    told: HashSet<(String, String)>,
    /// Items of the reply that say nothing usable.
    pub bad: usize,
}

impl Found {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// The facts.
    pub fn facts(&self) -> &[Triple] {
        &self.facts
    }

    /// Labels of what the facts speak of.
    pub fn labels(&self) -> &[Triple] {
        &self.labels
    }

    /// A fact.
    pub fn fact(&mut self, subject: &str, predicate: &str, object: Term) {
        let fact = Triple::new(Term::iri(subject), Term::iri(predicate), object);
        if self.seen.insert(fact.clone()) {
            self.facts.push(fact);
        }
    }

    /// The IRI of a named thing, which gets its name as label.
    pub fn named(&mut self, name: &str) -> String {
        let iri = entity_iri(name);
        let label = Triple::new(
            Term::iri(iri.as_str()),
            Term::iri(rdfs::LABEL),
            Term::literal(name),
        );
        if self.seen.insert(label.clone()) {
            self.labels.push(label);
        }
        iri
    }

    /// Something that is said of an entity, for the index that finds entities by meaning.
    pub fn context(&mut self, entity: &str, text: &str, types: &[String]) {
        let text: String = text.chars().take(CONTEXT).collect();
        if self.told.insert((entity.to_owned(), text.clone())) {
            self.contexts.push(EntityContext {
                entity: Some(Term::iri(entity)),
                context: text,
                rdf_type: types.to_vec(),
                ..EntityContext::default()
            });
        }
    }

    /// An entity and what it is.
    pub fn definition(&mut self, name: &str, definition: &str) {
        let entity = self.named(name);
        self.fact(&entity, skos::DEFINITION, Term::literal(definition));
        self.context(&entity, name, &[]);
        self.context(&entity, definition, &[]);
    }

    /// All triples, ready to be written: facts, labels, and where the facts come from.
    pub fn triples(&self, source: &Source, how: &How<'_>) -> Vec<Triple> {
        if self.is_empty() {
            return Vec::new();
        }
        // Another prompt or model is another extraction, even of the same chunk. Under a fingerprint it is found again when
        // it is superseded.
        let id = match source.fingerprint.as_str() {
            "" => stable_id(
                Kind::Subgraph,
                &[
                    &source.chunk,
                    how.extractor,
                    how.prompt_version,
                    how.model,
                    how.ontology.unwrap_or_default(),
                ],
            ),
            fingerprint => extraction_id(&source.chunk, how.extractor, fingerprint),
        };
        let extraction = Extraction {
            id: &id,
            chunk: &source.chunk,
            making: Making {
                component: how.extractor,
                version: how.version,
                started_at: how.asked_at,
            },
            llm_model: some(how.model),
            ontology: how.ontology,
            prompt_version: some(how.prompt_version),
        };
        let about = subgraph(&extraction, &self.facts);
        let mut triples = self.facts.clone();
        triples.extend_from_slice(&self.labels);
        triples.extend(about);
        triples
    }

    /// The contexts, ready to be written.
    pub fn into_contexts(self, source: &Source, extractor: &str) -> Vec<EntityContext> {
        let mut contexts = self.contexts;
        let made_by = source.made_by(extractor);
        for context in &mut contexts {
            context.chunk_id.clone_from(&source.chunk);
            context.made_by.clone_from(&made_by);
        }
        contexts
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use tg_schemas::vocabulary::{SOURCE_GRAPH, rdf, tg};

    use super::*;

    fn source() -> Source {
        Source {
            chunk: "urn:chunk:1".to_owned(),
            metadata: Metadata::default(),
            fingerprint: String::new(),
        }
    }

    const HOW: How<'static> = How {
        extractor: "kg-extract-definitions",
        version: "1",
        asked_at: "2031-02-03T04:05:06Z",
        model: "m",
        prompt_version: "p",
        ontology: None,
    };

    #[test]
    fn facts_come_with_labels_and_where_they_come_from() {
        let mut found = Found::default();
        found.definition("Old Bridge", "A bridge.");
        found.definition("Old Bridge", "A bridge.");
        let triples = found.triples(&source(), &HOW);
        assert_eq!(triples, found.triples(&source(), &HOW), "always the same");
        assert_eq!((found.facts().len(), found.labels().len()), (1, 1));
        let of = |predicate: &str| {
            let matching = triples
                .iter()
                .filter(|triple| triple.p == Some(Term::iri(predicate)));
            matching.collect::<Vec<_>>()
        };
        let contains = of(tg::CONTAINS);
        assert_eq!(contains.len(), 1);
        assert_eq!(
            contains[0].o,
            Some(Term::Quoted(Box::new(found.facts()[0].clone())))
        );
        assert_eq!(contains[0].g.as_deref(), Some(SOURCE_GRAPH));
        assert_eq!(of(tg::LLM_MODEL)[0].o, Some(Term::literal("m")));
        assert_eq!(of(tg::PROMPT_VERSION)[0].o, Some(Term::literal("p")));
        assert!(of(rdf::TYPE).iter().all(|triple| triple.g.is_some()));
        let contexts = found.into_contexts(&source(), HOW.extractor);
        let texts: Vec<&str> = contexts.iter().map(|c| c.context.as_str()).collect();
        assert_eq!(texts, ["Old Bridge", "A bridge."]);
        assert!(contexts.iter().all(|c| c.chunk_id == "urn:chunk:1"));
    }

    #[test]
    fn another_prompt_is_another_subgraph() {
        let mut found = Found::default();
        found.definition("Old Bridge", "A bridge.");
        let other = How {
            prompt_version: "q",
            ..HOW
        };
        let subgraph = |how: &How<'_>| {
            let triples = found.triples(&source(), how);
            let contains = triples
                .into_iter()
                .find(|t| t.p == Some(Term::iri(tg::CONTAINS)));
            contains.and_then(|triple| triple.s)
        };
        assert_ne!(subgraph(&HOW), subgraph(&other));
        // Under a fingerprint whoever knows that finds it again.
        let known = Source {
            fingerprint: "f".to_owned(),
            ..source()
        };
        let triples = found.triples(&known, &other);
        let id = extraction_id("urn:chunk:1", HOW.extractor, "f");
        assert!(triples.iter().any(|t| t.s == Some(Term::iri(&id))));
        let contexts = found.clone().into_contexts(&known, HOW.extractor);
        assert!(
            contexts
                .iter()
                .all(|c| c.made_by == "kg-extract-definitions@f")
        );
        assert!(Found::default().triples(&source(), &HOW).is_empty());
    }
}
