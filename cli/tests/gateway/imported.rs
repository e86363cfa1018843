//! `tg import-workspace` against a small library that keeps what it is given.

use std::fs::File;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::added::{Library, changes, serve, sum};

const CONTENT: &str = "The lamp was built by Ada Brisk.";
const OTHER: &str = "The lamp was built by Nora Vane.";

/// A bundle with one document.
fn write(bundle: &Path) {
    let file = File::create(bundle).expect("created");
    let mut tar = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
    for (name, body) in [
        (
            "manifest.json",
            r#"{"format":"tgx","format_version":1,"workspace":"w"}"#,
        ),
        ("knowledge/library/d.meta.json", r#"{"id":"d"}"#),
        ("knowledge/library/d.content", CONTENT),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(body.len() as u64);
        header.set_mode(0o644);
        let added = tar.append_data(&mut header, name, body.as_bytes());
        added.expect("added");
    }
    let packed = tar.into_inner().expect("written");
    packed.finish().expect("written");
}

/// The library takes each request with a known id for a repetition, as it does with those of one second.
#[tokio::test]
async fn a_content_that_comes_back_is_processed_under_another_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("w.tgx");
    write(&bundle);
    let library = Library::ends("complete");
    library.lock().expect("a library").flows = Some(vec!["default"]);
    let fake = serve(&library).await;
    let bundle = bundle.to_str().expect("a path");
    let line = ["import-workspace", "-i", bundle, "--overwrite", "--process"];
    for round in 0..3 {
        {
            let mut library = library.lock().expect("a library");
            let other =
                json!({"id": "d", "kind": "text/plain", "content-hash": sum(OTHER.as_bytes())});
            library.documents = vec![other];
            let by_hand = json!({"id": format!("by hand {round}"), "document-id": "d",
                "flow": "default", "collection": "default", "status": "complete"});
            library.processings.push(by_hand);
        }
        let printed = fake.tg(&line).await.printed();
        let started = "Processing of 1 document started (0 before, 0 not started).";
        assert!(printed.contains(started), "{printed}");
    }
    let hash = sum(CONTENT.as_bytes());
    let stem = format!("import of d ({})", &hash[..12]);
    let library = library.lock().expect("a library");
    let ids: Vec<&str> = library
        .processings
        .iter()
        .filter_map(|one| one["id"].as_str())
        .filter(|id| !id.starts_with("by hand"))
        .collect();
    let again = |number| format!("{stem} again {number}");
    assert_eq!(ids, [stem.clone(), again(1), again(2)]);
    assert_eq!(changes(&fake).len(), 6);
    assert_eq!(library.documents[0]["content-hash"], hash);
}
