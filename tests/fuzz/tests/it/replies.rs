//! Replies of models that are read for what they hold: items, facts, rows, citations, queries, samples.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tg_citations::{Citer, Judged, is_refusal, leans_on, quotations, sentences, stands_in};
use tg_extract::engine::knowledge::{self, Content};
use tg_extract::engine::ontology::{Ontologies, check};
use tg_extract::engine::{items, rows};
use tg_prompt::engine::shape::{Schema, json as one_value, json_lines};
use tg_rag::engine::{detect, graphql, schemas};
use tg_schemas::table::Table;
use tg_testkit::fuzz::run;

const ONTOLOGY: &str = r#"{"metadata": {"namespace": "urn:o#"}, "classes": {"A": {"uri": "urn:o#A"}},
    "objectProperties": {"p": {"rdfs:domain": "A", "rdfs:range": "A"}},
    "datatypeProperties": {"d": {"rdfs:domain": "A", "rdfs:range": "xsd:dateTime"}}}"#;
const TABLE: &str = r#"{"name": "t", "fields": [{"name": "id", "type": "integer", "primary_key": true},
    {"name": "x", "type": "timestamp"}, {"name": "y", "type": "float", "enum": ["1.5"]}]}"#;

#[test]
fn facts_of_replies() {
    let seeds: [&[u8]; 5] = [
        br#"[{"entity": "A", "definition": "b"}, {"subject": "a", "predicate": "b", "object": "c", "object-entity": true}]"#,
        b"```json\n{\"type\": \"entity\", \"entity\": \"x\", \"entity_type\": \"A\"}\n{\"subject\": \"x\", \"relation\": \"p\", \"object\": \"y\"}\n```",
        br#"{"entity": "x", "attribute": "d", "value": "2026-01-05T00:00:00+14:00"}"#,
        br#"[{"id": "1", "x": "2026-02-30", "y": 1.5}, {"id": 1e400, "x": null}, [[{"id": -0}]]]"#,
        br#"{"entities": [{"name": "x", "type": "A"}], "relationships": [{"subject": "x", "predicate": "d", "object": "P1Y"}]}"#,
    ];
    let ontologies = Ontologies::read([("o", ONTOLOGY)]);
    let table = Table::read("t", TABLE).expect("a table");
    run("facts of replies", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for items in [items::of_text(&text), items::of_json(&text)] {
            let _ = knowledge::read(Content::Definitions, &items);
            let _ = knowledge::read(Content::Relationships, &items);
            let _ = knowledge::read(Content::Mixed, &items);
            let _ = check(&ontologies, &items);
            let _ = rows::read(&table, &items);
        }
    });
}

#[test]
fn shapes_of_replies() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}},
        "required": ["a"]});
    let schema = Schema::new(schema.as_object().expect("an object").clone()).expect("a schema");
    let seeds: [&[u8]; 3] = [
        b"Here you are:\n```json\n{\"a\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"}\n```",
        b"[\n{\"a\": \"x\"},\n{\"a\": 1}\n]",
        b"{\"a\": \"b\"}\n{\"c\": [[]]}\n",
    ];
    run("shapes of replies", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = one_value(&text, Some(&schema));
        let _ = json_lines(&text, Some(&schema));
        let _ = json_lines(&text, None);
    });
}

#[test]
fn citations_of_answers() {
    let passages = ["the quick brown fox jumps", "over the lazy dog, 3.5 times"];
    let seeds: [&[u8]; 3] = [
        b"The fox jumps [1]. It is brown [2, 1][3]! Dr. No [x] said 3.5.",
        b"a [1](b) ``` [2] ``` [[1]] [1-2]\n\n* c [",
        "Der Fuchs „springt“ [1]…".as_bytes(),
    ];
    run("citations of answers", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let mut citer = Citer::new(&passages);
        let size = bytes.len() % 5 + 1;
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            let _ = citer.push(&piece.iter().collect::<String>());
        }
        let _ = citer.finish();
        let cited = citer.cited();
        assert!(cited.iter().all(|cited| cited.passage < passages.len()));
        let _ = leans_on(&text, &passages);
        let known = BTreeMap::from([(1, Some(passages[0].to_owned())), (2, None)]);
        let judged = Judged::new(&text, &known);
        assert!(
            judged
                .iter()
                .all(|(_, rests)| rests.by().iter().all(|by| known.contains_key(by)))
        );
        for sentence in sentences(&text) {
            let _ = is_refusal(&sentence.text);
            for quotation in quotations(&sentence.text) {
                let _ = stands_in(quotation, passages[0]);
            }
        }
    });
}

#[test]
fn queries_of_models() {
    let table = Table::read("t", TABLE).expect("a table");
    let tables = [table];
    let seeds: [&[u8]; 4] = [
        b"query ($n: Int) { t(where: {id: {eq: 1}}, limit: 500) { id } u(limit: $n) { a @skip(if: true) } ...f }",
        b"{ a: t { id } } # x\n fragment f on Q { t { \"\"\"b\"\"\" } }",
        br#"["t", "u", 3]"#,
        br#"{"schemas": ["T"]}"#,
    ];
    run("queries of models", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = graphql::bounded(&text, 100);
        let _ = schemas::fitting(&tables, &text, 3);
        if let Ok(reply) = serde_json::from_slice::<Value>(bytes) {
            let _ = schemas::named(&tables, &reply);
        }
    });
}

#[test]
fn samples_of_data() {
    let seeds: [&[u8]; 4] = [
        b"id;name\n1;\"a;b\"\n2;c\n",
        b"\xef\xbb\xbf{\"a\": 1}",
        b"<?xml version=\"1.0\"?><a></a>",
        b"a|b\tc,d\n\"\n",
    ];
    run("samples of data", &seeds, |bytes| {
        if let Some(found) = detect::detect(&String::from_utf8_lossy(bytes)) {
            assert!((0.0..=1.0).contains(&found.confidence));
        }
    });
}
