//! Messages and their schemas, older and newer ones, and bodies that are none.

use super::*;
use crate::msg::*;
use crate::rdf::{Term, Triple};
use apache_avro::writer::datum::GenericDatumWriter;

#[test]
fn quoted_triples_survive_avro() {
    let inner = Triple::new(Term::iri("urn:a"), Term::iri("urn:b"), Term::literal("c"));
    let message = Triples {
        metadata: Some(Metadata {
            id: "m".into(),
            ..Metadata::default()
        }),
        triples: vec![
            Triple::new(
                Term::iri("urn:s"),
                Term::iri("urn:p"),
                Term::Quoted(Box::new(inner)),
            )
            .in_graph("urn:graph:source"),
        ],
    };
    let body = encode(&message, ContentType::Avro).unwrap();
    assert_eq!(
        decode::<Triples>(&body, ContentType::Avro).unwrap(),
        message
    );
}

#[test]
fn some_fields_are_read_without_the_others() {
    #[derive(serde::Deserialize)]
    struct Which {
        run: String,
        step: i64,
    }
    let run = AgentRun {
        run: "r".into(),
        step: 3,
        question: "q".into(),
        history: vec![AgentRunStep::default()],
        ..AgentRun::default()
    };
    for content_type in [ContentType::Avro, ContentType::Json] {
        let body = encode(&run, content_type).unwrap();
        let which: Which = fields::<AgentRun, _>(&body, content_type).unwrap();
        assert_eq!((which.run.as_str(), which.step), ("r", 3));
        let other = fields::<Triples, Which>(&body, ContentType::Avro);
        assert!(other.is_none(), "another schema");
    }
}

#[test]
fn free_json_survives_avro() {
    let mut message = PassthroughRequest::default();
    message
        .payload
        .insert("a".into(), serde_json::json!({"b": [1, null, "x"]}));
    let body = encode(&message, ContentType::Avro).unwrap();
    assert_eq!(
        decode::<PassthroughRequest>(&body, ContentType::Avro).unwrap(),
        message
    );
}

#[test]
fn null_unknown_and_missing_fields_are_read() {
    let body =
        br#"{"question": "q", "state": null, "history": null, "streaming": null, "extra": 1}"#;
    let request: AgentRequest = decode(body, ContentType::Json).unwrap();
    assert_eq!(
        (request.question.as_str(), request.state.as_str()),
        ("q", "")
    );
    assert_eq!(request.collection, "default");
}

#[test]
fn nan_is_read_as_null_outside_strings() {
    let body = br#"{"error": null, "response": "NaN \" Infinity", "in_token": NaN, "out_token": -Infinity}"#;
    let reply: TextCompletionResponse = decode(body, ContentType::Json).unwrap();
    assert_eq!(reply.response, "NaN \" Infinity");
    assert_eq!((reply.in_token, reply.out_token), (None, None));
}

#[test]
fn an_older_and_a_newer_version_are_read() {
    let older = r#"{"type":"record","name":"Usage","namespace":"threadgraph","fields":[
        {"name":"id","type":"string","default":""},{"name":"model","type":"string","default":""}]}"#;
    let newer = Usage::AVRO.replacen(
        "\"fields\": [",
        "\"fields\": [{\"name\":\"region\",\"type\":\"string\",\"default\":\"eu\"},",
        1,
    );
    for text in [older, &newer] {
        register(text).unwrap();
        let schema = Schema::parse_str(text).unwrap();
        let Schema::Record(record) = &schema else {
            panic!()
        };
        let fields = record
            .fields
            .iter()
            .map(|field| {
                let value = match field.schema {
                    Schema::Long => Avro::Long(5),
                    Schema::Boolean => Avro::Boolean(true),
                    _ => Avro::String("v".into()),
                };
                (field.name.clone(), value)
            })
            .collect();
        let mut body = vec![0xC3, 0x01];
        body.extend_from_slice(&mark_of(&schema));
        let writer = GenericDatumWriter::builder(&schema).build().unwrap();
        body.extend(writer.write_value_to_vec(Avro::Record(fields)).unwrap());
        let read: Usage = decode(&body, ContentType::Avro).unwrap();
        assert_eq!((read.id.as_str(), read.model.as_str()), ("v", "v"));
    }
}

#[test]
fn an_unknown_schema_is_told_apart_from_noise() {
    let mut body = encode(&Usage::default(), ContentType::Avro)
        .unwrap()
        .to_vec();
    body[4] ^= 0xFF;
    assert!(matches!(
        decode::<Usage>(&body, ContentType::Avro),
        Err(CodecError::UnknownSchema { .. })
    ));
    for noise in [&b""[..], b"\x00\xff\xfe", b"{\"id\": 3", b"[]"] {
        assert!(matches!(
            decode::<Usage>(noise, ContentType::Json),
            Err(CodecError::Malformed { .. })
        ));
        assert!(matches!(
            decode::<Usage>(noise, ContentType::Avro),
            Err(CodecError::Malformed { .. })
        ));
    }
}

/// What the Avro library itself reads from a body.
fn as_the_library_reads<M: Message>(body: &[u8]) -> Json {
    let own = own_schema::<M>();
    let reader = GenericDatumReader::builder(own.schema).build().unwrap();
    let mut datum = &body[10..];
    let value = reader.read_value(&mut datum).unwrap();
    assert!(datum.is_empty(), "{} leaves bytes over", M::NAME);
    from_avro(&value, own.schema, &own.names)
}

#[test]
fn bodies_are_the_librarys_own() {
    let quoted = Term::Quoted(Box::new(Triple::new(
        Term::iri("urn:a"),
        Term::Blank("b".into()),
        Term::literal("ü \" \\"),
    )));
    let triples = Triples {
        metadata: Some(Metadata {
            id: "m".into(),
            ..Metadata::default()
        }),
        triples: vec![
            Triple::new(quoted, Term::iri("urn:p"), Term::literal("")).in_graph("urn:g");
            3
        ],
    };
    let body = encode(&triples, ContentType::Avro).unwrap();
    assert_eq!(
        as_the_library_reads::<Triples>(&body),
        serde_json::to_value(&triples).unwrap()
    );
    let model = ModelInfo {
        created: Some(i64::MIN),
        context_length: Some(i64::MAX),
        input_price: Some(-0.25),
        output_price: Some(f64::NAN),
        input_modalities: vec!["a".into(), String::new()],
        ..ModelInfo::default()
    };
    let body = encode(&model, ContentType::Avro).unwrap();
    assert_eq!(
        as_the_library_reads::<ModelInfo>(&body),
        serde_json::to_value(&model).unwrap()
    );
    let back: ModelInfo = decode(&body, ContentType::Avro).unwrap();
    assert_eq!(
        (back.created, back.context_length),
        (Some(i64::MIN), Some(i64::MAX))
    );
    assert_eq!((back.input_price, back.output_price), (Some(-0.25), None));
    let step = AgentStep {
        arguments: [
            ("k".to_owned(), "v".to_owned()),
            (String::new(), "w".into()),
        ]
        .into(),
        ..AgentStep::default()
    };
    let body = encode(&step, ContentType::Avro).unwrap();
    assert_eq!(
        as_the_library_reads::<AgentStep>(&body),
        serde_json::to_value(&step).unwrap()
    );
    assert_eq!(decode::<AgentStep>(&body, ContentType::Avro).unwrap(), step);
}

#[test]
fn hostile_bodies_are_refused_in_bounds() {
    let whole = encode(
        &Triples {
            metadata: None,
            triples: vec![Triple::new(
                Term::iri("urn:a"),
                Term::iri("urn:b"),
                Term::iri("urn:c"),
            )],
        },
        ContentType::Avro,
    )
    .unwrap();
    for end in 10..whole.len() {
        assert!(
            decode::<Triples>(&whole[..end], ContentType::Avro).is_err(),
            "cut at {end}"
        );
    }
    let head = &whole[..10];
    let with = |datum: &[u8]| decode::<Triples>(&[head, datum].concat(), ContentType::Avro);
    // No metadata, then as many triples as a number can say; a choice that is not there; an endless number.
    for datum in [
        &[
            0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ][..],
        &[
            0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0,
        ][..],
        &[6][..],
        &[0xff; 32][..],
    ] {
        assert!(with(datum).is_err(), "{datum:?}");
    }
    // A triple whose subject quotes a triple whose subject quotes a triple ...
    let mut deep = vec![0, 2];
    for _ in 0..100_000 {
        deep.extend_from_slice(&[2, 2, b't', 0, 0, 0, 0, 0, 2]);
    }
    let error = with(&deep).unwrap_err();
    assert!(error.to_string().contains("nested too deeply"), "{error}");
    // The same in the schema of another release, which the library reads.
    let newer = Triples::AVRO.replacen(
        "\"fields\": [",
        "\"fields\": [{\"name\":\"region\",\"type\":\"string\",\"default\":\"eu\"},",
        1,
    );
    register(&newer).unwrap();
    let mut body = vec![0xC3, 0x01];
    body.extend_from_slice(&mark_of(&Schema::parse_str(&newer).unwrap()));
    body.push(0);
    let flat = [&body, &whole[10..]].concat();
    assert!(decode::<Triples>(&flat, ContentType::Avro).is_ok());
    body.extend_from_slice(&deep);
    let error = decode::<Triples>(&body, ContentType::Avro).unwrap_err();
    assert!(error.to_string().contains("nested too deeply"), "{error}");
}

#[test]
fn a_schema_whose_depth_nobody_bounds_is_refused() {
    let itself = r#"{"type":"record","name":"A","fields":[{"name":"a","type":["null","A"]},
        {"name":"b","type":"bytes"}]}"#;
    assert!(
        register(itself)
            .unwrap_err()
            .message
            .starts_with("avro schema: ")
    );
    let plain = r#"{"type":"record","name":"A","fields":[{"name":"b","type":"bytes"}]}"#;
    assert!(register(plain).is_ok());
}
