//! Names, criteria and contents as clients write them.

use tg_schemas::msg::{Criteria, DocumentMetadata};
use tg_testkit::fuzz::run;

use super::{collection, criteria, flow, workspace};

#[test]
fn names_of_collections_and_workspaces() {
    let seeds: [&[u8]; 3] = [b"default", b"9223372036854775807", b"a/../b"];
    run("names of collections and workspaces", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = collection::check(&text);
        let _ = (workspace::id(&text), workspace::generation(&text));
    });
}

/// A line is a part of a criterion.
#[test]
fn criteria_of_listings() {
    let seeds: [&[u8]; 3] = [b"title\ncontains\nX", b"time\n<\n1e400", b"tags\n!=\n"];
    run("criteria of listings", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split('\n').map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        let given = Criteria {
            key: next(),
            operator: next(),
            value: next(),
        };
        let document = DocumentMetadata {
            title: "an X".to_owned(),
            tags: vec![text.to_string()],
            ..DocumentMetadata::default()
        };
        for criterion in criteria::read(vec![given]).unwrap_or_default() {
            let _ = criterion.holds(&document);
        }
    });
}

#[test]
fn rows_of_collections_and_flows() {
    let seeds: [&[u8]; 2] = [
        br#"{"name": "n", "description": "d", "tags": ["a"], "generation": 7, "created-at": "x"}"#,
        br#"{"interfaces": {"text-load": {"flow": "flow:tg:text-load:w:f"}}, "blueprint-name": "b"}"#,
    ];
    run("rows of collections", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let read = collection::from_row("c", &text);
        assert!(collection::generation(&collection::value(&read, 3)) == 3);
        let _ = collection::generation(&text);
        if let Some(flow) = flow::Flow::read(&text) {
            let _ = (flow.load("text/plain"), flow.triples());
        }
    });
}
