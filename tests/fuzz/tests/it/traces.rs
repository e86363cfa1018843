//! Heads, and what graphs and exports say of traces.

use tg_provenance::{Head, Stored, Texts};
use tg_schemas::vocabulary::{prov, rdf, tg};
use tg_schemas::{Term, Triple};
use tg_testkit::fuzz::run;

#[test]
fn heads() {
    let seeds: [&[u8]; 2] = [
        b"threadgraph trace head 1\nworkspace: w\nday: d\nruns: 2\nroot: r\nprevious: none\nsigned: s\nkey: k\n",
        b"threadgraph trace head 1\nworkspace: \nday: \nruns: 18446744073709551615\nroot: \nprevious: \nsigned: \nkey: \n",
    ];
    run("heads", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(head) = Head::read(&text) {
            assert_eq!(head.text(), text);
        }
    });
}

/// A line is a statement: subject, property by its first letter, object.
#[test]
fn chains() {
    let seeds: [&[u8]; 2] = [
        b"urn:trustgraph:agent:1 h a\nurn:trustgraph:agent:1/i1 p a\nurn:trustgraph:agent:1/i1 h b\nurn:trustgraph:agent:1/final p b",
        b"urn:trustgraph:agent:1 p a\nurn:trustgraph:agent:1 h a\nurn:trustgraph:agent:1 c urn:trustgraph:agent:1\nx d x",
    ];
    run("chains", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let stored: Stored = text.lines().filter_map(statement).collect();
        let root = "urn:trustgraph:agent:1";
        let _ = stored.verify(root, &Texts::Unknown, None);
        let _ = stored.verify(root, &Texts::Unknown, Some("a"));
        let _ = (stored.roots(), stored.unmet(), stored.linked(root));
    });
}

fn statement(line: &str) -> Option<Triple> {
    let mut words = line.split(' ');
    let (subject, property, object) = (words.next()?, words.next()?, words.next()?);
    let (property, object) = match property {
        "h" => (tg::ENTITY_HASH, Term::literal(object)),
        "p" => (tg::PREVIOUS_HASH, Term::literal(object)),
        "t" => (tg::TEXT_HASH, Term::literal(object)),
        "c" => (tg::CITATION, Term::iri(object)),
        "d" => (prov::WAS_DERIVED_FROM, Term::iri(object)),
        "a" => (rdf::TYPE, Term::iri(tg::QUESTION)),
        _ => (rdf::TYPE, Term::iri(tg::CONCLUSION)),
    };
    Some(Triple::new(Term::iri(subject), Term::iri(property), object))
}
