//! Recomputes the chain of a trace from what is stored of it, and finds the first link that does not hold. Knows
//! neither where the triples come from nor where the texts are.

use std::collections::{BTreeMap, BTreeSet};

use tg_schemas::vocabulary::{prov, rdf, tg};
use tg_schemas::{Term, Triple};

use crate::canonical::{entity_hash, is};
use crate::stable::text_hash;

/// Links from an entity to its parts, which are hashed with it.
const PARTS: [&str; 3] = [tg::SELECTED_EDGE, tg::SELECTED_CHUNK, tg::CITATION];
/// Links from an entity to others of its trace.
const LINKS: [&str; 2] = [prov::WAS_DERIVED_FROM, tg::THOUGHT];
/// What the names of entities begin with.
const OWN: &str = "urn:trustgraph:";
/// What the names of an agent's entities begin with.
const AGENT: &str = "urn:trustgraph:agent:";
/// Classes of ends.
const ENDS: [&str; 2] = [tg::CONCLUSION, tg::SYNTHESIS];

/// What is wrong with a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkError {
    /// What is said of the entity is not what was hashed.
    Changed,
    /// Its text is not the one that was hashed.
    TextChanged,
    /// Its text is not there.
    TextMissing,
    /// The entity is not there, or it is another one that says nothing of its hash.
    Missing,
    /// Its hash is right and is not the one that the entity after it names.
    Replaced,
    /// The run ended with another hash than its signed head says.
    NotAsSigned,
}

impl LinkError {
    /// As `--json` names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "statement-changed",
            Self::TextChanged => "text-changed",
            Self::TextMissing => "text-missing",
            Self::Missing => "entity-missing",
            Self::Replaced => "chain-broken",
            Self::NotAsSigned => "not-as-signed",
        }
    }

    /// In words.
    pub fn says(self) -> &'static str {
        match self {
            Self::Changed => "what is said of it is not what was hashed",
            Self::TextChanged => "its text is not the one that was hashed",
            Self::TextMissing => "its text is not there",
            Self::Missing => "it is not there, or without its hash",
            Self::Replaced => "its hash is not the one that the entity after it names",
            Self::NotAsSigned => "its hash is not the one that was signed",
        }
    }
}

/// The first link of a chain that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The entity.
    pub entity: String,
    /// What is wrong.
    pub fault: LinkError,
}

/// A chain that holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whole {
    /// How many entities it has, those of traces that it joins included.
    pub entities: usize,
    /// How many texts were compared.
    pub texts: usize,
    /// How many texts were not there to be compared.
    pub unread: usize,
    /// The hash of its end.
    pub head: String,
}

/// Where texts are.
pub enum Texts<'a> {
    /// Not at hand: none is compared.
    Unknown,
    /// All that there are, by their ids.
    Known(&'a BTreeMap<String, String>),
}

/// What is stored of traces, by subject.
#[derive(Debug, Default)]
pub struct Stored {
    said: BTreeMap<String, BTreeSet<Triple>>,
    by_hash: BTreeMap<String, String>,
    /// Hashes that some entity names as that of one before it.
    named: BTreeSet<String>,
}

impl FromIterator<Triple> for Stored {
    fn from_iter<I: IntoIterator<Item = Triple>>(triples: I) -> Self {
        let mut stored = Self::default();
        for triple in triples {
            if let Some(Term::Iri(subject)) = &triple.s {
                let said = stored.said.entry(subject.clone()).or_default();
                said.insert(triple);
            }
        }
        let hashes = |id: &String, predicate: &'static str| {
            let texts = stored.texts(id, predicate);
            texts.map(str::to_owned).collect::<Vec<_>>()
        };
        let (mut claimed, mut named) = (BTreeMap::<_, Vec<_>>::new(), BTreeSet::new());
        for id in stored.said.keys() {
            for hash in hashes(id, tg::ENTITY_HASH) {
                claimed.entry(hash).or_default().push(id.clone());
            }
            named.extend(hashes(id, tg::PREVIOUS_HASH));
        }
        let by_hash = claimed.into_iter();
        let by_hash = by_hash.filter_map(|(hash, all)| Some((stored.owner(&hash, all)?, hash)));
        let by_hash = by_hash.map(|(id, hash)| (hash, id)).collect();
        Self {
            by_hash,
            named,
            ..stored
        }
    }
}

impl Stored {
    /// Of entities that claim a hash the one whose it is: a hash covers the id, so no two can have the same, and who writes
    /// an entity beside a trace cannot come between its links.
    fn owner(&self, hash: &str, all: Vec<String>) -> Option<String> {
        let is_its = |id: &&String| all.len() > 1 && self.hash(id) == hash;
        all.iter().find(is_its).or(all.first()).cloned()
    }

    /// What was hashed of an entity, hashed again.
    fn hash(&self, id: &str) -> String {
        let own = self.said.get(id).into_iter().flatten();
        let parts = self.parts(id).filter_map(|part| self.said.get(part));
        entity_hash(id, own.chain(parts.flatten()))
    }

    fn objects<'a>(&'a self, id: &str, predicate: &'a str) -> impl Iterator<Item = &'a Term> {
        let said = self.said.get(id).into_iter().flatten();
        said.filter(move |triple| is(&triple.p, predicate))
            .filter_map(|triple| triple.o.as_ref())
    }

    fn iris<'a>(&'a self, id: &str, predicate: &'a str) -> impl Iterator<Item = &'a str> {
        self.objects(id, predicate).filter_map(|term| match term {
            Term::Iri(iri) => Some(iri.as_str()),
            _ => None,
        })
    }

    fn texts<'a>(&'a self, id: &str, predicate: &'a str) -> impl Iterator<Item = &'a str> {
        self.objects(id, predicate).filter_map(|term| match term {
            Term::Literal { value, .. } => Some(value.as_str()),
            _ => None,
        })
    }

    fn is_chained(&self, id: &str) -> bool {
        self.texts(id, tg::ENTITY_HASH).next().is_some()
    }

    /// Whether anything is said of an entity.
    pub fn says(&self, id: &str) -> bool {
        self.said.contains_key(id)
    }

    /// What entities link to within traces, but not what the question of this one follows from.
    pub fn linked(&self, root: &str) -> BTreeSet<String> {
        let from = self.said.keys().filter(|id| *id != root);
        let links = LINKS.iter().chain(&PARTS);
        let linked = from.flat_map(|id| links.clone().flat_map(|link| self.iris(id, link)));
        let own = linked.filter(|iri| iri.starts_with(OWN));
        own.map(str::to_owned).collect()
    }

    /// Hashes that entities name as those of entities before, and that none has.
    pub fn unmet(&self) -> Vec<String> {
        let named = self.named.iter();
        let unmet = named.filter(|hash| !self.by_hash.contains_key(*hash));
        unmet.cloned().collect()
    }

    /// Documents that hold the texts of entities.
    pub fn documents(&self) -> BTreeSet<String> {
        let with_text = self.said.keys();
        let with_text = with_text.filter(|id| self.texts(id, tg::TEXT_HASH).next().is_some());
        with_text
            .flat_map(|id| self.iris(id, tg::DOCUMENT))
            .map(str::to_owned)
            .collect()
    }

    /// Whether anything is said of the trace below a question.
    pub fn has(&self, root: &str) -> bool {
        self.said.keys().any(|id| is_of(root, id))
    }

    /// The questions of all chains that belong to no other: runs, and questions that were asked by themselves. Also those
    /// of which only the end is there.
    pub fn roots(&self) -> Vec<String> {
        let is = |id: &str, class: &str| self.iris(id, rdf::TYPE).any(|one| one == class);
        let chained = || self.said.keys().filter(|id| self.is_chained(id));
        let questions = chained().filter(|id| {
            is(id, tg::QUESTION) && self.iris(id, prov::WAS_DERIVED_FROM).next().is_none()
        });
        let ends = chained().filter(|id| is(id, tg::CONCLUSION) || is(id, tg::SYNTHESIS));
        let lost = ends.filter_map(|id| {
            let of_agent = id.starts_with(AGENT).then(|| id.strip_suffix("/synthesis"));
            id.strip_suffix("/final").or(of_agent.flatten())
        });
        let lost = lost.filter(|root| !self.says(root)).map(str::to_owned);
        questions.cloned().chain(lost).collect()
    }

    /// Recomputes the chain of the trace below a question; `None` if its trace has none. `signed` is the hash of its end
    /// as a signed head says it.
    ///
    /// # Errors
    /// The first link that does not hold.
    pub fn verify(
        &self,
        root: &str,
        texts: &Texts<'_>,
        signed: Option<&str>,
    ) -> Result<Option<Whole>, Broken> {
        let own: Vec<&String> = self.said.keys().filter(|id| is_of(root, id)).collect();
        if signed.is_none() && !own.iter().any(|id| self.is_chained(id)) {
            return Ok(None);
        }
        let end = self.end(root, &own);
        let mut traversal = Traversal::new(self, root);
        // Where an entity is missing, what came before it is led to by nothing: it is looked at first.
        for id in own.iter().filter(|id| self.is_tail(id) && **id != &end) {
            traversal.back_from(id);
        }
        traversal.back_from(&end);
        let mut whole = Whole::default();
        for id in &traversal.order {
            self.check(id, texts, &mut whole)?;
            traversal.leads_on(id, &own)?;
        }
        self.is_whole(root, &own, &traversal)?;
        // What only leads to the chain is no part of it: all must be reached from the end.
        let mut from_end = Traversal::new(self, root);
        from_end.back_from(&end);
        self.is_whole(root, &own, &from_end)?;
        whole.head = self.texts(&end, tg::ENTITY_HASH).collect();
        match signed {
            Some(signed) if signed != whole.head => Err(Broken {
                entity: end,
                fault: LinkError::NotAsSigned,
            }),
            _ => Ok(Some(whole)),
        }
    }

    /// The root and the end are there, and nothing of the trace is outside of its chain.
    fn is_whole(
        &self,
        root: &str,
        own: &[&String],
        traversal: &Traversal<'_>,
    ) -> Result<(), Broken> {
        let missing = |entity: &str| {
            Err(Broken {
                entity: entity.to_owned(),
                fault: LinkError::Missing,
            })
        };
        if !traversal.seen.contains(root) || !self.is_chained(root) {
            return missing(root);
        }
        let end = self.end(root, own);
        if !self.is_chained(&end) {
            return missing(&end);
        }
        let parts: BTreeSet<&str> = own.iter().flat_map(|id| self.parts(id)).collect();
        let outside =
            |id: &&&String| !traversal.seen.contains(**id) && !parts.contains(id.as_str());
        match own.iter().find(outside) {
            Some(id) => Err(Broken {
                entity: (*id).clone(),
                fault: LinkError::Changed,
            }),
            None => Ok(()),
        }
    }

    /// The end of a trace, as it is named if it is not there.
    fn end(&self, root: &str, own: &[&String]) -> String {
        let is_end = |id: &&&String| self.iris(id, rdf::TYPE).any(|class| ENDS.contains(&class));
        match own.iter().find(is_end) {
            Some(id) => (*id).clone(),
            None => end_of(root),
        }
    }

    /// Whether no entity names its hash.
    fn is_tail(&self, id: &str) -> bool {
        let named = |hash: &str| self.named.contains(hash);
        self.is_chained(id) && !self.texts(id, tg::ENTITY_HASH).any(named)
    }

    fn parts<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a str> {
        let named: Vec<&str> = PARTS
            .iter()
            .flat_map(|link| self.iris(id, link))
            .filter(|part| self.said.contains_key(*part))
            .collect();
        named.into_iter()
    }

    /// What is said of an entity is what was hashed, and so is its text.
    fn check(&self, id: &str, texts: &Texts<'_>, whole: &mut Whole) -> Result<(), Broken> {
        let broken = |fault| {
            Err(Broken {
                entity: id.to_owned(),
                fault,
            })
        };
        let stated: BTreeSet<&str> = self.texts(id, tg::ENTITY_HASH).collect();
        if stated.is_empty() {
            return broken(LinkError::Missing);
        }
        let hash = self.hash(id);
        if stated.len() > 1 || !stated.contains(hash.as_str()) {
            return broken(LinkError::Changed);
        }
        whole.entities += 1;
        let hashed: Vec<&str> = self.texts(id, tg::TEXT_HASH).collect();
        let documents: Vec<&str> = self.iris(id, tg::DOCUMENT).collect();
        match (hashed.as_slice(), documents.as_slice()) {
            ([], []) => return Ok(()),
            ([_], []) => return broken(LinkError::TextMissing),
            ([_], [_, ..]) => {}
            _ => return broken(LinkError::Changed),
        }
        let Texts::Known(known) = texts else {
            whole.unread += 1;
            return Ok(());
        };
        for document in documents {
            match known.get(document) {
                None => return broken(LinkError::TextMissing),
                Some(text) if text_hash(text) != hashed[0] => {
                    return broken(LinkError::TextChanged);
                }
                Some(_) => whole.texts += 1,
            }
        }
        Ok(())
    }
}

/// Entities in the order in which they were chained.
struct Traversal<'a> {
    stored: &'a Stored,
    root: &'a str,
    order: Vec<String>,
    seen: BTreeSet<String>,
}

impl<'a> Traversal<'a> {
    /// One that has been nowhere yet.
    fn new(stored: &'a Stored, root: &'a str) -> Self {
        Self {
            stored,
            root,
            order: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    /// Adds an entity after all that it follows from. A stack of its own bounds the depth.
    fn back_from(&mut self, id: &str) {
        let mut stack = vec![(id.to_owned(), false)];
        while let Some((id, ready)) = stack.pop() {
            if ready {
                self.order.push(id);
                continue;
            }
            if !self.stored.said.contains_key(&id) || !self.seen.insert(id.clone()) {
                continue;
            }
            let stored = self.stored;
            let before = stored.texts(&id, tg::PREVIOUS_HASH);
            let before = before.filter_map(|hash| stored.by_hash.get(hash)).cloned();
            let before: Vec<_> = before.map(|id| (id, false)).collect();
            stack.push((id, true));
            stack.extend(before);
        }
    }

    /// Each hash that an entity names is that of an entity; else what stood there is named.
    fn leads_on(&self, id: &str, own: &[&String]) -> Result<(), Broken> {
        let stored = self.stored;
        let mut before = stored.texts(id, tg::PREVIOUS_HASH).peekable();
        if before.peek().is_none() {
            // A chain begins with a question; that of the trace with its own.
            let is_question = stored
                .iris(id, rdf::TYPE)
                .any(|class| class == tg::QUESTION);
            return match is_question && (!is_of(self.root, id) || id == self.root) {
                true => Ok(()),
                false => Err(self.lost(id, own)),
            };
        }
        match before.all(|hash| stored.by_hash.contains_key(hash)) {
            true => Ok(()),
            false => Err(self.lost(id, own)),
        }
    }

    /// What stood before an entity, and does not any more: something that others link to and that is not there, or is
    /// there with another hash.
    fn lost(&self, id: &str, own: &[&String]) -> Broken {
        let stored = self.stored;
        let linked = |from: &str| {
            let links = LINKS.iter().flat_map(|link| stored.iris(from, link));
            links.map(str::to_owned).collect::<Vec<_>>()
        };
        // What the question of the trace follows from is of another trace.
        let inner = own.iter().filter(|from| from.as_str() != self.root);
        let all = linked(id).into_iter();
        let all = all.chain(inner.flat_map(|from| linked(from)));
        let named: Vec<String> = all.filter(|other| other != id).collect();
        let absent = named.iter().find(|other| !stored.said.contains_key(*other));
        let bare = |other: &&String| is_of(self.root, other) && !stored.is_chained(other);
        if let Some(gone) = absent.or_else(|| named.iter().find(bare)) {
            return Broken {
                entity: gone.clone(),
                fault: LinkError::Missing,
            };
        }
        let others = own.iter().map(|id| (*id).clone());
        let other = named.iter().cloned().chain(others);
        let mut other = other.filter(|other| stored.is_tail(other) && other != id);
        let end = stored.end(self.root, own);
        match other.find(|other| *other != end) {
            Some(entity) => Broken {
                entity,
                fault: LinkError::Replaced,
            },
            None => Broken {
                entity: id.to_owned(),
                fault: LinkError::Replaced,
            },
        }
    }
}

/// How the end of a trace is named.
pub fn end_of(root: &str) -> String {
    match root {
        _ if root.starts_with(AGENT) => format!("{root}/final"),
        _ if root.starts_with("urn:trustgraph:docrag:") => format!("{root}/synthesis"),
        _ => format!("urn:trustgraph:prov:synthesis:{}", id_of(root)),
    }
}

/// What tells the names of one trace from those of others.
fn id_of(root: &str) -> &str {
    root.rsplit([':', '/']).next().unwrap_or(root)
}

/// Whether an entity is of the trace of a question, by its name.
fn is_of(root: &str, id: &str) -> bool {
    let own = id_of(root);
    id.split([':', '/']).any(|part| part == own)
}

#[cfg(test)]
mod tests;
