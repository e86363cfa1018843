//! What says that facts were loaded from a file, in the terms that extraction uses: a subgraph holds the facts and was derived from
//! a document, which is the file. Answers cite the document, and `tg verify` finds it. Pure.

use std::path::Path;

use oxigraph::model::NamedNode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use tg_schemas::vocabulary::{OWN_GRAPHS, SOURCE_GRAPH, made, prov, rdf, rdfs, tg};
use tg_schemas::{Term, Triple};

/// Largest file whose facts get a source unless the caller asks for it: each takes as much room again.
pub(super) const LARGEST: u64 = 4 << 20;
/// Beginning of the IRI of a document whose id is none.
const DOCUMENT: &str = "urn:document:";
/// What does not stand for itself in such an IRI.
const IN_ID: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The source of the facts of one file.
#[derive(Debug)]
pub(super) struct LoadedFrom {
    document: String,
    subgraph: String,
    title: String,
}

impl LoadedFrom {
    /// The source of a file that is loaded for a document; the same each time.
    pub(super) fn file(document_id: &str, path: &Path) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let title = name.unwrap_or_default().into_owned();
        let document = match NamedNode::new(document_id) {
            Ok(iri) => iri.into_string(),
            Err(_) => format!("{DOCUMENT}{}", utf8_percent_encode(document_id, IN_ID)),
        };
        let mut hash = Sha256::new();
        hash.update((document.len() as u64).to_be_bytes());
        hash.update(&document);
        hash.update(&title);
        let id = hex::encode(&hash.finalize()[..16]);
        Self {
            document,
            subgraph: format!("{}loaded-{id}", made::SUBGRAPH),
            title,
        }
    }

    /// What is said of the file itself.
    pub(super) fn described(&self) -> Vec<Triple> {
        let said = |subject: &str, predicate: &str, object: Term| {
            Triple::new(Term::iri(subject), Term::iri(predicate), object).in_graph(SOURCE_GRAPH)
        };
        let (document, subgraph) = (self.document.as_str(), self.subgraph.as_str());
        vec![
            said(document, rdf::TYPE, Term::iri(tg::DOCUMENT_CLASS)),
            said(document, rdf::TYPE, Term::iri(tg::LOADED_FILE)),
            said(document, rdfs::LABEL, Term::literal(self.title.as_str())),
            said(subgraph, rdf::TYPE, Term::iri(tg::SUBGRAPH)),
            said(subgraph, prov::WAS_DERIVED_FROM, Term::iri(document)),
        ]
    }

    /// That a fact stands in the file; `None` for what is no fact, such as a trace, and for statements about statements.
    pub(super) fn holds(&self, fact: &Triple) -> Option<Triple> {
        let own = |graph: &String| graph.starts_with(OWN_GRAPHS);
        let quotes = [&fact.s, &fact.o]
            .iter()
            .any(|term| matches!(term, Some(Term::Quoted(_))));
        if quotes || fact.g.as_ref().is_some_and(own) {
            return None;
        }
        let plain = Triple {
            g: None,
            ..fact.clone()
        };
        let quoted = Term::Quoted(Box::new(plain));
        let held = Triple::new(
            Term::iri(self.subgraph.as_str()),
            Term::iri(tg::CONTAINS),
            quoted,
        );
        Some(held.in_graph(SOURCE_GRAPH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(id: &str, path: &str) -> LoadedFrom {
        LoadedFrom::file(id, Path::new(path))
    }

    #[test]
    fn a_file_is_a_document_that_holds_its_facts() {
        let source = source("urn:doc:staff", "/data/team.ttl");
        let fact = Triple::new(
            Term::iri("urn:anna"),
            Term::iri("urn:worksFor"),
            Term::iri("urn:ada"),
        );
        let held = source.holds(&fact).expect("held");
        assert_eq!(held.o, Some(Term::Quoted(Box::new(fact.clone()))));
        assert_eq!(held.g.as_deref(), Some(SOURCE_GRAPH));
        let said = source.described();
        let derived = said.iter().find(|triple| {
            triple.s == held.s && triple.p == Some(Term::iri(prov::WAS_DERIVED_FROM))
        });
        assert_eq!(
            derived.expect("a document").o,
            Some(Term::iri("urn:doc:staff"))
        );
        assert!(
            said.iter()
                .any(|triple| triple.o == Some(Term::literal("team.ttl")))
        );
        let in_graph = source.holds(&fact.clone().in_graph("urn:g")).expect("held");
        assert_eq!(in_graph, held, "whatever graph it stands in");
        assert_eq!(source.holds(&fact.in_graph("urn:graph:retrieval")), None);
    }

    #[test]
    fn a_document_has_an_iri_and_two_files_have_two_subgraphs() {
        let (one, other) = (source("time zones", "a.ttl"), source("time zones", "b.ttl"));
        assert_eq!(one.document, "urn:document:time%20zones");
        assert_ne!(one.subgraph, other.subgraph);
        assert_eq!(one.subgraph, source("time zones", "/tmp/a.ttl").subgraph);
    }
}
