//! `tg load-structured-data` against a gateway made by hand.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::fake::{Fake, Heard, asked};

const SCHEMA: &str =
    r#"{"fields": [{"name": "id", "type": "integer", "primary_key": true}, {"name": "name"}]}"#;

fn descriptor() -> Value {
    json!({
        "format": {"type": "csv"},
        "mappings": [{"source_field": "id"},
                     {"source_field": "name", "transforms": [{"type": "upper"}]}],
        "output": {"schema_name": "people", "options": {"batch_size": 2, "confidence": 0.5}},
    })
}

/// A gateway with a schema, and a model that knows how to read the data.
async fn gateway() -> Fake {
    Fake::rest(|path, body| match body["operation"].as_str() {
        Some("get") => {
            let known = body["keys"][0]["key"] == "people";
            let value = if known { json!(SCHEMA) } else { Value::Null };
            (
                200,
                json!({"values": [{"type": "schema", "key": "people", "value": value}]}),
            )
        }
        Some("list") => (200, json!({"directory": ["people", "others"]})),
        Some("schema-selection") if path.ends_with("/service/structured-diag") => {
            let fits = body["sample"]
                .as_str()
                .is_some_and(|sample| sample.starts_with("id,name"));
            let found = if fits {
                json!(["people", "others"])
            } else {
                json!([])
            };
            (200, json!({"schema-matches": found}))
        }
        Some("diagnose") => {
            let mut made = descriptor();
            made["output"]["schema_name"] = json!("Our people");
            (200, json!({"descriptor": made, "detected-type": "csv"}))
        }
        _ => (404, json!({"error": "unknown"})),
    })
    .await
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(csv: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.csv"), csv).expect("written");
        fs::write(folder.path().join("d.json"), descriptor().to_string()).expect("written");
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }
}

fn imported(fake: &Fake) -> Vec<Value> {
    let frame = |heard| match heard {
        Heard::Import(frame) => Some(frame),
        _ => None,
    };
    fake.heard().into_iter().filter_map(frame).collect()
}

const CSV: &str = "id,name\n1,ann\n2,bob\nx,cy\n3,dan\n";

#[tokio::test]
async fn rows_go_in_batches_and_are_confirmed() {
    let fake = gateway().await;
    let files = Files::new(CSV);
    let (csv, descriptor) = (files.path("a.csv"), files.path("d.json"));
    let line = [
        "load-structured-data",
        "-i",
        &csv,
        "-d",
        &descriptor,
        "--load",
        "-C",
        "c",
    ];
    let ran = fake.tg(&line).await;
    assert!(
        ran.talk
            .contains("record 3 (line 4): id: 'x' is not a whole number"),
        "{}",
        ran.talk
    );
    let wanted = "Loaded 3 rows of people into collection c (1 records refused).\n";
    assert_eq!(ran.printed(), wanted);
    let frames = imported(&fake);
    assert_eq!(frames.len(), 2);
    assert_eq!(
        frames[0]["values"],
        json!([{"id": "1", "name": "ANN"}, {"id": "2", "name": "BOB"}])
    );
    assert_eq!(frames[1]["metadata"]["collection"], "c");
    assert_eq!(
        (&frames[1]["schema_name"], &frames[1]["confidence"]),
        (&json!("people"), &json!(0.5))
    );

    let line = [&line[..], &["--json", "--batch-size", "9"]].concat();
    let counts: Value = serde_json::from_str(&fake.tg(&line).await.printed()).expect("JSON");
    assert_eq!(
        (&counts["rows"], &counts["confirmed"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(imported(&fake).len(), 3);
}

#[tokio::test]
async fn nothing_goes_where_it_does_not_fit() {
    let fake = gateway().await;
    let files = Files::new(CSV);
    let (csv, path) = (files.path("a.csv"), files.path("d.json"));
    let line = ["load-structured-data", "-i", &csv, "-d", &path, "--load"];
    let dry = [&line[..], &["--dry-run"]].concat();
    assert!(
        fake.tg(&dry)
            .await
            .printed()
            .starts_with("Would load 3 rows")
    );
    let strict = [&line[..], &["--dry-run", "--max-errors", "0"]].concat();
    assert!(
        fake.tg(&strict)
            .await
            .error()
            .to_string()
            .contains("more than the 0 records")
    );
    let named = [&line[..], &["--schema-name", "nobody"]].concat();
    let error = fake.tg(&named).await.error();
    assert_eq!(
        (error.exit_code(), error.to_string()),
        (3, "there is no schema 'nobody'".to_owned())
    );

    let mut wrong = descriptor();
    wrong["mappings"][1]["target_field"] = json!("title");
    fs::write(Path::new(&path), wrong.to_string()).expect("written");
    let error = fake.tg(&line).await.error().to_string();
    assert!(
        error.contains("the schema 'people' has no field 'title'; it has id, name"),
        "{error}"
    );
    wrong["mappings"][1]["transforms"] = json!([{"type": "calculate"}]);
    fs::write(Path::new(&path), wrong.to_string()).expect("written");
    let error = fake.tg(&line).await.error().to_string();
    assert!(
        error.contains("mappings[1].transforms[0].type: 'calculate' is not supported"),
        "{error}"
    );
    assert!(imported(&fake).is_empty());
}

#[tokio::test]
async fn a_broken_import_says_how_much_was_confirmed() {
    let fake = gateway().await;
    let many: String = (0..100).map(|n| format!("{n},n\n")).collect();
    let files = Files::new(&format!("id,name\n{many}"));
    let (csv, descriptor) = (files.path("a.csv"), files.path("d.json"));
    let line = [
        "load-structured-data",
        "-i",
        &csv,
        "-d",
        &descriptor,
        "--load",
        "-f",
        "cut",
    ];
    let ran = fake.tg(&line).await;
    assert!(
        ran.talk.contains("2 of ") && ran.talk.contains("rows sent were confirmed"),
        "{}",
        ran.talk
    );
    assert!(ran.error().to_string().contains("ended the import early"));
}

#[tokio::test]
async fn schema_and_descriptor_are_found_and_loaded() {
    let fake = gateway().await;
    let files = Files::new(CSV);
    let (csv, made) = (files.path("a.csv"), files.path("made.json"));
    let base = ["load-structured-data", "-i", &csv];
    let ran = fake.tg(&[&base[..], &["--discover-schema"]].concat()).await;
    assert_eq!(
        ran.printed(),
        "Matching schemas, the best first:\n  - people\n  - others\n"
    );

    let line = [&base[..], &["--generate-descriptor", "-o", &made]].concat();
    fake.tg(&line).await.printed();
    let made: Value = serde_json::from_slice(&fs::read(&made).expect("read")).expect("JSON");
    assert_eq!(made["output"]["schema_name"], "people");
    let diagnosed = asked(&fake)
        .into_iter()
        .find(|body| body["operation"] == "diagnose");
    let diagnosed = diagnosed.expect("asked");
    assert_eq!(
        (&diagnosed["schema-name"], &diagnosed["type"]),
        (&json!("people"), &json!("csv"))
    );

    let ran = fake.tg(&[&base[..], &["--auto", "-v"]].concat()).await;
    assert!(
        ran.talk.contains(r#"Record 1: {"id":"1","name":"ANN"}"#),
        "{}",
        ran.talk
    );
    assert!(
        ran.printed()
            .starts_with("Loaded 3 rows of people into collection default")
    );

    let unknown = Files::new("colour\nred\n");
    let csv = unknown.path("a.csv");
    let error = fake
        .tg(&["load-structured-data", "-i", &csv, "--auto"])
        .await
        .error();
    assert_eq!(error.exit_code(), 3);
    // What to type instead is said.
    let told = error.to_string();
    assert!(told.contains("--auto --make-schema a`"), "{told}");
}

#[tokio::test]
async fn parsed_rows_are_shown_or_saved_without_a_gateway() {
    let fake = Fake::rest(|_, _| (500, json!({"error": "nobody should ask"}))).await;
    let files = Files::new(CSV);
    let (csv, descriptor, rows) = (
        files.path("a.csv"),
        files.path("d.json"),
        files.path("rows.json"),
    );
    let line = [
        "load-structured-data",
        "-i",
        &csv,
        "-d",
        &descriptor,
        "--parse-only",
    ];
    let ran = fake.tg(&line).await;
    assert!(
        ran.talk
            .contains("Parsed 4 records as csv: 4 rows of people, 2 fields, 0 refused.")
    );
    assert_eq!(ran.printed().lines().count(), 3);
    let saved = [&line[..], &["-o", &rows, "--sample-size", "2"]].concat();
    fake.tg(&saved).await.printed();
    let rows: Value = serde_json::from_slice(&fs::read(&rows).expect("read")).expect("JSON");
    assert_eq!(rows.as_array().expect("rows").len(), 2);
    assert_eq!(rows[1]["metadata"]["id"], "parsed-2");
    assert_eq!(rows[1]["values"], json!({"id": "2", "name": "BOB"}));
    let printed = fake.tg(&[&line[..], &["--json"]].concat()).await.printed();
    let all: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(all.as_array().expect("rows").len(), 4);
    assert!(fake.heard().is_empty());
}
