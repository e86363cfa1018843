//! Names of terms: the label that reads best, found once per request.

use std::collections::HashMap;

use oxigraph::model::{GraphName, NamedOrBlankNode, Term as RdfTerm};

use super::look::Graphs;
use crate::error::GraphError;
use crate::store::embedded::dataset::Dataset;

/// Labels of one thing that are compared.
const COMPARED: usize = 32;

/// Labels of one request.
pub(super) struct Labels<'a> {
    data: &'a Dataset,
    graphs: &'a Graphs,
    languages: &'a [String],
    known: HashMap<NamedOrBlankNode, String>,
}

impl<'a> Labels<'a> {
    /// Labels from these graphs, in these languages if any are named.
    pub(super) fn new(data: &'a Dataset, graphs: &'a Graphs, languages: &'a [String]) -> Self {
        Self {
            data,
            graphs,
            languages,
            known: HashMap::new(),
        }
    }

    /// Its label, else the last part of its IRI. Literals are their own names: empty.
    pub(super) fn of(&mut self, term: &RdfTerm) -> Result<String, GraphError> {
        let thing = match term {
            RdfTerm::NamedNode(node) => NamedOrBlankNode::NamedNode(node.clone()),
            RdfTerm::BlankNode(node) => NamedOrBlankNode::BlankNode(node.clone()),
            _ => return Ok(String::new()),
        };
        if let Some(label) = self.known.get(&thing) {
            return Ok(label.clone());
        }
        let label = match self.find(&thing)? {
            Some(label) => label,
            None => match &thing {
                NamedOrBlankNode::NamedNode(node) => local_name(node.as_str()).to_owned(),
                NamedOrBlankNode::BlankNode(_) => String::new(),
            },
        };
        self.known.insert(thing, label.clone());
        Ok(label)
    }

    /// The best of the labels: of the language asked for first, then without one, then of any if none was
    /// asked for; of equal ones the one in the default graph, then the first by its letters.
    fn find(&self, thing: &NamedOrBlankNode) -> Result<Option<String>, GraphError> {
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
        Ok(best.map(|(_, _, label)| label.to_owned()))
    }

    fn rank(&self, language: Option<&str>) -> Option<usize> {
        match language {
            None => Some(self.languages.len()),
            Some(tag) if self.languages.is_empty() => Some(if covers("en", tag) { 1 } else { 2 }),
            Some(tag) => self.languages.iter().position(|range| covers(range, tag)),
        }
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
