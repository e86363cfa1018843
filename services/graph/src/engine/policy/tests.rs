//! Shapes as they are written, and what is wrong with those that cannot be read.

use oxigraph::io::{RdfFormat, RdfParser};
use tg_schemas::msg::{Assignment, Delegation, UserContext};

use super::*;

const PREFIXES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix x: <urn:x:> . \
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n";

fn policies(turtle: &str) -> Result<Vec<Policy>, GraphError> {
    let text = format!("{PREFIXES}{turtle}");
    let quads: Vec<Quad> = RdfParser::from_format(RdfFormat::Turtle)
        .for_slice(text.as_bytes())
        .collect::<Result<_, _>>()
        .unwrap();
    read(quads.into_iter().map(Ok))
}

const SECRET: &str = r#"
    x:secret a sh:NodeShape ; rdfs:label "Secret things" ; sh:order 2 ;
      sh:target [ sh:prefixes x:names ; sh:select "SELECT ?this WHERE { ?this a x:Secret }" ] ;
      sh:rule [ sh:prefixes x:names ;
                sh:construct "CONSTRUCT { [] a sh:ValidationResult } WHERE { ?this a x:Secret }" ] .
    x:names sh:declare [ sh:prefix "x" ; sh:namespace "urn:x:" ] ,
                       [ sh:prefix "sh" ; sh:namespace <http://www.w3.org/ns/shacl#> ] .
"#;

#[test]
fn shapes_are_asked_in_their_order() {
    let rule = r#"sh:target [ sh:select "SELECT ?this { ?this ?p ?o }" ] ;
        sh:rule [ sh:construct "CONSTRUCT { ?this ?p ?o } WHERE { ?this ?p ?o }" ]"#;
    let more = format!(
        "{SECRET} x:last a sh:NodeShape ; {rule} . x:first a sh:NodeShape ; sh:order 1 ; {rule} ."
    );
    let read = policies(&more).unwrap();
    let names: Vec<&str> = read.iter().map(|policy| &*policy.name).collect();
    assert_eq!(names, ["urn:x:first", "Secret things", "urn:x:last"]);
    assert!(policies("").unwrap().is_empty());
    // What is there and is no policy hides everything, like one that cannot be read.
    for odd in ["x:a x:b x:c .", "x:a a sh:Nodeshape ; sh:rule x:r ."] {
        assert!(
            policies(odd)
                .unwrap_err()
                .to_string()
                .contains("sh:NodeShape"),
            "{odd}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_an_error_that_says_which_and_why() {
    let told = |turtle: &str| policies(turtle).unwrap_err().to_string();
    let without = "x:p a sh:NodeShape .";
    assert_eq!(
        told(without),
        "policy urn:x:p: sh:target with sh:select is required"
    );
    let order = SECRET.replace("sh:order 2", "sh:order 'soon'");
    assert!(
        told(&order).contains("sh:order: \"soon\""),
        "{}",
        told(&order)
    );
    for (part, other, why) in [
        ("SELECT ?this", "SELECT ?that", "does not select ?this"),
        ("SELECT ?this", "ASK", "must be a SELECT query"),
        (
            "CONSTRUCT { [] a sh:ValidationResult } WHERE",
            "SELECT *",
            "must be a CONSTRUCT query",
        ),
        (
            "sh:prefixes x:names ; sh:select",
            "sh:select",
            "sh:select: ",
        ),
    ] {
        let said = told(&SECRET.replacen(part, other, 1));
        assert!(
            said.starts_with("policy Secret things: ") && said.contains(why),
            "{said}"
        );
    }
    let long = SECRET.replace(
        "?this a x:Secret }\" ]",
        &format!("{} }}\" ]", "?this a x:Secret . ".repeat(300)),
    );
    assert!(told(&long).contains("is longer than"), "{}", told(&long));
}

#[test]
fn what_would_need_much_stack_is_refused() {
    let with = |more: &str| {
        let query = format!("?this a x:Secret FILTER({more}) }}\" ]");
        policies(&SECRET.replacen("?this a x:Secret }\" ]", &query, 1))
    };
    for (more, why) in [
        (
            format!("{}1{}", "(".repeat(20), ")".repeat(20)),
            "nested more than 8 deep",
        ),
        (
            format!("1{} > 0", "+1".repeat(200)),
            "brackets and operators",
        ),
        (
            format!("1{} > 0", "-1".repeat(200)),
            "brackets and operators",
        ),
        (
            format!("true{}", "||true".repeat(100)),
            "brackets and operators",
        ),
    ] {
        let said = with(&more).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
    assert!(with("1+1 > 0 && ?this != x:other").is_ok());
}

#[test]
fn a_result_blocks_unless_it_says_that_it_does_not() {
    let made = |turtle: &str| -> Vec<oxigraph::model::Triple> {
        let text =
            format!("{PREFIXES}@prefix pol: <https://trustgraph.ai/ontology/policy/> .\n{turtle}");
        RdfParser::from_format(RdfFormat::Turtle)
            .for_slice(text.as_bytes())
            .map(|quad| quad.unwrap().into())
            .collect()
    };
    for (turtle, wanted) in [
        ("x:r x:p x:o .", Verdict::Silent),
        ("x:r a sh:ValidationResult .", Verdict::Hidden),
        (
            "x:r a sh:ValidationResult ; pol:blocks true .",
            Verdict::Hidden,
        ),
        (
            "x:r a sh:ValidationResult ; pol:blocks false .",
            Verdict::Shown,
        ),
        (
            "x:r a sh:ValidationResult ; pol:blocks false, true .",
            Verdict::Hidden,
        ),
        (
            "x:r a sh:ValidationResult ; pol:blocks x:no .",
            Verdict::Hidden,
        ),
        (
            "x:r a sh:ValidationResult ; pol:blocks false . x:s a sh:ValidationResult .",
            Verdict::Hidden,
        ),
    ] {
        assert_eq!(verdict(&made(turtle)), wanted, "{turtle}");
    }
}

#[test]
fn policies_are_told_all_that_is_known_of_a_user() {
    let user = UserContext {
        user_id: "ann".into(),
        roles: vec!["urn:x:clerk".into(), "boss".into()],
        purpose: "audit".into(),
        assignments: vec![Assignment {
            resource: "urn:x:case".into(),
            status: "open".into(),
            qualifiers: [("grade".to_owned(), "2".to_owned())].into(),
            ..Assignment::default()
        }],
        delegation: Some(Delegation {
            delegator_id: "urn:x:bob".into(),
            scope: String::new(),
        }),
        ..UserContext::default()
    };
    let said: Vec<String> = facts(&user).iter().map(ToString::to_string).collect();
    let has = |text: &str| said.iter().any(|fact| fact.contains(text));
    for text in [
        "user-context/UserContext>",
        "user-context/role> <urn:x:clerk>",
        "user-context/role> \"boss\"",
        "user-context/purpose> \"audit\"",
        "user-context/resource> <urn:x:case>",
        "user-context/status> \"open\"",
        "user-context/grade> \"2\"",
        "user-context/delegatorId> <urn:x:bob>",
    ] {
        assert!(has(text), "{text}: {said:#?}");
    }
    assert!(!has("validFrom") && !has("scope"), "{said:#?}");
}
