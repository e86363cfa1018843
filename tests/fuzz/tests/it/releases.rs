//! Bodies of other releases: written with a schema that is registered and not ours.

use serde_json::{Value, json};
use tg_schemas::Message;
use tg_schemas::codec::{ContentType, decode, encode, register};
use tg_schemas::msg::{DocumentMetadata, GraphEmbeddings, Triples, Usage};
use tg_testkit::fuzz::run;

/// A message of another release: what comes before its datum, how it is read, and a datum.
struct Foreign {
    head: Vec<u8>,
    read: fn(&[u8]),
    datum: Vec<u8>,
}

/// Our type as a release wrote it that knew one more field.
fn foreign<M: Message>(message: &M) -> Foreign {
    let mut schema: Value = serde_json::from_str(M::AVRO).expect("a schema");
    let fields = schema["fields"].as_array_mut().expect("a record");
    let later = json!({"name": "later", "type": ["null", {"type": "array", "items": "string"}], "default": null});
    fields.insert(0, later);
    let mark = register(&schema.to_string()).expect("registered");
    let mut head = vec![0xC3, 0x01];
    head.extend(
        (0..mark.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&mark[at..at + 2], 16).expect("hexadecimal")),
    );
    let ours = encode(message, ContentType::Avro).expect("written");
    let mut datum = vec![0];
    datum.extend_from_slice(&ours[10..]);
    let read = |body: &[u8]| {
        let _ = decode::<M>(body, ContentType::Avro);
    };
    Foreign { head, read, datum }
}

#[test]
fn bodies_of_other_releases() {
    let triple = json!({"metadata": {"id": "m"}, "triples": [{"s": {"type": "u", "iri": "urn:a"}, "p": {"type": "u",
        "iri": "urn:b"}, "o": {"type": "l", "value": "c"}}]});
    let triples: Triples = decode(triple.to_string().as_bytes(), ContentType::Json).expect("read");
    let all = [
        foreign(&Usage::default()),
        foreign(&triples),
        foreign(&DocumentMetadata::default()),
        foreign(&GraphEmbeddings::default()),
    ];
    for one in &all {
        let whole = [one.head.as_slice(), &one.datum].concat();
        (one.read)(&whole);
    }
    let seeds: Vec<&[u8]> = all.iter().map(|one| one.datum.as_slice()).collect();
    run("bodies of other releases", &seeds, |bytes| {
        let one = &all[bytes.len() % all.len()];
        (one.read)(&[one.head.as_slice(), bytes].concat());
    });
}
