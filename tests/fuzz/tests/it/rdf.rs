//! Files of triples, terms on their way into the graph, ontologies.

use serde_json::Value;
use tg_extract::engine::ontology::Ontologies;
use tg_graph::convert;
use tg_graph::formats::{Format, read};
use tg_schemas::Triple;
use tg_testkit::fuzz::run;

const TURTLE: &[u8] = b"@prefix a: <urn:a#> .\na:b a a:c ; a:d \"e\"@en, 'f'^^a:g, 1.5e3, true, ( 1 [ a:h \"\"\"i\"\"\" ] ) .\n\
    << a:b a:d a:e >> a:f _:g .";
const TRIPLES: &[u8] =
    b"<urn:a> <urn:b> \"c\\u00FC\\n\"@en .\n_:x <urn:b> <<( <urn:a> <urn:b> \"1\" )>> <urn:g> .\n";
const XML: &[u8] = b"<?xml version=\"1.0\"?><!DOCTYPE r [<!ENTITY x \"y\">]><rdf:RDF \
    xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:a=\"urn:a#\"><a:b rdf:about=\"urn:c\"><a:d \
    rdf:parseType=\"Collection\"><a:e/></a:d>&x;</a:b></rdf:RDF>";

#[test]
fn files_of_triples() {
    let formats: Vec<Format> = ["ttl", "nt", "nq", "trig", "rdf", "jsonld"]
        .iter()
        .filter_map(|extension| Format::from_extension(extension))
        .collect();
    assert!(formats.len() >= 4, "{formats:?}");
    run("files of triples", &[TURTLE, TRIPLES, XML], |bytes| {
        for format in &formats {
            if let Ok(quads) = read(bytes, *format, Some("http://base.example/"), "load") {
                quads.for_each(drop);
            }
        }
    });
}

#[test]
fn triples_on_their_way() {
    let seeds: [&[u8]; 2] = [
        br#"{"s": {"t": "i", "i": "urn:a"}, "p": {"t": "i", "i": "urn:b"}, "o": {"t": "l", "v": "c", "l": "en-US"}}"#,
        br#"{"s": {"t": "b", "d": "x"}, "p": {"t": "i", "i": "http://a/%zz"}, "o": {"t": "t", "tr": {"s": {"t": "i", "i": "a"}}}, "g": "urn:g"}"#,
    ];
    run("triples on their way", &seeds, |bytes| {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            return;
        };
        if let Some(triple) = Triple::from_api(&value)
            && let Ok(quad) = convert::quad("triple", &triple)
        {
            let _ = convert::from_quad(quad);
        }
    });
}

#[test]
fn ontologies() {
    let json = br#"{"metadata": {"namespace": "urn:o#"}, "classes": {"A": {"uri": "urn:o#A", "rdfs:label":
        [{"value": "a", "lang": "en"}], "rdfs:subClassOf": "B"}, "B": {"rdfs:subClassOf": "A"}},
        "objectProperties": {"p": {"rdfs:domain": "A", "rdfs:range": "B"}}, "datatypeProperties": {}}"#;
    run("ontologies", &[json, TURTLE], |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let read = Ontologies::read([("o", text.as_ref())]);
        for at in 0..read.elements().len().min(8) {
            let _ = read.ancestors(at);
        }
    });
}
