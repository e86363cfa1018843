//! Small ontologies made up here: reading, choosing, holding replies against them.

use serde_json::json;
use tg_schemas::vocabulary::rdf;
use tg_schemas::{Term, Triple, limits};

use super::*;
use crate::engine::items::of_json;

const TOWN: &str = r#"{
  "metadata": {"name": "Town", "namespace": "https://e.x/town"},
  "classes": {
    "Structure": {"uri": "https://e.x/town#Structure", "rdfs:label": [{"value": "Bauwerk", "lang": "de"},
        {"value": "structure", "lang": "en"}]},
    "Bridge": {"uri": "https://e.x/town#Bridge", "rdfs:label": "bridge", "rdfs:subClassOf": "Structure",
        "rdfs:comment": "Leads over something."},
    "River": {"uri": "https://e.x/town#River"},
    "Person": {}
  },
  "objectProperties": {
    "crosses": {"uri": "https://e.x/town#crosses", "rdfs:domain": "Bridge", "rdfs:range": "River",
        "owl:inverseOf": "crossedBy"},
    "crossedBy": {"uri": "https://e.x/town#crossedBy", "rdfs:domain": "River", "rdfs:range": "Bridge"},
    "architect": {"uri": "https://e.x/town#architect", "rdfs:domain": "Structure", "rdfs:range": "Person"},
    "near": {"uri": "https://e.x/town#near", "rdfs:domain": "ext:Unknown"}
  },
  "datatypeProperties": {
    "built": {"uri": "https://e.x/town#built", "rdfs:domain": "Structure", "rdfs:range": "xsd:gYear"}
  }
}"#;

const WORKS: &str = r#"
@prefix : <https://e.x/works#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<https://e.x/works> a owl:Ontology .
:Book a owl:Class ; rdfs:label "book"@en , "Buch"@de .
:Poem a owl:Class .
:Person a owl:Class ; owl:equivalentClass <https://trustgraph.ai/ontology/town#Person> .
:author a owl:ObjectProperty ; rdfs:range :Person ;
    rdfs:domain [ a owl:Class ; owl:unionOf ( :Book :Poem ) ] .
:pages a owl:DatatypeProperty ; rdfs:domain :Book ; rdfs:range xsd:positiveInteger .
[] a owl:Restriction ; owl:onProperty :pages .
"#;

fn both() -> Ontologies {
    let ontologies = Ontologies::read([("town", TOWN), ("works", WORKS)]);
    assert_eq!(ontologies.faults(), &[] as &[String]);
    ontologies
}

fn names<'a>(
    ontologies: &'a Ontologies,
    chosen: impl IntoIterator<Item = &'a usize>,
) -> Vec<&'a str> {
    let elements = ontologies.elements();
    chosen
        .into_iter()
        .map(|at| elements[*at].name.as_str())
        .collect()
}

fn facts(checked: &Checked) -> Vec<String> {
    let line = |triple: &Triple| {
        let term = |term: &Option<Term>| match term {
            Some(Term::Iri(iri)) => iri.rsplit(['#', '/']).next().unwrap().to_owned(),
            Some(Term::Literal {
                value, datatype, ..
            }) if datatype.is_empty() => format!("\"{value}\""),
            Some(Term::Literal {
                value, datatype, ..
            }) => {
                format!("\"{value}\"^{}", datatype.rsplit('#').next().unwrap())
            }
            other => format!("{other:?}"),
        };
        format!(
            "{} {} {}",
            term(&triple.s),
            term(&triple.p),
            term(&triple.o)
        )
    };
    checked.found.facts().iter().map(line).collect()
}

#[test]
fn both_forms_are_read() {
    let ontologies = both();
    let find = |name: &str| {
        let elements = ontologies.elements();
        elements
            .iter()
            .find(|element| element.name == name)
            .unwrap()
    };
    assert_eq!(ontologies.elements().len(), 14);
    let structure = find("Structure");
    assert_eq!(
        (structure.label(), structure.labels.len()),
        ("structure", 2)
    );
    let bridge = find("Bridge");
    assert_eq!(bridge.parents, ["https://e.x/town#Structure"]);
    let built = find("built");
    assert_eq!(built.ranges, ["http://www.w3.org/2001/XMLSchema#gYear"]);
    // Two classes are called Person: each is named with its ontology.
    assert_eq!(
        find("town:Person").iri,
        "https://trustgraph.ai/ontology/town#Person"
    );
    assert_eq!(find("works:Person").iri, "https://e.x/works#Person");
    let author = find("author");
    assert_eq!(
        author.domains,
        ["https://e.x/works#Book", "https://e.x/works#Poem"]
    );
    assert_eq!(find("Book").label(), "book");
    let at = ontologies.at("https://e.x/works#Book").unwrap();
    assert_eq!(ontologies.ontology_of(at), "https://e.x/works");
    assert_ne!(
        ontologies.version(),
        Ontologies::read([("town", TOWN), ("work", WORKS)]).version()
    );
    // Turtle may also come as a JSON text.
    let text = json!(WORKS).to_string();
    assert_eq!(Ontologies::read([("w", text.as_str())]).elements().len(), 5);
}

#[test]
fn bad_ones_say_where_and_harm_no_other() {
    let ontologies = Ontologies::read([
        ("a", "{\"classes\": 3}"),
        ("b", "@prefix : <urn:x> .\n:A a"),
        ("c", "{\"classes\": "),
        ("d", "{\"classes\": {\"A\": {\"uri\": \"no iri\"}}}"),
        ("e", "{}"),
        ("f", "[1]"),
        ("g", "<urn:a> <urn:b> <urn:c> ."),
        ("works", WORKS),
    ]);
    assert_eq!(ontologies.elements().len(), 5);
    let faults = ontologies.faults();
    let expected = [
        "ontology 'a': classes: must be an object",
        "ontology 'b': line 2: is not valid Turtle",
        "ontology 'c': EOF while parsing",
        "ontology 'd': classes.A.uri: is not an absolute IRI",
        "ontology 'e': declares nothing",
        "ontology 'f': is neither",
        "ontology 'g': declares no class",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:?}");
    for (fault, start) in faults.iter().zip(expected) {
        assert!(fault.starts_with(start), "{fault}");
    }
}

#[test]
fn what_a_text_names_is_chosen_with_what_belongs_to_it() {
    let ontologies = both();
    let named = named_in(&ontologies, "Many books tell of bridges.");
    assert_eq!(names(&ontologies, &named), ["Bridge", "Book"]);
    let closed = close(&ontologies, &named);
    for name in [
        "Structure",
        "River",
        "crosses",
        "crossedBy",
        "architect",
        "built",
        "author",
        "pages",
        "Poem",
    ] {
        assert!(closed_has(&ontologies, &closed, name), "{name}");
    }
    assert!(!closed_has(&ontologies, &closed, "near"));
    assert!(named_in(&ontologies, "Nothing of the kind.").is_empty());
}

fn closed_has(
    ontologies: &Ontologies,
    closed: &std::collections::BTreeSet<usize>,
    name: &str,
) -> bool {
    names(ontologies, closed).contains(&name)
}

#[test]
fn meaning_brings_in_the_likest_above_the_threshold() {
    let index = Index::new(
        "m".to_owned(),
        vec![
            vec![2.0, 0.0],
            vec![0.0, 1.0],
            vec![1.0, 1.0],
            vec![0.0, 0.0],
        ],
    );
    assert_eq!(index.near(vec![vec![1.0, 0.1]], 10, 0.3), [0, 2]);
    assert_eq!(index.near(vec![vec![1.0, 0.1]], 1, 0.3), [0]);
    assert_eq!(
        index.near(vec![vec![1.0, 0.0], vec![0.0, 5.0]], 1, 0.3),
        [0, 1]
    );
    assert!(index.near(vec![vec![1.0]], 10, 0.3).is_empty());
    assert_eq!(
        segments("One. Two? \n\n- three; four"),
        ["One.", "Two?", "- three;", "four"]
    );
}

#[test]
fn prompts_get_names_that_replies_can_use() {
    let ontologies = both();
    let all = (0..ontologies.elements().len()).collect();
    let terms = terms(&ontologies, &all);
    assert_eq!(terms["classes"]["Bridge"]["subclass_of"], "Structure");
    assert_eq!(
        terms["object_properties"]["author"]["domain"],
        "Book or Poem"
    );
    assert_eq!(
        terms["object_properties"]["architect"]["range"],
        "town:Person"
    );
    assert_eq!(terms["object_properties"]["near"]["domain"], "");
    assert_eq!(terms["datatype_properties"]["built"]["range"], "gYear");
}

#[test]
fn what_fits_becomes_facts_of_several_ontologies() {
    let ontologies = both();
    let items = of_json(
        &json!([
            {"type": "entity", "entity": "Old Bridge", "entity_type": "Bridge"},
            {"type": "relationship", "subject": "Old Bridge", "subject_type": "bridge", "relation": "crosses",
             "object": "Sell", "object_type": "https://e.x/town#River"},
            {"type": "relationship", "subject": "Old Bridge", "relation": "Architect", "object": "Nerina Vosk",
             "object-type": "works:Person"},
            {"type": "attribute", "entity": "Old Bridge", "entity-type": "Bridge", "attribute": "built",
             "value": 1429},
            {"type": "relationship", "subject": "Glass Sea", "subject_type": "Book", "relation": "author",
             "object": "Nerina Vosk", "object_type": "works:Person"},
        ])
        .to_string(),
    );
    let checked = check(&ontologies, &items);
    assert_eq!(
        (checked.violations, checked.told.len()),
        (0, 0),
        "{:?}",
        checked.told
    );
    assert_eq!(
        facts(&checked),
        [
            "old-bridge type Bridge",
            "sell type River",
            "old-bridge crosses sell",
            "nerina-vosk type Person",
            "old-bridge architect nerina-vosk",
            "old-bridge built \"1429\"^gYear",
            "glass-sea type Book",
            "glass-sea author nerina-vosk",
        ]
    );
    let source = crate::engine::Source {
        chunk: "urn:chunk:1".to_owned(),
        metadata: Default::default(),
        fingerprint: String::new(),
    };
    let contexts = checked.found.into_contexts(&source, "kg-extract-ontology");
    assert_eq!(contexts.len(), 8, "two of each of the four entities");
    let bridge: Vec<_> = contexts
        .iter()
        .filter(|context| context.entity == Some(Term::iri("http://trustgraph.ai/e/old-bridge")))
        .collect();
    assert_eq!(bridge[0].context, "Old Bridge");
    assert_eq!(
        bridge[1].context,
        "Old Bridge is a bridge; Old Bridge crosses Sell; Old Bridge architect Nerina Vosk; \
         Old Bridge built: 1429"
    );
    assert_eq!(bridge[1].rdf_type, ["https://e.x/town#Bridge"]);
}

#[test]
fn what_does_not_fit_is_left_out_and_told() {
    let ontologies = both();
    for (item, why) in [
        (
            json!({"type": "entity", "entity": "X", "entity_type": "Castle"}),
            "unknown class 'Castle'",
        ),
        (
            json!({"type": "entity", "entity": "X", "entity_type": "Person"}),
            "unknown class 'Person'",
        ),
        (
            json!({"type": "relationship", "subject": "A", "relation": "owns", "object": "B"}),
            "unknown relation 'owns'",
        ),
        (
            json!({"type": "relationship", "subject": "A", "subject_type": "River", "relation": "crosses",
                "object": "B", "object_type": "River"}),
            "crosses: 'A' is River, not Bridge",
        ),
        (
            json!({"type": "relationship", "subject": "A", "subject_type": "Bridge", "relation": "author",
                "object": "B", "object_type": "works:Person"}),
            "author: 'A' is Bridge, not Book or Poem",
        ),
        (
            json!({"type": "attribute", "entity": "A", "entity_type": "River", "attribute": "built",
                "value": "1429"}),
            "built: 'A' is River, not Structure",
        ),
        (
            json!({"type": "attribute", "entity": "A", "entity_type": "Bridge", "attribute": "built",
                "value": "long ago"}),
            "built: \"long ago\" is not a valid gYear",
        ),
        (
            json!({"type": "attribute", "entity": "A", "entity_type": "Bridge", "attribute": "crosses",
                "value": "B"}),
            "unknown attribute 'crosses'",
        ),
    ] {
        let checked = check(&ontologies, &of_json(&json!([item]).to_string()));
        assert_eq!(
            (checked.violations, checked.told),
            (1, vec![why.to_owned()])
        );
        assert!(checked.found.is_empty(), "{why}");
        assert!(checked.found.labels().is_empty(), "{why}");
    }
    // A type that is given elsewhere counts.
    let items = json!([
        {"type": "relationship", "subject": "A", "relation": "crosses", "object": "B"},
        {"type": "entity", "entity": "A", "entity_type": "River"},
        {"type": "mood", "text": "la"},
        "noise",
    ]);
    let checked = check(&ontologies, &of_json(&items.to_string()));
    assert_eq!((checked.violations, checked.found.bad), (1, 2));
    assert_eq!(facts(&checked), ["a type River"]);
}

#[test]
fn the_older_nested_form_is_understood() {
    let item = json!({
        "entities": [{"entity": "Old Bridge", "type": "x", "entity_type": "Bridge"}],
        "relationships": [{"subject": "Old Bridge", "relation": "crosses", "object": "Sell"}],
        "attributes": [],
    });
    assert!(says_something(&item) && !says_something(&json!({"entities": []})));
    let checked = check(&both(), &of_json(&item.to_string()));
    assert_eq!(
        facts(&checked),
        ["old-bridge type Bridge", "old-bridge crosses sell"]
    );
}

#[test]
fn elements_are_described_with_ranges() {
    let triples = describe(&both());
    let of = |subject: &str| {
        let own = triples
            .iter()
            .filter(|triple| triple.s == Some(Term::iri(subject)));
        own.filter_map(|triple| {
            let Some(Term::Iri(predicate)) = &triple.p else {
                return None;
            };
            Some((
                predicate.rsplit(['#', '/']).next().unwrap().to_owned(),
                triple.o.clone().unwrap(),
            ))
        })
        .collect::<Vec<_>>()
    };
    let built = of("https://e.x/town#built");
    assert!(built.contains(&(
        "range".into(),
        Term::iri("http://www.w3.org/2001/XMLSchema#gYear")
    )));
    assert!(built.contains(&(
        "type".into(),
        Term::iri("http://www.w3.org/2002/07/owl#DatatypeProperty")
    )));
    assert!(built.contains(&("label".into(), Term::literal("built"))));
    let bridge = of("https://e.x/town#Bridge");
    assert!(bridge.contains(&("subClassOf".into(), Term::iri("https://e.x/town#Structure"))));
    assert!(triples.iter().all(|triple| triple.g.is_none()));
    assert!(
        triples
            .iter()
            .any(|triple| triple.p == Some(Term::iri(rdf::TYPE)))
    );
}

#[test]
fn a_definition_is_no_longer_than_a_value_of_the_configuration() {
    let padded = |length: usize| format!("{TOWN}{}", " ".repeat(length - TOWN.len()));
    let largest = padded(limits::CONFIG_VALUE);
    assert_eq!(
        Ontologies::read([("town", largest.as_str())])
            .faults()
            .len(),
        0
    );
    let larger = padded(limits::CONFIG_VALUE + 1);
    let faults = Ontologies::read([("town", larger.as_str())]);
    assert_eq!(faults.faults(), ["ontology 'town': is longer than 1 MiB"]);
}
