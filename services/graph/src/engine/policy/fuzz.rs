//! Policies as whoever may write a graph of policies writes them.

use oxigraph::io::{RdfFormat, RdfParser};
use tg_testkit::fuzz::run;

use super::*;

const SHAPES_OF_ALL_KINDS: &[u8] = br#"@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix x: <urn:x:> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
x:p a sh:NodeShape ; rdfs:label "P" ; sh:order 2 ;
  sh:target [ sh:prefixes x:n ; sh:select "SELECT ?this { ?this x:a/x:b* ?o . FILTER(?o - 1 > 2) }" ] ;
  sh:rule [ sh:prefixes x:n ; sh:construct "CONSTRUCT { [] a sh:ValidationResult } WHERE { ?this a x:S }" ] .
x:n sh:declare [ sh:prefix "x" ; sh:namespace "urn:x:" ] , [ sh:prefix "sh" ; sh:namespace <http://www.w3.org/ns/shacl#> ] .
"#;

/// What is read of it never lets more be asked than what [`read`] promises.
fn held(quads: impl Iterator<Item = Quad>) {
    if let Ok(policies) = read(quads.map(Ok)) {
        assert!(policies.len() <= SHAPES);
        for policy in policies {
            assert!(matches!(policy.target, Query::Select { .. }));
            assert!(matches!(policy.rule, Query::Construct { .. }));
        }
    }
}

#[test]
fn shapes_as_turtle() {
    let seeds: [&[u8]; 3] = [
        SHAPES_OF_ALL_KINDS,
        b"@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:a> sh:rule <urn:a> ; sh:target <urn:a> ; sh:order '-1' .",
        b"<urn:n> <http://www.w3.org/ns/shacl#declare> _:a . _:a <http://www.w3.org/ns/shacl#prefix> \"\" .",
    ];
    run("shapes as Turtle", &seeds, |bytes| {
        let parser = RdfParser::from_format(RdfFormat::Turtle);
        // What stands before the first fault is read.
        held(parser.for_slice(bytes).map_while(Result::ok));
    });
}

/// Parts are the query for what a policy is about, and the one for what it says.
#[test]
fn queries_of_shapes() {
    let seeds: [&[u8]; 3] = [
        b"SELECT ?this { ?this ?p ?o }\0CONSTRUCT { ?this ?p ?o } WHERE { ?this (<urn:a>|!<urn:b>)+ ?o }",
        b"SELECT (?a AS ?this) { VALUES ?a { 1 2 } FILTER(((1+2)*3 = -4 && !?x) || 5 > 6) }\0CONSTRUCT WHERE { ?a ?b ?c }",
        b"SELECT * { { { { SELECT ?this { ?this ?p [ ?q ( 1 ) ] } } } } }\0ASK {}",
    ];
    run("queries of shapes", &seeds, |bytes| {
        let mut parts = bytes.splitn(2, |byte| *byte == 0);
        let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let literal = |text: String| oxigraph::model::Literal::new_simple_literal(text);
        let node = |name: &str| oxigraph::model::NamedNode::new_unchecked(format!("urn:{name}"));
        let iri = oxigraph::model::NamedNode::new_unchecked;
        let graph = || oxigraph::model::GraphName::DefaultGraph;
        let quads = [
            Quad::new(node("p"), rdf::TYPE, iri(sh::NODE_SHAPE), graph()),
            Quad::new(node("p"), iri(sh::TARGET), node("t"), graph()),
            Quad::new(node("p"), iri(sh::RULE), node("r"), graph()),
            Quad::new(node("t"), iri(sh::SELECT), literal(text()), graph()),
            Quad::new(node("r"), iri(sh::CONSTRUCT), literal(text()), graph()),
        ];
        held(quads.into_iter());
    });
}
