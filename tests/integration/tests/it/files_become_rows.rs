//! Data in files becomes rows through the real command: as a descriptor says, or all by itself. What does not fit
//! is told with its line and stays out.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::shared::Workspace;
use crate::world::Bus;

/// Rows are stored by then, also on a busy machine.
const TRIES: u32 = 1_200;

const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps with maker and height", "fields": [
    {"name": "id", "type": "integer", "primary_key": true},
    {"name": "maker", "type": "string", "indexed": true},
    {"name": "height", "type": "float"}]}"#;

/// The rows of a collection, in order, once there are so many.
async fn rows(place: &Workspace, collection: &str, count: usize) -> Result<Vec<Value>> {
    let query = "{ lamps(limit: 1000) { id maker height } }";
    let line = [
        "invoke-rows-query",
        "-q",
        query,
        "-C",
        collection,
        "--format",
        "json",
    ];
    let mut last = String::new();
    for _ in 0..TRIES {
        let output = place.tg(&line).await?;
        last = format!("{}{}", output.stdout, output.stderr);
        let found: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let found = found
            .pointer("/data/lamps")
            .or_else(|| found.get("lamps"))
            .and_then(Value::as_array);
        if let Some(found) = found.filter(|found| found.len() >= count) {
            let mut found = found.clone();
            found.sort_by_key(|row| row["id"].as_i64());
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("not {count} rows: {last}")
}

#[tokio::test]
async fn by_descriptor_and_by_themselves_embedded() -> Result<()> {
    by_descriptor_and_by_themselves(Bus::Embedded).await
}

#[tokio::test]
async fn by_descriptor_and_by_themselves_rabbitmq() -> Result<()> {
    by_descriptor_and_by_themselves(Bus::Rabbit).await
}

async fn by_descriptor_and_by_themselves(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    csv_by_descriptor(bus, &place, &path).await?;
    saved_and_loaded(&place, &path).await?;
    xml_by_descriptor(&place, &path).await?;
    by_themselves(&place, &path).await
}

async fn csv_by_descriptor(
    bus: Bus,
    place: &Workspace,
    path: &impl Fn(&str) -> String,
) -> Result<()> {
    let (csv, errors) = (path("lamps.csv"), path("errors.jsonl"));
    let descriptor = path("lamps.json");

    let mut text = "Number;Maker;Height\n1;\"frask, ottoline\";12.5\nx;nobody;1\n".to_owned();
    for number in 2..=250 {
        text += &format!("{number}; maker {number} ;{number}\n");
    }
    std::fs::write(&csv, text)?;
    let mappings = json!([
        {"source_field": "Number", "target_field": "id", "transforms": [{"type": "to_int"}]},
        {"source_field": "Maker", "target_field": "maker",
         "transforms": [{"type": "trim"}, {"type": "title_case"}]},
        {"source_field": "Height", "target_field": "height", "transforms": [{"type": "to_float"}],
         "validation": [{"type": "range", "min": 0, "max": 1000}]},
    ]);
    let format = json!({"type": "csv", "options": {"delimiter": ";"}});
    let whole = json!({"format": format, "mappings": mappings, "output": {"schema_name": "lamps"}});
    std::fs::write(&descriptor, whole.to_string())?;
    let load = ["load-structured-data", "-i", &csv, "-d", &descriptor];
    let with = |more: &[&'static str]| [&load[..], more].concat();

    // Before there is such a schema, nothing goes.
    let early = place.tg(&with(&["--load"])).await?;
    ensure!(early.code == Some(3), "{early:?}");
    ensure!(
        early.stderr.contains("there is no schema 'lamps'"),
        "{early:?}"
    );
    place
        .tg(&[
            "put-config-item",
            "--type",
            "schema",
            "--key",
            "lamps",
            "--value",
            SCHEMA,
        ])
        .await?;

    place
        .tg(&with(&["--parse-only", "--json"]))
        .await?
        .expect("Frask, Ottoline")?;
    place
        .tg(&with(&["--load", "--dry-run"]))
        .await?
        .expect("Would load 250 rows of lamps")?;
    let line = [&load[..], &["--load", "--error-file", &errors]].concat();
    let loaded = place.tg(&line).await?;
    loaded.expect("Loaded 250 rows of lamps into collection default (1 records refused).")?;
    ensure!(loaded.code == Some(0), "{loaded:?}");
    let told = "record 2 (line 3): id: 'x' is not a whole number";
    ensure!(loaded.stderr.contains(told), "{loaded:?}");
    ensure!(
        std::fs::read_to_string(&errors)?.contains("nobody"),
        "no refused record"
    );
    let found = rows(place, "default", 250).await?;
    ensure!(found.len() == 250, "{} rows", found.len());
    let first = json!({"id": 1, "maker": "Frask, Ottoline", "height": 12.5});
    ensure!(found[0] == first, "{}", found[0]);
    ensure!(found[249]["maker"] == "Maker 250", "{}", found[249]);

    // The gateway confirms what it takes.
    let again = place
        .tg(&with(&["--load", "--json", "--collection", "told"]))
        .await?;
    let counts: Value = serde_json::from_str(&again.stdout).context(again.stdout.clone())?;
    // Over a broker the last word may come after the goodbye; the rows are there all the same.
    let told = counts["confirmed"] == 250 || (bus == Bus::Rabbit && counts["confirmed"].is_null());
    ensure!(counts["rows"] == 250 && told, "{counts}");
    ensure!(rows(place, "told", 250).await?.len() == 250);
    Ok(())
}

/// All rows of a collection go to a file and come back in another one, as they were.
async fn saved_and_loaded(place: &Workspace, path: &impl Fn(&str) -> String) -> Result<()> {
    let file = path("rows.jsonl");
    let saved = place.tg(&["save-rows", "-C", "default", &file]).await?;
    saved.expect("Saved: 250 rows.")?;
    let loaded = place.tg(&["load-rows", "-C", "again", &file]).await?;
    loaded.expect("Loaded: 250 rows.")?;
    ensure!(rows(place, "again", 250).await? == rows(place, "default", 250).await?);
    Ok(())
}

async fn xml_by_descriptor(place: &Workspace, path: &impl Fn(&str) -> String) -> Result<()> {
    let (xml, descriptor) = (path("lamps.xml"), path("xml.json"));
    std::fs::write(
        &xml,
        "<shop><lamp id=\"7\"><by>Ann</by></lamp><lamp id=\"8\"><by>Bo</by></lamp></shop>",
    )?;
    let of_xml = json!({
        "format": {"type": "xml", "options": {"record_path": "//lamp"}},
        "mappings": [{"source": "id", "target": "id"}, {"source": "by", "target": "maker"}],
        "output": {"schema_name": "lamps"},
    });
    std::fs::write(&descriptor, of_xml.to_string())?;
    let line = [
        "load-structured-data",
        "-i",
        &xml,
        "-d",
        &descriptor,
        "--load",
        "-C",
        "xml",
    ];
    place.tg(&line).await?.expect("Loaded 2 rows")?;
    ensure!(rows(place, "xml", 2).await?[1]["maker"] == "Bo");
    Ok(())
}

/// The flow's model finds schema and columns.
async fn by_themselves(place: &Workspace, path: &impl Fn(&str) -> String) -> Result<()> {
    let xml = path("lamps.xml");
    let plain = path("plain.csv");
    std::fs::write(&plain, "id,maker,height\n1,Ann,2.5\n2,Bo,3\n")?;
    place
        .tg(&["load-structured-data", "-i", &plain, "--discover-schema"])
        .await?
        .expect("Best matching schema: lamps")?;
    place
        .tg(&["load-structured-data", "-i", &plain, "--auto", "-C", "auto"])
        .await?
        .expect("Loaded 2 rows of lamps into collection auto")?;
    ensure!(rows(place, "auto", 2).await?[0]["height"] == 2.5);
    let official_auto = ["-i", &plain, "--auto", "--collection", "official"];
    let done = place
        .official("tg-load-structured-data", &official_auto)
        .await?;
    ensure!(
        rows(place, "official", 2).await?[1]["maker"] == "Bo",
        "{done:?}"
    );
    std::fs::write(
        &xml,
        "<shop><lamp><id>7</id><maker>Ann</maker></lamp><lamp><id>8</id><maker>Bo</maker></lamp></shop>",
    )?;
    place
        .tg(&["load-structured-data", "-i", &xml, "--auto", "--dry-run"])
        .await?
        .expect("Would load 2 rows of lamps")?;
    Ok(())
}

#[tokio::test]
async fn a_schema_is_made_of_the_file_embedded() -> Result<()> {
    a_schema_is_made_of_the_file(Bus::Embedded).await
}

#[tokio::test]
async fn a_schema_is_made_of_the_file_rabbitmq() -> Result<()> {
    a_schema_is_made_of_the_file(Bus::Rabbit).await
}

/// Nothing but a file: the schema comes from it, after it was shown, and the rows are there.
async fn a_schema_is_made_of_the_file(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let csv = folder.path().join("Lamps of Pellworth.csv");
    let mut text = "Nr;Maker;Height (m);Lit;Since\n".to_owned();
    for number in 1..=120 {
        text += &format!("{number};\"maker; {number}\";{number}.5;yes;1999-01-01\n");
    }
    std::fs::write(&csv, text)?;
    let csv = csv.to_string_lossy().into_owned();
    let auto = ["load-structured-data", "-i", &csv, "--auto"];
    let with = |more: &[&'static str]| [&auto[..], more].concat();

    // Nobody can be asked: the proposal is shown with what to type, and nothing is made.
    let shown = place.tg(&auto).await?;
    ensure!(shown.code == Some(3), "{shown:?}");
    for wanted in [
        "Proposed schema 'lamps_of_pellworth', from 120 records (CSV, columns parted by ';'):",
        "integer, the key",
        "--auto --make-schema lamps_of_pellworth`",
    ] {
        ensure!(shown.stderr.contains(wanted), "{wanted}: {}", shown.stderr);
    }
    place
        .tg(&with(&["--make-schema", "lamps", "--dry-run"]))
        .await?
        .expect("Would load 120 rows of lamps")?;
    let kinds = ["list-config-items", "--type", "schema"];
    place.tg(&kinds).await?.refuse("lamps")?;

    let made = place.tg(&with(&["--make-schema", "lamps"])).await?;
    made.expect("Loaded 120 rows of lamps into collection default (0 records refused).")?;
    let query = "{ lamps(where: {nr: {eq: 7}}) { nr maker height_m lit since } }";
    let line = ["invoke-rows-query", "-q", query, "--format", "json"];
    let wanted = json!([{"nr": 7, "maker": "maker; 7", "height_m": 7.5, "lit": true, "since": "1999-01-01"}]);
    let mut found = Value::Null;
    for _ in 0..TRIES {
        let output = place.tg(&line).await?;
        let reply: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        found = reply
            .pointer("/data/lamps")
            .unwrap_or(&reply["lamps"])
            .clone();
        if found == wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ensure!(found == wanted, "{found}");

    // The same again is no conflict and doubles nothing; another schema of that name is not overwritten.
    place
        .tg(&with(&["--make-schema", "lamps"]))
        .await?
        .expect("Loaded 120 rows of lamps")?;
    let other = folder.path().join("other.jsonl");
    std::fs::write(
        &other,
        "{\"id\": \"a\", \"at\": {\"x\": 1}}\n{\"id\": \"b\"}\n",
    )?;
    let other = other.to_string_lossy().into_owned();
    let line = [
        "load-structured-data",
        "-i",
        &other,
        "--auto",
        "--make-schema",
    ];
    let refused = place.tg(&[&line[..], &["lamps"]].concat()).await?;
    ensure!(refused.code == Some(2), "{refused:?}");
    ensure!(
        refused.stderr.contains("there is another schema 'lamps'"),
        "{refused:?}"
    );
    place
        .tg(&[&line[..], &["places"]].concat())
        .await?
        .expect("Loaded 2 rows of places")?;
    Ok(())
}
