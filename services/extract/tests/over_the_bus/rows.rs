//! Rows of declared tables.

use serde_json::json;
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use crate::world::{TEXT, World, chunk, effects, items, work};

const ROWS: &str = "kg-extract-rows";
const BRIDGE: &str = r#"{"name": "bridge", "description": "Bridges", "fields": [
    {"name": "name", "type": "string", "primary_key": true}, {"name": "built", "type": "integer"}]}"#;

async fn each_table_is_asked_for_and_bad_rows_are_told(place: Place) {
    let rows = Config::new();
    rows.put("schema", "bridge", BRIDGE).put(
        "schema",
        "flood",
        r#"{"fields": [{"name": "year", "type": "integer"}]}"#,
    );
    let replies = [
        items(
            json!([{"name": "Old Bridge", "built": "1429"}, {"name": "Low Bridge", "built": "?"}]),
        ),
        items(json!([])),
    ];
    let world = World::start(&place, ROWS, rows, replies).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(entry.outcome, "ok");
    assert_eq!(
        work(&entry),
        effects(&[("bad-lines", 1), ("model-calls", 2)])
    );
    assert_eq!(entry.detail, "bridge: built: is not a whole number");
    assert_eq!(
        entry.written.len(),
        1,
        "a table without rows gets no record"
    );
    world.flow.until(async || world.rows.count() == 1).await;
    let object = &world.rows.all()[0];
    assert_eq!(object.schema_name, "bridge");
    assert_eq!(object.metadata.as_ref().unwrap().id, "urn:chunk:1:bridge");
    assert_eq!(object.metadata.as_ref().unwrap().root, "urn:doc:1");
    assert_eq!(object.source_span, TEXT);
    assert_eq!(object.values.len(), 1);
    assert_eq!(object.values[0]["built"], "1429");
    let schemas: Vec<_> = world
        .prompts
        .asked
        .lock()
        .iter()
        .map(|ask| ask.terms["schema"].clone())
        .collect();
    assert!(
        schemas[0].contains("\"Bridges\"") && schemas[1].contains("\"year\""),
        "{schemas:?}"
    );
    // All of it again, for nothing.
    world.process(&chunk("urn:chunk:2", TEXT), "r2").await;
    assert_eq!(world.calls(), 2);
}

async fn a_bad_table_is_told_and_the_others_go_on(place: Place) {
    let rows = Config::new();
    rows.put("schema", "bad", "{\"fields\": 3}")
        .put("schema", "bridge", BRIDGE);
    let world = World::start(&place, ROWS, rows, [items(json!([{"name": "Old Bridge"}]))]).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!((entry.outcome.as_str(), entry.written.len()), ("failed", 1));
    assert!(
        entry.detail.starts_with("schema 'bad': "),
        "{}",
        entry.detail
    );
    world.flow.until(async || world.rows.count() == 1).await;
}

tg_testkit::on_both_buses!(
    each_table_is_asked_for_and_bad_rows_are_told,
    a_bad_table_is_told_and_the_others_go_on,
);
