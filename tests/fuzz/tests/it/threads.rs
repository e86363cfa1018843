//! Messages between listeners in their XML form, and rows of listeners.

use serde_json::json;
use tg_schemas::WorkspaceId;
use tg_testkit::fuzz::run;
use tg_threads::xml::{from_xml, to_xml};

#[test]
fn messages_as_xml() {
    let seeds: [&[u8]; 3] = [
        b"<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>a</from><to>b</to><thread>\
          6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70</thread></meta><b.c xmlns=\"\"><x>1</x><x>2</x><y-z>t</y-z></b.c></message>",
        b"<m:message xmlns:m=\"https://xml-pipeline.org/ns/envelope/v1\"><m:meta/><huh \
          xmlns=\"https://xml-pipeline.org/ns/core/v1\"><error>&lt;</error></huh></m:message>",
        b"<a b='c' xmlns:d='e'><![CDATA[x]]><!-- y --></a>",
    ];
    let workspace = WorkspaceId::new("w").expect("a valid id");
    let schema = json!({"properties": {"x": {"type": "array", "items": {"type": "integer"}}}});
    run("messages as XML", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let read = from_xml(&text, ("i", &workspace), |_, _| schema.as_object().cloned());
        let Ok(message) = read else { return };
        if let Ok(again) = to_xml(&message) {
            let schema = |_: &_, _: &_| schema.as_object().cloned();
            assert_eq!(from_xml(&again, ("i", &workspace), schema), Ok(message));
        }
    });
}

#[test]
fn rows_of_listeners() {
    let seeds: [&[u8]; 3] = [
        br#"{"description": "d", "agent": true, "peers": ["a.b"], "types": {"t": {"type": "object",
            "properties": {"x": {"$ref": "" }}}}}"#,
        br#"{"description": "d", "types": {"t": {"examples": [{}], "enum": [1], "items": {"minimum": 2}}}}"#,
        br#"{"description": "d", "types": {"t": {"pattern": "^(a|b){2,9}$", "patternProperties": {"\\d+": {}}}}}"#,
    ];
    run("rows of listeners", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let rows = [("x", text.as_ref()), (text.as_ref(), "{}")];
        let _ = tg_threads_service::engine::rows::Listeners::read(rows);
    });
}
