//! Reading a graph that a client sends, whole before any of it is written: a file with a fault changes nothing.

use std::collections::HashMap;

use oxrdf::BlankNode;
use oxrdfio::{RdfFormat, RdfParser};
use sha2::{Digest, Sha256};
use tg_schemas::{Error, ErrorCode, Triple};

use super::media;
use super::nesting;
use super::terms;

/// The syntax of a body. RDF/XML is none of them: its entities can make much of little.
pub(crate) fn of_body(content_type: &str) -> Option<RdfFormat> {
    match media::essence(content_type).as_str() {
        // The second name is that of clients from before the first was registered.
        "text/turtle" | "application/x-turtle" => Some(RdfFormat::Turtle),
        "application/n-triples" => Some(RdfFormat::NTriples),
        _ => None,
    }
}

/// The triples of a body, in a graph (empty: the default one). Blank nodes get labels of this body and graph: those of
/// two bodies never meet, and the same body again adds nothing.
///
/// # Errors
/// `bad-request`, with the line where it cannot be read.
pub(crate) fn triples(bytes: &[u8], format: RdfFormat, graph: &str) -> Result<Vec<Triple>, Error> {
    if nesting::too_deep(bytes) {
        let text = "quoted triples are nested deeper than a graph may have them";
        return Err(Error::new(ErrorCode::BadRequest, text));
    }
    let mut hash = Sha256::new();
    hash.update((graph.len() as u64).to_be_bytes());
    hash.update(graph);
    hash.update(bytes);
    let load = hex::encode(&hash.finalize()[..10]);
    let mut known: HashMap<BlankNode, String> = HashMap::new();
    let mut label = |node: BlankNode| {
        let number = known.len();
        let fresh = || format!("l{load}n{number}");
        known.entry(node).or_insert_with(fresh).clone()
    };
    let quads = parser(format, graph)?.for_slice(unmarked(bytes));
    let triples = quads.map(|quad| {
        let quad = quad.map_err(|error| Error::new(ErrorCode::BadRequest, error.to_string()))?;
        Ok(terms::from_triple(quad.into(), graph, &mut label))
    });
    triples.collect()
}

/// How many bytes of memory the triples of a body need, by an estimate; it stops counting beyond `most`. A short name may stand for
/// a long one, and does so wherever it is written.
pub(crate) fn weight(bytes: &[u8], format: RdfFormat, graph: &str, most: usize) -> usize {
    let mut sum = bytes.len();
    // What cannot be read becomes no triples: whoever reads it says why.
    if nesting::too_deep(bytes) {
        return sum;
    }
    let Ok(parser) = parser(format, graph) else {
        return sum;
    };
    for quad in parser.for_slice(unmarked(bytes)) {
        let Ok(quad) = quad else { break };
        sum += graph.len() + terms::weight(&quad.into());
        if sum > most {
            break;
        }
    }
    sum
}

/// A parser of a body for a graph.
fn parser(format: RdfFormat, graph: &str) -> Result<RdfParser, Error> {
    let parser = RdfParser::from_format(format).without_named_graphs();
    if graph.is_empty() {
        return Ok(parser);
    }
    // Relative names are of the graph (RDF 1.1 Graph Store, 4.1).
    let malformed = |_| Error::new(ErrorCode::BadRequest, "graph: is not an absolute IRI");
    parser.with_base_iri(graph).map_err(malformed)
}

/// A byte order mark is no part of a text.
fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::Term;

    const TURTLE: &[u8] = b"<#a> <urn:p> _:x, [ <urn:q> \"v\"@en--rtl ] . _:x <urn:p> 1 .";

    fn blanks(triples: &[Triple]) -> Vec<String> {
        let terms = triples.iter().flat_map(|one| [&one.s, &one.o]);
        let blanks = terms.filter_map(|term| match term {
            Some(Term::Blank(label)) => Some(label.clone()),
            _ => None,
        });
        blanks.collect()
    }

    #[test]
    fn blank_nodes_are_of_the_body_and_the_graph() {
        let read = |graph| triples(TURTLE, RdfFormat::Turtle, graph).unwrap();
        let first = read("urn:g");
        assert_eq!(first, read("urn:g"));
        assert_eq!(first.len(), 4);
        assert_eq!(first[0].s, Some(Term::iri("urn:g#a")));
        assert!(first.iter().all(|one| one.g.as_deref() == Some("urn:g")));
        let other = blanks(&read("urn:h"));
        assert_eq!(blanks(&first).len(), 4);
        assert!(blanks(&first).iter().all(|label| !other.contains(label)));
    }

    #[test]
    fn a_fault_says_where_and_nothing_is_read() {
        let fault = |text: &[u8], graph| {
            let read = triples(text, RdfFormat::Turtle, graph);
            read.unwrap_err().message
        };
        let told = fault(b"<urn:a> <urn:b> <urn:c> .\n<urn:a> oops", "");
        assert!(told.contains("line 2"), "{told}");
        assert!(!fault(b"<a> <urn:b> 1 .", "").is_empty());
        assert_eq!(fault(b"", "no name"), "graph: is not an absolute IRI");
        let graphs = triples(
            b"<urn:a> <urn:b> <urn:c> <urn:g> .",
            RdfFormat::NTriples,
            "",
        );
        assert!(graphs.is_err());
    }

    #[test]
    fn names_are_read_as_the_standard_has_them() {
        let text = b"@prefix e: <http://e/> .\nPREFIX t: <http://t/>\n\
            e:%3Cspan e:a\\/b t:1423 ; e:og:video e:x\\. ; .";
        let read = triples(text, RdfFormat::Turtle, "").unwrap();
        let [first, second] = read.as_slice() else {
            panic!("two triples, not {read:?}");
        };
        let terms = [&first.s, &first.p, &first.o, &second.p, &second.o];
        let wanted = [
            "http://e/%3Cspan",
            "http://e/a/b",
            "http://t/1423",
            "http://e/og:video",
            "http://e/x.",
        ];
        assert_eq!(
            terms.map(Clone::clone),
            wanted.map(|iri| Some(Term::iri(iri)))
        );
        // No IRI has a blank: another name would be stored than the file has.
        let blank = b"<urn:a> <urn:p> 1 .\n<http://e/my file> <urn:p> 1 .";
        let told = triples(blank, RdfFormat::Turtle, "").unwrap_err().message;
        assert!(told.contains("line 2"), "{told}");
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        let marked = [
            b"\xef\xbb\xbf".as_slice(),
            b"@prefix e: <urn:e:> . e:a e:b e:c .",
        ]
        .concat();
        let read = triples(&marked, RdfFormat::Turtle, "").unwrap();
        assert_eq!(read[0].s, Some(Term::iri("urn:e:a")));
        let lines = [b"\xef\xbb\xbf".as_slice(), b"<urn:a> <urn:b> <urn:c> .\n"].concat();
        assert_eq!(
            triples(&lines, RdfFormat::NTriples, "").map(|all| all.len()),
            Ok(1)
        );
    }

    #[test]
    fn a_short_name_weighs_as_much_as_the_one_it_stands_for() {
        let long = "x".repeat(10_000);
        let names = vec!["e:c"; 1_000].join(", ");
        let body = format!("@prefix e: <urn:{long}> . e:a e:b {names} .");
        let of = |body: &str, graph, most| weight(body.as_bytes(), RdfFormat::Turtle, graph, most);
        assert!(of(&body, "", usize::MAX) > 1_000 * 3 * long.len());
        // Counting ends soon after the bound.
        assert!(of(&body, "", 1 << 20) < 2 << 20);
        // As does the name of the graph, which each triple has.
        let graph = format!("urn:{long}");
        let body = format!("<urn:a> <urn:b> {} 0 .", "0, ".repeat(999));
        assert!(of(&body, &graph, usize::MAX) > 1_000 * long.len());
        assert!(of(&body, "", usize::MAX) < 1_000 * 1_000);
        // What is no graph needs no more than its bytes.
        assert_eq!(of("<urn:a> oops", "", usize::MAX), 12);
        assert_eq!(of("", "no name", usize::MAX), 0);
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |depth: usize| {
            let (open, close) = ("<<( <urn:s> <urn:p> ", " )>>");
            let body = format!(
                "<urn:s> <urn:p> {}<urn:o>{} .",
                open.repeat(depth),
                close.repeat(depth)
            );
            triples(body.as_bytes(), RdfFormat::Turtle, "").map(|triples| triples.len())
        };
        assert_eq!(nested(8), Ok(1));
        assert!(nested(100_000).is_err());
        let open = format!("<urn:s> <urn:p> {}", "[ <urn:p> ".repeat(100_000));
        assert!(triples(open.as_bytes(), RdfFormat::Turtle, "").is_err());
        let whole = format!("{open} 1 {} .", "]".repeat(100_000));
        assert_eq!(
            triples(whole.as_bytes(), RdfFormat::Turtle, "").map(|all| all.len()),
            Ok(100_001)
        );
    }

    #[test]
    fn only_what_names_no_graphs_and_expands_nothing_is_read() {
        assert_eq!(
            of_body("text/turtle; charset=utf-8"),
            Some(RdfFormat::Turtle)
        );
        assert_eq!(of_body("application/x-turtle"), Some(RdfFormat::Turtle));
        for other in ["", "text/plain", "application/rdf+xml", "application/trig"] {
            assert_eq!(of_body(other), None, "{other}");
        }
    }
}
