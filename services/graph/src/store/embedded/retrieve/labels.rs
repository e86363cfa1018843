//! Names of terms: the label that reads best, found once per request.

use std::collections::HashMap;

use oxigraph::model::{BlankNode, GraphName, NamedNode, NamedOrBlankNode, Term as RdfTerm};

use super::look::Graphs;
use super::words::{Mask, Words};
use crate::error::GraphError;
use crate::store::embedded::dataset::Dataset;

/// Labels of one thing that are compared.
const COMPARED: usize = 32;

/// Labels that are remembered, and their bytes, about; beyond either all are forgotten: of a hub with millions of edges, each
/// is looked up once.
const KNOWN: usize = 65_536;
const BYTES: usize = 8 << 20;
/// Bytes that a label takes beside its texts, about.
const OVERHEAD: usize = 120;

/// Labels of one request.
pub(super) struct Labels<'a> {
    data: &'a Dataset,
    graphs: &'a Graphs,
    languages: &'a [String],
    words: Words<'a>,
    named: HashMap<NamedNode, Known>,
    blank: HashMap<BlankNode, Known>,
    bytes: usize,
}

/// A label, and which of the words asked for it has.
struct Known {
    label: Box<str>,
    words: Mask,
}

impl<'a> Labels<'a> {
    /// Labels from these graphs, in these languages if any are named, and which of these words they have.
    pub(super) fn new(
        data: &'a Dataset,
        graphs: &'a Graphs,
        languages: &'a [String],
        words: &'a [String],
    ) -> Self {
        Self {
            data,
            graphs,
            languages,
            words: Words::of(words),
            named: HashMap::new(),
            blank: HashMap::new(),
            bytes: 0,
        }
    }

    /// Its label, else the last part of its IRI. Literals are their own names: empty.
    pub(super) fn of(&mut self, term: &RdfTerm) -> Result<String, GraphError> {
        let known = match term {
            RdfTerm::NamedNode(node) => self.named.get(node),
            RdfTerm::BlankNode(node) => self.blank.get(node),
            _ => return Ok(String::new()),
        };
        if let Some(known) = known {
            return Ok(known.label.to_string());
        }
        let thing = match term {
            RdfTerm::NamedNode(node) => node.clone().into(),
            RdfTerm::BlankNode(node) => node.clone().into(),
            _ => return Ok(String::new()),
        };
        self.read(thing, |known| known.label.to_string())
    }

    /// The words asked for.
    pub(super) fn words(&self) -> &Words<'a> {
        &self.words
    }

    /// Adds the words of a thing's name.
    pub(super) fn mark_thing(
        &mut self,
        thing: &NamedOrBlankNode,
        into: &mut Mask,
    ) -> Result<(), GraphError> {
        match thing {
            NamedOrBlankNode::NamedNode(node) => self.mark_named(node, into),
            NamedOrBlankNode::BlankNode(node) => self.mark_blank(node, into),
        }
    }

    /// Adds the words of a term: of its name, or of its text.
    pub(super) fn mark_term(&mut self, term: &RdfTerm, into: &mut Mask) -> Result<(), GraphError> {
        match term {
            RdfTerm::NamedNode(node) => self.mark_named(node, into)?,
            RdfTerm::BlankNode(node) => self.mark_blank(node, into)?,
            RdfTerm::Literal(literal) => self.words.mark(literal.value(), into),
            RdfTerm::Triple(_) => {}
        }
        Ok(())
    }

    /// Adds the words of a node's name.
    pub(super) fn mark_named(
        &mut self,
        node: &NamedNode,
        into: &mut Mask,
    ) -> Result<(), GraphError> {
        if let Some(known) = self.named.get(node) {
            into.add(&known.words);
            return Ok(());
        }
        self.read(node.clone().into(), |known| into.add(&known.words))
    }

    fn mark_blank(&mut self, node: &BlankNode, into: &mut Mask) -> Result<(), GraphError> {
        if let Some(known) = self.blank.get(node) {
            into.add(&known.words);
            return Ok(());
        }
        self.read(node.clone().into(), |known| into.add(&known.words))
    }

    /// Looks up what is not known, and keeps it.
    fn read<T>(
        &mut self,
        thing: NamedOrBlankNode,
        take: impl FnOnce(&Known) -> T,
    ) -> Result<T, GraphError> {
        let label = match (self.find(&thing)?, &thing) {
            (Some(label), _) => label,
            (None, NamedOrBlankNode::NamedNode(node)) => local_name(node.as_str()).into(),
            (None, NamedOrBlankNode::BlankNode(_)) => Box::default(),
        };
        let mut words = self.words.none();
        self.words.mark(&label, &mut words);
        let bytes = label.len() + name_of(&thing).len() + words.bytes() + OVERHEAD;
        let known = Known { label, words };
        let taken = take(&known);
        if self.named.len() + self.blank.len() >= KNOWN || self.bytes + bytes > BYTES {
            self.named.clear();
            self.blank.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        match thing {
            NamedOrBlankNode::NamedNode(node) => drop(self.named.insert(node, known)),
            NamedOrBlankNode::BlankNode(node) => drop(self.blank.insert(node, known)),
        }
        Ok(taken)
    }

    /// The best of the labels: of the language asked for first, then without one, then of any if none was
    /// asked for; of equal ones the one in the default graph, then the first by its letters.
    fn find(&self, thing: &NamedOrBlankNode) -> Result<Option<Box<str>>, GraphError> {
        let labels = self.data.labels(thing)?;
        let counted = labels
            .iter()
            .filter(|label| self.graphs.holds(&label.graph));
        let mut best: Option<(usize, bool, &str)> = None;
        for label in counted.take(COMPARED) {
            if let Some(rank) = self.rank(label.language.as_deref())
                && !label.text.trim().is_empty()
            {
                let named = label.graph != GraphName::DefaultGraph;
                let other = (rank, named, label.text.as_str());
                if best.is_none_or(|best| other < best) {
                    best = Some(other);
                }
            }
        }
        Ok(best.map(|(_, _, label)| label.into()))
    }

    fn rank(&self, language: Option<&str>) -> Option<usize> {
        match language {
            None => Some(self.languages.len()),
            Some(tag) if self.languages.is_empty() => Some(if covers("en", tag) { 1 } else { 2 }),
            Some(tag) => self.languages.iter().position(|range| covers(range, tag)),
        }
    }
}

fn name_of(thing: &NamedOrBlankNode) -> &str {
    match thing {
        NamedOrBlankNode::NamedNode(node) => node.as_str(),
        NamedOrBlankNode::BlankNode(node) => node.as_str(),
    }
}

/// Whether a language range covers a tag: `en` covers `en` and `en-GB`, in whatever case.
pub(super) fn covers(range: &str, tag: &str) -> bool {
    let tag = tag.split("--").next().unwrap_or(tag);
    let head = tag.get(..range.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(range))
        && matches!(tag.as_bytes().get(range.len()), None | Some(b'-'))
}

/// What follows the last `#`, `/` or `:`.
pub(super) fn local_name(iri: &str) -> &str {
    let cut = iri.trim_end_matches(['/', '#', ':']);
    let from = cut.rfind(['/', '#', ':']).map_or(0, |at| at + 1);
    &cut[from..]
}
