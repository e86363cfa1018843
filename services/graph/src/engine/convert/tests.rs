//! What RDF can say goes there and back; what it cannot is refused by the name of the field.

use super::*;

fn literal(value: &str, datatype: &str, language: &str) -> Term {
    Term::Literal {
        value: value.into(),
        datatype: datatype.into(),
        language: language.into(),
    }
}

fn with_object(o: Term) -> Triple {
    Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), o)
}

fn why(triple: &Triple) -> String {
    quad("triples[7]", triple).unwrap_err().to_string()
}

#[test]
fn terms_go_there_and_back() {
    let inner = with_object(literal("x", "urn:type", ""));
    for o in [
        Term::iri("urn:o"),
        Term::Blank("b0".into()),
        literal("", "", ""),
        literal("ü\n\"", "", ""),
        literal("x", "", "en-gb"),
        literal("x", "", "he--rtl"),
        literal("1", "http://www.w3.org/2001/XMLSchema#integer", ""),
        Term::Quoted(Box::new(inner)),
    ] {
        let triple = with_object(o).in_graph("urn:graph");
        assert_eq!(from_quad(quad("", &triple).unwrap()), triple);
    }
}

/// As the official loaders send them.
#[test]
fn drawn_labels_are_blank_nodes_and_come_back_as_they_were_sent() {
    let label = "n9d323b3bc4cc42718c41837f972ff86ab1";
    let node = Term::iri(label);
    let triple = Triple::new(node.clone(), Term::iri("urn:p"), node.clone()).in_graph(label);
    let stored = quad("", &triple).unwrap();
    assert!(stored.subject.is_blank_node() && stored.object.is_blank_node());
    assert!(matches!(stored.graph_name, GraphName::BlankNode(_)));
    assert_eq!(from_quad(stored), triple);
    let predicate = Triple::new(node.clone(), node.clone(), node);
    assert!(why(&predicate).starts_with("triples[7].p: not an absolute IRI"));
}

#[test]
fn text_is_plain_and_languages_are_lower_case() {
    let stored = |o| from_quad(quad("", &with_object(o)).unwrap()).o.unwrap();
    let string = literal("x", "http://www.w3.org/2001/XMLSchema#string", "");
    assert_eq!(stored(string), Term::literal("x"));
    assert_eq!(stored(literal("x", "", "en-GB")), literal("x", "", "en-gb"));
    assert_eq!(stored(Term::Blank("_:b1".into())), Term::Blank("b1".into()));
}

#[test]
fn faults_name_the_field() {
    let quoted = Term::Quoted(Box::new(with_object(Term::iri("urn:o"))));
    let (s, p) = (Term::iri("urn:s"), Term::iri("urn:p"));
    let subject = |term| Triple::new(term, p.clone(), s.clone());
    assert!(why(&subject(quoted.clone())).starts_with("triples[7].s: a quoted triple"));
    assert!(why(&subject(Term::literal("x"))).starts_with("triples[7].s: a literal"));
    assert!(why(&subject(Term::iri(""))).starts_with("triples[7].s: an IRI is required"));
    assert!(why(&subject(Term::iri("no scheme"))).starts_with("triples[7].s: not an absolute IRI"));
    let predicate = Triple::new(s.clone(), Term::Blank("b".into()), s.clone());
    assert!(why(&predicate).starts_with("triples[7].p: a predicate must be an IRI"));
    let deep = Triple::new(quoted, p.clone(), s.clone());
    let inside = with_object(Term::Quoted(Box::new(deep)));
    assert!(why(&inside).starts_with("triples[7].o.tr.s: a quoted triple"));
    assert!(why(&with_object(literal("x", "nope", ""))).starts_with("triples[7].o.dt: "));
    assert!(why(&with_object(literal("x", "", "no tag"))).starts_with("triples[7].o.ln: "));
    assert!(why(&with_object(Term::Blank("a b".into()))).starts_with("triples[7].o: not a blank"));
    assert!(why(&with_object(s.clone()).in_graph("*")).starts_with("triples[7].g: "));
    assert_eq!(why(&Triple::default()), "triples[7].s: is required");
}

#[test]
fn endless_nesting_is_refused() {
    let mut o = Term::iri("urn:o");
    for _ in 0..200 {
        o = Term::Quoted(Box::new(with_object(o)));
    }
    assert!(why(&with_object(o)).contains("nested more than 16 deep"));
}

#[test]
fn triples_that_repeat_subject_and_graph_read_as_each_alone() {
    let triple = |subject: &str, graph: Option<&str>| Triple {
        g: graph.map(str::to_owned),
        ..Triple::new(Term::iri(subject), Term::iri("urn:p"), Term::literal("o"))
    };
    let triples = [
        triple("urn:a", Some("urn:g")),
        triple("urn:a", Some("urn:g")),
        triple("urn:b", None),
        triple("no iri", Some("urn:g")),
        triple("urn:b", Some("_:g")),
        triple("urn:b", Some("no iri")),
        triple("n9d323b3bc4cc42718c41837f972ff86ab1", Some("urn:g")),
    ];
    let mut repeated = Repeated::default();
    for triple in &triples {
        assert_eq!(repeated.quad(triple), quad("", triple));
    }
}
