//! Commands that send or write files.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::fake::{Fake, Heard, Say, asked};

#[tokio::test]
async fn turtle_goes_in_frames_with_its_document_and_collection() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.ttl");
    let text: String = (0..2500)
        .map(|n| format!("<urn:s> <urn:p> {n} .\n"))
        .collect();
    fs::write(&path, text).expect("written");
    let file = path.to_str().expect("a path");
    // The command looks for what it loaded until the graph shows it.
    let looked = AtomicUsize::new(0);
    let fake = Fake::socket(move |_| {
        let there = looked.fetch_add(1, Ordering::SeqCst) > 0;
        let triple = json!({"s": {"t": "i", "i": "urn:s"}});
        let found = if there { vec![triple] } else { Vec::new() };
        vec![Say::Last(json!({"response": found}))]
    })
    .await;
    let ran = fake
        .tg(&["load-turtle", "-i", "doc", "-C", "c", file])
        .await;
    assert!(ran.talk.contains("2500 triples"));
    assert_eq!(ran.printed(), "Triples loaded.\n");
    let frames: Vec<Value> = fake
        .heard()
        .into_iter()
        .filter_map(|heard| match heard {
            Heard::Import(frame) => Some(frame),
            _ => None,
        })
        .collect();
    let sizes: Vec<usize> = frames
        .iter()
        .map(|frame| frame["triples"].as_array().map_or(0, Vec::len))
        .collect();
    // The facts, then the file that they come from.
    assert_eq!(sizes, [1000, 1000, 500, 5, 1000, 1000, 500]);
    let held = &frames[4]["triples"][0];
    assert_eq!(held["g"], "urn:graph:source");
    assert_eq!(held["o"]["tr"], frames[0]["triples"][0]);
    assert_eq!(
        frames[0]["metadata"],
        json!({"id": "doc", "metadata": [], "collection": "c"})
    );
}

#[tokio::test]
async fn what_is_loaded_into_a_new_collection_makes_it_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.ttl");
    fs::write(&path, "<urn:s> <urn:p> 1 .").expect("written");
    let file = path.to_str().expect("a path");
    let load = |collection| ["load-turtle", "-i", "doc", "-C", collection, file];
    let found = || json!({"response": [{"s": {"t": "i", "i": "urn:s"}}]});
    let gateway = async |made: fn() -> (u16, Value)| {
        let rest = move |_: &str, body: &Value| match body["operation"].as_str() {
            Some("list-collections") => (200, json!({"collections": [{"collection": "there"}]})),
            _ => made(),
        };
        Fake::start(rest, move |_| vec![Say::Last(found())]).await
    };
    let made = |fake: &Fake| -> Vec<Value> {
        let heard = fake.heard().into_iter().filter_map(|heard| match heard {
            Heard::Rest(_, _, body) => Some(body),
            _ => None,
        });
        heard
            .filter(|body| body["operation"] == "update-collection")
            .collect()
    };
    let fake = gateway(|| (200, json!({"collections": [{"collection": "new"}]}))).await;
    for known in ["there", "default"] {
        let ran = fake.tg(&load(known)).await;
        assert_eq!(ran.printed(), "Triples loaded.\n");
    }
    assert_eq!(made(&fake), [] as [Value; 0]);
    let ran = fake.tg(&load("new")).await;
    assert!(ran.talk.contains("Collection new is new."), "{}", ran.talk);
    assert_eq!(made(&fake)[0]["collection"], "new");
    // Who may not make it is told before anything is loaded.
    let fake = gateway(|| (403, json!({"error": "access denied"}))).await;
    let error = fake.tg(&load("new")).await.error().to_string();
    assert!(error.contains("you may not make one"), "{error}");
    let loaded = fake.heard().into_iter();
    let mut loaded = loaded.filter(|heard| matches!(heard, Heard::Import(_)));
    assert_eq!(loaded.next(), None);
}

#[tokio::test]
async fn loading_gives_up_in_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = folder.path().join("good.ttl");
    let text: String = (0..5000)
        .map(|n| format!("<urn:s> <urn:p> {n} .\n"))
        .collect();
    fs::write(&good, text).expect("written");
    let bad = folder.path().join("bad.ttl");
    fs::write(&bad, "<urn:s> <urn:p> .").expect("written");
    let fake = Fake::socket(|_| Vec::new()).await;

    let file = good.to_str().expect("a path");
    let line = [
        "load-turtle",
        "-i",
        "doc",
        "-f",
        "cut",
        "--retries",
        "0",
        file,
    ];
    assert_eq!(fake.tg(&line).await.error().exit_code(), 7);
    let line = ["load-turtle", "-i", "doc", "-f", "refused", file];
    assert_eq!(fake.tg(&line).await.error().exit_code(), 5);
    let line = ["load-turtle", "-i", "doc", bad.to_str().expect("a path")];
    let error = fake.tg(&line).await.error();
    assert!(error.to_string().contains("bad.ttl"));
}

#[tokio::test]
async fn a_large_document_goes_in_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("big.bin");
    fs::write(&path, vec![7_u8; 5 << 20]).expect("written");
    let fake = Fake::rest(|_, body| match body["operation"].as_str() {
        Some("begin-upload") => (200, json!({"upload-id": "u", "chunk-size": 2 << 20})),
        _ => (200, json!({})),
    })
    .await;
    let file = path.to_str().expect("a path");
    let line = [
        "add-library-document",
        "-k",
        "text/plain",
        "--tags",
        "a,b",
        file,
    ];
    assert!(
        fake.tg(&line)
            .await
            .printed()
            .contains("Loaded successfully.")
    );
    let asked = asked(&fake);
    let operations: Vec<&str> = asked
        .iter()
        .filter_map(|body| body["operation"].as_str())
        .collect();
    assert_eq!(
        operations,
        [
            "begin-upload",
            "upload-chunk",
            "upload-chunk",
            "upload-chunk",
            "complete-upload"
        ]
    );
    assert_eq!(asked[0]["document-metadata"]["tags"], json!(["a", "b"]));
    assert_eq!(asked[3]["chunk-index"], 2);
}

#[tokio::test]
async fn content_is_printed_as_it_is_and_nothing_is_an_error() {
    let fake = Fake::rest(|path, _| {
        assert_eq!(
            path,
            "/api/v1/document-stream?document-id=urn%3Ad&workspace=acme"
        );
        (200, json!("some text"))
    })
    .await;
    let line = ["get-document-content", "urn:d", "-w", "acme"];
    assert_eq!(fake.tg(&line).await.printed(), "some text\n");

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.txt");
    let line = [&line[..], &["-o", path.to_str().expect("a path")]].concat();
    assert!(
        fake.tg(&line)
            .await
            .printed()
            .starts_with("Written 9 bytes")
    );
    assert_eq!(fs::read_to_string(&path).expect("read"), "some text");

    let empty = Fake::rest(|_, _| (200, json!(""))).await;
    let error = empty.tg(&["get-document-content", "urn:d"]).await.error();
    assert_eq!(error.exit_code(), 3);
}
