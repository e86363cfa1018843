//! Document embeddings that pass by are kept in a file, and go back from it; samples go into the library.

use std::fs;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tg_cli::interrupt::Interrupt;

use crate::fake::{Fake, Heard, asked};

fn imported(fake: &Fake) -> Vec<Value> {
    let frame = |heard| match heard {
        Heard::Import(frame) => Some(frame),
        _ => None,
    };
    fake.heard().into_iter().filter_map(frame).collect()
}

#[tokio::test]
async fn what_passes_is_saved_until_the_flow_ends_and_loads_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let fake = Fake::socket(|_| Vec::new()).await;
    for format in ["msgpack", "json"] {
        let path = folder.path().join(format);
        let file = path.to_str().expect("a path");
        let line = [
            "save-doc-embeds",
            "-f",
            "stopped",
            "-t",
            "tg_x",
            "-o",
            file,
            "--format",
            format,
        ];
        let ran = fake.tg(&line).await;
        assert_eq!(ran.printed(), "Saved: 2 records, 2 chunks.\n");
        let opened = fake.heard().into_iter().find_map(|heard| match heard {
            Heard::Rest(path, _, query) if path == "export stopped document-embeddings" => {
                Some(query)
            }
            _ => None,
        });
        let query = opened.expect("opened").to_string();
        assert!(query.contains(r#"["token","tg_x"]"#), "{query}");

        let line = ["load-doc-embeds", "-f", "f", "-i", file, "--format", format];
        let ran = fake.tg(&line).await;
        assert_eq!(ran.printed(), "Loaded: 2 records, 2 chunks.\n");
    }
    let frames = imported(&fake);
    assert_eq!(frames.len(), 4);
    assert_eq!(frames[1]["metadata"]["collection"], "other");
    assert_eq!(
        frames[1]["chunks"],
        json!([{"chunk_id": "urn:2/k", "vector": [0.5]}])
    );
    assert_eq!(frames[0], frames[2]);
}

#[tokio::test]
async fn saving_ends_by_ctrl_c_or_silence_and_only_what_is_whole_has_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("saved");
    let file = path.to_str().expect("a path");
    let fake = Fake::socket(|_| Vec::new()).await;

    let line = [
        "save-doc-embeds",
        "-f",
        "quiet",
        "-o",
        file,
        "-C",
        "c",
        "--idle",
        "1",
    ];
    assert_eq!(
        fake.tg(&line).await.printed(),
        "Saved: 1 records, 1 chunks.\n"
    );
    fs::remove_file(&path).expect("there");

    let line = ["save-doc-embeds", "-f", "quiet", "-o", file, "-n", "1"];
    assert_eq!(
        fake.tg(&line).await.printed(),
        "Saved: 1 records, 1 chunks.\n"
    );
    fs::remove_file(&path).expect("there");

    // One that has heard nobody read yet.
    let fake = Fake::socket(|_| Vec::new()).await;
    let (switch, interrupt) = Interrupt::manual();
    let line = ["save-doc-embeds", "-f", "quiet", "-o", file];
    let stop = async {
        fake.hears(|heard| *heard == Heard::Read).await;
        switch.send_replace(true);
    };
    let (ran, ()) = tokio::join!(fake.tg_until(&line, interrupt), stop);
    assert_eq!(ran.printed(), "Saved: 2 records, 2 chunks.\n");
    assert!(path.exists());
    fs::remove_file(&path).expect("there");

    let line = ["save-doc-embeds", "-f", "broken", "-o", file];
    let ran = fake.tg(&line).await;
    assert!(ran.talk.contains("2 records are in"), "{}", ran.talk);
    assert!(ran.error().to_string().contains("that is all"));
    assert!(!path.exists());

    let line = ["save-doc-embeds", "-f", "refused", "-o", file];
    assert_eq!(fake.tg(&line).await.error().exit_code(), 5);
}

#[tokio::test]
async fn a_core_of_something_else_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kg");
    fs::write(&path, "[\"t\", {\"t\": []}]\n").expect("written");
    let file = path.to_str().expect("a path");
    let fake = Fake::socket(|_| Vec::new()).await;
    let line = ["load-doc-embeds", "-i", file, "--format", "json"];
    let error = fake.tg(&line).await.error().to_string();
    assert!(
        error.ends_with("record 1: holds no document embeddings"),
        "{error}"
    );
    assert!(imported(&fake).is_empty());
}

#[tokio::test]
async fn samples_go_into_the_library_once() {
    let fake = Fake::rest(|_, body| match body["document-metadata"]["id"].as_str() {
        Some("urn:demo:tz") => {
            let why = json!({"type": "request-error", "message": "Document already exists"});
            (200, json!({"error": why}))
        }
        _ => (200, json!({})),
    })
    .await;
    let printed = fake.tg(&["load-sample-documents"]).await.printed();
    assert!(
        printed.contains("Uncommon clocks (urn:demo:clocks): loaded"),
        "{printed}"
    );
    assert!(
        printed.contains("(urn:demo:tz): is there already"),
        "{printed}"
    );
    let asked = asked(&fake);
    assert!(asked.iter().all(|body| body["operation"] == "add-document"));
    assert!(
        asked[0]["content"]
            .as_str()
            .is_some_and(|content| content.starts_with("JVBERi"))
    );
}

#[tokio::test]
async fn token_rates_are_averages_over_all_series() {
    let seen = std::sync::atomic::AtomicU32::new(0);
    let fake = Fake::rest(move |path, _| {
        let number = seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let sample = |value: u32| json!({"metric": {}, "value": [0, value.to_string()]});
        let result = match path.contains("input_tokens_total") {
            true => json!([sample(number * 1000), sample(1)]),
            false => json!([]),
        };
        (
            200,
            json!({"status": "success", "data": {"resultType": "vector", "result": result}}),
        )
    })
    .await;
    let printed = fake.tg(&["show-token-rate", "-n", "2"]).await.printed();
    let lines: Vec<Vec<&str>> = printed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["Input", "Output", "Total"]);
    assert_eq!(lines.len(), 4);
    let rate: f64 = lines[3][0].parse().expect("a number");
    // Four thousand tokens in two seconds and a little.
    assert!((1000.0..=2000.0).contains(&rate), "{printed}");
    assert_eq!((lines[3][1], lines[3][0]), ("0.0", lines[3][2]));
}

#[tokio::test]
async fn rows_are_saved_whole_or_not_at_all_and_load_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let fake = Fake::socket(|_| Vec::new()).await;
    let path = folder.path().join("rows.jsonl");
    let file = path.to_str().expect("a path");
    for flow in ["stopped", "broken"] {
        let ran = fake.tg(&["save-rows", "-f", flow, "-C", "c", file]).await;
        assert!(ran.result.is_err(), "{flow}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
    let ran = fake
        .tg(&["save-rows", "-f", "whole", "-C", "c", file])
        .await;
    assert_eq!(ran.printed(), "Saved: 4 rows.\n");
    let opened = fake.heard().into_iter().find_map(|heard| match heard {
        Heard::Rest(path, _, query) if path == "export whole rows" => Some(query),
        _ => None,
    });
    let query = opened.expect("opened").to_string();
    assert!(query.contains(r#"["stored","1"]"#), "{query}");
    assert!(query.contains(r#"["collection","c"]"#), "{query}");
    // As the gateway ends a plain request.
    let lines = fs::read_to_string(&path).expect("lines");
    fs::write(
        &path,
        format!("{lines}{{\"frames\": 2, \"complete\": true}}\n"),
    )
    .expect("written");
    let ran = fake.tg(&["load-rows", "-f", "f", "-C", "d", file]).await;
    assert_eq!(ran.printed(), "Loaded: 4 rows.\n");
    let frames = imported(&fake);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0]["metadata"]["collection"], "d");
    assert_eq!(frames[1]["values"][0], json!({"name": "Rome"}));
}

#[tokio::test]
async fn what_a_store_did_not_take_is_told_and_fails_the_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let fake = Fake::socket(|_| Vec::new()).await;
    let (rows, triples) = (folder.path().join("rows.jsonl"), folder.path().join("t.nt"));
    let frame = json!({"metadata": {"id": "r", "collection": "c"}, "schema_name": "s",
        "values": [{"n": "1"}, {"n": "x"}]});
    fs::write(&rows, format!("{frame}\n").repeat(4)).expect("written");
    let triple = |n: usize| format!("<urn:{n}> <urn:p> \"words\" .\n");
    let lines: String = (0..2500).map(triple).collect();
    fs::write(&triples, lines).expect("written");
    let (rows, triples) = (
        rows.to_str().expect("a path"),
        triples.to_str().expect("a path"),
    );

    let line = ["load-rows", "-f", "choosy", rows];
    let ran = fake.tg(&line).await;
    for told in [
        "rows 4 refused: n: must be a number",
        "rows 5 to 6 not confirmed: not in time",
    ] {
        assert!(ran.talk.contains(told), "{}", ran.talk);
    }
    let error = ran.error().to_string();
    let whole = "4 of 8 rows are known to be stored: the store refused something of 1 of 4 batches, and did not confirm in \
                 time 1 of 4 batches";
    assert!(error.contains(whole), "{error}");
    let ran = fake.tg(&[&line[..], &["--json"]].concat()).await;
    let shown: Value = serde_json::from_str(&ran.data).expect("JSON");
    let settled = &shown["settled"];
    assert_eq!((&shown["rows"], &settled["stored"]), (&json!(8), &json!(4)));
    assert_eq!(
        settled["refused"],
        json!([{"frame": 2, "from": 3, "to": 4, "type": "bad-content",
            "message": "values[1].n: must be a number",
            "items": [{"item": 4, "message": "n: must be a number"}]}])
    );
    assert_eq!(settled["unconfirmed"][0]["from"], 5);

    let ran = fake
        .tg(&["load-turtle", "-f", "choosy", "-i", "urn:d", triples])
        .await;
    assert!(
        ran.talk
            .contains("line 1002 (triples 1002) refused: n: must be a number"),
        "{}",
        ran.talk
    );
    assert!(
        ran.talk
            .contains("lines 2001 to 2500 (triples 2001 to 2500) not confirmed"),
        "{}",
        ran.talk
    );
    assert!(ran.result.is_err());

    let ran = fake
        .tg(&["load-knowledge", "-f", "choosy", "-i", "urn:d", triples])
        .await;
    for told in [
        "line 1002 (triples 1002) refused: n: must be a number",
        "line 102 (contexts 102) refused: n: must be a number",
        "lines 201 to 300 (contexts 201 to 300) not confirmed",
    ] {
        assert!(ran.talk.contains(told), "{}", ran.talk);
    }
    assert!(ran.result.is_err());
}

#[tokio::test]
async fn a_bundle_names_the_triples_that_a_store_did_not_take() {
    let reply = json!({"flow-ids": ["choosy"], "collections": [{"collection": "c"}], "config": {}});
    let fake = Fake::rest(move |_, _| (200, reply.clone())).await;
    let manifest = r#"{"format": "tgx", "format_version": 1, "workspace": "w"}"#;
    let quad = |n: usize| format!("<urn:{n}> <urn:p> \"o\" <urn:trustgraph:collection:c> .\n");
    let quads: String = (0..2500).map(quad).collect();
    let members = [
        ("manifest.json", manifest),
        ("knowledge/c/triples.nq", quads.as_str()),
    ];
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, body) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(body.len() as u64);
        header.set_mode(0o644);
        let added = tar.append_data(&mut header, name, body.as_bytes());
        added.expect("added");
    }
    let packed = tar.into_inner().expect("written");
    let packed = packed.finish().expect("written");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.tgx");
    fs::write(&path, packed).expect("written");
    let file = path.to_str().expect("a path");

    let line = ["import-workspace", "-f", "choosy", "-i", file];
    let ran = fake.tg(&line).await;
    for named in [
        "triples of collection c, number 1002 refused: n: must be a number",
        "triples of collection c, number 2001 to 2500 not confirmed: not in time",
    ] {
        assert!(ran.talk.contains(named), "{}", ran.talk);
    }
    assert!(ran.result.is_err());
    let ran = fake.tg(&[&line[..], &["--json"]].concat()).await;
    let shown: Value = serde_json::from_str(&ran.data).expect("JSON");
    let refused = &shown["not-stored"][0]["settled"]["refused"][0]["items"];
    let items = json!([{"item": 1002, "message": "n: must be a number"}]);
    assert_eq!(refused, &items, "{shown}");
}
