//! Rows over the bus: written as records, asked with GraphQL, forgotten by chunk and by collection.

use std::collections::BTreeMap;
use tg_runs::JobId;

use serde_json::{Value, json};
use tg_schemas::msg::{
    CollectionDrop, CollectionDropped, ExtractedObject, Metadata, Retract, RowsQueryRequest,
    RowsQueryResponse,
};
use tg_schemas::processors::rows_write::{self, RETRACT};
use tg_schemas::{Class, ErrorCode};
use tg_testkit::config::Config;
use tg_testkit::flow::{TestFlow, Wiring};
use tg_testkit::place::Place;

const CITIES: &str = r#"{"fields": [{"name": "id", "type": "integer", "primary_key": true},
    {"name": "name"}, {"name": "people", "type": "integer", "indexed": true}]}"#;
const WIRING: &[Wiring] = &[
    ("rows-write", &[("input", Class::Flow, "rows-store")]),
    ("rows-query", &[("request", Class::Request, "rows")]),
];

struct System {
    flow: TestFlow,
    _dir: tempfile::TempDir,
}

async fn start(place: &Place, rows: Config) -> System {
    rows.put("schema", "cities", CITIES)
        .put("schema", "broken", "{")
        .collection("docs", 3);
    let dir = tempfile::tempdir().unwrap();
    let options = tg_rows::Options {
        data_dir: dir.path().to_owned(),
        ..tg_rows::Options::default()
    };
    let host = |mesh: &_| tg_rows::processors(mesh, options);
    System {
        flow: TestFlow::start(place, rows, WIRING, host).await,
        _dir: dir,
    }
}

fn object(id: &str, collection: &str, values: &[&[(&str, &str)]]) -> ExtractedObject {
    let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    ExtractedObject {
        metadata: Some(Metadata {
            id: id.to_owned(),
            root: "urn:doc".to_owned(),
            collection: collection.to_owned(),
        }),
        schema_name: "cities".to_owned(),
        values: values
            .iter()
            .map(|pairs| pairs.iter().map(own).collect::<BTreeMap<_, _>>())
            .collect(),
        ..ExtractedObject::default()
    }
}

impl System {
    async fn names(&self, collection: &str) -> Vec<String> {
        let answer = self
            .ask(
                collection,
                "{ cities(order_by: \"id\") { name } }",
                json!({}),
            )
            .await;
        assert!(answer.errors.is_empty(), "{answer:?}");
        let data: Value = serde_json::from_str(&answer.data).unwrap();
        let rows = data["cities"].as_array().cloned().unwrap_or_default();
        rows.iter()
            .map(|row| row["name"].as_str().unwrap_or("-").to_owned())
            .collect()
    }

    async fn ask(&self, collection: &str, query: &str, variables: Value) -> RowsQueryResponse {
        let question = RowsQueryRequest {
            collection: collection.to_owned(),
            query: query.to_owned(),
            variables: variables.as_object().cloned().unwrap_or_default(),
            ..RowsQueryRequest::default()
        };
        self.flow.ask("rows", &question).await.unwrap()
    }

    async fn until(&self, collection: &str, names: &[&str]) {
        self.flow
            .until(async || self.names(collection).await == names)
            .await;
    }
}

async fn rows_are_stored_asked_for_and_taken_back(place: Place) {
    let system = start(&place, Config::new()).await;
    let run = JobId::new(3, "default", "p");
    let record = object(
        "urn:chunk:1:cities",
        "docs",
        &[
            &[("id", "1"), ("name", "Rome"), ("people", "2748109")],
            &[("id", "2"), ("name", "Oslo"), ("people", "709037")],
        ],
    );
    system
        .flow
        .write_in("rows-store", &record, &run, "r1")
        .await;
    let told = system.flow.tallied("r1").await;
    assert_eq!((told.outcome.as_str(), told.effects["rows"]), ("ok", 2));
    assert_eq!(told.subject, "urn:chunk:1");
    let other = object(
        "urn:chunk:2:cities",
        "docs",
        &[&[("id", "2"), ("name", "Oslo")]],
    );
    system.flow.write("rows-store", &other).await;
    system
        .flow
        .write(
            "rows-store",
            &object("x", "docs_2024", &[&[("id", "9"), ("name", "Bonn")]]),
        )
        .await;
    system.until("docs_2024", &["Bonn"]).await;
    system.until("docs", &["Rome", "Oslo"]).await;

    let query = "query ($least: Int) { cities(where: {people: {gte: $least}}) { id people } }";
    let answer = system.ask("docs", query, json!({"least": 1_000_000})).await;
    assert_eq!(answer.data, r#"{"cities":[{"id":1,"people":2748109}]}"#);

    let retract = Retract {
        metadata: record.metadata.clone(),
        chunks: vec!["urn:chunk:1".to_owned()],
        ..Retract::default()
    };
    system.flow.write(RETRACT.name, &retract).await;
    system.until("docs", &["Oslo"]).await;

    let drop = CollectionDrop {
        workspace: "default".to_owned(),
        collection: "docs".to_owned(),
        generation: 3,
    };
    let dropped: CollectionDropped = system
        .flow
        .ask_system(rows_write::DROP.name, &drop)
        .await
        .unwrap();
    assert_eq!(dropped.removed["rows"], 1);
    assert!(system.names("docs").await.is_empty());
    assert_eq!(system.names("docs_2024").await, ["Bonn"]);
}

async fn what_does_not_fit_is_told_and_the_rest_is_stored(place: Place) {
    let system = start(&place, Config::new()).await;
    let record = object(
        "load",
        "c",
        &[
            &[("id", "1"), ("name", "Rome")],
            &[("id", "one"), ("name", "Oslo")],
        ],
    );
    system.flow.write("rows-store", &record).await;
    assert_eq!(
        system.flow.dead_letter_reason().await,
        "values[1].id: is not a whole number"
    );
    assert_eq!(system.names("c").await, ["Rome"]);
    let unknown = ExtractedObject {
        schema_name: "nowhere".to_owned(),
        ..record
    };
    system.flow.write("rows-store", &unknown).await;
    assert_eq!(
        system.flow.dead_letter_reason().await,
        "schema_name: there is no schema 'nowhere'"
    );
}

/// All rows, as they were written: what was left out stays left out, and numbers are as they were spelt.
async fn everything_leaves_page_by_page_as_it_was_written(place: Place) {
    let system = start(&place, Config::new()).await;
    let texts: Vec<[String; 2]> = (0..1_001)
        .map(|n| [format!("{n}"), format!("Town {n}")])
        .collect();
    let rows: Vec<[(&str, &str); 2]> = texts
        .iter()
        .map(|[id, name]| [("id", id.as_str()), ("name", name.as_str())])
        .collect();
    let values: Vec<&[(&str, &str)]> = rows.iter().map(|row| &row[..]).collect();
    let record = object("load", "c", &values);
    system.flow.write("rows-store", &record).await;
    let other = object("load", "other", &[&[("id", "7.0"), ("people", "1")]]);
    system.flow.write("rows-store", &other).await;
    let page = async |collection: &str, after: &str| {
        let question = RowsQueryRequest {
            collection: collection.to_owned(),
            export: true,
            after: after.to_owned(),
            ..RowsQueryRequest::default()
        };
        let page = system.flow.ask::<_, RowsQueryResponse>("rows", &question);
        page.await
    };
    system
        .flow
        .until(async || {
            let held = async |collection| page(collection, "").await.unwrap().rows.len();
            (held("c").await, held("other").await) == (1_000, 1)
        })
        .await;
    let first = page("c", "").await.unwrap();
    assert_eq!(
        (first.schema_name.as_str(), first.rows.len()),
        ("cities", 1_000)
    );
    let second = page("c", &first.next).await.unwrap();
    assert_eq!((second.rows.len(), second.next.as_str()), (1, ""));
    let all = [first.rows, second.rows].concat();
    assert_eq!(all, record.values);
    let other_page = page("other", "").await.unwrap();
    assert_eq!(other_page.rows, other.values);
    let nothing = page("nothing", "").await.unwrap();
    assert_eq!(nothing, RowsQueryResponse::default());
    let refused = page("c", "nowhere").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BadRequest);
}

async fn bad_queries_say_what_is_wrong(place: Place) {
    let system = start(&place, Config::new()).await;
    let answer = system.ask("c", "{ broken { id } }", json!({})).await;
    let told: Vec<_> = answer
        .errors
        .iter()
        .map(|fault| fault.message.as_str())
        .collect();
    assert!(
        told.iter()
            .any(|text| text.starts_with("schema 'broken' is left out")),
        "{told:?}"
    );
    let empty = RowsQueryRequest::default();
    let refused = system
        .flow
        .ask::<_, RowsQueryResponse>("rows", &empty)
        .await
        .unwrap_err();
    assert_eq!(
        (refused.code(), refused.message.as_str()),
        (ErrorCode::BadRequest, "query: is required")
    );
}

async fn a_late_retraction_meets_nothing_of_the_next_life(place: Place) {
    let rows = Config::new();
    rows.collection("docs", 3);
    let system = start(&place, rows).await;
    let run = |generation| JobId::new(generation, "default", "p");
    let values: &[&[(&str, &str)]] = &[&[("id", "1"), ("name", "Rome")]];
    let record = object("urn:chunk:1:cities", "docs", values);
    system
        .flow
        .write_in("rows-store", &record, &run(3), "r")
        .await;
    system.flow.tallied("r").await;
    let retract = Retract {
        metadata: record.metadata.clone(),
        chunks: vec!["urn:chunk:1".to_owned()],
        ..Retract::default()
    };
    system
        .flow
        .write_in(RETRACT.name, &retract, &run(2), "late")
        .await;
    assert_eq!(system.flow.tallied("late").await.outcome, "ok");
    assert_eq!(system.names("docs").await, ["Rome"]);
    system
        .flow
        .write_in(RETRACT.name, &retract, &run(3), "due")
        .await;
    system.flow.tallied("due").await;
    assert!(system.names("docs").await.is_empty());
}

/// Done once, however often it is delivered: what a later run made the same stays.
async fn a_retraction_that_comes_again_takes_nothing_of_a_later_run(place: Place) {
    let rows = Config::new();
    rows.collection("docs", 3);
    let system = start(&place, rows).await;
    let run = JobId::new(3, "default", "p");
    let values: &[&[(&str, &str)]] = &[&[("id", "1"), ("name", "Rome")]];
    let record = object("urn:chunk:1:cities", "docs", values);
    let retract = Retract {
        metadata: record.metadata.clone(),
        chunks: vec!["urn:chunk:1".to_owned()],
        ..Retract::default()
    };
    let flow = &system.flow;
    flow.write_in("rows-store", &record, &run, "r").await;
    flow.tallied("r").await;
    flow.write_in(RETRACT.name, &retract, &run, "due").await;
    flow.tallied("due").await;
    assert!(system.names("docs").await.is_empty());
    flow.write_in("rows-store", &record, &run, "back").await;
    flow.tallied("back").await;
    flow.write_in(RETRACT.name, &retract, &run, "due").await;
    let nothing = Retract {
        chunks: vec!["urn:chunk:2".to_owned()],
        ..retract.clone()
    };
    flow.write_in(RETRACT.name, &nothing, &run, "behind").await;
    flow.tallied("behind").await;
    assert_eq!(system.names("docs").await, ["Rome"]);
    flow.write_in(RETRACT.name, &retract, &run, "other").await;
    flow.tallied("other").await;
    assert!(system.names("docs").await.is_empty());
}

tg_testkit::on_both_buses!(
    rows_are_stored_asked_for_and_taken_back,
    what_does_not_fit_is_told_and_the_rest_is_stored,
    bad_queries_say_what_is_wrong,
    everything_leaves_page_by_page_as_it_was_written,
    a_late_retraction_meets_nothing_of_the_next_life,
    a_retraction_that_comes_again_takes_nothing_of_a_later_run,
);
