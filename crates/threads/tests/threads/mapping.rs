//! JSON and XML: the vectors, both ways, and what has no other form.

use serde_json::{Value, json};
use tg_schemas::WorkspaceId;
use tg_threads::xml::{BadXml, from_xml, to_xml};
use tg_threads::{Envelope, Meta, Name, Payload, PayloadType, SystemError, ThreadId};

use crate::world::object;

const THREAD: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";

pub(crate) fn envelope(to: &str, kind: &str, payload: Value) -> Envelope {
    Envelope {
        id: "c1".to_owned(),
        thread: ThreadId::parse(THREAD).unwrap(),
        from: Name::any("researcher").unwrap(),
        to: Name::any(to).unwrap(),
        kind: PayloadType::any(kind).unwrap(),
        workspace: WorkspaceId::new("default").unwrap(),
        meta: Meta::default(),
        payload: object(payload),
    }
}

pub(crate) fn read(xml: &str, schema: &Value) -> Result<Envelope, BadXml> {
    let workspace = WorkspaceId::new("default").unwrap();
    from_xml(xml, ("c1", &workspace), |_, _| schema.as_object().cloned())
}

fn head(to: &str) -> String {
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>researcher</from><to>{to}</to>\
         <thread>{THREAD}</thread><caller-depth xmlns=\"urn:tg:message:inherited:v1\">0</caller-depth>\
         <delegate-depth xmlns=\"urn:tg:message:inherited:v1\">0</delegate-depth></meta>"
    )
}

fn both_ways(envelope: &Envelope, xml: &str, schema: &Value) {
    assert_eq!(to_xml(envelope).unwrap(), xml);
    assert_eq!(&read(xml, schema).unwrap(), envelope);
}

/// 148: the vectors.
#[test]
fn line_148_envelopes_both_ways() {
    let add = envelope(
        "calculator.add",
        "add",
        json!({"a": 7, "b_side": 5.5, "exact": true,
        "note": "<&>\r\n \"x\"", "tags": ["one"], "empty": "", "deep": {"in_it": [1, 2]}}),
    );
    let xml = format!(
        "{}<calculator.add.add xmlns=\"\"><a>7</a><b-side>5.5</b-side><exact>true</exact>\
         <note>&lt;&amp;&gt;&#13;\n &quot;x&quot;</note><tags>one</tags><empty></empty>\
         <deep><in-it>1</in-it><in-it>2</in-it></deep></calculator.add.add></message>",
        head("calculator.add")
    );
    let schema = json!({"properties": {"a": {"type": "integer"}, "b_side": {"type": "number"},
        "exact": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "object", "properties": {"in_it": {"type": "array", "items": {"type": "integer"}}}}}});
    both_ways(&add, &xml, &schema);
    let mut inherited = envelope("greeter", "textinput", json!({"text": "hi"}));
    inherited.meta = Meta {
        request_id: "r1".to_owned(),
        parent_request_id: Some("r0".to_owned()),
        caller_depth: 2,
        delegate_depth: 1,
        user_id: "ann".to_owned(),
    };
    let xml = to_xml(&inherited).unwrap();
    assert_eq!(read(&xml, &json!({})).unwrap(), inherited);
}

/// 148: what the system says.
#[test]
fn line_148_huh_and_system_error_both_ways() {
    let system = |payload: Payload| Envelope {
        from: Name::any("researcher").unwrap(),
        ..envelope(
            "greeter",
            payload.kind.as_str(),
            Value::Object(payload.body),
        )
    };
    let xml = format!(
        "{}<huh xmlns=\"https://xml-pipeline.org/ns/core/v1\"><error>Invalid payload structure</error>\
         <original-attempt>eA==</original-attempt></huh></message>",
        head("greeter")
    );
    both_ways(&system(Payload::huh(b"x")), &xml, &json!({}));
    let xml = format!(
        "{}<SystemError xmlns=\"\"><code>routing</code><message>Message could not be delivered. Please verify your \
         target and try again.</message><retry-allowed>true</retry-allowed></SystemError></message>",
        head("greeter")
    );
    both_ways(
        &system(Payload::system_error(SystemError::Routing)),
        &xml,
        &json!({}),
    );
}

#[test]
fn prefixes_are_read_as_namespaces() {
    let sent = envelope("a", "b", json!({"x": "y"}));
    let plain = to_xml(&sent).unwrap();
    let long = "https://xml-pipeline.org/ns/envelope/v1";
    let prefixed = plain
        .replace(
            &format!("<message xmlns=\"{long}\">"),
            &format!("<e:message xmlns:e=\"{long}\" odd=\"1\">"),
        )
        .replace("</message>", "</e:message>");
    let prefixed = ["meta", "from", "to", "thread"]
        .into_iter()
        .fold(prefixed, |xml, name| {
            xml.replace(&format!("<{name}>"), &format!("<e:{name}>"))
                .replace(&format!("</{name}>"), &format!("</e:{name}>"))
        });
    assert_eq!(read(&prefixed, &json!({})).unwrap(), sent);
    assert_eq!(
        read(&prefixed.replace("xmlns:e", "xmlns:f"), &json!({})),
        Err(BadXml::Form)
    );
    let many: String = (0..17).map(|at| format!(" xmlns:p{at}=\"u\"")).collect();
    assert_eq!(read(&format!("<a{many}/>"), &json!({})), Err(BadXml::Large));
}

#[test]
fn null_and_empty_lists_are_absent() {
    let some = envelope("a", "b", json!({"x": null, "y": [], "z": 1}));
    let back = read(&to_xml(&some).unwrap(), &json!({})).unwrap();
    assert_eq!(Value::Object(back.payload), json!({"z": "1"}));
}

#[test]
fn what_has_no_other_form_is_refused() {
    for (payload, fault) in [
        (json!({"Upper": 1}), BadXml::Key),
        (json!({"ke-bab": 1}), BadXml::Key),
        (json!({"l": [[1]]}), BadXml::List),
        (json!({"l": [null]}), BadXml::List),
        (json!({"t": "\u{0}"}), BadXml::Character),
    ] {
        assert_eq!(to_xml(&envelope("a", "b", payload)), Err(fault));
    }
    let good = to_xml(&envelope("a", "b", json!({"x": "y"}))).unwrap();
    let integer = json!({"properties": {"x": {"type": "integer"}}});
    assert_eq!(read(&good, &integer), Err(BadXml::Type));
    for (bad, fault) in [
        ("", BadXml::Form),
        ("<message/>", BadXml::Message),
        ("<a><b></a>", BadXml::Form),
        ("<!DOCTYPE m [<!ENTITY e \"x\">]><m>&e;</m>", BadXml::Form),
        (&good.replace("<to>a</to>", ""), BadXml::Message),
        (
            &good.replace("<to>a</to>", "<to>a</to><to>a</to>"),
            BadXml::Message,
        ),
        (&good.replace(THREAD, "abc"), BadXml::Message),
        (&good.replace("a.b", "c.b"), BadXml::Message),
        (&"<a>".repeat(200), BadXml::Large),
    ] {
        assert_eq!(read(bad, &json!({})), Err(fault), "{bad}");
    }
}

/// A namespace stands in every element below it: it has a bound. A name that no element may have has no form.
#[test]
fn names_and_namespaces_have_bounds() {
    let far = |long: usize| read(&format!("<a xmlns=\"{}\"/>", "x".repeat(long)), &json!({}));
    assert_eq!(far(257), Err(BadXml::Large));
    assert_eq!(far(256), Err(BadXml::Message));
    assert_eq!(to_xml(&envelope("0x", "c", json!({}))), Err(BadXml::Key));
    assert!(to_xml(&envelope("x0", "c", json!({}))).is_ok());
}
